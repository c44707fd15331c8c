"""What an experiment on real data says where the data are absent."""

from __future__ import annotations


def absent(*files: str) -> str | None:
    """Why the first file that is missing from the data folder is missing, with the remedy; None if all are there."""
    from sparsact.datasets.landscapes import data_file  # here: it reads tables by pyarrow

    for file in files:
        try:
            data_file(file)
        except FileNotFoundError as missing:
            return str(missing)
    return None

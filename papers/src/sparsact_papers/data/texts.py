"""Texts for models of characters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sparsact.datasets.landscapes import data_file

TINYSHAKESPEARE = "text/tinyshakespeare.txt"


@dataclass(frozen=True)
class WrittenText:
    """A text, and where it comes from."""

    text: str
    source: str
    licence: str


def load_tinyshakespeare(folder: str | Path | None = None) -> WrittenText:
    """A million characters of Shakespeare's plays, of 65 kinds.

    Parameters
    ----------
    folder : path, optional
        Folder that holds ``text/tinyshakespeare.txt``; default :func:`~sparsact.datasets.data_folder`.

    Returns
    -------
    text : WrittenText
        The characters, and where they come from.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If it holds nothing, or no UTF-8 text.
    """
    path = data_file(TINYSHAKESPEARE, folder)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); fetch it anew.") from error
    if not text:
        raise ValueError(f"{path} is empty; fetch it anew.")
    return WrittenText(text, "Karpathy, char-rnn (2015): tinyshakespeare", "public domain")

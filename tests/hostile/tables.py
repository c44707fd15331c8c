"""Small tables in every form that is read, and a reader that goes through them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sparsact.datasets.table_stream import open_table

ENDINGS = (".csv", ".tsv", ".csv.gz", ".parquet", ".npz")


def tables(folder: Path) -> list[tuple[str, bytes]]:
    """Ending and content of a file of each form."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (23, 3)), rng.normal(size=23)
    text = "a,b,c,y\n" + "".join(f"{a},{b},{c},{value}\n" for (a, b, c), value in zip(X.tolist(), y, strict=True))
    frame = pa.table({"a": X[:, 0], "b": pa.array([f"{i:03b}" for i in X[:, 1]]), "c": X[:, 2] == 1, "y": y})
    pyarrow.parquet.write_table(frame, folder / "t.parquet")
    np.savez_compressed(folder / "t.npz", X=X.astype(np.int8), y=y)
    return [
        (".csv", text.encode()),
        (".tsv", text.replace(",", "\t").encode()),
        (".csv.gz", gzip.compress(text.encode(), mtime=0)),
        (".parquet", (folder / "t.parquet").read_bytes()),
        (".npz", (folder / "t.npz").read_bytes()),
    ]


def read_table(path: Path) -> bool:
    """Whether a file is a table; if it is not, a ValueError has said so."""
    try:
        table = open_table(path, "y")
        for X, answers in table.batches():
            assert len(X) == len(answers)
    except ValueError as error:
        assert str(error).strip()  # noqa: PT017 - it may also be a table
        return False
    return True

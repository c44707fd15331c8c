"""Tables of numbers and texts that lie in the data folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from sparsact.datasets.landscapes import data_file

TABLES = ("kin40k", "elevators", "pol")


@dataclass(frozen=True, eq=False)
class TabularData:
    """A table of numbers: X (m, n) and y (m,) float64, as in the file; ``test_masks`` (10, m) bool, a fold a row.

    Columns are not scaled: a learner's own affair, with the training rows alone.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    test_masks: NDArray[np.bool_]
    source: str
    licence: str


def load_tabular(name: str, folder: str | Path | None = None) -> TabularData:
    """One of the tables ``"kin40k"``, ``"elevators"`` and ``"pol"``.

    Parameters
    ----------
    name : str
    folder : path, optional
        Folder with ``tabular/<name>.data.csv.gz`` and ``tabular/<name>.test_mask.csv.gz``; default
        :func:`~sparsact.datasets.data_folder`.

    Returns
    -------
    data : TabularData

    Examples
    --------
    .. code-block:: python

        pol = load_tabular("pol")
        for test in pol.test_masks:
            model.fit(pol.X[~test], pol.y[~test]).score(pol.X[test], pol.y[test])
    """
    if name not in TABLES:
        raise ValueError(f"name={name!r} is unknown; choose one of {', '.join(TABLES)}.")
    rows = _numbers(data_file(f"tabular/{name}.data.csv.gz", folder))
    masks = _numbers(data_file(f"tabular/{name}.test_mask.csv.gz", folder)).T
    if masks.shape[1] != len(rows) or not np.isin(masks, (0, 1)).all():
        raise ValueError(f"the test masks of {name} do not belong to its {len(rows)} rows; fetch both files anew.")
    return TabularData(rows[:, :-1].copy(), rows[:, -1].copy(), masks.astype(bool), "UCI / Delve", "MIT (collection)")


def _numbers(path: Path) -> NDArray[np.float64]:
    table = pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=True))
    return np.column_stack([column.to_numpy() for column in table.columns]).astype(np.float64)


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
    """
    path = data_file(TINYSHAKESPEARE, folder)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); fetch it again.") from error
    if not text:
        raise ValueError(f"{path} is empty; fetch it again.")
    return WrittenText(text, "Karpathy, char-rnn (2015): tinyshakespeare", "public domain")

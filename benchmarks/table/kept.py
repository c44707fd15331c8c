"""Every figure that the files of ``results/`` hold, as rows of a benchmark; prose takes its figures from here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks import landscapes, letters, planted, regression
from benchmarks.figures import Figure
from benchmarks.table import newest
from benchmarks.table.cells import Rows

FOLDER: Final = Path(__file__).parents[2] / "results"
OF_FIGURES: Final = ("benchmarks", "gpu", "mixture_gpu", "routed_steps")  # files of rows that are figures


def kept(folder: Path = FOLDER) -> Rows:
    """The newest figure of every work and quantity, from all files.

    Raises
    ------
    ValueError
        If two files hold figures of one work and quantity: one of them is old and nobody would see which is shown.
    """
    rows: Rows = {}
    for name in OF_FIGURES:
        _add(rows, newest(folder / f"{name}.jsonl"), name)
    _add(rows, _as_rows("regression", regression.figures(_measured(folder, "regression"), False)), "regression")
    _add(rows, _as_rows("landscapes", landscapes.figures(_measured(folder, "landscapes"))), "landscapes")
    _add(rows, _as_rows("letters", letters.figures(_measured(folder, "letters"))), "letters")
    _add(rows, _as_rows("planted", planted.figures(_measured(folder, "planted"))), "planted")
    return rows


def _add(rows: Rows, found: Rows, name: str) -> None:
    twice = rows.keys() & found.keys()
    if twice:
        raise ValueError(f"{min(twice)} stands in {name}.jsonl and in another file of results; remove the older rows.")
    rows |= found


def _measured(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _as_rows(benchmark: str, figures: Iterable[Figure]) -> Rows:
    return {
        (figure.work, figure.quantity): {"benchmark": benchmark, **asdict(figure), "met": figure.met}
        for figure in figures
    }

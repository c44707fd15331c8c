"""Every figure that the files of ``results/`` hold, as rows of a benchmark; prose takes its figures from here."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks import distil, effect_intervals, landscapes, letters, planted, regression
from benchmarks.table import newest
from benchmarks.table.cells import Rows

FOLDER: Final = Path(__file__).parents[2] / "results"
OF_FIGURES: Final = (
    "benchmarks",
    "experts_cpu",
    "gpu",
    "memories",
    "mixture_gpu",
    "models",
    "routed_steps",
)  # files of rows that are figures


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
    for contest in (distil, regression, landscapes, letters, planted, effect_intervals):
        name = contest.__name__.rpartition(".")[2]
        lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        figures = contest.figures([json.loads(line) for line in lines])
        found = {(each.work, each.quantity): {"benchmark": name, **asdict(each), "met": each.met} for each in figures}
        _add(rows, found, name)
    return rows


def _add(rows: Rows, found: Rows, name: str) -> None:
    twice = rows.keys() & found.keys()
    if twice:
        raise ValueError(f"{min(twice)} stands in {name}.jsonl and in another file of results; remove the older rows.")
    rows |= found

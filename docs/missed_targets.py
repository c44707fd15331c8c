"""The targets that the newest rows miss: a fold for each benchmark, and in it every miss."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Final

from benchmarks.registry import BENCHMARKS
from benchmarks.table.cells import Row
from benchmarks.table.kept import kept

WORDS: Final = {  # a quantity, in words where its name alone says too little
    "2,000 in, 2,000 out, 10,000 predictions": "update by 2,000 new and 2,000 old rows, and 10,000 predictions",
    "LSHRegressor: a row of a batch": "prediction of one row of a batch, median",
    "LSHRegressor: a row of a batch, 99th percentile": "prediction of one row of a batch, 99th percentile",
    "LSHRegressor: one query": "prediction of a single row, median",
    "LSHRegressor: RMSE over RBFInterpolator's": "error (RMSE) divided by the error of RBFInterpolator",
    "LSHRegressor: RMSE over the best rival's": "error (RMSE) divided by the error of the best other model",
    "LSHRegressor, base auto: RMSE over the best rival's": "error with base auto divided by the best other error",
    "default over one thread": "seconds of the default divided by seconds on one thread",
    "error over the teacher's": "error divided by the error of the teacher",
    "found": "share of the runs that find exactly the true columns",
    "gather, times as fast": "active units known beforehand: times as fast as dense",
    "load_sae, times as fast": "times as fast as plain PyTorch",
    "loop, times as fast": "times as fast as a loop over experts",
    "ours over the best peer": "error divided by the error of the best other model",
    "ours over the best peer, geometric mean": "error divided by the error of the best other model, geometric mean",
    "seconds, most": "longest fit",
    "share of the bound": "speed-up divided by its Amdahl bound",
    "sparsact": "mean relative error of this library",
    **{
        f"sparse {ours}, times as fast as the fastest dense side, own dense {dense}": (
            f"sparse {ours}, times as fast as the fastest dense program, here our own with {dense} weights"
        )
        for ours, dense in (("int8", "int4"), ("int4", "int4"), ("int4", "int8"))
    },
}


def missed_targets(path: Path) -> None:
    """Write a sentence with the counts and the folds, to be included by ``benchmarks.rst``; most misses come first."""
    judged = [row for row in kept().values() if row["met"] is not None]
    missed = [row for row in judged if not row["met"]]
    targets = Counter(row["benchmark"] for row in judged)
    page = [f"The newest runs miss {len(missed):,} of {len(judged):,} targets. Open a benchmark to see its misses.", ""]
    for name, count in Counter(row["benchmark"] for row in missed).most_common():
        page += [
            f".. dropdown:: {count} of {targets[name]} missed. {BENCHMARKS[name].goal.removesuffix('.')}",
            "   :class-container: claim",
            "",
        ]
        page += [f"   From ``python -m benchmarks {name}``:", ""]
        rows = sorted((row for row in missed if row["benchmark"] == name), key=_title)
        for title, group in groupby(rows, key=_title):
            page += [
                f"   {title[0].upper()}{title[1:]}",
                *(f"     - {row['work']}: {_number(row, 'value')}" for row in group),
                "",
            ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")


def _title(row: Row) -> str:
    """What was measured, and its target."""
    side = "least" if row["least"] is not None and row["value"] < row["least"] else "most"
    return f"{WORDS.get(row['quantity'], row['quantity'])}; target: at {side} {_number(row, side)}"


def _number(row: Row, key: str) -> str:
    """The value or a limit of a row, with as many digits as a miss needs to be seen; a ratio has no unit."""
    limit = row["most"] if row["least"] is None else row["least"]
    digits = 3 if f"{row['value']:.3g}" != f"{limit:.3g}" else 5
    unit = "" if row["unit"] == "x" else f" {row['unit']}"
    return f"{row[key]:.{digits}g}{unit}".rstrip()

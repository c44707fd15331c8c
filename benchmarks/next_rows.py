"""Rows that ``suggest_rows`` chooses beside random ones: errors of effects on three complete landscapes.

Each draw begins with 20 random rows. Five batches of 20 follow, chosen for the effects of one and two columns or drawn
at random, and after each ``model="gp"`` is fitted. Errors are root mean squares over the coefficients of these effects.
Goal: after five batches .7 of the mean error of random rows on each landscape, and after none more than it.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.figures import TIMES, Figure
from benchmarks.harness import Row, kept_rows
from benchmarks.landscapes import table
from benchmarks.program import KEPT_ROWS, program
from sparsact import fit_table
from sparsact.datasets import open_table
from sparsact.fourier import walsh_hadamard

TABLES: Final = ("eqFP611 combined", "S309", "LLVM")
SIDES: Final = ("suggested", "random")
BATCHES, BATCH = 5, 20


def measured(name: str, seed: int, side: str) -> Row:
    """Errors before and after each batch, over the root mean square of the effects."""
    X, y = table(name)
    data = pa.table([*X.T, y, np.arange(len(y))], [*(f"x{i}" for i in range(X.shape[1])), "y", "place"])
    encoding = open_table(data, "y", ignore=["place"]).encoding
    truth = walsh_hadamard(y[np.argsort(X @ (1 << np.arange(X.shape[1])))])
    wanted = np.isin(np.bitwise_count(np.arange(len(truth))), (1, 2))
    order = np.random.default_rng([seed, len(y)]).permutation(len(y))
    rows, errors = order[:BATCH], []
    for batch in range(BATCHES + 1):
        result = fit_table(data.take(rows), "y", model="gp", encoding=encoding, explain=False)
        away = (result.model.spectrum_.coefficients - truth)[wanted]
        errors.append(float(np.linalg.norm(away) / np.linalg.norm(truth[wanted])))
        chosen = side == "suggested" and batch < BATCHES
        new = result.suggest(BATCH, data).table["place"].to_numpy() if chosen else order[len(rows) :][:BATCH]
        rows = np.append(rows, new)
    return {"errors": errors}


@program(KEPT_ROWS, repeats=10)
def main(arguments: Namespace) -> list[Figure]:
    """Errors of both sides, and ratios of their means after all batches and after any."""
    tables = TABLES[-1:] if arguments.quick else TABLES
    names = product(tables, range(1 if arguments.quick else arguments.repeats), SIDES)
    cells = [({"table": one[0], "seed": one[1], "side": one[2]}, partial(measured, *one)) for one in names]
    kept, figures = list(kept_rows(arguments.rows, cells)), []
    for name in tables:
        of_sides = [[row["errors"] for row in kept if row["table"] == name and row["side"] == side] for side in SIDES]
        for side, errors in zip(SIDES, of_sides, strict=True):
            figures.append(Figure.of(name, f"error, {side}", [each[-1] for each in errors], ""))
        ratios = np.divide(*(np.mean(errors, axis=0) for errors in of_sides))
        figures.append(Figure(name, "mean error over random rows'", float(ratios[-1]), TIMES, most=0.7))
        figures.append(Figure(name, "the same after any batch, at most", float(ratios.max()), TIMES, most=1.0))
    return figures

"""Rows that ``suggest_rows`` chooses beside random ones, by what is known of effects on three complete landscapes.

Each draw begins with 20 random rows. Five batches of 20 follow, chosen for the effects of one and two columns or drawn
at random; a Gaussian process is fitted (``model="gp"``) after each. Errors are root mean squares over the coefficients
of these effects, against the whole landscape's. Goal: after five batches .7 of the mean error of random rows on each
landscape, and after none more than it.
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
SHARE: Final = 0.7


def measured(name: str, seed: int, side: str, batches: int = BATCHES) -> Row:
    """Errors before and after each batch, over the root mean square of the effects."""
    X, y = table(name)
    data = pa.table([*X.T, y], [*(f"x{i}" for i in range(X.shape[1])), "y"])
    numbered = data.append_column("place", pa.array(np.arange(len(y))))
    places, encoding = X @ (1 << np.arange(X.shape[1])), open_table(data, "y").encoding
    truth = walsh_hadamard(y[np.argsort(places)])
    wanted = np.isin(np.bitwise_count(np.arange(len(truth))), (1, 2))
    order = np.random.default_rng([seed, len(y)]).permutation(len(y))
    rows, errors = order[:BATCH], []
    for batch in range(batches + 1):
        result = fit_table(data.take(rows), "y", model="gp", encoding=encoding, explain=False)
        away = (result.model.spectrum_.coefficients - truth)[wanted]
        errors.append(float(np.linalg.norm(away) / np.linalg.norm(truth[wanted])))
        new = order[BATCH * (batch + 1) :][:BATCH]
        if side == "suggested" and batch < batches:
            new = result.suggest(BATCH, numbered).table["place"].to_numpy()
        rows = np.append(rows, new)
    return {"errors": errors}


@program(KEPT_ROWS, repeats=10)
def main(arguments: Namespace) -> list[Figure]:
    """Mean errors of both sides over the draws, their ratio, and the largest ratio of means after any batch."""
    tables, batches = (TABLES[-1:], 1) if arguments.quick else (TABLES, BATCHES)
    names = product(tables, range(1 if arguments.quick else arguments.repeats), SIDES)
    cells = [({"table": t, "seed": s, "side": e}, partial(measured, t, s, e, batches)) for t, s, e in names]
    kept, figures = list(kept_rows(arguments.rows, cells)), []
    for name in tables:
        of_sides = [[row["errors"] for row in kept if row["table"] == name and row["side"] == side] for side in SIDES]
        for side, errors in zip(SIDES, of_sides, strict=True):
            figures.append(Figure.of(name, f"error, {side}", [each[-1] for each in errors], ""))
        ratios = np.divide(*(np.mean(errors, axis=0) for errors in of_sides))
        figures.append(Figure(name, "mean error over random rows'", float(ratios[-1]), TIMES, most=SHARE))
        figures.append(Figure(name, "the same after any batch, at most", float(ratios.max()), TIMES, most=1.0))
    return figures

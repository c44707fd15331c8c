"""Rows chosen by ``suggest_rows``, compared with random rows: errors of effects on three complete landscapes.

Each draw begins with 20 random rows. Five batches of 20 follow, either chosen for the effects of one and two columns or
drawn at random; after each, ``model="gp"`` is fitted. Errors are root mean squares over the coefficients of these
effects. Targets: 0.7 of the mean error of random rows after five batches, on each landscape; never more than it.

The best that a design can gain is measured too: both sides know the kernel and the noise of 800 rows, and learn only
the effects.
"""

from __future__ import annotations

from argparse import Namespace
from functools import cache, partial
from itertools import product
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.figures import TIMES, Figure
from benchmarks.harness import Row, kept_rows
from benchmarks.landscapes import table
from benchmarks.program import KEPT_ROWS, program
from sparsact import CubeGPRegressor, fit_table, suggest_rows
from sparsact.datasets import Encoding, open_table
from sparsact.fourier import walsh_hadamard

TABLES: Final = ("eqFP611 combined", "S309", "LLVM")
SIDES: Final = ("suggested", "random")
KNOWN: Final = ("suggested, known kernel", "random, known kernel")
BATCHES, BATCH = 5, 20
KNOWN_ROWS: Final = 800


@cache
def known_kernel(name: str) -> dict[str, Any]:
    """Kernel and noise of a process of 800 rows, as parameters of another."""
    X, y = table(name)
    rows = np.random.default_rng(len(y)).permutation(len(y))[:KNOWN_ROWS]
    model = CubeGPRegressor(domain="cube", random_state=0).fit(X[rows].astype(bool), y[rows])
    return {"kernel": model.kernel_, "noise_variance": model.noise_variance_, "optimizer": None, "domain": "cube"}


def fitted(name: str, data: pa.Table, encoding: Encoding, *, known: bool) -> Any:
    """The process of some rows, with its own kernel or the known one."""
    if not known:
        return fit_table(data, "y", model="gp", encoding=encoding, explain=False).model
    X = np.stack([data[column].to_numpy() for column in encoding.source_columns], axis=1).astype(bool)
    model = CubeGPRegressor(**known_kernel(name)).fit(X, data["y"].to_numpy())
    model.table_encoding_ = encoding.to_json()
    return model


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
        model = fitted(name, data.take(rows), encoding, known=side in KNOWN)
        away = (model.spectrum_.coefficients - truth)[wanted]
        errors.append(float(np.linalg.norm(away) / np.linalg.norm(truth[wanted])))
        chosen = side in (SIDES[0], KNOWN[0]) and batch < BATCHES
        new = suggest_rows(model, BATCH, data).table["place"].to_numpy() if chosen else order[len(rows) :][:BATCH]
        rows = np.append(rows, new)
    return {"errors": errors}


@program(KEPT_ROWS, repeats=10)
def main(arguments: Namespace) -> list[Figure]:
    """Errors of both sides, and ratios of their means after all batches and after any."""
    tables = TABLES[-1:] if arguments.quick else TABLES
    names = product(tables, range(1 if arguments.quick else arguments.repeats), SIDES + KNOWN)
    cells = [({"table": one[0], "seed": one[1], "side": one[2]}, partial(measured, *one)) for one in names]
    kept, figures = list(kept_rows(arguments.rows, cells)), []
    for name in tables:
        of_sides = {
            side: [row["errors"] for row in kept if row["table"] == name and row["side"] == side]
            for side in SIDES + KNOWN
        }
        for side, errors in of_sides.items():
            figures.append(Figure.of(name, f"error, {side}", [each[-1] for each in errors], ""))
        ratios, known = (
            np.divide(*(np.mean(of_sides[side], axis=0) for side in sides)).tolist() for sides in (SIDES, KNOWN)
        )
        figures.append(Figure(name, "mean error over random rows'", ratios[-1], TIMES, most=0.7))
        figures.append(Figure(name, "the same after any batch, at most", max(ratios), TIMES, most=1.0))
        figures.append(Figure(name, "mean error over random rows', known kernel", known[-1], TIMES))
    return figures

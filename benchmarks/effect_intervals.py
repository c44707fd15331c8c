"""Whether intervals of named effects and of predictions hold, against landscapes of which every combination is known.

Each draw learns 300 to 3,000 rows, at most half of the landscape, by the default fit. An effect is inside if its 95 %
interval holds the mean over all combinations. Predictions are of all other rows, by fifths of the predicted value.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Final

import numpy as np
import pyarrow as pa

from benchmarks.figures import Figure
from benchmarks.harness import Row, kept_rows
from benchmarks.landscapes import Array, table
from benchmarks.program import KEPT_ROWS, option, program
from sparsact import fit_table, predict_table
from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import points, signs_to_bits

SIZES: Final = (300, 3000, 10)  # rows of the first draw and of the last, and how many draws
CORNER: Final = "a corner"
NAMES: Final = ("S309", "eqFP611 red", "eqFP611 combined", "LLVM", CORNER)


def complete(name: str) -> tuple[Array, Array]:
    """All combinations in table order, and their targets; of a corner that rules, as of run times, with noise."""
    if name != CORNER:
        X, y = table(name)
        order = (X.astype(np.intp) @ (1 << np.arange(X.shape[1]))).argsort()
        return X[order], y[order]
    X = signs_to_bits(points(11))
    y = 5 + X[:, :4] @ [1.2, -0.6, 0.5, -0.25] - 1.6 * (X[:, [0, 1, 4, 5, 6]] == 0).all(axis=1)
    return X, y + np.random.default_rng(9).normal(0, 0.07, len(y))


def measured(name: str, draw: int) -> Row:
    """Effects that are named and inside, their half width over the deviation of y, and shares of predictions inside."""
    X, y = complete(name)
    m = min(round(float(np.geomspace(*SIZES)[draw % SIZES[-1]])), len(X) // 2)
    rows, left = np.split(np.random.default_rng([draw, len(X)]).permutation(len(X)), [m])
    names, truth = [f"x{i}" for i in range(X.shape[1])], walsh_hadamard(y)
    result = fit_table(pa.table([*X[rows].T, y[rows]], [*names, "y"]), "y")
    terms = [term for term in result.targets[0].terms if term.significant]
    true = np.array([truth[sum(1 << names.index(column) for column in term.subset)] for term in terms])
    low, high = np.array([(term.low, term.high) for term in terms]).reshape(-1, 2).T
    found = predict_table(result, pa.table(list(X[left].T), names))
    predicted, lowest, highest = (found[column].to_numpy() for column in ("y", "y_low", "y_high"))
    inside = (lowest <= y[left]) & (y[left] <= highest)
    return {
        "rows": m,
        "kind": result.choices.kind,
        "named": len(terms),
        "inside": int(((low <= true) & (true <= high)).sum()),
        "width": float(np.median(high - low) / 2 / y.std()) if terms else 0.0,
        "predictions": [float(inside[part].mean()) for part in np.array_split(predicted.argsort(), 5)],
    }


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Of each landscape and of all: shares inside, and widths."""
    for name in (*dict.fromkeys(row["table"] for row in rows), "all"):
        drawn = [row for row in rows if row["named"] and name in ("all", row["table"])]
        if drawn:
            share = sum(row["inside"] for row in drawn) / sum(row["named"] for row in drawn)
            least = min(row["inside"] / row["named"] for row in drawn)
            yield Figure(name, "named effects inside", share, "", *((0.9, 0.99) if name == "all" else ()))
            yield Figure(name, "named effects inside, least of a draw", least, "", 0.75)
            yield Figure.of(name, "half width over the deviation of y", [row["width"] for row in drawn], "")
            for part, which in ((0, "lowest"), (4, "highest")):
                shares = [row["predictions"][part] for row in drawn]
                yield Figure.of(name, f"predictions inside, {which} fifth", shares, "")


@program(option("--only", nargs="+", default=NAMES, help="landscapes to measure"), KEPT_ROWS, repeats=SIZES[-1])
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    names, draws = ([CORNER], 1) if arguments.quick else (arguments.only, arguments.repeats)
    tasks = product(range(draws), names)
    cells = (({"table": name, "draw": draw}, partial(measured, name, draw)) for draw, name in tasks)
    return list(figures(list(kept_rows(arguments.rows, cells))))

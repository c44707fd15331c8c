"""Whether intervals of named effects and of predictions hold, against landscapes of which every combination is known.

Each draw learns 300 to 3,000 rows, at most half of the landscape, by the default fit. An effect is inside if its 95 %
interval holds the mean over all combinations. Predictions are of all other rows, by fifths of the predicted value.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
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

SIZES: Final = (300, 3000, 10)  # rows: of the first draw, of the last, and how many draws
CORNER: Final = "a corner"


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
    """Effects that are named, how many are inside, their half widths over the deviation of y; predictions inside."""
    X, y = complete(name)
    order = np.random.default_rng([draw, len(X)]).permutation(len(X))
    m = min(round(float(np.geomspace(*SIZES)[draw % SIZES[-1]])), len(X) // 2)
    names, (rows, left) = [f"x{i}" for i in range(X.shape[1])], np.split(order, [m])
    result = fit_table(pa.table([*X[rows].T, y[rows]], [*names, "y"]), "y")
    truth, (target,) = walsh_hadamard(y), result.targets
    terms = [term for term in target.terms if term.significant and term.low is not None and term.high is not None]
    true = np.array([truth[sum(1 << names.index(column) for column in term.subset)] for term in terms])
    low, high = np.array([(term.low, term.high) for term in terms], dtype=float).reshape(-1, 2).T
    found = predict_table(result, pa.table(list(X[left].T), names))
    predicted, lowest, highest = (found[column].to_numpy() for column in ("y", "y_low", "y_high"))
    inside = (lowest <= y[left]) & (y[left] <= highest)
    fifths = [float(inside[part].mean()) for part in np.array_split(predicted.argsort(), 5)]
    width = float(np.median(high - low) / 2 / y.std()) if terms else 0.0
    counts = {"rows": m, "kind": result.choices.kind, "named": len(terms), "width": width}
    return counts | {"inside": int(((low <= true) & (true <= high)).sum()), "predictions": fifths}


NAMES: Final = ("S309", "eqFP611 red", "eqFP611 combined", "LLVM", CORNER)


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Of each landscape and of all: shares inside, and widths."""
    of_all = [row for row in rows if row["named"]]
    for name in (*dict.fromkeys(row["table"] for row in of_all), "all"):
        drawn = [row for row in of_all if name in ("all", row["table"])]
        shares = [row["inside"] / row["named"] for row in drawn]
        share, bars = sum(row["inside"] for row in drawn) / sum(row["named"] for row in drawn), name == "all"
        yield Figure(name, "named effects inside", share, "", 0.9 if bars else None, 0.99 if bars else None)
        yield Figure(name, "of one draw, at least", min(shares), "", least=0.75 if bars else None)
        yield Figure.of(name, "half width over the deviation of y", [row["width"] for row in drawn], "")
        for part in range(5):
            inside = [row["predictions"][part] for row in drawn]
            yield Figure.of(name, f"predictions inside, fifth {part + 1}", inside, "")


@program(option("--only", nargs="+", default=NAMES, help="landscapes to measure"), KEPT_ROWS, repeats=SIZES[-1])
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    names, draws = ([CORNER], 1) if arguments.quick else (arguments.only, arguments.repeats)
    tasks = [(name, draw) for draw in range(draws) for name in names]
    cells = (({"table": name, "draw": draw}, partial(measured, name, draw)) for name, draw in tasks)
    path: Path | None = arguments.rows
    return list(figures(list(kept_rows(path, cells))))

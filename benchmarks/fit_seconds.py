"""CPU seconds of default fits by rows and columns of the table, and how far the forecast before the fit is from them.

Tables are planted: targets are sums of ReLU units of a few columns, and noise. Columns are bits, numbers, or sites of
letters. Each row of ``--rows`` has the seconds of every stage.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.figures import TIMES, Figure
from benchmarks.harness import Row, kept_rows, timed
from benchmarks.program import KEPT_ROWS, program
from sparsact import fit_table
from sparsact.fit.forecast import LONG, SPREAD, seconds
from sparsact.passes.progress import Progress

SHAPES: Final = {
    "numbers": [(400, 2), (400, 20), (2_000, 8), (2_000, 40), (10_000, 8), (10_000, 40)],
    "letters": [(200, 8), (1_000, 4), (1_000, 12), (4_000, 8)],
    "bits": [
        (150, 20),
        (150, 60),
        (500, 8),
        (500, 30),
        (1_500, 13),
        (1_500, 60),
        (6_000, 13),
        (6_000, 20),
        (30_000, 13),
    ],
}
LETTERS: Final = "ACDEFGHIKL"


def planted(columns: str, n_rows: int, n: int) -> pa.Table:
    """A table of ``n`` columns and the target ``y``."""
    rng = np.random.default_rng([n_rows, n])
    if columns == "letters":
        sites = rng.integers(0, len(LETTERS), (n_rows, n))
        X: NDArray[np.generic] = np.eye(len(LETTERS))[sites].reshape(n_rows, -1)
    else:
        X = rng.integers(0, 2, (n_rows, n)) if columns == "bits" else rng.normal(size=(n_rows, n))
    W = rng.normal(size=(12, X.shape[1])) * (rng.random((12, X.shape[1])) < 6 / X.shape[1])
    y = np.maximum(X @ W.T - 1, 0) @ rng.normal(size=12)
    y = y + 0.1 * y.std() * rng.normal(size=n_rows)
    if columns == "letters":
        return pa.table({"sequence": ["".join(LETTERS[i] for i in row) for row in sites], "y": y})
    return pa.table([*X.T, y], [*(f"x{i}" for i in range(n)), "y"])


def cpu_seconds(columns: str, n_rows: int, n: int) -> Row:
    """CPU seconds of each stage, and the seconds of the whole fit."""
    stages: dict[str, float] = {}
    last = 0.0

    def ended(now: Progress) -> None:
        nonlocal last
        if now.seconds is not None:
            stages[now.stage] = round(time.process_time() - last, 3)
            last = time.process_time()

    data = planted(columns, n_rows, n)
    last = time.process_time()
    _, whole = timed(lambda: fit_table(data, "y", progress=ended))
    return {"stages": stages, "cpu_seconds": round(whole, 3)}


@program(KEPT_ROWS, repeats=1)
def main(arguments: Namespace) -> Iterator[Figure]:
    """All figures of the benchmark."""
    cells = [
        ({"columns": columns, "n_rows": n_rows, "n": n}, partial(cpu_seconds, columns, n_rows, n))
        for columns, shapes in SHAPES.items()
        for n_rows, n in (shapes[:1] if arguments.quick else shapes)
    ]
    apart = []
    for row in kept_rows(arguments.rows, cells):
        expected = seconds(row["n_rows"], of_numbers=row["columns"] == "numbers")
        work = f"default fit of {row['n_rows']:,} rows of {row['n']} columns of {row['columns']}"
        yield Figure(work, "CPU seconds", row["cpu_seconds"], "s")
        if max(expected, row["cpu_seconds"]) > LONG:
            apart.append(max(expected / row["cpu_seconds"], row["cpu_seconds"] / expected))
    if apart:
        yield Figure.of("fits of more than 20 s", "forecast and seconds, one over the other", apart, TIMES, most=SPREAD)

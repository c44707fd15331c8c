"""CPU time of default fits by number of rows and columns, and the error of the forecast printed before the fit.

Tables are planted: targets are sums of ReLU units of a few columns, and noise. Columns are bits, numbers, or sites of
letters. ``--rows`` writes the seconds of every stage.

With ``--tables`` measured screens are fitted too, whole and at the ``--sizes``, each in a fresh process on
``--threads`` threads. They are text files with the columns ``x``, ``y`` and ``set``, such as ``gb1_data.csv.gz`` of
MAVE-NN; rows of the set ``test`` are scored. Target: 300 s and 3 GB for 504,373 rows of 55 sites.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from math import nan
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from threadpoolctl import threadpool_limits

from benchmarks.figures import TIMES, Figure
from benchmarks.harness import Row, alone, kept_rows, timed
from benchmarks.program import KEPT_ROWS, option, program
from sparsact import fit_table
from sparsact.fit.forecast import LONG, SPREAD, seconds, seconds_of_letters
from sparsact.memory import peak_memory
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
BAR_ROWS: Final = 500_000


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


def of_screen(path: Path, n_rows: int | None, n_threads: int) -> Row:
    """Seconds, gigabytes and R2 on rows of the set ``test`` of a default fit to other rows, and when it first spoke."""
    pa.set_cpu_count(n_threads)
    columns = csv.read_csv(path).select(["x", "y", "set"])
    is_test = np.array([text == "test" for text in columns["set"].to_pylist()])
    others = np.random.default_rng(0).permutation(np.flatnonzero(~is_test))[:n_rows]
    data, test = (columns.take(pa.array(rows)).drop("set") for rows in (others, np.flatnonzero(is_test)))
    said: list[tuple[float, str]] = []
    start = time.perf_counter(), time.process_time()

    def heard(now: Progress) -> None:
        if now.note:
            said.append((time.perf_counter() - start[0], now.note))

    with threadpool_limits(n_threads):
        result = fit_table(data, "y", test=test, progress=heard)
    spent = time.perf_counter() - start[0], time.process_time() - start[1]
    r2 = nan if result.test is None else result.test.targets[0].r2.value
    note = {"noted": round(said[0][0], 3), "note": said[0][1]} if said else {}
    of_fit = {"n_rows": len(others), "seconds": round(spent[0], 1), "cpu_seconds": round(spent[1], 1)}
    return (
        of_fit | {"gigabytes": round(peak_memory() / 1e9, 3), "r2": round(r2, 4), "model": result.choices.kind} | note
    )


def screens(arguments: Namespace) -> Iterator[Figure]:
    """Figures of measured screens."""
    known: list[tuple[Row, Callable[[], Row]]] = []
    for path in arguments.tables:
        for size in (*arguments.sizes, None):
            name = {"table": path.name.split(".")[0], "size": size, "threads": arguments.threads}
            known.append((name, partial(alone, of_screen, path, size, arguments.threads)))
    for row in kept_rows(arguments.rows, known):
        is_bar = row["n_rows"] >= BAR_ROWS
        work = f"default fit of {row['n_rows']:,} rows of {row['table']}, {row['threads']} threads"
        yield Figure(work, "seconds", row["seconds"], "s", most=300.0 if is_bar else None)
        yield Figure(work, "CPU seconds", row["cpu_seconds"], "s")
        yield Figure(work, "peak memory", row["gigabytes"], "GB", most=3.0 if is_bar else None)
        yield Figure(work, "R2 of test rows", row["r2"], "")


@program(
    KEPT_ROWS,
    option("--tables", nargs="*", type=Path, default=[], help="files of measured screens"),
    option("--sizes", nargs="*", type=int, default=[], help="numbers of their rows that are fitted, beside all"),
    option("--threads", type=int, default=1),
    repeats=1,
)
def main(arguments: Namespace) -> Iterator[Figure]:
    """All figures of the benchmark."""
    yield from screens(arguments)
    cells = [
        ({"columns": columns, "n_rows": n_rows, "n": n}, partial(cpu_seconds, columns, n_rows, n))
        for columns, shapes in SHAPES.items()
        for n_rows, n in (shapes[:1] if arguments.quick else shapes)
    ]
    apart = []
    for row in kept_rows(arguments.rows, cells):
        expected = seconds(row["n_rows"], of_numbers=row["columns"] == "numbers")
        if row["columns"] == "letters":
            expected = seconds_of_letters(row["n_rows"], row["n"], row["n"] * len(LETTERS))
        work = f"default fit of {row['n_rows']:,} rows of {row['n']} columns of {row['columns']}"
        yield Figure(work, "CPU seconds", row["cpu_seconds"], "s")
        if max(expected, row["cpu_seconds"]) > LONG:
            apart.append(max(expected / row["cpu_seconds"], row["cpu_seconds"] / expected))
    if apart:
        yield Figure.of("fits of more than 20 s", "forecast and seconds, one over the other", apart, TIMES, most=SPREAD)

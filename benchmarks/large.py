"""Time and memory of fits to a million rows, with too many monomials or rows for a matrix of monomials.

Targets on one thread: n = 20, d = 10 (616,666 monomials with the constant), m = 1,000,000 rows in memory, in under 20 s
and 2 GB; n = 100, d = 2, m = 1,000,000 rows streamed from a Parquet file of booleans, reading included, in under 120 s
and 2 GB. Both are plain least squares (alpha = 0). Unit: seconds, medians of repeats, each in a fresh process;
gigabytes, the peak of the whole process with the interpreter and the rows. CPU seconds are shown too: if they are far
fewer than the seconds, the machine was busy with other work.

The solution is checked on random monomials: the residuals of least squares are orthogonal to each of them. The figure
is the largest cosine between the residuals and a monomial.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.figures import Check, Figure
from benchmarks.harness import alone
from benchmarks.opponents import noisy_polynomial, random_signs, read, write
from benchmarks.program import option, program
from sparsact import LowDegreeRegressor
from sparsact.memory import peak_memory

IN_MEMORY, STREAMED = (20, 10, 1_000_000), (100, 2, 1_000_000)
QUICK_IN_MEMORY, QUICK_STREAMED = (13, 6, 40_000), (70, 1, 100_000)
BATCH: Final = 1 << 16
_CHECKED: Final = 100
Rows = tuple[NDArray[Any], NDArray[np.float64]]


class RunOutcome(NamedTuple):
    """What one fit took, and how good it is."""

    seconds: float
    processor: float
    nbytes: int
    cosine: float
    reason: str


def fit_in_memory(degree: int, folder: str) -> RunOutcome:
    """A fit of rows that are in memory. Runs in a fresh process."""
    X, y = read(folder)
    start = time.perf_counter(), time.process_time()
    model = LowDegreeRegressor(degree, n_jobs=1).fit(X, y)
    return outcome(model, start, [(X, y)])


def fit_streamed(degree: int, folder: str) -> RunOutcome:
    """A fit of rows read from a Parquet file, batch by batch; the solution is asked for within the time."""
    pa.set_cpu_count(1)
    start = time.perf_counter(), time.process_time()
    model = LowDegreeRegressor(degree, n_jobs=1)
    for X, y in batches(folder):
        model.partial_fit(X, y)
    _ = model.coefficients_
    return outcome(model, start, batches(folder))


def outcome(model: LowDegreeRegressor, start: tuple[float, float], rows: Iterable[Rows]) -> RunOutcome:
    """Clocks and memory are read first: the check on the rows may take what it likes."""
    seconds, processor, nbytes = time.perf_counter() - start[0], time.process_time() - start[1], peak_memory()
    return RunOutcome(seconds, processor, nbytes, largest_cosine(model, rows), model.solver_reason_)


def batches(folder: str) -> Iterator[Rows]:
    """Rows of the Parquet file: bits, and the last column."""
    with pq.ParquetFile(Path(folder) / "rows.parquet") as file:
        for batch in file.iter_batches(BATCH, use_threads=False):
            *bits, y = (column.to_numpy(zero_copy_only=False) for column in batch.columns)
            yield np.stack(bits, axis=1), y


def write_parquet(folder: str, n: int, degree: int, m: int) -> None:
    """A file of n boolean columns and a target, in row groups of one batch."""
    rng = np.random.default_rng(n)
    signs = random_signs(n, m, rng=rng)
    y = noisy_polynomial(signs, degree, rng=rng)
    names = [*(f"bit_{i}" for i in range(n)), "y"]
    schema = pa.schema([*((name, pa.bool_()) for name in names[:-1]), ("y", pa.float64())])
    with pq.ParquetWriter(Path(folder) / "rows.parquet", schema) as file:
        for start in range(0, m, BATCH):
            rows = slice(start, start + BATCH)
            columns = [pa.array(column < 0) for column in signs[rows].T]
            file.write_table(pa.table([*columns, pa.array(y[rows])], names=names))


def largest_cosine(model: LowDegreeRegressor, rows: Iterable[Rows]) -> float:
    """The largest cosine between the residuals and a random monomial of the family."""
    rng = np.random.default_rng(1)
    subsets = [model.subsets_[i] for i in rng.integers(len(model.subsets_), size=_CHECKED)]
    squares, m = 0.0, 0
    products = np.zeros(_CHECKED)
    for X, y in rows:
        residuals = y - model.predict(X)
        signs = X if X.min() < 0 else np.int8(1) - np.int8(2) * X.astype(np.int8)
        products += [residuals @ signs[:, subset].prod(axis=1, dtype=np.int8) for subset in map(list, subsets)]
        squares, m = squares + float(residuals @ residuals), m + len(y)
    return float(np.abs(products).max() / np.sqrt(squares * m))


def measure(
    work: str, fit: Callable[[int, str], RunOutcome], degree: int, folder: str, repeats: int, most: tuple[Any, Any]
) -> list[Figure]:
    """Figures of one piece of work, from fresh processes one after another; ``most`` seconds and gigabytes."""
    outcomes = [alone(fit, degree, folder) for _ in range(repeats)]
    print(f"{work}: {outcomes[0].reason}")
    return [
        Figure.of(work, "fit", [each.seconds for each in outcomes], "s", most=most[0]),
        Figure.of(work, "fit, processor seconds", [each.processor for each in outcomes], "s"),
        Figure.of(work, "peak memory", [each.nbytes / 1e9 for each in outcomes], "GB", most=most[1]),
        Check(work, "largest cosine", max(each.cosine for each in outcomes), "", most=1e-8),
    ]


@program(option("--only", choices=["in-memory", "streamed"], help="one of the two"), repeats=3, one_thread=False)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    figures = []
    if arguments.only != "streamed":
        n, degree, m = QUICK_IN_MEMORY if arguments.quick else IN_MEMORY
        with TemporaryDirectory() as folder:
            rng = np.random.default_rng(n)
            signs = random_signs(n, m, rng=rng)
            write(folder, signs, noisy_polynomial(signs, degree, rng=rng))
            work = f"n={n} d={degree} m={m:,}"
            figures += measure(work, fit_in_memory, degree, folder, arguments.repeats, (20, 2))
    if arguments.only != "in-memory":
        n, degree, m = QUICK_STREAMED if arguments.quick else STREAMED
        with TemporaryDirectory() as folder:
            write_parquet(folder, n, degree, m)
            work = f"n={n} d={degree} m={m:,} Parquet"
            figures += measure(work, fit_streamed, degree, folder, arguments.repeats, (120, 2))
    return figures

"""Distributed fits: cost of a partition by rows, columns and degree, cost of a merge, and gain of a second worker.

No target on one machine; the figures feed the model of many machines in ``docs/scaling.rst``. Unit: seconds, bytes.
The same rows are worked on by one worker process and by two, in turns.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from sklearn.base import clone

from benchmarks.figures import CallSeconds, Figure
from benchmarks.harness import interleaved, timed
from benchmarks.program import option, program
from sparsact import DSMRegressor, LowDegreeRegressor, LSHRegressor, distributed
from sparsact.distributed.additive import LearnerSum
from sparsact.distributed.partitions import ArrayReader
from sparsact.passes.dask import PassTask, joined, restored, summed
from sparsact.passes.source import Partition

CUBE: Final = ((12, 2), (20, 2), (20, 3), (40, 2), (60, 2))  # columns, degree
N_REAL: Final = 6
REAL: Final[dict[str, Any]] = {
    "LSH": LSHRegressor(n_tables=8, n_hashes=2, bucket_width=0.5, alpha=0.1, directions="principal", random_state=0),
    "DSM": DSMRegressor(n_units=256, n_active=32, random_state=0),
}
FIRST: Final = 2048  # rows that fix the layout of a learner of real columns
PARTS: Final = 16  # of the fit by workers
WORKERS_N: Final = 20


def bits(m: int, n: int) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Uniform points and a target of degree 2."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (m, n), dtype=np.int8)
    return X, X[:, 0] * X[:, n // 2] + rng.normal(size=m)


def partitions(m: int, repeats: int) -> Iterator[Figure]:
    """Seconds and bytes of one partition's statistic, and seconds to merge it."""
    for n, degree in CUBE:
        for size in (m // 4, m):
            yield from measured("low-degree", LowDegreeRegressor(degree), *bits(size, n), repeats, degree)
    for name, estimator in REAL.items():
        X = np.random.default_rng(0).normal(size=(max(m // 4, 2 * FIRST), N_REAL))
        y = np.abs(X).sum(axis=1)
        blank = clone(estimator).fit(X[:FIRST], y[:FIRST]).blank()
        yield from measured(name, blank, X, y, repeats, 1)


def measured(name: str, blank: Any, X: NDArray[Any], y: NDArray[Any], repeats: int, degree: int) -> Iterator[Figure]:
    """Figures of one partition."""
    learned, merges, sums = [], [], LearnerSum(blank)
    for _ in range(repeats):
        part, its = timed(lambda: summed(sums, PassTask(Partition("partition 0", ArrayReader())), X, y))
        learned.append(its)
        merges.append(timed(partial(joined, sums, [part, part]))[1] / 2)
    learner = restored(sums, part).learner
    form = type(learner.accumulator_.statistics[0]).__name__ if hasattr(learner, "accumulator_") else "Buckets"
    form = "Sums" if name == "DSM" else form
    work = f"{name} n={X.shape[1]} d={degree} m={len(X):,} as {form}"
    yield Figure.of(work, "partition, seconds", CallSeconds(learned), "s")
    yield Figure.of(work, "merge, seconds", CallSeconds(merges), "s")
    yield Figure(work, "statistic, bytes", sum(array.nbytes for array in part.sums[1].values()), "B")
    yield Figure(work, "rows, bytes", X.nbytes + y.nbytes, "B")


def workers(m: int, repeats: int) -> Iterator[Figure]:
    """One fit by one worker process and by two."""
    seeds = da.arange(PARTS, chunks=1).reshape(PARTS, 1)
    X = seeds.map_blocks(partial(_draw, m // 4), dtype=np.int8, chunks=((m // 4,) * PARTS, (WORKERS_N,)))
    data = X, X[:, 0] * X[:, 7] * 1.0
    with (
        _cluster(1) as one,
        _cluster(2) as two,
        Client(one, set_as_default=False) as a,
        Client(two, set_as_default=False) as b,
    ):
        calls = {
            name: partial(distributed.fit, LowDegreeRegressor(2), data, client)
            for name, client in (("one worker", a), ("two workers", b))
        }
        seconds = interleaved(calls, repeats)
    work = f"low-degree n={WORKERS_N} d=2 m={PARTS * (m // 4):,} in {PARTS} parts"
    for name, times in seconds.items():
        yield Figure.of(work, f"{name}, seconds", times, "s")
    yield Figure.ratio(work, "two workers, times as fast as one", seconds["one worker"], seconds["two workers"])


def _cluster(n_workers: int) -> LocalCluster:
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=None)


def _draw(rows: int, block: NDArray[Any]) -> NDArray[np.int8]:
    return np.random.default_rng(int(block[0, 0])).integers(0, 2, (rows, WORKERS_N), dtype=np.int8)


@program(
    option("--rows", type=int, help="of the larger partition; default 200,000, with --quick 8,000"),
    repeats=3,
    one_thread=False,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    m = arguments.rows or (8_000 if arguments.quick else 200_000)
    return [*partitions(m, arguments.repeats), *workers(m, arguments.repeats)]

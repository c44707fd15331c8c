"""Each stage of a table of buckets on its own, and values at rows beside 8 nearest neighbours; one thread, float64.

Goal, for 65,536 rows of 64 columns near a 4-dimensional subspace, 16 tables, degree 1: places in under 150 ns a row and
table, polynomials in under 500 ns a bucket, leave-one-out values in under 700 ns a row and table; values at rows at
1.5 million rows/s or more, and 4 times as fast as scikit-learn's 8 nearest neighbours by a k-d tree on the 4 local
columns alone; a single query in under 5 us. Unit: nanoseconds, medians of repeats taken in turns.

Floor of a stage: the bytes it must touch at the speed of a copy, which counts bytes read and bytes written. Buckets
are met in no order: of a slot or of a bucket's sums whole cache lines count. That speed is memory's, and what is in the
cache comes faster: the sums and slots of a table here are a few megabytes.

    python -m benchmarks.bucket_kernels [--quick] [--out results/bucket_kernels.jsonl]
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsRegressor

from benchmarks.figures import Figure, judged
from benchmarks.harness import interleaved
from benchmarks.program import program
from sparsact.kernels import bucket_statistics, bucket_values, hashing
from sparsact.kernels.bucket_index import BucketIndex
from sparsact.kernels.hashing import Hashes

SIZE, QUICK = (65_536, 16_384), (2_048, 512)
D_COLUMNS, P, TABLES, DEGREE, ALPHA, WIDTH, NEIGHBOURS = 64, 4, 16, 1, 0.01, 0.27, 8
LINE, SINGLE_QUERIES = 64, 2_000
Array = NDArray[Any]


class Stage(NamedTuple):
    """What is timed, how many items it handles, bytes that an item must touch (None: not ours), bar in ns an item."""

    call: Callable[[], object]
    items: int
    touched: float | None
    most: float | None = None


def grids(rng: np.random.Generator, local: Array) -> Hashes:
    """Randomly rotated and shifted grids of cubes."""
    rotations = [np.linalg.qr(rng.normal(size=(P, P)))[0] / WIDTH for _ in range(TABLES)]
    seeds = rng.integers(0, 2**64, TABLES, dtype=np.uint64)
    return Hashes(
        np.zeros(D_COLUMNS), local, np.concatenate(rotations, axis=1), rng.random(TABLES * P), seeds, True, False
    )


def lines(n_bytes: int) -> int:
    """Bytes of the cache lines that so many bytes somewhere in memory take up at least."""
    return -(-n_bytes // LINE) * LINE


def copy_rate(n_bytes: int, repeats: int) -> float:
    """Bytes read and written per nanosecond by a copy."""
    source = np.ones(n_bytes // 8)
    target = np.empty_like(source)
    seconds = interleaved({"copy": lambda: np.copyto(target, source)}, repeats)["copy"]
    return 2 * source.nbytes / median(seconds) / 1e9


def measure(m: int, m_queries: int, repeats: int, quick: bool) -> list[Figure]:
    """Every figure."""
    rng = np.random.default_rng(2024)
    local = np.linalg.qr(rng.normal(size=(D_COLUMNS, P)))[0]
    X, queries = (
        np.ascontiguousarray(rng.uniform(-1, 1, (n, P)) @ local.T) + 1e-3 * rng.normal(size=(n, D_COLUMNS))
        for n in (m, m_queries)
    )
    Y, weights, hashes = np.abs(X @ local[:, :1]), np.ones(m), grids(rng, local)
    found, index = hashing.places(X, hashes), BucketIndex()
    ids = index.insert(found.keys)
    n, B = m * TABLES, len(index)
    counts, sums = np.zeros(B, dtype=np.int64), np.zeros((B, bucket_statistics.n_sums(P, DEGREE, 1)))
    bucket_statistics.accumulate(found, ids, Y, weights, 1, DEGREE, counts, sums)
    more_counts, more_sums = counts.copy(), sums.copy()  # grow with each repeat, and take no longer for it
    coefficients, _ = bucket_statistics.solve(sums, P, DEGREE, 1, ALPHA)
    behind, trend = sums[:, P].copy(), np.zeros((D_COLUMNS, 1))
    predict = bucket_values.predictor(hashes, index.slots, DEGREE, bucket_values.packed(coefficients, behind), trend)
    neighbours = KNeighborsRegressor(NEIGHBOURS, algorithm="kd_tree").fit(X @ local, Y[:, 0])
    local_queries = queries @ local

    place, held = 8 * (P + 1), lines(sums[0].nbytes)  # bytes of features and key; of a bucket's sums
    answer = LINE + lines(coefficients[0].nbytes) + LINE  # slot, coefficients, weight
    stages = {
        "places": Stage(lambda: hashing.places(X, hashes), n, place + 8 * (D_COLUMNS + P) / TABLES, 150),
        "insert": Stage(lambda: BucketIndex().insert(found.keys), n, 12 + LINE),
        "find": Stage(lambda: index.find(found.keys), n, 12 + LINE),
        "accumulate": Stage(
            lambda: bucket_statistics.accumulate(found, ids, Y, weights, 1, DEGREE, more_counts, more_sums),
            n,
            8 * P + 4 + 2 * held,
        ),
        "solve": Stage(
            lambda: bucket_statistics.solve(sums, P, DEGREE, 1, ALPHA),
            B,
            sums[0].nbytes + coefficients[0].nbytes + 8,
            500,
        ),
        "leave one out": Stage(
            lambda: bucket_statistics.leave_one_out(found, ids, Y, weights, DEGREE, ALPHA, 1, counts, sums),
            n,
            8 * P + 4 + held,
            700,
        ),
        "values": Stage(
            lambda: predict(queries, np.empty((m_queries, 1)), np.empty(m_queries), 1),
            m_queries,
            8 * D_COLUMNS + TABLES * answer,
            1e9 / 1.5e6,
        ),
        f"{NEIGHBOURS} nearest neighbours": Stage(lambda: neighbours.predict(local_queries), m_queries, None),
        "a single query by a predictor": single_queries(queries, predict, TABLES * answer),
    }
    times = interleaved({name: stage.call for name, stage in stages.items()}, repeats)
    rate = copy_rate(sums.nbytes, repeats)
    figures = [Figure(f"{B:,} buckets", "a copy", rate, "GB/s")]
    for name, stage in stages.items():
        work = f"{stage.items:,} items"
        samples = [1e9 * seconds / stage.items for seconds in times[name]]
        figures.append(
            Figure.of(work, f"{name}, an item", samples, "ns", most=stage.most and judged(stage.most, quick))
        )
        if stage.touched is not None:
            figures.append(Figure(work, f"{name}, floor", stage.touched / rate, "ns"))
    theirs, ours = times[f"{NEIGHBOURS} nearest neighbours"], times["values"]
    least = judged(4, quick)
    return [*figures, Figure.ratio(f"{m_queries:,} items", "values, times as fast", theirs, ours, least=least)]


def single_queries(queries: Array, predict: Callable[..., None], touched: float) -> Stage:
    """One row at a time."""
    rows = [row[None].copy() for row in queries[:SINGLE_QUERIES]]
    values, total = np.empty((1, 1)), np.empty(1)

    def by_predictor() -> None:
        for row in rows:
            predict(row, values, total, 1)

    return Stage(by_predictor, len(rows), touched, 5_000)


@program(repeats=5)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    return measure(*(QUICK if arguments.quick else SIZE), arguments.repeats, arguments.quick)

"""What a partition costs against rows, columns and degree, what a merge costs, and what a second worker gains.

Goal: none on one machine; the figures feed the model of many machines in ``docs/scaling.rst``. Unit: seconds, bytes.
Both sides of a ratio take turns: the same rows by one worker process and by two.

python benchmarks/scaling.py --out results/scaling.jsonl
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from itertools import chain

import numpy as np
import psutil
from harness import append_row, interleaved, machine
from sklearn.base import clone

from sparsact import DSMRegressor, LowDegreeRegressor, LSHRegressor, distributed
from sparsact.distributed.additive import empty, seen_in, seen_out

CUBE = [(12, 2), (20, 2), (20, 3), (40, 2), (60, 2)]  # columns, degree
REAL = {
    "LSH": LSHRegressor(n_tables=8, n_hashes=2, width=0.5, alpha=0.1, directions="principal", random_state=0),
    "DSM": DSMRegressor(width=256, n_active=32, random_state=0),
}
WORKERS = (1, 2)


def main() -> None:
    """Measure, print, append."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", help="append rows of JSON to this file")
    asked = parser.parse_args()
    about = {**machine(), "load": os.getloadavg()[0], "busy": psutil.getloadavg()[0] > 1.0}
    for row in chain(partitions(asked.rows, asked.repeats), workers(asked.rows, asked.repeats)):
        print(
            "  ".join(
                f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
            )
        )
        if asked.out:
            append_row(asked.out, {"benchmark": "scaling", **row, "machine": about})


def partitions(m: int, repeats: int):
    """Seconds and bytes of one partition's statistic, and seconds to merge two."""
    for n, degree in CUBE:
        for size in (m // 4, m):
            X, y = bits(size, n)
            yield measured("low-degree", LowDegreeRegressor(degree), X, y, repeats, degree=degree)
    for name, estimator in REAL.items():
        X = np.random.default_rng(0).normal(size=(m // 4, 6))
        y = np.abs(X).sum(axis=1)
        blank = clone(estimator).fit(X[:2048], y[:2048]).blank()
        yield measured(name, blank, X, y, repeats, degree=1)


def measured(name, blank, X, y, repeats, *, degree):
    """One figure's row: the medians."""
    learned, merges, size, form = [], [], 0, ""
    for _ in range(repeats):
        start = time.perf_counter()
        learner = empty(blank).partial_fit(X, y)
        seen = seen_out(learner)
        learned.append(time.perf_counter() - start)
        size = sum(array.nbytes for array in seen[1].values())
        form = type(learner.stream_.statistics[0]).__name__ if hasattr(learner, "stream_") else type(learner).__name__
        start = time.perf_counter()
        empty(learner).merge(seen_in(blank, *seen)).merge(seen_in(blank, *seen))
        merges.append((time.perf_counter() - start) / 2)
    return {
        "what": "partition",
        "learner": name,
        "rows": len(X),
        "columns": X.shape[1],
        "degree": degree,
        "form": form,
        "seconds": statistics.median(learned),
        "merge_seconds": statistics.median(merges),
        "bytes": size,
        "bytes_of_rows": X.nbytes + y.nbytes,
    }


def workers(m: int, repeats: int):
    """Seconds of one fit by one worker process and by two, in turns."""
    import dask.array as da
    from distributed import Client, LocalCluster

    def draw(block):
        return np.random.default_rng(int(block[0, 0])).integers(0, 2, (m // 4, 20), dtype=np.int8)

    seeds = da.arange(16, chunks=1).reshape(16, 1)
    X = seeds.map_blocks(draw, dtype=np.int8, chunks=((m // 4,) * 16, (20,)))
    data = X, X[:, 0] * X[:, 7] * 1.0
    open_ = {
        count: LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0", memory_limit=None)
        for count in WORKERS
    }
    clients = {count: Client(cluster, set_as_default=False) for count, cluster in open_.items()}
    calls = {
        str(count): lambda client=client: distributed.fit(LowDegreeRegressor(2), data, client)
        for count, client in clients.items()
    }
    for count, seconds in interleaved(calls, repeats).items():
        yield {
            "what": "workers",
            "learner": "low-degree",
            "workers": int(count),
            "rows": 4 * m,
            "columns": 20,
            "degree": 2,
            "seconds": statistics.median(seconds),
            "least": min(seconds),
            "most": max(seconds),
        }
    for count, client in clients.items():
        client.close()
        open_[count].close()


def bits(m: int, n: int):
    """Uniform points and a target of degree 2."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (m, n), dtype=np.int8)
    return X, X[:, 0] * X[:, n // 2] + rng.normal(size=m)


if __name__ == "__main__":
    main()

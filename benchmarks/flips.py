"""Average sensitivity by Monte Carlo to a standard error of 1 %: s = 1000 dense units, n = 10,000 inputs, one thread.

Goal: at most 30 s. Unit: seconds; points are drawn by the hundred until the standard error is reached. Normal weights
of norm about 1 and three thresholds, at which about 500, 100 and 6 units are on. A point's sensitivity needs n flips:
evaluating the network anew at each would be 10,000 products of X and W.

Roofline: the product of X and W that gives the pre-activations, timed beside it.

    python benchmarks/flips.py [--quick] [--out results/flips.jsonl]
"""

from __future__ import annotations

import time

import numpy as np
from figures import Figure, judged, options, report
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from sparsact import kernels
from sparsact.hypercube import bits_to_signs

POINTS = 100
RELATIVE_ERROR = 0.01


def points(rng: np.random.Generator, n: int) -> NDArray[np.int8]:
    """Uniform points of the cube."""
    return bits_to_signs(rng.integers(0, 2, size=(POINTS, n), dtype=np.int8))


def measure(n: int, s: int, threshold: float, quick: bool) -> list[Figure]:
    """Every figure of one threshold."""
    rng = np.random.default_rng(2024)
    W, u, b = rng.normal(size=(s, n)) / n**0.5, rng.choice([-1.0, 1.0], size=s) / s**0.5, np.full(s, threshold)
    sensitivities, error = np.zeros(0), np.inf
    start = time.perf_counter()
    while error > RELATIVE_ERROR:
        sensitivities = np.append(sensitivities, kernels.flip_squares(points(rng, n), W, u, b))
        error = sensitivities.std(ddof=1) / len(sensitivities) ** 0.5 / sensitivities.mean()
    seconds = time.perf_counter() - start
    X = points(rng, n).astype(np.float64)
    start = time.perf_counter()
    Z = X @ W.T - b
    product = time.perf_counter() - start
    work = f"n={n:,} s={s:,} threshold={threshold}"
    return [
        Figure(work, "units on", float(np.count_nonzero(Z > 0, axis=1).mean()), ""),
        Figure(work, "average sensitivity", float(sensitivities.mean()), ""),
        Figure(work, "its relative standard error", float(error), "", most=RELATIVE_ERROR),
        Figure(work, "points", len(sensitivities), ""),
        Figure(work, "seconds", seconds, "s", most=judged(30.0, quick)),
        Figure(work, "milliseconds a point", 1e3 * seconds / len(sensitivities), "ms"),
        Figure(work, "its pre-activations alone", 1e3 * product / POINTS, "ms"),
    ]


def main() -> int:
    """Measure three thresholds, print the table, keep the rows."""
    arguments = options(__doc__, repeats=1).parse_args()
    n, s = (300, 70) if arguments.quick else (10_000, 1_000)
    with threadpool_limits(1):
        figures = [figure for b in (0.0, 1.3, 2.5) for figure in measure(n, s, b, arguments.quick)]
    return report("flips", figures, arguments.out)


if __name__ == "__main__":
    raise SystemExit(main())

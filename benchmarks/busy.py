"""Default fits while two other processes keep the cores busy, compared with the same fits on one thread.

Target: at most 2 times the seconds of one thread. BLAS threads wait for one another in a busy loop: on shared cores a
default fit once took 10 to 50 times as long. Both sides run in fresh interpreters, in turns, while two processes count;
only ``fit`` is timed, after a first fit of the same kind. Unit: seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.figures import Figure
from benchmarks.program import program

ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ROWS: Final = """
import time, numpy as np, sparsact as sa
rng = np.random.default_rng(0)
bits = rng.integers(0, 2, (3000, 40))
z = bits[:, 3] - 2.0 * bits[:, 5] * bits[:, 7] + rng.normal(0, 0.1, 3000)
X = rng.normal(size=(5000, 4)) @ rng.normal(size=(4, 30))
y = np.abs(X[:, 0]) + np.sin(X[:, 1])
def fit():
    return {fit}
for _ in range(2):
    start = time.perf_counter()
    fit()
    print(time.perf_counter() - start)
"""
FITS: Final = {
    "LowDegreeRegressor(2), 3,000 x 40 bits": "sa.LowDegreeRegressor(2).fit(bits, z)",
    "LowDegreeRegressorCV(), 3,000 x 40 bits": "sa.LowDegreeRegressorCV().fit(bits, z)",
    "LSHRegressor(), 5,000 x 30 numbers": "sa.LSHRegressor(random_state=0).fit(X, y)",
    "DSMRegressor(), 5,000 x 30 numbers": "sa.DSMRegressor(random_state=0).fit(X, y)",
    "SparselyActivatedRegressor(), 1,000 x 30 numbers": (
        "sa.SparselyActivatedRegressor(n_units=8, random_state=0).fit(X[:1000], y[:1000])"
    ),
}
NAMES: Final = [
    f"{side}, two busy neighbours{which}" for side in ("default", "one thread") for which in (", first fit", "")
]


@contextmanager
def neighbours(number: int) -> Iterator[None]:
    """Processes that do nothing but count."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def seconds(fit: str, variables: dict[str, str]) -> list[float]:
    """Seconds of the first fit and of the second in an interpreter of their own."""
    others = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    command = [sys.executable, "-c", ROWS.replace("{fit}", fit)]
    printed = subprocess.run(command, env=others | variables, capture_output=True, check=True).stdout
    return [float(word) for word in printed.split()]


@program(repeats=5, one_thread=False)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    figures = []
    with neighbours(2):
        for work, fit in list(FITS.items())[: 1 if arguments.quick else None]:
            rounds = [seconds(fit, {}) + seconds(fit, ONE_THREAD) for _ in range(arguments.repeats)]
            times = zip(NAMES, zip(*rounds, strict=True), strict=True)
            figures += [Figure.of(work, name, its, "s") for name, its in times]
            ratios = [default / single for _, default, _, single in rounds]
            figures.append(Figure.of(work, "default over one thread", ratios, "x", most=2))
    return figures

"""Ridge regression on all monomials: time and memory compared with scikit-learn's PolynomialFeatures and Ridge.

Both sides get the same float64 signs on one thread; Ridge uses its Cholesky solver. Sizes (n, d, m): (20, 3, 100k) and
(50, 2, 100k). Unit: seconds and megabytes, medians of repeats in turns. Memory is the peak of one fit in a fresh
process, above what the process holds after a small fit with the rows in memory. The difference of predictions is the
largest one, divided by the root mean square of scikit-learn's predictions.

Targets: the first fit of a process at least 80 and 50 times as fast, later fits 150 and 60 times; at most 1/5 of the
memory; predictions equal to 1e-8; prediction of 100k rows at least 20 times as fast, also directly after a fit, when a
table of values may have to be built. The floor of a fit is also timed: LAPACK's Cholesky factor of the Gram matrix.
The rest of a fit is validation, the sums of 100,000 rows, and fresh pages for two such matrices.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from benchmarks.figures import CallSeconds, Check, Figure
from benchmarks.harness import alone, first_seconds, interleaved, memory_above
from benchmarks.opponents import pipeline, read, task, write
from benchmarks.program import program
from sparsact import LowDegreeRegressor
from sparsact.hypercube import n_subsets

SIZES: Final = ((20, 3, 100_000, 80, 150), (50, 2, 100_000, 50, 60))
QUICK: Final = ((12, 2, 3_000, 1, 1), (40, 1, 70_000, 1, 1))
ALPHA: Final = 1.0


def side(name: str, degree: int) -> Any:
    """The estimator of one side."""
    return LowDegreeRegressor(degree, ALPHA, n_jobs=1) if name == "ours" else pipeline(degree, ALPHA)


def fit_alone(name: str, degree: int, folder: str) -> tuple[NDArray[np.float64], int]:
    """Predictions of the training rows, and bytes at the peak of the fit above the rows. Runs in a fresh process."""
    side(name, 1).fit(*task(5, 1, 64))
    X, y = read(folder)
    model, nbytes = memory_above(lambda: side(name, degree).fit(X, y))
    return model.predict(X), nbytes


def fitting(name: str, degree: int, folder: str) -> Callable[[], object]:
    """A fit of one side to rows that were written."""
    return partial(side(name, degree).fit, *read(folder))


def seconds(X: NDArray[np.float64], y: NDArray[np.float64], degree: int, repeats: int) -> dict[str, CallSeconds]:
    """Times of fit, first prediction, and prediction of either side."""
    models: dict[str, Any] = {}

    def fit(name: str) -> None:
        models[name] = side(name, degree).fit(X, y)

    size = n_subsets(X.shape[1], degree, 1)
    gram = np.asfortranarray(np.eye(size) + 0.1)
    for name in ("ours", "theirs"):
        side(name, 1).fit(*task(5, 1, 64))
    with threadpool_limits(1):
        return interleaved(
            {
                "Cholesky alone": lambda: lapack.dpotrf(gram),
                "fit ours": lambda: fit("ours"),
                "first ours": lambda: models["ours"].predict(X),
                "predict ours": lambda: models["ours"].predict(X),
                "fit theirs": lambda: fit("theirs"),
                "predict theirs": lambda: models["theirs"].predict(X),
            },
            repeats,
            warm_up=False,
        )


def measure(n: int, degree: int, m: int, first: float, later: float, repeats: int) -> list[Figure]:
    """Every figure of one size, and the goals of the first fit of a process and of later ones."""
    X, y = task(n, degree, m)
    work = f"n={n} d={degree} m={m:,}"
    times: dict[str, list[float]] = {**seconds(X, y, degree, repeats)}
    with TemporaryDirectory() as folder:
        write(folder, X, y)
        for name in ("ours", "theirs") * repeats:
            times.setdefault(f"first fit {name}", []).extend(first_seconds(1, fitting, name, degree, folder))
        ours, our_bytes = alone(fit_alone, "ours", degree, folder)
        theirs, their_bytes = alone(fit_alone, "theirs", degree, folder)
    difference = float(np.abs(ours - theirs).max() / np.sqrt(np.mean(theirs**2)))
    return [
        *(Figure.of(work, f"{name}, seconds", values, "s") for name, values in times.items()),
        *(
            Figure.ratio(work, f"{name}, times as fast", times[theirs], times[ours], least=bar)
            for name, ours, theirs, bar in (
                ("first fit", "first fit ours", "first fit theirs", first),
                ("fit", "fit ours", "fit theirs", later),
                ("first predict", "first ours", "predict theirs", 20),
                ("predict", "predict ours", "predict theirs", 20),
            )
        ),
        Figure(work, "memory ours", our_bytes / 1e6, "MB"),
        Figure(work, "memory theirs", their_bytes / 1e6, "MB"),
        Figure(work, "memory, share of theirs", our_bytes / max(their_bytes, 1), "", most=0.2),
        Check(work, "difference of predictions", difference, "", most=1e-8),
    ]


@program(repeats=3, one_thread=False)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    sizes = QUICK if arguments.quick else SIZES
    return [figure for size in sizes for figure in measure(*size, arguments.repeats)]

"""Gaussian processes on tables of bits: time, memory and coverage of intervals, compared with scikit-learn.

Peers: 2,000 rows of 12 columns, hyperparameters learned from all of them. scikit-learn's anisotropic RBF kernel on bits
is the same product kernel, with rho_i = exp(-1 / (2 l_i^2)); its gradient holds 2,000 x 2,000 x 12 numbers. Both sides
must give the same log marginal likelihood at scikit-learn's parameters, to 1e-6.

Cubes: fits to 80 % of 2**15 and 2**16 points of a draw from a prior of degrees and sites, with noise of 5 % of its
variance, by each kernel, hyperparameters included; then all 2**n coefficients with their deviations. Targets are for
the default kernel: 30 and 60 s of CPU time on one thread, and 1 GB, the peak of a fit in a fresh process with its rows.
The truth is known, so the shares of values and coefficients within their 95 % intervals are counted.

Wide: 20,000 rows of 30 columns with noise of a tenth of the variance. A process of all rows with 1,000 inducing points
is compared with the exact process of 4,096 rows, polynomials of degree 3, and LightGBM, stopped early on a fifth of the
rows. Errors are on new rows without noise; intervals on new rows with and without it.
"""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from benchmarks.figures import CallSeconds, Check, Figure
from benchmarks.harness import alone, timed
from benchmarks.program import option, program
from sparsact import CubeGPRegressor, CubeKernel, LowDegreeRegressor
from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import points, signs_to_bits
from sparsact.memory import peak_memory

Array = NDArray[np.float64]

SECONDS: Final = {15: 30.0, 16: 60.0}  # targets by columns
SHARE: Final = 0.8  # of the cube
KERNELS: Final = ("product", "auto")


def drawn(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Coefficients (2**n,) of a function of variance near 1, and its values."""
    degrees = np.append(0.0, -np.log(n) - 1.5 * np.arange(n))
    coefficients = rng.standard_normal(2**n)
    coefficients *= np.sqrt(CubeKernel.degree_by_site(degrees, rng.normal(size=n) - 0.5).spectrum)
    coefficients /= np.sqrt((coefficients[1:] ** 2).sum())
    return coefficients, np.asarray(walsh_hadamard(coefficients, normalize=False))


def noisy_part(n: int, m: int, seed: int) -> tuple[Any, Array, Any, Array, Array]:
    """Rows and targets with noise, the points left out and their values, and all coefficients."""
    rng = np.random.default_rng([n, seed])
    coefficients, values = drawn(n, rng)
    order = rng.permutation(2**n)
    seen, left = order[:m], order[m:]
    X = points(n)
    return X[seen], values[seen] + 0.05**0.5 * rng.standard_normal(m), X[left], values[left], coefficients


def peers(arguments: Any) -> list[Figure]:
    """Seconds and errors of both sides, and whether they agree."""
    n, m = (8, 150) if arguments.quick else (12, 2_000)
    took: dict[str, list[float]] = {"CubeGPRegressor": [], "scikit-learn": []}
    errors: dict[str, list[float]] = {side: [] for side in took}
    apart = []
    for draw in range(arguments.repeats):
        X, y, new, truth, _ = noisy_part(n, m, draw)
        ours = CubeGPRegressor("product", n_hyperparameter_rows=m, random_state=0)
        kernel = ConstantKernel() * RBF(np.full(n, 2.0)) + WhiteKernel(0.1)
        theirs = GaussianProcessRegressor(kernel, normalize_y=True)
        bits = signs_to_bits(X).astype(np.float64)
        _, its = timed(lambda model=ours, X=X, y=y: model.fit(X, y))
        took["CubeGPRegressor"].append(its)
        _, its = timed(lambda model=theirs, bits=bits, y=y: model.fit(bits, y))
        took["scikit-learn"].append(its)
        errors["CubeGPRegressor"].append(float(np.mean((ours.predict(new) - truth) ** 2) / truth.var()))
        predicted = theirs.predict(signs_to_bits(new).astype(np.float64))
        errors["scikit-learn"].append(float(np.mean((predicted - truth) ** 2) / truth.var()))
        variance, lengths = theirs.kernel_.k1.k1.constant_value, theirs.kernel_.k1.k2.length_scale
        same = CubeKernel.product(variance, np.exp(-0.5 / lengths**2)).times(y.std())
        theta = np.append(same.theta, np.log(theirs.kernel_.k2.noise_level * y.var()))
        expected = theirs.log_marginal_likelihood_value_ - m * np.log(y.std())
        apart.append(float(abs(ours.log_marginal_likelihood(theta) - expected)))
    work = f"peers: n={n}, m={m:,}"
    return [
        *(Figure.of(work, f"{side}: seconds", CallSeconds(its), "s") for side, its in took.items()),
        Figure.ratio(work, "seconds, scikit-learn / ours", took["scikit-learn"], took["CubeGPRegressor"], least=1.0),
        *(Figure.of(work, f"{side}: variance left", samples, "") for side, samples in errors.items()),
        Check.of(work, "log-likelihoods apart", apart, "", most=1e-6),
    ]


def cube(n: int, kernel: str, arguments: Any) -> list[Figure]:
    """Seconds, error and intervals at 80 % of a cube."""
    m, rounds = round(SHARE * 2**n), 1 if n > 15 else min(2, arguments.repeats)
    quantities: dict[str, list[float]] = {}
    for draw in range(rounds):
        X, y, new, truth, coefficients = noisy_part(n, m, draw)
        model, fitting = timed(lambda X=X, y=y: CubeGPRegressor(kernel, random_state=0).fit(X, y))
        bounds, asking = timed(lambda model=model: model.confidence_intervals())
        predicted, deviation = model.predict(new, return_std=True)
        inside = (bounds[:, 0] <= coefficients) & (coefficients <= bounds[:, 1])
        for quantity, value in (
            ("seconds", fitting),
            ("seconds of all deviations", asking),
            ("variance left", float(np.mean((predicted - truth) ** 2) / truth.var())),
            ("coefficients inside", float(inside.mean())),
            ("values inside", float((abs(predicted - truth) <= 1.96 * deviation).mean())),
        ):
            quantities.setdefault(quantity, []).append(value)
    work, bar = f"cube: n={n}, m={m:,}, {kernel}", SECONDS.get(n) if kernel == "auto" else None
    inside_95 = (0.93, 0.97)
    limits = {"seconds": (None, bar)} | dict.fromkeys(("coefficients inside", "values inside"), inside_95)
    return [
        Figure.of(work, quantity, samples, "s" if "seconds" in quantity else "", least=least, most=most)
        for quantity, samples in quantities.items()
        for least, most in [limits.get(quantity, (None, None)) if kernel == "auto" else (None, None)]
    ]


def wide_target(kind: str, signs: Array, rng: np.random.Generator) -> Array:
    """Values of variance 1 of a random function: monomials to degree 3, tables of four columns, or sines of sums."""
    n, values = signs.shape[1], np.zeros(len(signs))
    if kind == "sines":
        weights = rng.normal(size=(n, 3)) * rng.exponential(size=(n, 1))
        values = np.sin(signs @ (1.5 * weights / np.linalg.norm(weights, axis=0))).sum(axis=1)
    for degree, count in ((1, n), (2, 4 * n), (3, 2 * n)) if kind == "monomials" else ():
        for _ in range(count):
            chosen = rng.choice(n, degree, replace=False)
            values += 0.7**degree * rng.normal() * signs[:, chosen].prod(axis=1)
    for _ in range(20 if kind == "tables" else 0):
        chosen = rng.choice(n, 4, replace=False)
        values += rng.normal(size=16)[(signs[:, chosen] > 0) @ (1 << np.arange(4))]
    return np.asarray((values - values.mean()) / values.std())


def boosted(X: Array, y: Array, seed: int) -> Any:
    """LightGBM's trees, as many as a fifth of the rows asks for, then of all rows; the better of 16 and 64 leaves."""
    boosting = import_module("lightgbm")
    held, best = len(y) // 5, (np.inf, 0, 0)
    settings: dict[str, Any] = {"learning_rate": 0.05, "n_jobs": 1, "verbose": -1, "random_state": seed}
    for leaves in (16, 64):
        model = boosting.LGBMRegressor(n_estimators=2_000, num_leaves=leaves, **settings)
        stop = [boosting.early_stopping(50, verbose=False)]
        model.fit(X[held:], y[held:], eval_set=[(X[:held], y[:held])], callbacks=stop)
        best = min(best, (model.best_score_["valid_0"]["l2"], leaves, model.best_iteration_))
    return boosting.LGBMRegressor(n_estimators=best[2], num_leaves=best[1], **settings).fit(X, y)


def wide(kind: str, arguments: Any) -> list[Figure]:
    """Errors, intervals and seconds of many rows of 30 columns."""
    rng, m, n_new = np.random.default_rng([30, len(kind)]), 5_000 if arguments.quick else 20_000, 4_000
    signs = rng.choice([-1.0, 1.0], (m + n_new, 30))
    truth = wide_target(kind, signs, rng)
    y = truth + 0.1**0.5 * rng.standard_normal(len(truth))
    X, new, known, unknown = signs[:m], signs[m:], y[:m], truth[m:]
    part = rng.permutation(m)[:4_096]
    sides = {
        "all rows": lambda: CubeGPRegressor(random_state=0).fit(X, known),
        "4,096 rows": lambda: CubeGPRegressor(random_state=0).fit(X[part], known[part]),
        "degree 3": lambda: LowDegreeRegressor(degree=3, domain="cube").fit(X, known),
        "LightGBM": lambda: boosted(X, known, 0),
    }
    if find_spec("lightgbm") is None:
        print("LightGBM is left out: pip install lightgbm")
        del sides["LightGBM"]
    figures, work = [], f"wide: {kind}, n=30, m={m:,}"
    for name, fit in sides.items():
        model, took = timed(fit)
        error = float(np.mean((model.predict(new) - unknown) ** 2) / unknown.var())
        figures += [Figure(work, f"{name}: variance left", error, ""), Figure(work, f"{name}: seconds", took, "s")]
        if name != "all rows":
            continue
        (mean, deviation), took = timed(lambda model=model: model.predict(new, return_std=True))
        low, high = model.prediction_intervals(new).T
        inside = {
            "values inside": abs(mean - unknown) <= 1.96 * deviation,
            "measurements inside": (low <= y[m:]) & (y[m:] <= high),
        }
        figures += [Figure(work, quantity, float(held.mean()), "") for quantity, held in inside.items()]
        figures.append(Figure(work, "seconds of 4,000 deviations", took, "s"))
    return figures


def wide_peak(m: int) -> float:
    """Peak memory of a process that fits rows of 30 columns and asks for 1,000 deviations, in megabytes."""
    X = np.random.default_rng(0).choice([-1, 1], (m, 30)).astype(np.int8)
    CubeGPRegressor(random_state=0).fit(X, X[:, 0] * (X[:, 1] + 0.5)).predict(X[:1_000], return_std=True)
    return peak_memory() / 1e6


def fit_peak(n: int) -> float:
    """Peak memory of a process that draws rows, fits them and asks for all deviations, in megabytes."""
    X, y, *_ = noisy_part(n, round(SHARE * 2**n), 0)
    CubeGPRegressor(random_state=0).fit(X, y).standard_errors()
    return peak_memory() / 1e6


PARTS: Final = ("peers", "cubes", "wide")


@program(option("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure"), repeats=3)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    figures: list[Figure] = []
    if "peers" in arguments.only:
        figures += peers(arguments)
    for n in ((9,) if arguments.quick else SECONDS) if "cubes" in arguments.only else ():
        for kernel in KERNELS:
            figures += cube(n, kernel, arguments)
        figures.append(Figure(f"cube: n={n}", "peak memory", alone(fit_peak, n), "MB", most=1_000))
    for kind in ("tables", "sines", "monomials") if "wide" in arguments.only else ():
        figures += wide(kind, arguments)
    if "wide" in arguments.only and not arguments.quick:
        figures.append(Figure("wide: n=30, m=20,000", "peak memory", alone(wide_peak, 20_000), "MB"))
    return figures

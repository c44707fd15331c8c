"""Tables whose measurements stop at a floor: error and coverage, compared with models that ignore the floor.

Synthetic tables have n = 8, 11 or 14 columns and 40 n rows. The function is additive, or has as many pairs as columns.
A floor hides 30, 60 or 90 % of the rows; noise is 0.2 or 0.5 of the function's deviation. The table shows the share of
coefficients within their 95 % intervals, false significant interactions for each fit (the stated rate is 5 %), how
often an additive function is recognised, and the unexplained variance of held-out targets (with their floor).

The other sides, in the same run: a Tobit likelihood with the true subsets known, maximised by scipy.optimize; our
Gaussian process and polynomial without a floor; scikit-learn's gradient-boosted trees.

Measured: the affinities of the antibody CR6261 to h1 and h9, with 17 % and 20 % of the rows at the floor.
"""

from __future__ import annotations

from argparse import Namespace
from collections import defaultdict
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.figures import Figure
from benchmarks.program import program
from sparsact import CubeGPRegressor, LatentRegressor, LowDegreeRegressor
from sparsact.datasets import phillips_cr6261
from sparsact.hypercube import Subset, characters

Array = NDArray[np.float64]

FLOORS: Final = (0.3, 0.6, 0.9)
COLUMNS, NOISES, FAMILIES = (8, 11, 14), (0.2, 0.5), ("additive", "pairs")
SHARES: Final = (0.05, 0.2, 0.5)  # of the measured landscapes


def planted(family: str, n: int, rng: np.random.Generator) -> tuple[list[Subset], Array]:
    """Subsets and coefficients of a latent of variance 1."""
    subsets: list[Subset] = [(i,) for i in range(n)]
    sizes = rng.normal(size=n)
    if family == "pairs":
        pairs = [(i, j) for j in range(n) for i in range(j)]
        subsets += [pairs[k] for k in rng.permutation(len(pairs))[:n]]
        sizes = np.append(sizes, 0.5 * rng.normal(size=n))
    return subsets, sizes / np.linalg.norm(sizes)


def independent_tobit(Z: Array, y: Array, floor: float) -> tuple[Array, Array]:
    """Coefficients and standard errors of the Tobit likelihood as it is written, by scipy.optimize."""
    free = y > floor

    def loss(theta: Array) -> float:
        mean, deviation = Z @ theta[:-1], np.exp(theta[-1])
        hidden = np.sum(norm.logcdf((floor - mean[~free]) / deviation))
        return -float(np.sum(norm.logpdf(y[free], mean[free], deviation)) + hidden)

    start = np.append(np.linalg.lstsq(Z, y, rcond=None)[0], np.log(y.std()))
    best = minimize(loss, start, method="BFGS", options={"gtol": 1e-4})
    steps = 1e-3 * np.eye(len(start))
    hessian = [
        [loss(best.x + a + b) - loss(best.x + a - b) - loss(best.x - a + b) + loss(best.x - a - b) for a in steps]
        for b in steps
    ]
    return best.x[:-1], np.sqrt(np.linalg.inv(np.array(hessian) / 4e-6).diagonal()[:-1])


def synthetic(family: str, n: int, floor: float, noise: float, seed: int, *, rivals: bool) -> dict[str, float]:
    """Findings of one draw."""
    rng = np.random.default_rng([FAMILIES.index(family), n, round(100 * floor), round(100 * noise), seed])
    subsets, sizes = planted(family, n, rng)
    X = rng.choice([-1.0, 1.0], (40 * n + 4000, n))
    Z = characters(X, subsets)
    y = Z @ sizes + noise * rng.normal(size=len(X))
    bound = float(np.quantile(y, floor))
    y = np.maximum(y, bound)
    seen, left = slice(40 * n), slice(40 * n, None)
    model = LatentRegressor(random_state=seed).fit(X[seen], y[seen])
    truth = dict(zip(subsets, sizes, strict=True))
    expected = np.array([truth.get(subset, 0.0) for subset in model.subsets_])
    bounds = model.confidence_intervals()
    level = 1 - 0.05 / len(model.subsets_)
    widest = model.confidence_intervals(confidence=level)
    called = (widest[:, 0] > 0) | (widest[:, 1] < 0)
    absent = np.array([len(subset) > 1 and subset not in truth for subset in model.subsets_])
    found = {
        "coefficients inside": float(((bounds[:, 0] <= expected) & (expected <= bounds[:, 1])).mean()),
        "false interactions": float((called & absent).sum()),
        "comes out additive": float(model.degree_ == 1),
    }
    if rivals:
        for name, peer in models_of(seed).items():
            error = (peer.fit(X[seen], y[seen]).predict(X[left]) - y[left]) ** 2
            found[f"variance left: {name}"] = float(error.mean() / y[left].var())
        design = np.column_stack([np.ones(40 * n), Z[seen]])
        values, errors = independent_tobit(design, y[seen], bound)
        found["Tobit of known subsets: inside"] = float((abs(values[1:] - sizes) <= 1.96 * errors[1:]).mean())
    return found


def models_of(seed: int) -> dict[str, Any]:
    """What is compared."""
    return {
        "polynomial": LatentRegressor(random_state=seed),
        "process": LatentRegressor("gp", random_state=seed),
        "process without floor": CubeGPRegressor("product", random_state=seed),
        "polynomial without floor": LowDegreeRegressor("auto", alpha="auto"),
        "boosted trees": HistGradientBoostingRegressor(random_state=seed),
    }


def measured(target: int, share: float, seed: int) -> dict[str, float]:
    """Variance left on the rest of CR6261's genotypes by each model."""
    landscape = phillips_cr6261()
    X, y = landscape.X, landscape.y[:, target]
    order = np.random.default_rng([target, round(100 * share), seed]).permutation(len(y))
    seen, left = np.split(order, [round(share * len(y))])
    return {
        f"variance left: {name}": float(
            ((model.fit(X[seen], y[seen]).predict(X[left]) - y[left]) ** 2).mean() / y[left].var()
        )
        for name, model in models_of(seed).items()
    }


def figures_of(work: str, draws: list[dict[str, float]]) -> list[Figure]:
    """A figure for each finding, with the targets of the intervals."""
    samples: dict[str, list[float]] = defaultdict(list)
    for draw in draws:
        for name, value in draw.items():
            samples[name].append(value)
    limits = {"coefficients inside": (0.9, 0.98), "false interactions": (None, 0.05)}
    found = []
    for name, values in samples.items():
        least, most = limits.get(name, (None, None))
        mean = float(np.mean(values))
        found.append(Figure(work, name, mean, "", least=least, most=most))
    return found


@program(repeats=5)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    quick = arguments.quick
    columns, shares = ((8,), (0.2,)) if quick else (COLUMNS, SHARES)
    figures: list[Figure] = []
    for floor, family in product(FLOORS, FAMILIES):
        draws = [
            synthetic(family, n, floor, noise, seed, rivals=seed == 0)
            for n, noise, seed in product(columns, NOISES, range(arguments.repeats))
        ]
        figures += figures_of(f"{family}, floor at {floor:.0%}", draws)
    for target, share in product((0, 1), shares):
        draws = [measured(target, share, seed) for seed in range(1 if quick else 2)]
        figures += figures_of(f"CR6261 {('h1', 'h9')[target]}, {share:.0%} of the rows", draws)
    return figures

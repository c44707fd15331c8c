"""Error bounds of ``pac_learn`` compared with true errors, over many draws of the rows.

Goal, at epsilon = delta = .05: a bound of every target holds in at least 95 % of the draws (the upper limit of the
Clopper-Pearson interval, at 95 %, is not below), and is at most 10 times the true error in the median (aim: 3 times).
Draws that are refused make no claim; their share is a figure of its own. True errors are exact: sums over all points
of the cube, and the variance of the noise, which is uniform. Targets of n = 10 columns: planted monomials, a gated
network and a majority; uniform and biased inputs; and the gated network learned as a network.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from benchmarks.figures import TIMES, Check, Figure
from benchmarks.program import program
from sparsact import constructions, pac_learn
from sparsact.hypercube import points

Array = NDArray[np.float64]
N, NOISE = 10, 0.2  # columns; half the width of the noise
CUBE: Final = points(N)


def planted(rng: np.random.Generator) -> Array:
    """Three monomials of degrees 1 to 3 on the cube, 0.9 at most in size."""
    members = (rng.choice(N, size, replace=False) for size in (1, 2, 3))
    return np.asarray(sum(0.3 * CUBE[:, each].prod(axis=1) for each in members), dtype=np.float64)


def gated(rng: np.random.Generator) -> Array:
    """A network of four units, one of which is active, 1 at most in size."""
    values = constructions.gated(rng.normal(size=(4, N - 2)), 2)(CUBE)
    return np.asarray(values / np.abs(values).max())


def majority(rng: np.random.Generator) -> Array:
    """The majority of five columns."""
    return np.asarray(np.sign(CUBE[:, rng.choice(N, 5, replace=False)].sum(axis=1)), dtype=np.float64)


TASKS: Final[list[tuple[str, Callable[[np.random.Generator], Array], float, int, dict[str, Any]]]] = [
    # name, target, largest bias, rows, options
    ("monomials", planted, 0.0, 1_500, {}),
    ("gated network", gated, 0.0, 3_000, {}),
    ("majority of 5", majority, 0.0, 6_000, {}),
    ("monomials, no range given", planted, 0.0, 1_500, {"y_range": None}),
    ("monomials, biased inputs", planted, 0.8, 1_500, {}),
    ("gated network, biased inputs", gated, 0.8, 3_000, {"degree": 4}),
    ("gated network as a network", gated, 0.8, 3_000, {"inputs": "any", "n_units": 4, "max_active": 1}),
]


def draws(
    target: Callable[[np.random.Generator], Array], bias: float, m: int, given: dict[str, Any], repeats: int
) -> list[tuple[float, float]]:
    """Bounds and true errors of the draws that are not refused."""
    found = []
    for seed in range(repeats):
        rng = np.random.default_rng([m, seed])
        values, means = target(rng), rng.uniform(-bias, bias, N)
        chances = ((1 + means * CUBE) / 2).prod(axis=1)
        rows = rng.choice(len(CUBE), m, p=chances / chances.sum())
        y = values[rows] + rng.uniform(-NOISE, NOISE, m)
        known = {"y_range": (-1 - NOISE, 1 + NOISE), **given}
        try:
            hypothesis = pac_learn(CUBE[rows], y, epsilon=0.05, delta=0.05, random_state=seed, **known)
        except ValueError:
            continue
        error = float(chances @ (hypothesis.predict(CUBE) - values) ** 2) + NOISE**2 / 3
        found.append((hypothesis.error_bound, error))
    return found


@program(repeats=200)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    figures = []
    for name, target, bias, m, given in TASKS[:2] if arguments.quick else TASKS:
        repeats = 10 if arguments.quick else arguments.repeats // (20 if "inputs" in given else 1)
        found = draws(target, bias, m, given, repeats)
        work, held = f"{name}: n={N}, m={m:,}", sum(bound >= error for bound, error in found)
        figures.append(Figure(work, "refused", 1 - len(found) / repeats, ""))
        if found:
            upper = binomtest(held, len(found)).proportion_ci(0.95).high
            ratio = [bound / error for bound, error in found]
            figures += [
                Figure(work, "the bound holds", held / len(found), ""),
                Check(work, "the same, upper 95 % limit", upper, "", least=0.95),
                Figure(work, "bound over error", median(ratio), TIMES, most=10),
            ]
    return figures

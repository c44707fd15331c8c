"""Two targets with shared traits, such as folding and binding: one joint fit compared with one model per target.

Synthetic: 30 bits, energies of deviation 1.6 kT, fractions of 2 and 3 states with noise of 0.3 of their deviation,
150 or 400 rows of each target, the same rows or other ones. Errors are the variance left of the fractions without noise
at 3,000 new rows. The separate models use the link (sigmoid, monotone, its own states) that is best over all draws.
"""

from argparse import Namespace
from itertools import product
from typing import Any, Final

import numpy as np

from benchmarks.figures import TIMES, Figure
from benchmarks.program import program
from sparsact import LatentRegressor

STATES: Final = ("two-state", "three-state")
COLUMNS, NEW_ROWS, NOISE = 30, 3_000, 0.3


def draw(m: int, apart: bool, seed: int) -> tuple[Any, Any, float]:
    """Variance left of both targets by the shared traits (2,), by separate links (2, 3), and energies inside."""
    rng = np.random.default_rng([m, apart, seed])
    seen, b = m * (1 + apart), rng.normal(size=(2, COLUMNS)) * 1.6 / COLUMNS**0.5
    X = rng.integers(0, 2, (seen + NEW_ROWS, COLUMNS))
    folding, binding = ((1 - 2 * X) @ b.T - 1).T
    truth = np.stack([1 / (1 + np.exp(folding)), 1 / (1 + np.exp(binding) * (1 + np.exp(folding)))])
    y = (truth + NOISE * truth.std(axis=1, keepdims=True) * rng.normal(size=truth.shape))[:, :seen]
    if apart:
        y[0, m:] = y[1, :m] = np.nan
    model = LatentRegressor(link=STATES, censoring=None).fit(X[:seen], y.T)
    left = [model.predict(X[seen:]).T[:, None]]
    for link in ("sigmoid", "monotone", *STATES):
        one, there = LatentRegressor(degree=1, link=link, censoring=None), ~np.isnan(y)
        left.append(
            np.stack(
                [one.fit(X[:seen][rows], its[rows]).predict(X[seen:]) for its, rows in zip(y, there, strict=True)]
            )[:, None]
        )
    errors = ((np.hstack(left) - truth[:, None, seen:]) ** 2).mean(axis=2) / truth[:, seen:].var(axis=1)[:, None]
    low, high = np.moveaxis(model.confidence_intervals([(i,) for i in range(COLUMNS)]), -1, 0)
    return errors[:, 0], errors[:, 1:], float(((low <= b) & (b <= high)).mean())


@program(repeats=8)
def main(arguments: Namespace) -> list[Figure]:
    """Errors of both sides, and the target of their ratio."""
    figures = []
    for m, apart in [(150, False)] if arguments.quick else product((150, 400), (False, True)):
        draws = zip(*(draw(m, apart, seed) for seed in range(arguments.repeats)), strict=True)
        shared, alone, inside = (np.mean(each, axis=0) for each in draws)
        work, separate = f"{m} rows of each target, {'others' if apart else 'the same'}", alone.min(axis=1)
        for t, name in enumerate(("abundance", "binding")):
            figures += [
                Figure(work, f"{name}: shared", float(shared[t]), ""),
                Figure(work, f"{name}: separate", float(separate[t]), ""),
            ]
        figures.append(Figure(work, "shared over separate", float(shared.mean() / separate.mean()), TIMES, most=0.8))
        figures.append(Figure(work, "energies inside", float(inside), "", least=0.9, most=0.98))
    return figures

"""Empirical risk minimisation: candidates inside the class, and the one that generalises best by its score.

A constant; a tree, or a sum of trees, which finds networks whose gates are columns (juntas, indexing, gated networks);
descent from there; then restarts, by turns a tree with another first split and a descent from random units, which finds
networks whose regions are other halfspaces. Real columns have no gates, so there descent alone is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sparsact.learners.sparsely_activated.descent import descend, scattered
from sparsact.learners.sparsely_activated.gates import Units, units_of
from sparsact.learners.sparsely_activated.layers import forest, n_parameters
from sparsact.learners.sparsely_activated.limits import Limits
from sparsact.learners.sparsely_activated.pruning import score
from sparsact.learners.sparsely_activated.sample import Sample

FEWEST_ROWS = 2  # for each parameter of random units: with fewer the score would refuse what they give


@dataclass(frozen=True)
class Search:
    """What bounds the search; the parameters of :class:`.SparselyActivatedRegressor`."""

    n_units: int
    max_active: int
    n_restarts: int
    max_iter: int
    tol: float


@dataclass(frozen=True, eq=False)
class Candidate:
    """A network of the class, how it was found, and how good it is."""

    units: Units
    origin: str
    score: float
    squared_error: float
    parameters: float
    iterations: int


def minimise(
    sample: Sample, search: Search, limits: Limits, rng: np.random.Generator, tell: Callable[[Candidate], None]
) -> Candidate:
    """The candidate of least score; ``tell`` hears of each as it is found.

    The search ends early at a candidate that leaves less than ``tol`` of the variation of the targets.
    """
    enough = search.tol * sample.variation()
    best: Candidate | None = None
    for candidate in _candidates(sample, search, limits, rng, lambda: best):
        tell(candidate)
        if best is None or candidate.score < best.score:
            best = candidate
        if best.squared_error <= enough:
            break
    assert best is not None  # noqa: S101 - the constant is always there
    return best


def _candidates(
    sample: Sample,
    search: Search,
    limits: Limits,
    rng: np.random.Generator,
    best: Callable[[], Candidate | None],
) -> Iterator[Candidate]:
    yield _constant(sample, limits)
    yield from _trees(sample, search, limits, None)
    yield from _polished(sample, search, limits, best())
    columns = rng.permutation(np.flatnonzero(sample.splittable))
    for restart in range(search.n_restarts):
        place, on_random_units = divmod(restart, 2) if len(columns) else (restart, 1)
        if not on_random_units:
            yield from _trees(sample, search, limits, int(columns[place % len(columns)]))
            continue
        n_units = _n_random_units(sample, search, rng, largest=restart <= 1)
        if n_units:
            start = scattered(sample, n_units, search.max_active, rng)
            yield _descended(start, "descent", n_units * (sample.n + 1), sample, search, limits)


def _constant(sample: Sample, limits: Limits) -> Candidate:
    mean = float(np.average(sample.targets, weights=sample.weights))
    theta = np.zeros((1, sample.n + 1))
    theta[0, -1] = abs(mean)
    units = Units(np.array([-1.0 if mean < 0 else 1.0]), limits.shrunk(theta))
    return _judged(units, "constant", 1, sample, 0)


def _trees(sample: Sample, search: Search, limits: Limits, first: int | None) -> Iterator[Candidate]:
    """The best trees: with gates that close everywhere and, where that breaks a limit, with the least gates."""
    trees = forest(sample, min(search.max_active, search.n_units), search.n_units, first)
    origin = "trees" if first is None else f"trees, first split at column {first}"
    parameters = sum(map(n_parameters, trees))
    for everywhere in (True, False) if limits.bind else (True,):
        units = units_of(trees, sample, everywhere=everywhere)
        shrunk = Units(units.signs, limits.shrunk(units.theta))
        found = _judged(shrunk, origin, parameters, sample, len(trees))
        yield found
        if np.array_equal(shrunk.theta, units.theta):
            return
    if found.squared_error > search.tol * sample.variation():
        yield _descended(units, f"{origin}, descent", parameters, sample, search, limits)


def _polished(sample: Sample, search: Search, limits: Limits, best: Candidate | None) -> Iterator[Candidate]:
    """Descent from the best so far, which counts no parameters anew."""
    if best is not None and len(best.units):
        yield _descended(best.units, f"{best.origin}, descent", best.parameters, sample, search, limits)


def _descended(
    start: Units, origin: str, parameters: float, sample: Sample, search: Search, limits: Limits
) -> Candidate:
    units, iterations = descend(start, sample, search.max_active, limits, search.max_iter, search.tol)
    used = (sample.design @ units.theta.T > 0).any(axis=0)
    alive = Units(units.signs[used], units.theta[used])
    return _judged(alive, origin, min(parameters, len(alive) * (sample.n + 1)), sample, iterations)


def _n_random_units(sample: Sample, search: Search, rng: np.random.Generator, *, largest: bool) -> int:
    """How many units to scatter: first as many as the rows bear, later a random number."""
    most = min(search.n_units, int(sample.total / (FEWEST_ROWS * (sample.n + 1))))
    if largest or most < 2:
        return most
    return int(np.exp(rng.uniform(np.log(2), np.log(most + 1))))


def _judged(units: Units, origin: str, parameters: float, sample: Sample, iterations: int) -> Candidate:
    error = sample.squared_error(units.values(sample.design))
    return Candidate(units, origin, score(sample, error, parameters), error, parameters, iterations)

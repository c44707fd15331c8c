r"""Empirical risk minimisation: candidates inside the class, and the one that generalises best by its score.

A constant; a tree, or a sum of trees, which finds networks whose gates are columns (juntas, indexing, gated networks);
descent from the best of these; then restarts, in turn a tree with another first split and a descent from random units,
which finds networks whose regions are other halfspaces. Real columns have no gates, so there descent alone is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsact.learners.sparsely_activated.leaf_models import EXACT, Piece, TrainingSample
from sparsact.learners.sparsely_activated.to_network import GateUnits, NormLimits, descend, scattered, units_of
from sparsact.learners.sparsely_activated.tree import Node, grow, n_parameters, prune, score, trim

SURPLUS = 2  # leaves grown for each that may stay
SMALLEST, LARGER = 4, 2  # leaves of the first round, and the growth from round to round
ROUNDS_AT_FULL_SIZE = 3  # at most, while they gain
AMPLE = 4  # distinct rows for each parameter: a perfect fit to that many is no accident
FEWEST_ROWS = 2  # for each parameter of random units: with fewer the score would refuse what they give
WORTH = 0.98  # share of its score at which a network sparse everywhere gives way to one sparse on the rows alone


def forest(
    sample: TrainingSample, n_layers: int, n_units: int, first: int | None = None, *, bent: bool = False
) -> list[Node]:
    """Trees whose sum fits the targets, of ``n_units // n_layers`` units each.

    Parameters
    ----------
    sample : TrainingSample
        The rows.
    n_layers, n_units : int
        Number of trees; the most units of all of them.
    first, bent
        Column of the first split of the first tree, and how splits are compared: see :func:`.tree.grow`.
    """
    each = n_units // n_layers
    trees, best, least = [_blank(sample)] * n_layers, [_blank(sample)] * n_layers, np.inf
    sizes = _sizes(each) if n_layers > 1 else [SURPLUS * each]
    for n_leaves in sizes:
        trees = list(trees)
        for layer in range(n_layers):
            rest, others = _left_to(layer, trees, sample)
            trees[layer] = grow(rest, n_leaves, None if layer else first, bent=bent)
            prune(rest, trees[layer], each, others)
        error = sample.squared_error(np.sum([tree.values(sample) for tree in trees], axis=0))
        value = score(sample, error, sum(map(n_parameters, trees)))
        settled = n_leaves == sizes[-1] and value >= least
        if value <= least:
            best, least = trees, value
        if settled or error <= sample.negligible(EXACT):
            break
    for layer, tree in enumerate(best):
        rest, others = _left_to(layer, best, sample)
        trim(rest, tree, others)
    return best


def _blank(sample: TrainingSample) -> Node:
    """The tree that is zero, and counts nothing."""
    zero = Piece("affine", 1, np.zeros(sample.n + 1), sample.squared_error(np.zeros(len(sample))), 0, 0)
    return Node(np.arange(len(sample)), (), zero, zero)


def _left_to(layer: int, trees: list[Node], sample: TrainingSample) -> tuple[TrainingSample, float]:
    """What the other trees leave of the targets, and their parameters."""
    others = [tree for place, tree in enumerate(trees) if place != layer]
    values = sum((tree.values(sample) for tree in others), np.zeros(len(sample)))
    return replace(sample, targets=sample.targets - values), sum(map(n_parameters, others))


def _sizes(n_units: int) -> list[int]:
    """Leaves of the trees, round after round."""
    sizes = [SMALLEST]
    while sizes[-1] < SURPLUS * n_units:
        sizes.append(min(LARGER * sizes[-1], SURPLUS * n_units))
    return sizes + sizes[-1:] * ROUNDS_AT_FULL_SIZE


@dataclass(frozen=True)
class Bounds:
    """What bounds the search: the parameters of :class:`.SparselyActivatedRegressor` of these names."""

    n_units: int
    max_active: int
    n_restarts: int
    max_iter: int
    tol: float


@dataclass(frozen=True, eq=False)
class ERMCandidate:
    """A network, how it was found, and how good it is.

    Attributes
    ----------
    units : GateUnits
        The network, over the design of the sample.
    origin : str
        How it was found.
    iterations : int
        Trees grown or steps of descent.
    parameters, squared_error, score : float
        As :mod:`.pruning` counts and weighs them.
    everywhere : bool
        Whether it is k-sparse by construction, not on the rows alone.
    """

    units: GateUnits
    origin: str
    iterations: int
    parameters: float
    squared_error: float
    score: float
    everywhere: bool


class Minimisation:
    """A search for the candidate of least score.

    Parameters
    ----------
    sample : TrainingSample
        The rows.
    bounds : Bounds
        Of the class, and of the search.
    limits : NormLimits
        The scale of the class.
    rng : numpy.random.Generator
        Of the restarts.
    report : callable
        Hears of each candidate as it is found.
    """

    def __init__(
        self,
        sample: TrainingSample,
        bounds: Bounds,
        limits: NormLimits,
        *,
        rng: np.random.Generator,
        report: Callable[[ERMCandidate], None],
    ) -> None:
        self.sample, self.bounds, self.limits, self.rng, self.report = sample, bounds, limits, rng, report
        self.best = self.constant = self._constant()

    def run(self) -> ERMCandidate:
        """The best of all candidates; ends early at a fit that is perfect and no accident."""
        self.report(self.best)
        self._trees()
        if not self._settled():
            self._trees(bent=True)
        if not self._settled():
            self._descent(self.best.units, f"{self.best.origin}, descent", self.best.parameters)
        columns = self.rng.permutation(np.flatnonzero(self.sample.splittable))
        for restart in range(self.bounds.n_restarts):
            if self._settled():
                break
            if restart % 2 == 0 and len(columns):
                self._trees(int(columns[restart // 2 % len(columns)]), bent=restart % 4 > 0)
            else:
                self._random_units(largest=restart <= 1)
        return self.best

    @cached_property
    def _n_distinct(self) -> int:
        """Distinct rows."""
        return len(np.unique(self.sample.design, axis=0))

    def _settled(self) -> bool:
        exact = self.best.squared_error <= self.sample.negligible(self.bounds.tol)
        return exact and self.best.parameters <= max(1, self._n_distinct / AMPLE)

    def _constant(self) -> ERMCandidate:
        mean = float(np.average(self.sample.targets, weights=self.sample.weights))
        theta = np.zeros((1, self.sample.n + 1))
        theta[0, -1] = abs(mean)
        units = GateUnits(np.array([-1.0 if mean < 0 else 1.0]), self.limits.shrunk(theta))
        return self._judged(units, "constant", 1, 1, everywhere=True)

    def _trees(self, first: int | None = None, *, bent: bool = False) -> None:
        """Trees with gates that close everywhere; where these break a limit, also with the least gates, and descent."""
        n_layers = min(self.bounds.max_active, self.bounds.n_units)
        trees = forest(self.sample, n_layers, self.bounds.n_units, first, bent=bent)
        origin = "trees" if first is None else f"trees, first split at column {first}"
        parameters = sum(map(n_parameters, trees))
        for everywhere in (True, False):
            units = units_of(trees, self.sample, everywhere=everywhere)
            shrunk = GateUnits(units.signs, self.limits.shrunk(units.theta))
            self._offer(self._judged(shrunk, origin, len(trees), parameters, everywhere=everywhere))
            if np.array_equal(shrunk.theta, units.theta):
                return
        self._descent(units, f"{origin}, descent", parameters)

    def _random_units(self, *, largest: bool) -> None:
        """Descent from as many random units as the rows bear or, later, from a random number of them."""
        most = min(self.bounds.n_units, int(self.sample.total / (FEWEST_ROWS * (self.sample.n + 1))))
        if most > 1 and not largest:
            most = int(np.exp(self.rng.uniform(np.log(2), np.log(most + 1))))
        if most:
            self._descent(scattered(self.sample, most, self.bounds.max_active, self.rng), "descent")

    def _descent(self, start: GateUnits, origin: str, parameters: float = 0.0) -> None:
        """Descent from a start; every weight that is not zero counts as a parameter, and no less than those before."""
        if not len(start):
            return
        bounds = self.bounds
        units, iterations = descend(
            start, self.sample, bounds.max_active, self.limits, max_iter=bounds.max_iter, tol=bounds.tol
        )
        used = (self.sample.design @ units.theta.T > 0).any(axis=0)
        units = GateUnits(units.signs[used], units.theta[used])
        parameters = max(parameters, float(np.count_nonzero(units.theta)), 1.0)  # so that zero never beats a constant
        self._offer(self._judged(units, origin, iterations, parameters, everywhere=False))

    def _judged(
        self, units: GateUnits, origin: str, iterations: int, parameters: float, *, everywhere: bool
    ) -> ERMCandidate:
        error = self.sample.squared_error(units.values(self.sample.design))
        value = score(self.sample, error, parameters, max(self.bounds.tol, EXACT))
        return ERMCandidate(units, origin, iterations, parameters, error, value, everywhere)

    def _offer(self, candidate: ERMCandidate) -> None:
        self.report(candidate)
        worth = WORTH if self.best.everywhere and not candidate.everywhere else 1.0
        if candidate.score < worth * self.best.score:
            self.best = candidate

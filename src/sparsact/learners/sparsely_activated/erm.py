r"""Empirical risk minimisation: candidates inside the class, and the one that generalises best.

A constant; a tree, or a sum of trees, which finds networks whose gates are columns (juntas, indexing, gated networks);
then restarts, in turn a descent from random units, which finds networks whose regions are other halfspaces, and a tree
with another first split. Trees and the constant are compared by generalised cross-validation; the best of them and the
descents by the errors on rows that are held out of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from sparsact.learners.sparsely_activated.descent import PenalisedRisk
from sparsact.learners.sparsely_activated.descent_search import FEWEST, Bounds, Descended, HeldOutSearch
from sparsact.learners.sparsely_activated.forest import forest
from sparsact.learners.sparsely_activated.leaf_models import EXACT, TrainingSample
from sparsact.learners.sparsely_activated.to_network import GateUnits, NormLimits, separated, units_of
from sparsact.learners.sparsely_activated.tree import n_parameters, score

AMPLE: Final = 4  # distinct rows for each parameter: a perfect fit to that many is no accident
LIKELY: Final = 1.0  # the same: after a perfect fit descents have nothing to add, but another tree may
WORTH: Final = 0.98  # share of its score at which a network sparse everywhere gives way to one sparse on the rows alone
DEVIATIONS: Final = 1.0  # standard errors on the rows held out, that suffice where the score agrees
MISSED: Final = 1.1  # a network whose error on its own rows is this many times the held-out error is worse
MOST_TREES: Final = 3  # in a sum: more take minutes, and descent does better
MORE: Final = 4  # times the units allowed, of the tree that is thinned


@dataclass(frozen=True)
class TreeOptions:
    """The first column split and how splits are compared (see :func:`.tree.grow`), and where gates close.

    ``descended`` says that descent follows, in which weights that are zero stay zero.
    """

    first: int | None = None
    bent: bool = False
    everywhere: bool = True
    descended: bool = False

    @property
    def origin(self) -> str:
        """How such a network was found."""
        first = "" if self.first is None else f", first split at column {self.first}"
        return f"trees{first}{', descent' * self.descended}"


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
        As :mod:`.tree` counts and weighs them.
    trees : TreeOptions or None
        Options of the trees that it comes from.
    """

    units: GateUnits
    origin: str
    iterations: int
    parameters: float
    squared_error: float
    score: float
    trees: TreeOptions | None = None

    @property
    def everywhere(self) -> bool:
        """Whether it is k-sparse by construction, not on the rows alone."""
        return self.trees is None or (self.trees.everywhere and not self.trees.descended)


class Minimisation:
    """A search for the candidate that generalises best.

    Parameters
    ----------
    sample : TrainingSample
        The rows.
    bounds : Bounds
        Bounds of the class and of the search.
    limits : NormLimits
        The scale of the class.
    rng : numpy.random.Generator
        Seed of the restarts.
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
        self.best = self.constant = self._judged(self._mean_of(sample), "constant", 1, 1)
        self._compared: tuple[ERMCandidate, Descended[GateUnits]] | None = None

    def run(self) -> ERMCandidate:
        """The best of all candidates; ends early at a fit that is perfect and no accident."""
        self.report(self.best)
        self._grow(TreeOptions())
        descent_first = self._n_trees > 1 and self.bounds.n_restarts > 1 and len(self.sample) >= FEWEST  # sums are slow
        if not descent_first:
            self._grow_further()
        if self._settled() or len(self.sample) < FEWEST:
            return self.best
        search = HeldOutSearch(self.sample, self.bounds, self.limits, self.rng)
        self._restart(search, descent_first=descent_first)
        return self.best if self._settled(LIKELY) else self._chosen(search)

    def _restart(self, search: HeldOutSearch, *, descent_first: bool) -> None:
        """Descents and trees by turns, until two agree."""
        columns = self.rng.permutation(np.flatnonzero(self.sample.splittable))
        n_grown, tol = 0, self.bounds.tol
        for restart in range(self.bounds.n_restarts):
            if self._settled() or search.perfect(tol):
                break
            waits = descent_first and restart == 0
            if not waits and search.done(tol, self._held_out(search)):
                break
            if descent_first and restart == 1:
                self._grow_further()
            elif len(columns) and (restart % 2 or self._settled(LIKELY)):
                self._grow(TreeOptions(int(columns[n_grown % len(columns)]), bent=n_grown % 2 > 0))
                n_grown += 1
            elif restart % 2 == 0 and search.possible:
                self._descend(search, from_trees=restart == 0 and len(columns) > 0 and not waits)

    @cached_property
    def _n_distinct(self) -> int:
        """Distinct rows."""
        return len(np.unique(self.sample.design, axis=0))

    @property
    def _n_trees(self) -> int:
        n_trees = min(self.bounds.max_active, self.bounds.n_units)
        return n_trees if n_trees <= MOST_TREES else 1

    def _settled(self, rows: float = AMPLE) -> bool:
        """Whether the fit is perfect, with at least ``rows`` distinct rows for each parameter."""
        return self._exact and self.best.parameters <= max(1, self._n_distinct / rows)

    @property
    def _exact(self) -> bool:
        return self.best.squared_error <= self.sample.negligible(self.bounds.tol)

    def _mean_of(self, sample: TrainingSample) -> GateUnits:
        mean = float(np.average(sample.targets, weights=sample.weights))
        theta = np.zeros((1, sample.n + 1))
        theta[0, -1] = abs(mean)
        return GateUnits(np.array([-1.0 if mean < 0 else 1.0]), self.limits.shrunk(theta))

    def _grow_further(self) -> None:
        """Trees whose splits are compared by ReLUs, and descent from the best trees, while the fit is not perfect."""
        if not self._settled():
            self._grow(TreeOptions(bent=True))
        if not self._settled() and self.best.trees and not self.best.trees.descended:
            self._grow(replace(self.best.trees, descended=True))

    def _grow(self, options: TreeOptions) -> None:
        """Trees with gates that close everywhere; where these break a limit, also with the least gates, and descent."""
        units, iterations, parameters, shrunk = self._made(self.sample, options)
        self._offer(self._judged(units, options.origin, iterations, parameters, options))
        if shrunk and not options.descended:
            further = {"descended": True} if not options.everywhere else {"everywhere": False}
            self._grow(replace(options, **further))

    def _made(self, sample: TrainingSample, options: TreeOptions | None) -> tuple[GateUnits, int, float, bool]:
        """Units from trees, or the constant; the iterations, the parameters, and whether a limit shrank the units."""
        if options is None:
            return self._mean_of(sample), 1, 1, False
        bounds = self.bounds
        trees = forest(sample, self._n_trees, bounds.n_units, options.first, bent=options.bent)
        units, parameters = units_of(trees, sample, everywhere=options.everywhere), sum(map(n_parameters, trees))
        if not options.descended or not len(units):
            theta = self.limits.shrunk(units.theta)
            return GateUnits(units.signs, theta), len(trees), parameters, not np.array_equal(theta, units.theta)
        risk = PenalisedRisk.of(sample, bounds.max_active, self.limits)
        units, iterations = risk.in_class(units, sample, bounds.max_iter, free=units.theta != 0)
        return units, iterations, max(parameters, self._n_weights(units)), False

    @staticmethod
    def _n_weights(units: GateUnits) -> float:
        """Weights that are not zero, each a parameter; at least one, so that zero never beats a constant."""
        return max(float(np.count_nonzero(units.theta)), 1.0)

    def _descend(self, search: HeldOutSearch, *, from_trees: bool) -> None:
        """A descent from random units; ``from_trees``: after one from more trees than the class allows."""
        if from_trees:
            units = units_of(forest(search.train, 1, MORE * search.n_units), search.train)
            if len(units) > search.n_units:
                self._report(search.thin(units, "trees, thinned"))
        self._report(search.descend())

    def _report(self, found: Descended[GateUnits]) -> None:
        self.report(self._judged(found.units, found.origin, found.iterations, self._n_weights(found.units)))

    def _held_out(self, search: HeldOutSearch) -> Descended[GateUnits]:
        """What the search that found the best trees finds without the rows held out."""
        if self._compared is None or self._compared[0] is not self.best:
            units, iterations, _, _ = self._made(search.train, self.best.trees)
            self._compared = self.best, search.measured(units, self.best.origin, iterations)
        return self._compared[1]

    def _chosen(self, search: HeldOutSearch) -> ERMCandidate:
        """The best descent, moved to the minimum of all rows, if it is better on the rows held out; else trees.

        Trees grown on all rows may have missed what the trees for comparison found: then the latter are moved.
        """
        descends = search.perfect(self.bounds.tol) and not self._exact
        trees = search.found[0] if descends else self._held_out(search)
        found = min(search.found, key=lambda each: each.error, default=trees)
        descends = descends or search.better(found, trees) or self._better_twice(search, found, trees)
        if not descends and self.best.squared_error <= MISSED * trees.error * self.sample.total:
            return self.best
        found = found if descends else trees
        risk = PenalisedRisk.of(self.sample, self.bounds.max_active, self.limits)
        free = None if descends else found.units.theta != 0
        moved, _ = risk.in_class(found.units, self.sample, self.bounds.max_iter, free)
        kept = separated(found.units, self.sample, self.bounds.max_active)
        options = None if descends else TreeOptions(descended=True)
        refitted = [
            self._judged(units, found.origin, found.iterations, self._n_weights(units), options)
            for units in (moved, kept)
        ]
        return min(refitted if descends else [*refitted, self.best], key=lambda each: each.squared_error)

    def _better_twice(self, search: HeldOutSearch, found: Descended[GateUnits], trees: Descended[GateUnits]) -> bool:
        """Whether a descent is better than the best trees by its score, and likely so on the rows held out."""
        candidate = self._judged(found.units, found.origin, found.iterations, self._n_weights(found.units))
        return candidate.score < WORTH * self.best.score and search.better(found, trees, DEVIATIONS)

    def _judged(
        self, units: GateUnits, origin: str, iterations: int, parameters: float, trees: TreeOptions | None = None
    ) -> ERMCandidate:
        error = self.sample.squared_error(units.values(self.sample.design))
        value = score(self.sample, error, parameters, max(self.bounds.tol, EXACT))
        return ERMCandidate(units, origin, iterations, parameters, error, value, trees)

    def _offer(self, candidate: ERMCandidate) -> None:
        self.report(candidate)
        worth = WORTH if self.best.everywhere and not candidate.everywhere else 1.0
        if candidate.score < worth * self.best.score:
            self.best = candidate

"""Descents from random units, thinned to the number allowed, and compared on rows held out of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.sparsely_activated.descent import PenalisedRisk
from sparsact.learners.sparsely_activated.leaf_models import Array, TrainingSample
from sparsact.learners.sparsely_activated.random_starts import BATCH, random_units
from sparsact.learners.sparsely_activated.to_network import GateUnits, NormLimits

FEWEST: Final = 20  # rows, with fewer none are held out
SHARE, LARGEST_SHARE, USEFUL, MOST_HELD = 0.15, 1 / 3, 30, 3000  # of the rows that are held out, and how many of them
FEWEST_ROWS: Final = 2  # for each parameter of the units that a descent starts from
AMPLE_ROWS: Final = 4.5  # with fewer, units that are too many share out the rows of one, and cannot be removed
WIDER: Final = 3  # times the units allowed
PENALTIES: Final = (1.0, 10.0)  # of the descents, by turns
STEPS: Final = 12.5  # of mini-batches, for each iteration allowed
N_QUICK: Final = 8000  # rows at least, while the units are thinned
HARMLESS: Final = 1.25  # times the least held-out error: go on removing units
AS_GOOD, LIKELY = 1.02, 1.0  # times that error, and standard errors of the difference: take the smaller network
AGREEMENT: Final = 0.05  # of the error: two networks that differ by less are the same
MOST_WORK: Final = 1.2e11  # multiplications of all descents if there are several: less than a minute
LOSSLESS: Final = 1.1  # an error of this times the least error of any wider network
NEGLIGIBLE: Final = 1e-7  # of the variance

Model = TypeVar("Model")


@dataclass(frozen=True, eq=False)
class Descended(Generic[Model]):
    """A model in the class, how it was found, its values (h,) on the rows held out, and the mean squared error."""

    units: Model
    origin: str
    iterations: int
    values: Array
    error: float


class HeldOut(Generic[Model]):
    """Models compared on rows held out, with targets and weights (h,); ``variance`` is that of the targets."""

    def __init__(self, targets: Array, weights: Array, variance: float) -> None:
        self.targets, self.weights, self.variance = targets, weights, variance
        self.least = np.inf  # error on the way to any of the models
        self.found: list[Descended[Model]] = []

    def judged(self, model: Model, values: Array, origin: str, iterations: int) -> Descended[Model]:
        """A model with its error."""
        return Descended(model, origin, iterations, values, self._mean((values - self.targets) ** 2))

    def _mean(self, values: Array) -> float:
        """Weighted mean over the rows held out."""
        return float(self.weights @ values) / float(self.weights.sum())

    def perfect(self, tol: float) -> bool:
        """Whether a model left less than ``tol`` of the variance."""
        return any(each.error <= tol * self.variance for each in self.found)

    def done(self, tol: float, *others: Descended[Model]) -> bool:
        """Whether an error is below ``tol`` of the variance, or the two best models are good and the same.

        ``others`` are models of another search.
        """
        first, *more = sorted([*others, *self.found], key=lambda each: each.error)
        if first.error <= tol * self.variance:
            return True
        good = first.error <= min(LOSSLESS * self.least, self.variance / 2)
        return good and bool(more) and self._mean((first.values - more[0].values) ** 2) <= AGREEMENT * first.error

    def better(self, one: Descended[Model], other: Descended[Model], deviations: float = 2.0) -> bool:
        """Whether the first errors are smaller by more than a number of standard errors of the difference."""
        gain = (other.values - one.values) * (other.values + one.values - 2 * self.targets)
        mean = self._mean(gain)
        return bool(mean > deviations * np.sqrt(self._mean((gain - mean) ** 2) / len(gain)))


@dataclass(frozen=True)
class Bounds:
    """What bounds the search: the parameters of :class:`.SparselyActivatedRegressor` of these names."""

    n_units: int
    max_active: int
    n_restarts: int
    max_iter: int
    tol: float


class HeldOutSearch(HeldOut[GateUnits]):
    """Descents on most rows of a sample, compared on the rest.

    Parameters
    ----------
    sample : TrainingSample
        The rows.
    bounds : Bounds
        Bounds of the class and of the search.
    limits : NormLimits
        The scale of the class.
    rng : numpy.random.Generator
        Source of the split, the starts and the batches.
    """

    def __init__(self, sample: TrainingSample, bounds: Bounds, limits: NormLimits, rng: np.random.Generator) -> None:
        fitted, held = split(len(sample), rng)
        self.train, self.held = part(sample, fitted), part(sample, held)
        super().__init__(self.held.targets, self.held.weights, self.train.variation() / self.train.total)
        self.max_active, self.max_iter, self.rng = bounds.max_active, bounds.max_iter, rng
        self.most = int(self.train.total / (FEWEST_ROWS * (sample.n + 1)))
        self.n_units = min(bounds.n_units, self.most)
        self.n_aimed = self.n_units  # to which units are removed whatever it costs
        self.risk = PenalisedRisk.of(self.train, self.max_active, limits)
        n_quick = max(N_QUICK, FEWEST_ROWS * self.n_wide * (sample.n + 1))
        quick = part(self.train, np.arange(min(n_quick, len(self.train))))
        self.quick = PenalisedRisk.of(quick, self.max_active, limits, np.float32)
        self.n_descents = 0

    @property
    def n_wide(self) -> int:
        """Units that a descent starts from."""
        return min(WIDER * self.n_aimed, self.most)

    @property
    def possible(self) -> bool:
        """Whether the rows bear another descent, and the work is worth it."""
        m, n_columns = self.quick.design.shape
        steps = 4 * STEPS * BATCH * self.n_wide + 2 * (m * self.n_wide + len(self.train) * self.n_units)
        return self.n_wide > 1 and (
            self.n_descents == 0 or (self.n_descents + 1) * self.max_iter * n_columns * steps < MOST_WORK
        )

    def measured(self, units: GateUnits, origin: str, iterations: int) -> Descended[GateUnits]:
        """Units and their score on the rows held out."""
        return self.judged(units, units.values(self.held.design), origin, iterations)

    def descend(self) -> Descended[GateUnits]:
        """One more descent from random units.

        Where removing them did harm with either penalty, the next is to start, and at first to end, at half as many.
        """
        steps = int(STEPS * self.max_iter)
        penalty = PENALTIES[self.n_descents % len(PENALTIES)]
        self.n_descents += 1
        units = random_units(self.train, self.n_wide, self.max_active, penalty, steps, self.rng)
        before, self.least = self.least, np.inf
        found = self.thin(units, "descent", penalty, steps)
        lossy, self.least = found.error > LOSSLESS * self.least, min(before, self.least)
        crowded = AMPLE_ROWS * self.n_wide * (self.train.n + 1) > self.train.total
        if lossy and crowded and self.n_descents % len(PENALTIES) == 0:
            self.n_aimed = max(1, self.n_aimed // 2)
        return found

    def thin(
        self, units: GateUnits, origin: str, penalty: float = PENALTIES[0], iterations: int = 0
    ) -> Descended[GateUnits]:
        """The units on the way to as few as do no harm, moved into the class."""
        path: list[Descended[GateUnits]] = []

        def step(units: GateUnits, share: float) -> GateUnits:
            nonlocal iterations
            moved = self.quick.minimised(units, penalty, max(1, int(share * self.max_iter)))
            units, more = moved.value, moved.steps
            iterations += more
            found = self.measured(units, origin, iterations)
            self.least = min(self.least, found.error)
            if len(units) <= self.n_units:
                path.append(found)
            return units

        units = step(units, 0.2)
        while len(units) > self.n_aimed:
            units = step(self.quick.without(units, -(-(len(units) - self.n_aimed) // 2)), 0.2)
        units = step(units, 0.5)
        enough = NEGLIGIBLE * self.variance
        best = path[-1]
        while len(units) > 1 and path[-1].error <= HARMLESS * best.error + enough:
            units = step(self.quick.without(units, max(1, len(units) // 10)), 0.3)
            best = min(path, key=attrgetter("error"))
        units = next(
            each.units
            for each in reversed(path)
            if each.error <= best.error + enough
            or (each.error <= AS_GOOD * best.error and not self.better(best, each, LIKELY))
        )
        units, more = self.risk.in_class(units, self.train, self.max_iter)
        self.found.append(self.measured(units, origin, iterations + more))
        return self.found[-1]


def split(m: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of the rows to fit, and of the rows held out, among ``m`` rows."""
    n_held = min(max(int(SHARE * m), min(int(LARGEST_SHARE * m), USEFUL)), MOST_HELD)
    order = rng.permutation(m)
    return order[n_held:], order[:n_held]


def part(sample: TrainingSample, rows: NDArray[np.intp]) -> TrainingSample:
    """Some rows of a sample, on the same scale."""
    return replace(sample, design=sample.design[rows], targets=sample.targets[rows], weights=sample.weights[rows])

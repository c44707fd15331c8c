"""Gaussian processes of a table's rows, and the greedy search for the rows that tell most under them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final, NamedTuple

import numpy as np

from sparsact.datasets import Encoding, encoded_table
from sparsact.datasets.combinations import Bits, neighbours
from sparsact.datasets.table_files import Data, resolve
from sparsact.datasets.unseen_rows import left_out, readable
from sparsact.hypercube import characters
from sparsact.learners import CubeGPRegressor, LettersRegressor
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.gp.kernel import Array, Points
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.prospects import Belief, Prospects, Quantities
from sparsact.learners.gp.systems.cube import MOST_DIRECT_ROWS
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.letters.effects import letter_effects

SIGNS: Final = {"effects": 0, "variance": 0, "maximum": 1, "minimum": -1}
_LEAST: Final = 1e-300

SiteSets = Sequence[tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Process:
    """A Gaussian process of the rows of a table.

    ``names`` are columns or sites, which have ``levels`` effects each. ``measured`` are the rows that it was fitted to,
    as the kernel takes them and ``points`` makes them of bits. ``unit`` is its value 1 in units of the target.
    ``beliefs`` has posteriors up to a number, by draws of kernel and noise, or kernels of parts of the rows.
    ``effects`` are the effects of sets of columns under a kernel.
    """

    names: tuple[str, ...]
    levels: tuple[int, ...]
    measured: Points
    unit: float
    points: Callable[[Bits], Points]
    beliefs: Callable[[int, np.random.Generator], list[Belief]]
    effects: Callable[[Any, SiteSets], Quantities]


@singledispatch
def process_of(model: object, encoding: Encoding) -> Process:
    """The process of a model; a ValueError of other models, which keep no covariances."""
    raise ValueError(
        f"suggestions need a Gaussian process; got a {type(model).__name__}: fit the table with model gp, or pass the "
        "rows measured so far (measured, --measured), and one is fitted to them."
    )


@process_of.register
def _of_bits(model: CubeGPRegressor, encoding: Encoding) -> Process:
    fitted = model._posterior

    def beliefs(most: int, rng: np.random.Generator) -> list[Belief]:
        rows, found = fitted.rows, []
        if len(rows) > MOST_DIRECT_ROWS:
            rows, most = rows.take(rng.permutation(len(rows))[:MOST_DIRECT_ROWS]), 1
        for *theta, log_noise in fitted.parameters[:most] if most > 1 else ():
            given = Hyperparameters(fitted.given.kernel.with_theta(theta), float(np.exp(log_noise)))
            system = given.dense(rows)
            posterior = Posterior(system, system.dual_coefficients(rows.y))
            found.append(Belief(posterior, system, given.noise_variance / rows.typical_weight))
        noise = fitted.given.noise_variance / rows.typical_weight
        return found or [Belief(fitted.best, fitted.given.dense(rows), noise)]

    def effects(kernel: CubeKernel, subsets: SiteSets) -> Quantities:
        variances = kernel.variances_of(list(subsets))
        return Quantities(variances, lambda points: (characters(1 - 2 * points, subsets) * variances).T)

    names = encoding.feature_names
    return Process(
        names, (1,) * len(names), fitted.rows.bits, fitted.unit, lambda X: X.astype(np.float64), beliefs, effects
    )


@process_of.register
def _of_letters(model: LettersRegressor, encoding: Encoding) -> Process:
    ensemble = model._ensemble
    score = ensemble.scores["process"]

    def beliefs(most: int, rng: np.random.Generator) -> list[Belief]:
        found = []
        for posterior in [one for one in score.models if isinstance(one, Posterior)][:most]:
            system = posterior.system
            rows = np.sort(rng.permutation(len(system))[:MOST_DIRECT_ROWS])
            dense = DenseSystem(system.kernel, system.points[rows], system.noise[rows])
            found.append(Belief(posterior, dense, float(np.median(system.noise))))
        return found

    return Process(
        tuple(name for name, _ in encoding.sites),
        tuple(map(len, model.letters_)),
        ensemble.codes,
        score.scale * ensemble.unit,
        lambda X: model._alphabet.codes(encoding.letters(X)),
        beliefs,
        letter_effects,
    )


def fitted_process(measured: Data, encoding: Encoding, random_state: int) -> tuple[Process, str]:
    """A process of bits, or of letters where sites have more than two, fitted to the rows of a table that can be read.

    And how many cannot, and why.
    """
    table, reasons, pairs = encoded_table(measured, encoding), dict[int, str](), []
    resolve(encoding.target_names, table.parts.names, "target")
    for batch in table.parts.batches([*encoding.source_columns, *encoding.target_names]):
        with batch:
            rows = readable(encoding, batch, answers=True)
        pairs.append((rows.X, rows.y))
        reasons |= {batch.overall + place: why for place, why in rows.reasons.items()}
    X, y = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    rest = left_out(reasons, len(y) + len(reasons))
    if not len(y):
        raise ValueError(f"none of the measured rows can be read ({rest or 'there is none'}).")
    if encoding.has_letters:
        model: Any = LettersRegressor(random_state=random_state).fit(encoding.letters(X), y)
    else:
        model = CubeGPRegressor(domain="cube", random_state=random_state).fit(X.astype(bool), y)
    return process_of(model, encoding), rest


class Choice(NamedTuple):
    """A row: its place among the candidates (of an improved one, of the candidate before), bits and gain."""

    place: int
    row: Bits
    gain: float


@dataclass(eq=False)
class Search:
    """Greedy choice of rows by the mean gain over beliefs; ``sign`` 0 is for variances, else improvements count.

    Falls of variances are multiplied by the roughness near a row: where measured rows surprised, more is to be learned.
    """

    process: Process
    beliefs: Sequence[Belief]
    quantities: Sequence[Quantities]
    sign: int
    room: int

    def __post_init__(self) -> None:
        pairs = zip(self.beliefs, self.quantities, strict=True)
        self.total = max(float(np.mean([one.variances(own).sum() for one, own in pairs])), _LEAST)
        self.best = [(self.sign * one.posterior.values(self.process.measured)).max() for one in self.beliefs]

    def gains(self, prospects: Sequence[Prospects]) -> Array:
        """Mean gains of candidates, (N,)."""
        if not self.sign:
            return np.asarray(np.mean([each.falls() for each in prospects], axis=0) / self.total)
        pairs = zip(prospects, self.best, strict=True)
        gains = [each.improvements(self.sign * best, self.sign) for each, best in pairs]
        return np.asarray(self.process.unit * np.mean(gains, axis=0))

    def weights(self, points: Points) -> Array:
        """What gains are multiplied by: of variances the mean roughness of the function near each point, (N,)."""
        if self.sign:
            return np.ones(len(points))
        return np.asarray(np.mean([belief.roughness(points) for belief in self.beliefs], axis=0))

    def rows(
        self, X: Bits, costs: Array, budget: float, patterns: Sequence[Bits] | None, *, repeat: bool
    ) -> list[Choice]:
        """Rows while candidates that differ from measured and chosen ones fit into the budget.

        With ``patterns`` each is improved, one site at a time.
        """
        points, found = self.process.points(X), list[Choice]()
        prospects, weights = self.prospects(self.beliefs, points, self.room), self.weights(points)
        keys, gone = keys_of(points), set[bytes]() if repeat else set(keys_of(self.process.measured))
        while (free := np.array([key not in gone for key in keys]) & (costs <= budget)).any():
            gains = self.gains(prospects)
            place = int(np.where(free, gains * weights / costs, -np.inf).argmax())
            choice, one = Choice(place, X[place], float(gains[place])), [each.at(place) for each in prospects]
            if patterns is not None:
                choice, one = self._improved(choice, one, [other.row for other in found], patterns, gone)
            for every, its in zip(prospects, one, strict=True):
                every.measure(its)
            self.best = [max(best, self.sign * its.means[0]) for best, its in zip(self.best, one, strict=True)]
            gone.update(keys_of(one[0].points))
            budget -= costs[place]
            found.append(choice)
        return found

    def prospects(self, beliefs: Sequence[Belief], points: Points, room: int) -> list[Prospects]:
        """Under each belief."""
        pairs = zip(beliefs, self.quantities, strict=True)
        return [Prospects.of(belief, points, quantities, room) for belief, quantities in pairs]

    def _improved(
        self, choice: Choice, one: list[Prospects], taken: list[Bits], patterns: Sequence[Bits], gone: set[bytes]
    ) -> tuple[Choice, list[Prospects]]:
        """The row after changes of single sites, the best each time, while one has a larger gain."""
        beliefs = self.beliefs
        if taken:
            beliefs = [belief.with_rows(self.process.points(np.stack(taken))) for belief in beliefs]
        while True:
            near = neighbours(patterns, choice.row)
            points = self.process.points(near)
            prospects = self.prospects(beliefs, points, self.room - len(taken))
            gains, known = self.gains(prospects), [key in gone for key in keys_of(points)]
            scores = np.where(known, -np.inf, gains * self.weights(points))
            place = int(scores.argmax())
            if scores[place] <= choice.gain * self.weights(one[0].points)[0]:
                return choice, one
            choice = Choice(choice.place, near[place], float(gains[place]))
            one = [each.at(place) for each in prospects]


def keys_of(points: Points) -> list[bytes]:
    """Something hashable for each point, equal for equal ones; letters of a site are fewer than 256."""
    return [row.tobytes() for row in points.astype(np.uint8)]

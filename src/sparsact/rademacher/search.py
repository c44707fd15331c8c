"""Networks of the class that correlate well with signs, found by search: lower bounds on what the best one does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.network import SparselyActivatedNetwork

N_STEPS = 25
FIRST_STEP = 0.5
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class SearchedUnit:
    """A unit ``sign * scale * relu(<direction, x> - threshold)`` and what it does to the problem."""

    direction: NDArray[np.float64]
    threshold: float
    sign: float
    gain: float
    active: NDArray[np.bool_]


@dataclass(frozen=True)
class Problem:
    """Points, the coefficients to correlate with, and the scale of the class."""

    points: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    W: float
    B: float

    @property
    def margin(self) -> float:
        """More than the rounding error of a pre-activation of a unit direction."""
        radius = float(np.linalg.norm(self.points, axis=1).max())
        return float(8 * (self.points.shape[1] + 2) * EPSILON * max(radius, self.B / self.W))

    def scale(self, threshold: NDArray[np.float64]) -> NDArray[np.float64]:
        """The most that a unit of this threshold on a unit direction can be multiplied by."""
        return self.B / np.maximum(np.abs(threshold), self.B / self.W)

    def best_unit(
        self, room: NDArray[np.bool_], most: int, n_starts: int, start: SearchedUnit | None, rng: np.random.Generator
    ) -> SearchedUnit:
        """The best unit found that is active only where there is ``room``, and at ``most`` so many points.

        Gradient ascent on the direction from several starts at once; for every direction the threshold is the best.
        """
        m, n = self.points.shape
        starts = rng.normal(size=(n_starts, n))
        corners = self.points[rng.integers(m, size=n_starts // 2)] - self.points.mean(axis=0)
        starts[: len(corners)] = starts[: len(corners)] * 0.1 + corners
        if start is not None:
            starts = np.vstack([start.direction, starts])
        directions = _normalised(starts)
        thresholds, signs, gains = self._thresholds(directions, room, most)
        steps = np.full(len(directions), FIRST_STEP)
        for _ in range(N_STEPS):
            active = self.points @ directions.T > thresholds
            slopes = _normalised((signs * (active * self.coefficients[:, None])).T @ self.points)
            tried = _normalised(directions + steps[:, None] * slopes)
            new_thresholds, new_signs, new_gains = self._thresholds(tried, room, most)
            better = new_gains > gains
            directions[better], thresholds[better] = tried[better], new_thresholds[better]
            signs[better], gains[better] = new_signs[better], new_gains[better]
            steps *= np.where(better, 1.5, 0.5)
        best = int(np.argmax(gains))
        active = self.points @ directions[best] > thresholds[best]
        return SearchedUnit(directions[best], float(thresholds[best]), float(signs[best]), float(gains[best]), active)

    def _thresholds(
        self, directions: NDArray[np.float64], room: NDArray[np.bool_], most: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Best threshold, sign and gain of every direction.

        Between neighbouring projections the correlation is linear in the threshold and the scale is constant or its
        inverse, so that the best threshold is a projection or one of +-B / W; or without end, where a unit is all
        threshold and its direction nothing: then the opposite direction is worth as much or more at one of these.
        """
        heights = self.points @ directions.T
        descending = np.sort(heights, axis=0)[::-1]
        weights = self.coefficients[np.argsort(heights, axis=0)[::-1]]
        edges = np.full((1, len(directions)), self.B / self.W)
        candidates = np.concatenate([descending, edges, -edges])
        counts = np.concatenate(
            [np.broadcast_to(np.arange(len(heights))[:, None], heights.shape)]
            + [(heights > edge).sum(axis=0)[None] for edge in (edges, -edges)]
        )
        ends = np.zeros((1, len(directions)))
        sums = np.concatenate([ends, np.cumsum(weights, axis=0)])
        moments = np.concatenate([ends, np.cumsum(weights * descending, axis=0)])
        values = np.take_along_axis(moments, counts, 0) - candidates * np.take_along_axis(sums, counts, 0)
        gains = np.abs(values) * self.scale(candidates)
        highest = np.where(room[:, None], -np.inf, heights).max(axis=0)  # of those where the unit must be off
        gains[(candidates < highest) | (counts > most)] = -np.inf
        best = np.argmax(gains, axis=0)[None]
        chosen, gain, value = (np.take_along_axis(table, best, 0)[0] for table in (candidates, gains, values))
        return chosen, np.where(value < 0, -1.0, 1.0), gain

    def network(self, units: list[SearchedUnit]) -> SparselyActivatedNetwork:
        """The network of these units, thresholds raised so that no rounding switches a unit on."""
        thresholds = np.array([unit.threshold for unit in units]) + self.margin
        scale = self.scale(thresholds) * (1 - 8 * EPSILON)
        W = np.stack([unit.direction for unit in units]) * scale[:, None]
        return SparselyActivatedNetwork(np.array([unit.sign for unit in units]), W, thresholds * scale)


def correlating_units(
    problem: Problem, s: int, k: int, *, n_rounds: int, n_starts: int, rng: np.random.Generator
) -> list[SearchedUnit]:
    """The best s units found of which no point switches on more than k.

    They are first placed greedily. Every round then removes some and places as many anew, which may take but a few
    points each, so that some are left for the others; then it places each once more without that limit. A round that
    does not help is undone.
    """
    m = len(problem.points)
    everywhere = np.ones(m, dtype=bool)
    units: list[SearchedUnit] = []
    best, total = units, -np.inf
    for _ in range(n_rounds):
        most = round(m ** rng.uniform()) if units else m
        for _ in range(s - len(units)):
            units.append(problem.best_unit(_room(units, k, everywhere), most, n_starts, None, rng))
        for j, old in enumerate(units):
            room = _room(units[:j] + units[j + 1 :], k, everywhere)
            units[j] = problem.best_unit(room, m, n_starts, old, rng)
        if (reached := _total(problem, units)) > total:
            best, total = units, reached
        kept = rng.permutation(s)[: rng.integers(s)]
        units = [best[j] for j in kept]
    return best


def _room(units: list[SearchedUnit], k: int, everywhere: NDArray[np.bool_]) -> NDArray[np.bool_]:
    taken = np.zeros(len(everywhere), dtype=np.intp)
    for unit in units:
        taken += unit.active
    return taken < k


def _total(problem: Problem, units: list[SearchedUnit]) -> float:
    return float(problem.coefficients @ problem.network(units)(problem.points))


def _normalised(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, np.finfo(np.float64).tiny))

"""Lower bounds on the empirical Rademacher complexity, by a search for networks that correlate with the signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier import Estimate
from sparsact.network import SparselyActivatedNetwork
from sparsact.rademacher.argument_checks import (
    check_scale,
    checked_draws,
    checked_n_active,
    checked_sample,
    mean_of_draws,
)
from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import checked_generator, checked_size

N_STEPS: Final = 25
FIRST_STEP: Final = 0.5
EPSILON: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class SearchedUnit:
    """A unit ``sign * scale * relu(<direction, x> - threshold)``, its gain and the points where it is active."""

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
        """Largest factor of a unit of this threshold on a unit direction."""
        return self.B / np.maximum(np.abs(threshold), self.B / self.W)

    def best_unit(
        self, room: NDArray[np.bool_], limit: int, n_starts: int, start: SearchedUnit | None, rng: np.random.Generator
    ) -> SearchedUnit:
        """The best unit found that is active only where there is ``room``, and at ``limit`` points at most."""
        # Gradient ascent on the direction from several starts at once; for every direction the threshold is the best.
        m, n = self.points.shape
        starts = rng.normal(size=(n_starts, n))
        corners = self.points[rng.integers(m, size=n_starts // 2)] - self.points.mean(axis=0)
        starts[: len(corners)] = starts[: len(corners)] * 0.1 + corners
        if start is not None:
            starts = np.vstack([start.direction, starts])
        directions = _normalised(starts)
        thresholds, signs, gains = self._thresholds(directions, room, limit)
        steps = np.full(len(directions), FIRST_STEP)
        for _ in range(N_STEPS):
            active = self.points @ directions.T > thresholds
            slopes = _normalised((signs * (active * self.coefficients[:, None])).T @ self.points)
            tried = _normalised(directions + steps[:, None] * slopes)
            new_thresholds, new_signs, new_gains = self._thresholds(tried, room, limit)
            better = new_gains > gains
            directions[better], thresholds[better] = tried[better], new_thresholds[better]
            signs[better], gains[better] = new_signs[better], new_gains[better]
            steps *= np.where(better, 1.5, 0.5)
        best = int(np.argmax(gains))
        active = self.points @ directions[best] > thresholds[best]
        return SearchedUnit(directions[best], float(thresholds[best]), float(signs[best]), float(gains[best]), active)

    def _thresholds(
        self, directions: NDArray[np.float64], room: NDArray[np.bool_], limit: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Best threshold, sign and gain of every direction."""
        # Between neighbouring projections the correlation is linear in the threshold and the scale is constant or its
        # inverse, so the best threshold is a projection or one of +-B / W; or infinite, where a unit is all threshold:
        # then the opposite direction gains as much or more at one of these.
        heights = self.points @ directions.T
        descending = np.sort(heights, axis=0)[::-1]
        weights = self.coefficients[np.argsort(heights, axis=0)[::-1]]
        edges = np.full((1, len(directions)), self.B / self.W)
        candidates = np.concatenate([descending, edges, -edges])
        counts = np.concatenate(
            [np.broadcast_to(np.arange(len(heights))[:, None], heights.shape)]
            + [(heights > edge).sum(axis=0)[None] for edge in (edges, -edges)]
        )
        sums, moments = (np.pad(np.cumsum(part, axis=0), ((1, 0), (0, 0))) for part in (weights, weights * descending))
        values = np.take_along_axis(moments, counts, 0) - candidates * np.take_along_axis(sums, counts, 0)
        gains = np.abs(values) * self.scale(candidates)
        highest = np.where(room[:, None], -np.inf, heights).max(axis=0)  # among points where the unit must be off
        gains[(candidates < highest) | (counts > limit)] = -np.inf
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
    """Best s units found such that no point switches on more than k."""
    # They are first placed greedily. Every round then removes some and places as many again, each at a limited number
    # of points, so that some are left for the others; then it places each once more without that limit. A round that
    # does not help is undone.
    m = len(problem.points)
    units: list[SearchedUnit] = []
    best, total = units, -np.inf
    for _ in range(n_rounds):
        limit = round(m ** rng.uniform()) if units else m
        for _ in range(s - len(units)):
            units.append(problem.best_unit(_room(units, k, m), limit, n_starts, None, rng))
        for j, old in enumerate(units):
            room = _room(units[:j] + units[j + 1 :], k, m)
            units[j] = problem.best_unit(room, m, n_starts, old, rng)
        reached = float(problem.coefficients @ problem.network(units)(problem.points))
        if reached > total:
            best, total = units, reached
        kept = rng.permutation(s)[: rng.integers(s)]
        units = [best[j] for j in kept]
    return best


def _room(units: list[SearchedUnit], k: int, m: int) -> NDArray[np.bool_]:
    """Which of the m points switch on fewer than k of the units."""
    return np.asarray(sum((unit.active.astype(np.intp) for unit in units), start=np.zeros(m, dtype=np.intp)) < k)


def _normalised(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, np.finfo(np.float64).tiny))


def lower_complexity(
    X: ArrayLike,
    s: int,
    k: int | None = 1,
    *,
    W: float = 1.0,
    B: float = 1.0,
    signs: ArrayLike | None = None,
    support: ArrayLike | None = None,
    n_rounds: int = 16,
    n_starts: int = 16,
    rng: np.random.Generator,
) -> Estimate:
    r"""Estimate of a lower bound on the empirical Rademacher complexity of the class on the points ``X``.

    For each sign vector a member of the class is sought that correlates well with it; the mean of their correlations is
    a mean of lower bounds on the maxima.

    Parameters
    ----------
    X, s, k, W, B, signs, support
        As in :func:`~sparsact.rademacher.exact_complexity`, ``s`` one number. The dense class (k None, or k >= s) is s
        times the search for one unit.
    n_rounds, n_starts : int
        Rounds of removing units and placing them again, and directions from which each unit is sought.
    rng : numpy.random.Generator
        Source of randomness of the search.

    Returns
    -------
    bound : Estimate
        Its standard error is over the sign vectors; the gap that the search leaves is one-sided and unknown.

    Notes
    -----
    Costs about ``1.5 * draws * n_rounds * s`` searches for a unit, each 25 products of X with ``n_starts`` directions.
    On the 3-cube 16 rounds come close to the exact value, from below.

    Examples
    --------
    >>> round(lower_complexity([[1.0], [-1.0]], 1, rng=np.random.default_rng(0)).value, 6)
    1.0
    """
    rows, _ = checked_sample(X, support)
    zeta, s = checked_draws(signs, len(rows)), checked_size(s, "the number `s` of units")
    n_units, repeated = (1, s) if checked_n_active(k, s) == s else (s, 1)
    options: dict[str, Any] = {"support": support, "n_rounds": n_rounds, "n_starts": n_starts, "rng": rng}
    reached = [z @ correlating_network(rows, z, n_units, k, W=W, B=B, **options)(rows) for z in zeta]
    return mean_of_draws(repeated * np.array(reached) / len(rows), exact=signs is None)


def correlating_network(
    X: ArrayLike,
    coefficients: ArrayLike,
    s: int,
    k: int | None = 1,
    *,
    W: float = 1.0,
    B: float = 1.0,
    support: ArrayLike | None = None,
    n_rounds: int = 16,
    n_starts: int = 16,
    rng: np.random.Generator,
) -> SparselyActivatedNetwork:
    r"""A member h of the class with large :math:`\sum_i c_i h(x_i)`, found by search.

    Parameters
    ----------
    X, coefficients : array-like of shape (m, n) and (m,)
        Points, and the numbers c.
    s, k, W, B, support, n_rounds, n_starts, rng
        As in :func:`lower_complexity`.

    Returns
    -------
    network : SparselyActivatedNetwork
        Network of s units and scale at most (W, B), with at most k active at each row of ``X`` and ``support``.
    """
    rows, everywhere = checked_sample(X, support)
    c = checked_reals(coefficients, "`coefficients`")
    if c.shape != (len(rows),):
        raise ValueError(f"`coefficients` must hold one number per point, shape ({len(rows)},); got shape {c.shape}.")
    check_scale(W, B)
    s, n_rounds, n_starts = (
        checked_size(value, f"`{name}`") for name, value in (("s", s), ("n_rounds", n_rounds), ("n_starts", n_starts))
    )
    k = checked_n_active(k, s)
    checked_generator(rng)
    problem = Problem(everywhere, np.append(c, np.zeros(len(everywhere) - len(rows))), W, B)
    return problem.network(correlating_units(problem, s, k, n_rounds=n_rounds, n_starts=n_starts, rng=rng))

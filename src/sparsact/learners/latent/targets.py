"""Targets, some pinned at a bound of what an instrument can measure, and the likelihood of residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from sparsact.learners.gp.kernel import Array
from sparsact.statistics.column_scales import exponents_of

Censoring = Sequence[float | None] | str | None  # the bounds, or how to find them

LEAST_SHARE: Final = 0.03  # of the rows, at one number, that "auto" takes for a bound
_MORE_THAN_OTHERS: Final = 3.0  # times as many rows as at any number in between


@dataclass(frozen=True, eq=False)
class Targets:
    """Measured and censored targets.

    Attributes
    ----------
    y : ndarray of shape (m,)
        Targets; a censored one is at its bound.
    side : ndarray of shape (m,), int8
        -1 where the truth is at the lower bound or below, 1 at the upper bound or above, 0 where y was measured.
    weights : ndarray of shape (m,)
        Numbers of rows.
    bounds : tuple of float
        Lower and upper bound, infinite where there is none.
    """

    y: Array
    side: NDArray[np.int8]
    weights: Array
    bounds: tuple[float, float] = (-np.inf, np.inf)

    @classmethod
    def of(cls, y: Array, weights: Array, bounds: tuple[float, float]) -> Targets:
        """Targets within the bounds, which are checked to be reached."""
        lower, upper = bounds
        for word, bound, beyond in (("lower", lower, y < lower), ("upper", upper, y > upper)):
            if not np.isfinite(bound):
                continue
            furthest = y.min() if word == "lower" else y.max()
            if beyond.any():
                raise ValueError(
                    f"a censored target is at its bound, and {beyond.sum():,} rows are beyond the {word} one, "
                    f"{bound:g} (the furthest: {furthest:g}); clip the targets to the bounds, or move the bound."
                )
            if furthest != bound:
                raise ValueError(
                    f"no row is at the {word} bound {bound:g} of `censoring`, the nearest is {furthest:g}; pass the "
                    "number that the rows are pinned at, or None for this side."
                )
        side = sides(y, bounds)
        if side.all():
            raise ValueError(
                f"all {len(y):,} rows are at a bound of `censoring`, so that nothing was measured; pass rows with "
                "targets strictly between the bounds."
            )
        return cls(y, side, weights, bounds)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Targets:
        """Some of the rows."""
        return replace(self, y=self.y[rows], side=self.side[rows], weights=self.weights[rows])

    def centre_and_scale(self) -> tuple[float, float]:
        """Mean and standard deviation of y, the least positive number or more."""
        exponent = int(exponents_of(self.y))
        y = np.ldexp(self.y, -exponent)  # squares of any numbers are then numbers
        mean = np.average(y, weights=self.weights)
        deviation = np.sqrt(np.average((y - mean) ** 2, weights=self.weights)) or 1.0
        return float(np.ldexp(mean, exponent)), max(float(np.ldexp(deviation, exponent)), np.finfo(float).tiny)

    def standardized(self, centre: float, scale: float) -> Targets:
        """The same in the units ``(y - centre) / scale``."""
        lower, upper = self.bounds
        return replace(self, y=(self.y - centre) / scale, bounds=((lower - centre) / scale, (upper - centre) / scale))

    def logarithms(self) -> Targets:
        """The same of log y; every y must be positive."""
        if not (self.y > 0).all():
            raise ValueError(
                f'link="log" needs positive targets; {(self.y <= 0).sum():,} are not (the lowest: {self.y.min():g}): '
                "choose another link, or clip targets to the detection limit and pass it as lower bound of `censoring`."
            )
        return replace(self, y=np.log(self.y), bounds=log_bounds(self.bounds))

    @property
    def measured(self) -> float:
        """Weight of the rows that are not censored."""
        return float(self.weights[self.side == 0].sum())


def sides(y: Array, bounds: tuple[float | None, float | None]) -> NDArray[np.int8]:
    """-1 for targets (m,) at the lower bound or below, 1 at the upper one or above, else 0; None is no bound."""
    lower, upper = bounds
    below = np.zeros(len(y), dtype=bool) if lower is None else y <= lower
    above = np.zeros(len(y), dtype=bool) if upper is None else y >= upper
    return above.astype(np.int8) - below.astype(np.int8)


def pinned(y: Array, weights: Array) -> tuple[float, float]:
    """Lowest and highest target, as far as many rows are pinned there; infinite where they are not.

    These are at least 3 % of the rows, and three times as many as at any number in between.
    """
    values, place = np.unique(y, return_inverse=True)
    counts = np.bincount(place.ravel(), weights)
    if len(values) < 3:  # one number, or two classes
        return -np.inf, np.inf
    least = max(LEAST_SHARE * counts.sum(), _MORE_THAN_OTHERS * counts[1:-1].max())
    lower, upper = counts[[0, -1]] >= least
    return (float(values[0]) if lower else -np.inf, float(values[-1]) if upper else np.inf)


def checked_bounds(censoring: Censoring, y: Array, weights: Array) -> tuple[float, float]:
    """The bounds that the parameter ``censoring`` names, in single precision where all targets are such numbers."""
    if censoring is None:
        return -np.inf, np.inf
    if isinstance(censoring, str):
        return pinned(y, weights)
    if not isinstance(censoring, Sequence) or len(censoring) != 2:
        raise ValueError(
            f'`censoring` is "auto", None or a pair (lower, upper), of numbers or None; got {censoring!r}.'
        )
    lower, upper = (
        default if bound is None else float(bound) for bound, default in zip(censoring, (-np.inf, np.inf), strict=True)
    )
    with np.errstate(over="ignore"):
        if np.array_equal(y, y.astype(np.float32)):  # a floor of .3 is then recorded as .30000001
            lower, upper = float(np.float32(lower)), float(np.float32(upper))
    if not lower < upper:
        raise ValueError(f"the lower bound of `censoring` must be below the upper one; got {lower:g} and {upper:g}.")
    return lower, upper


LOG_ROOT_2PI: Final = float(np.log(2 * np.pi) / 2)


def residual_terms(r: Array, side: NDArray[np.int8]) -> tuple[Array, Array, Array]:
    """Log-likelihood of rows by residual and side, without the noise's logarithm, its derivative and curvature (m,).

    Curvatures are negative second derivatives, 0 or more.
    """
    value, slope, curvature = -0.5 * r**2 - LOG_ROOT_2PI, -r, np.ones_like(r)
    censored = side != 0
    sign = -side[censored].astype(np.float64)
    u = sign * r[censored]
    value[censored] = log_ndtr(u)
    ratio = np.exp(-0.5 * u**2 - LOG_ROOT_2PI - value[censored])  # of density and distribution
    slope[censored] = sign * ratio
    curvature[censored] = np.maximum(ratio * (ratio + u), 0.0)
    return value, slope, curvature


def expected_clipped(mean: Array, deviation: Array, bounds: tuple[float, float]) -> Array:
    """Mean of a normal number that is clipped to the bounds."""
    low, high = ((bound - mean) / deviation for bound in bounds)
    inside = ndtr(high) - ndtr(low)
    result = mean * inside + deviation * (_density(low) - _density(high))
    return result + _at(bounds[0], ndtr(low)) + _at(bounds[1], ndtr(-high))


def expected_exponential(mean: Array, deviation: Array, bounds: tuple[float, float]) -> Array:
    """Mean of the exponential of a normal number, clipped to bounds (of the exponential, not of the number)."""
    low, high = ((log_bound - mean) / deviation for log_bound in log_bounds(bounds))
    inside = np.exp(mean + deviation**2 / 2) * (ndtr(high - deviation) - ndtr(low - deviation))
    return inside + _at(bounds[0], ndtr(low)) + _at(bounds[1], ndtr(-high))


def log_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Bounds of logarithms."""
    return float(np.log(bounds[0])) if bounds[0] > 0 else -np.inf, float(np.log(bounds[1]))


def _density(u: Array) -> Array:
    return np.asarray(np.exp(-0.5 * u**2 - LOG_ROOT_2PI))


def _at(bound: float, probability: Array) -> Array:
    """What a bound adds to the mean, nothing if there is none."""
    return bound * probability if np.isfinite(bound) else np.zeros_like(probability)

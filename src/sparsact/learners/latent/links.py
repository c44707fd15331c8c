r"""Links: increasing curves g from a latent f to the mean of a measurement of variance about 1.

Beside the identity a logistic curve from C to C + A with the parameters C and :math:`\log A`,

.. math:: g(f) = C + A / (1 + e^{-f}),

and an increasing cubic spline of equidistant knots, whose coefficients have increments :math:`e^{c_k}` [1]_.

References
----------
.. [1] N. Pya, S. N. Wood, "Shape constrained additive models", Statistics and Computing 2015.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np
from scipy.interpolate import BSpline
from scipy.special import expit

from sparsact.learners.cube_gp.component import Array

_REACH: Final = 3.5  # standard deviations of the latent within the knots
_PIECES: Final = 8
_STEP: Final = 2 * _REACH / _PIECES
_ROUGHNESS: Final = 0.5  # prior deviation of a difference of log increments
_LOG_HEIGHT: Final = float(np.log(4.0))  # prior mean of a sigmoid's, whose deviation is 1


class Curve(NamedTuple):
    """Values, derivatives by f (m,) and by the parameters (m, k)."""

    value: Array
    slope: Array
    by_parameters: Array


class Link(Protocol):
    """A family of curves."""

    n_parameters: int
    has_intercept: bool  # whether the latent's intercept is a parameter, not fixed by the curve

    def start(self, low: float, high: float) -> tuple[float, float, Array]:
        """Shift and factor of a linear model of targets from low to high that make it a latent, and c to begin with."""

    def curve(self, f: Array, c: Array) -> Curve:
        """The curve of parameters c at f."""

    def prior(self, c: Array) -> tuple[Array, Array]:
        """Residuals (p,) of the prior, standard normal and linear in c, and their derivatives (p, k)."""


class Identity:
    """The latent is the mean."""

    n_parameters = 0
    has_intercept = True

    def start(self, low: float, high: float) -> tuple[float, float, Array]:
        """The linear model itself."""
        return 0.0, 1.0, np.empty(0)

    def curve(self, f: Array, c: Array) -> Curve:
        """F."""
        return Curve(f, np.ones_like(f), np.empty((len(f), 0)))

    def prior(self, c: Array) -> tuple[Array, Array]:
        """None."""
        return np.empty(0), np.empty((0, 0))


class Sigmoid:
    """A logistic curve; c holds C and log A."""

    n_parameters = 2
    has_intercept = True

    def start(self, low: float, high: float) -> tuple[float, float, Array]:
        """A curve whose tangent in the middle is the linear model."""
        span, middle = 1.2 * (high - low), (low + high) / 2
        return middle, 4 / span, np.array([middle - span / 2, np.log(span)])

    def curve(self, f: Array, c: Array) -> Curve:
        """Value, slope, and derivatives by C and log A."""
        share = expit(f)
        height = np.exp(c[1]) * share
        return Curve(c[0] + height, height * (1 - share), np.stack([np.ones_like(f), height], axis=1))

    def prior(self, c: Array) -> tuple[Array, Array]:
        """Of the height: about that of the targets."""
        return np.array([c[1] - _LOG_HEIGHT]), np.array([[0.0, 1.0]])


class Monotone:
    """An increasing spline, straight beyond its outer knots; c holds its first coefficient and log increments."""

    n_parameters = _PIECES + 3
    has_intercept = False  # the latent has mean 0 over the rows

    def __init__(self) -> None:
        knots = -_REACH + _STEP * np.arange(-3, _PIECES + 4)
        self._basis = BSpline(knots, np.eye(_PIECES + 3), 3)
        self._slopes = self._basis.derivative()

    def start(self, low: float, high: float) -> tuple[float, float, Array]:
        """A straight line through the linear model."""
        middle, increments = (low + high) / 2, np.full(_PIECES + 2, np.log(_STEP))
        return middle, 1.0, np.append(middle - (_PIECES + 2) * _STEP / 2, increments)

    def curve(self, f: Array, c: Array) -> Curve:
        """Value, slope, and derivatives by the first coefficient and the log increments."""
        inside = np.clip(f, -_REACH, _REACH)
        basis, slopes = self._basis(inside), self._slopes(inside)
        increments = np.exp(c[1:])
        basis += (f - inside)[:, None] * slopes
        # coefficient j is the first one and the increments up to j, so increment k belongs to all from k on
        after = np.cumsum(basis[:, ::-1], axis=1)[:, ::-1]
        steps = np.cumsum(slopes[:, ::-1], axis=1)[:, ::-1]
        by_increments = after[:, 1:] * increments
        value = c[0] * after[:, 0] + by_increments.sum(axis=1)
        return Curve(value, steps[:, 1:] @ increments, np.column_stack([after[:, 0], by_increments]))

    def prior(self, c: Array) -> tuple[Array, Array]:
        """Of the mean log increment, and of differences of neighbours: near a line of slope 1."""
        k = len(c) - 1
        rows = np.zeros((k, k + 1))
        rows[0, 1:], rows[1:, 1:] = 1 / k, np.diff(np.eye(k), axis=0) / _ROUGHNESS
        return rows @ c - np.log(_STEP) * (np.arange(k) == 0), rows


LINKS: Final[dict[str, Callable[[], Link]]] = {"identity": Identity, "sigmoid": Sigmoid, "monotone": Monotone}

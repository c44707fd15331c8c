r"""Links: increasing curves g of a standardised latent u, whose slope is about 1, and their derivatives.

A measurement is ``level + height * g(u)``, so that a family needs no parameters for level and height. Its parameters c
are standard normal a priori, and the search for a curve begins at c = 0. Beside the identity there are a logistic curve
of any steepness :math:`\kappa` and place t, with g(0) = 0 and a greatest slope of 1,

.. math:: g(u) = \frac{4}{\kappa} (\sigma(\kappa u - t) - \sigma(-t)), \qquad \sigma(x) = 1 / (1 + e^{-x}),

and an increasing cubic spline of equidistant knots, whose coefficients have increments :math:`e^{l_k}` [1]_, with
g(0) = 0. The l are a random walk, whose deviation is learned, less their mean over a normal u.

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

from sparsact.learners.gp.kernel import Array

_REACH: Final = 3.5  # standard deviations of the latent within the knots
_PIECES: Final = 20  # one in a third of a standard deviation: a kink is seen
_STEP: Final = 2 * _REACH / _PIECES
_ROUGHNESS: Final = 0.5 * np.sqrt(_STEP)  # deviation of a difference of log increments where the penalty is 1
_PLACE: Final = 3.0  # prior deviation of t: nearly all rows may be on one side of the inflection
_STEEPEST: Final = 30.0  # of logarithms, beyond which a curve is a step to rounding


class Curve(NamedTuple):
    """Values, first and second derivatives by u (m,); derivatives of values and of slopes by the parameters (m, k)."""

    value: Array
    slope: Array
    bend: Array
    by_parameters: Array
    slope_by_parameters: Array


class Link(Protocol):
    """A family of curves."""

    n_parameters: int
    learns_penalty: bool  # whether the precision of the parameters' prior is learned, as of coefficients

    def curve(self, u: Array, c: Array) -> Curve:
        """The curve of parameters c at u."""

    def curvature(self, u: Array, c: Array, weights: Array) -> Array:
        """Weighted sum over u of the second derivatives of values by the parameters (k, k)."""


class Identity:
    """The latent is the mean."""

    n_parameters, learns_penalty = 0, False

    def curve(self, u: Array, c: Array) -> Curve:
        """U."""
        nothing = np.empty((len(u), 0))
        return Curve(u, np.ones_like(u), np.zeros_like(u), nothing, nothing)

    def curvature(self, u: Array, c: Array, weights: Array) -> Array:
        """None."""
        return np.empty((0, 0))


class Sigmoid:
    r"""A logistic curve; c holds :math:`\log \kappa` and t in its deviation."""

    n_parameters, learns_penalty, place_unit = 2, False, _PLACE

    def exponent(self, c: Array) -> tuple[float, float]:
        r""":math:`\kappa` and t."""
        return float(np.exp(np.clip(c[0], -_STEEPEST, _STEEPEST))), _PLACE * float(c[1])

    def _parts(self, u: Array, c: Array) -> tuple[Array, float, Array, Array, Array]:
        """Exponents without t, a quarter of the steepness, the logistic function minus that at 0, two derivatives."""
        steepness, place = self.exponent(c)
        share = expit(steepness * u - place)
        density = share * expit(place - steepness * u)
        return steepness * u, steepness / 4, share - expit(-place), density, density * (1 - 2 * share)

    def curve(self, u: Array, c: Array) -> Curve:
        """Value, slope, bend, and derivatives by both parameters."""
        ku, quarter, share, density, bend = self._parts(u, c)
        value, at_0 = share / quarter, self._parts(np.zeros(1), c)[3]
        by = [u * 4 * density - value, _PLACE * (at_0 - density) / quarter]
        slope_by = [4 * ku * bend, -4 * _PLACE * bend]
        return Curve(value, 4 * density, 16 * quarter * bend, np.stack(by, axis=1), np.stack(slope_by, axis=1))

    def curvature(self, u: Array, c: Array, weights: Array) -> Array:
        """Second derivatives by both parameters."""
        ku, quarter, share, density, bend = self._parts(u, c)
        *_, density_at_0, bend_at_0 = self._parts(np.zeros(1), c)
        both = _PLACE * (density - density_at_0 - ku * bend)
        found = np.array([[ku**2 * bend - ku * density + share, both], [both, _PLACE**2 * (bend - bend_at_0)]])
        return np.asarray(found @ weights / quarter)


class Monotone:
    """An increasing spline, straight beyond its outer knots; c holds differences of its log increments."""

    n_parameters, learns_penalty = _PIECES + 1, True

    def __init__(self) -> None:
        knots = -_REACH + _STEP * np.arange(-3, _PIECES + 4)
        basis = BSpline(knots, np.eye(_PIECES + 3), 3)
        self._derivatives = [basis, basis.derivative(), basis.derivative(2)]
        middles = _STEP * (np.arange(_PIECES + 2) - (_PIECES + 1) / 2)
        walk = _ROUGHNESS * np.tri(_PIECES + 2, _PIECES + 1, -1)
        self._walk = walk - np.average(walk, axis=0, weights=np.exp(-(middles**2) / 2))
        self._at_0 = self._after(np.zeros(1), 0)

    def _after(self, u: Array, order: int) -> Array:
        """Derivatives of some order of the values by the increments: increment k belongs to all coefficients from k."""
        inside = np.clip(u, -_REACH, _REACH)
        found = self._derivatives[order](inside)
        if order == 0:
            found += (u - inside)[:, None] * self._derivatives[1](inside)
        elif order == 2:
            found[u != inside] = 0.0
        return np.cumsum(found[:, ::-1], axis=1)[:, -2::-1]

    def _increments(self, c: Array) -> Array:
        return np.asarray(_STEP * np.exp(np.clip(self._walk @ c, -_STEEPEST, _STEEPEST)))

    def curve(self, u: Array, c: Array) -> Curve:
        """Value, slope, bend, and derivatives by the parameters."""
        increments = self._increments(c)
        value, slope, bend = ((self._after(u, order)) * increments for order in range(3))
        value -= self._at_0 * increments
        return Curve(value.sum(axis=1), slope.sum(axis=1), bend.sum(axis=1), value @ self._walk, slope @ self._walk)

    def curvature(self, u: Array, c: Array, weights: Array) -> Array:
        """Second derivatives: each increment is an exponential."""
        each = weights @ (self._after(u, 0) - self._at_0) * self._increments(c)
        return np.asarray(self._walk.T @ (each[:, None] * self._walk))


LINKS: Final[dict[str, Callable[[], Link]]] = {"identity": Identity, "sigmoid": Sigmoid, "monotone": Monotone}

r"""Log-likelihood of targets by their residuals in units of the noise, and expectations of clipped normals.

A target y of mean :math:`\mu` and noise :math:`N(0, \sigma^2)` has the residual :math:`r = (y - \mu) / \sigma`.
Measured targets have log density :math:`-r^2 / 2 - \log \sigma \sqrt{2 \pi}`. Of one at the lower bound it is known
that the truth is there or below, which has probability :math:`\Phi(r)`; at the upper one :math:`\Phi(-r)`. All are
log-concave.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from sparsact.learners.cube_gp.component import Array

LOG_ROOT_2PI = float(np.log(2 * np.pi) / 2)


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
    """Mean of the exponential of a normal number that is clipped to the bounds."""
    low, high = ((bound - mean) / deviation for bound in bounds)
    inside = np.exp(mean + deviation**2 / 2) * (ndtr(high - deviation) - ndtr(low - deviation))
    return inside + _at(np.exp(bounds[0]), ndtr(low)) + _at(np.exp(bounds[1]), ndtr(-high))


def _density(u: Array) -> Array:
    return np.asarray(np.exp(-0.5 * u**2 - LOG_ROOT_2PI))


def _at(bound: float, probability: Array) -> Array:
    """What a bound adds to the mean, nothing if there is none."""
    return bound * probability if np.isfinite(bound) else np.zeros_like(probability)

"""A learned measurement: from a latent and its deviation to expected measured values and densities of new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import logsumexp

from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent.links import Link
from sparsact.learners.latent.targets import Targets, expected_clipped, expected_exponential, residual_terms

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_LOG_WEIGHTS: Final = np.log(_WEIGHTS / _WEIGHTS.sum())
STRAIGHT: Final = ("identity", "log")  # links whose latent is the mean of the targets or of their logarithms


@dataclass(frozen=True, eq=False)
class KnownCurve:
    """``level + height * g((latent - shift) / unit)`` for the curve g of a link and its parameters c (k,)."""

    link: Link
    c: Array
    level: float
    height: float
    shift: float = 0.0
    unit: float = 1.0

    def values(self, latent: Array) -> Array:
        """Means of measurements, of the shape of the latents."""
        value = self.link.curve((latent.ravel() - self.shift) / self.unit, self.c).value
        return np.asarray(self.level + self.height * value).reshape(latent.shape)

    def values_and_slopes(self, latent: Array) -> tuple[Array, Array]:
        """Means and their derivatives by the latents (m,)."""
        curve = self.link.curve((latent - self.shift) / self.unit, self.c)
        return self.level + self.height * curve.value, self.height / self.unit * curve.slope


@dataclass(frozen=True, eq=False)
class FittedMeasurement:
    """From latents as they are reported to targets.

    Attributes
    ----------
    link : str
        ``"identity"``, ``"log"``, ``"sigmoid"`` or ``"monotone"``.
    known : KnownCurve
        Means of the targets (of their logarithms).
    noise_deviation : float
        Standard deviation of their noise.
    bounds : tuple of float
        Bounds of the targets themselves, infinite where there is none.
    """

    link: str
    known: KnownCurve
    noise_deviation: float
    bounds: tuple[float, float]

    def curve(self, latent: Array) -> Array:
        """Targets at latents, without noise."""
        values = self.known.values(latent)
        return np.clip(np.exp(values) if self.link == "log" else values, *self.bounds)

    def expected(self, latent: Array, deviation: Array) -> Array:
        """Expected targets of latents of some means and deviations, noise and bounds included."""
        if self.link in STRAIGHT:
            expectation = expected_exponential if self.link == "log" else expected_clipped
            return expectation(latent, np.hypot(deviation, self.noise_deviation), self.bounds)
        at_nodes = self.known.values(latent[:, None] + deviation[:, None] * _NODES)
        noise = np.full_like(at_nodes, self.noise_deviation)
        return np.asarray(expected_clipped(at_nodes, noise, self.bounds) @ np.exp(_LOG_WEIGHTS))

    def log_densities(self, latent: Array, deviation: Array, targets: Targets) -> Array:
        """Log density of each target, or log probability that it is at its bound, in the units of y.

        With the link ``"log"`` the targets are :meth:`Targets.logarithms`.
        """
        if self.link in STRAIGHT:
            noise = np.hypot(deviation, self.noise_deviation)
            logs = residual_terms((targets.y - latent) / noise, targets.side)[0]
        else:
            noise = np.full_like(latent, self.noise_deviation)
            nodes = latent[:, None] + deviation[:, None] * _NODES
            each = [residual_terms((targets.y - self.known.values(node)) / noise, targets.side)[0] for node in nodes.T]
            logs = logsumexp(np.stack(each, axis=1) + _LOG_WEIGHTS, axis=1)
        jacobian = np.log(noise) + (targets.y if self.link == "log" else 0.0)
        return np.asarray(logs - np.where(targets.side == 0, jacobian, 0.0))

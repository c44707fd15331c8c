"""A learned measurement: from a latent and its variance to expected measured values and densities of new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import logsumexp

from sparsact.learners.cube_gp.component import Array
from sparsact.learners.latent.links import LINKS
from sparsact.learners.latent.targets import Targets, expected_clipped, expected_exponential, residual_terms

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_LOG_WEIGHTS: Final = np.log(_WEIGHTS / _WEIGHTS.sum())


@dataclass(frozen=True, eq=False)
class FittedMeasurement:
    """From latents as they are reported to targets.

    Attributes
    ----------
    link : str
        ``"identity"``, ``"log"``, ``"sigmoid"`` or ``"monotone"``.
    c : ndarray of shape (k,)
        Parameters of the curve.
    precision : float
        One over the noise's deviation, in units of ``scale``.
    centre, scale : float
        Targets (their logarithms) less the centre, over the scale, are what was learned from.
    shift, unit : float
        A latent is ``shift + unit * f``, where f is the argument of the curve.
    bounds : tuple of float
        Bounds of the targets (their logarithms), infinite where there is none.
    """

    link: str
    c: Array
    precision: float
    centre: float
    scale: float
    shift: float
    unit: float
    bounds: tuple[float, float]

    @property
    def curve_link(self) -> str:
        """The link between the latent and the targets' logarithms, or the targets themselves."""
        return "identity" if self.link == "log" else self.link

    @property
    def target_bounds(self) -> tuple[float, float]:
        """Bounds of the targets themselves."""
        lower, upper = self.bounds
        if self.link != "log":
            return lower, upper
        return (float(np.exp(lower)) if np.isfinite(lower) else lower, float(np.exp(upper)))

    @property
    def noise_deviation(self) -> float:
        """Standard deviation of the noise of targets (of their logarithms)."""
        return self.scale / self.precision

    def means(self, latent: Array) -> Array:
        """Means of targets (of their logarithms) before they are clipped, without noise."""
        f = (latent - self.shift) / self.unit
        value = LINKS[self.curve_link]().curve(f.ravel(), self.c).value
        return np.asarray(self.centre + self.scale * value).reshape(f.shape)

    def curve(self, latent: Array) -> Array:
        """Targets at latents, without noise."""
        clipped = np.clip(self.means(latent), *self.bounds)
        return np.asarray(np.exp(clipped) if self.link == "log" else clipped)

    def expected(self, latent: Array, variance: Array) -> Array:
        """Expected targets of latents of some means and variances, noise and bounds included."""
        if self.curve_link == "identity":
            deviation = np.sqrt(variance + self.noise_deviation**2)
            expectation = expected_exponential if self.link == "log" else expected_clipped
            return expectation(latent, deviation, self.bounds)
        at_nodes = self.means(latent[:, None] + np.sqrt(variance)[:, None] * _NODES)
        noise = np.full_like(at_nodes, self.noise_deviation)
        return np.asarray(expected_clipped(at_nodes, noise, self.bounds) @ np.exp(_LOG_WEIGHTS))

    def log_densities(self, latent: Array, variance: Array, targets: Targets) -> Array:
        """Log density of each target, or log probability that it is at its bound, in the units of y."""
        if self.curve_link == "identity":
            deviation = np.sqrt(variance + self.noise_deviation**2)
            logs = residual_terms((targets.y - latent) / deviation, targets.side)[0]
        else:
            deviation = np.full_like(latent, self.noise_deviation)
            nodes = latent[:, None] + np.sqrt(variance)[:, None] * _NODES
            each = [residual_terms((targets.y - self.means(node)) / deviation, targets.side)[0] for node in nodes.T]
            logs = logsumexp(np.stack(each, axis=1) + _LOG_WEIGHTS, axis=1)
        jacobian = np.log(deviation) + (targets.y if self.link == "log" else 0.0)
        return np.asarray(logs - np.where(targets.side == 0, jacobian, 0.0))

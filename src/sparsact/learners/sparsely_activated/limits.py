r"""Keeping to the scale (W, B) by shrinking whole units, which leaves every input's active units as they are.

With :math:`u_j = \pm 1` the scale of Definition 2 of [A]_ binds unit by unit: :math:`\|w_j\| \le W`,
:math:`|b_j| \le B`. A unit :math:`\theta` stands for its multiple :math:`c(\theta)\,\theta` within the limits,

.. math:: c(\theta) = \min\Big(1, \frac{W}{\|w\|}, \frac{B}{|b|}\Big), \qquad
          \nabla c = -\frac{c}{\|w\|^2} \nabla \tfrac12 \|w\|^2 \ \text{ or } \ -\frac{c}{b} \nabla b,

and since :math:`\sigma(c z) = c\,\sigma(z)`, descent over :math:`\theta` needs no other constraint.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Definition 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsact.learners.sparsely_activated.sample import Array, TrainingSample

MARGIN = 1e-9  # below a limit, so that rounding does not cross it


@dataclass(frozen=True, eq=False)
class NormLimits:
    """Largest norm of weights and size of thresholds over X, as functions of units over a design.

    All in units of the size of the targets, so that nothing overflows when that is huge.

    Attributes
    ----------
    W, B : float
        The limits over that size, infinite where there is none.
    stretch : ndarray of shape (n + 1,)
        The norm of w is that of ``stretch * theta``.
    threshold : ndarray of shape (n + 1,)
        b is ``threshold @ theta``.
    """

    W: float
    B: float
    stretch: Array
    threshold: Array

    @classmethod
    def of(cls, sample: TrainingSample, max_weight: float | None, max_bias: float | None) -> NormLimits:
        """Limits over the columns and targets of a sample as they were given."""
        W, B = (np.inf if limit is None else (1 - MARGIN) * limit / sample.size for limit in (max_weight, max_bias))
        stretch = np.append(1.0 / sample.radius, 0.0)
        return cls(W, B, stretch, np.append(stretch[:-1] * sample.centre, -1.0))

    @property
    def bind(self) -> bool:
        """Whether there is any limit."""
        return bool(np.isfinite(self.W) or np.isfinite(self.B))

    def shrinkage(self, theta: Array) -> tuple[Array, Array]:
        """The factors c (s,) of units (s, n + 1), and their gradients, (s, n + 1)."""
        factors, gradients = np.ones(len(theta)), np.zeros_like(theta)
        if not self.bind:
            return factors, gradients
        weights = self.stretch * theta
        norms, thresholds = row_norms(weights), theta @ self.threshold
        with np.errstate(all="ignore"):
            of_weights = np.where(norms > self.W, self.W / norms, 1.0)
            of_bias = np.where(np.abs(thresholds) > self.B, self.B / np.abs(thresholds), 1.0)
            along_weights = -of_weights[:, None] * (weights / norms[:, None]) * (self.stretch / norms[:, None])
            along_bias = -(of_bias / thresholds)[:, None] * self.threshold
        factors = np.minimum(of_weights, of_bias)
        by_bias = (factors == of_bias)[:, None]
        return factors, np.where((factors < 1)[:, None], np.where(by_bias, along_bias, along_weights), 0.0)

    def shrunk(self, theta: Array) -> Array:
        """The units within the limits."""
        return self.shrinkage(theta)[0][:, None] * theta


def row_norms(weights: Array) -> Array:
    """Euclidean norm of each row; no square overflows or vanishes."""
    largest = np.abs(weights).max(axis=1, initial=0.0)
    largest = np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt(((weights / largest[:, None]) ** 2).sum(axis=1)))

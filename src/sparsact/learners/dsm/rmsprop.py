r"""Training of the top layer as the paper does it: shuffled mini-batches, mean squared error, RMSProp.

.. math:: v \leftarrow \rho v + (1 - \rho) g^2, \qquad A \leftarrow A - \eta\, g / (\sqrt v + \varepsilon)

The gradient of the loss is a product of matrices: there is nothing to differentiate automatically.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.threads import blas_threads

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RMSProp:
    """Step size, memory of squared gradients, and what keeps the quotient finite."""

    learning_rate: float
    rho: float
    epsilon: float

    def step(self, weights: Array, gradient: Array, velocity: Array) -> None:
        """Change weights and velocity in place; the gradient is overwritten."""
        velocity *= self.rho
        velocity += (1 - self.rho) * gradient**2
        gradient *= self.learning_rate
        gradient /= np.sqrt(velocity) + self.epsilon
        weights -= gradient


@dataclass(eq=False)
class TopLayer:
    """The trained layer and the state of its training.

    Attributes
    ----------
    A, intercept : ndarray of shape (T, t), (T,)
        Weights; the intercept stays 0 when it is not fitted.
    velocity, intercept_velocity : ndarray of shape (T, t), (T,)
        Running means of squared gradients.
    losses : list of float
        Mean loss of each epoch over its batches, as they were met.
    """

    A: Array
    intercept: Array
    velocity: Array
    intercept_velocity: Array
    losses: list[float]

    @classmethod
    def glorot(cls, t: int, n_targets: int, *, rng: np.random.Generator) -> Self:
        r"""Glorot's uniform weights, within :math:`\pm\sqrt{6 / (t + T)}`; intercept 0."""
        limit = np.sqrt(6 / (t + n_targets))
        A = rng.uniform(-limit, limit, size=(n_targets, t))
        return cls(A, np.zeros(n_targets), np.zeros_like(A), np.zeros(n_targets), [])

    @blas_threads(0)  # small batches
    def epoch(
        self,
        features: Callable[[NDArray[np.intp]], Array],
        targets: Array,
        weights: Array,
        optimiser: RMSProp,
        *,
        batch_size: int,
        fit_intercept: bool,
        rng: np.random.Generator,
    ) -> None:
        """One pass over m rows in a fresh order: ``features`` gives those of some rows, (b, t); targets (m, T)."""
        order, loss = rng.permutation(len(targets)), 0.0
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            rows = features(batch)
            errors = rows @ self.A.T + self.intercept - targets[batch]
            slopes = weights[batch, None] * errors
            loss += float((slopes * errors).sum())
            slopes *= 2 / (weights[batch].sum() * errors.shape[1])
            optimiser.step(self.A, slopes.T @ rows, self.velocity)
            if fit_intercept:
                optimiser.step(self.intercept, slopes.sum(axis=0), self.intercept_velocity)
        self.losses.append(loss / float(weights.sum() * targets.shape[1]))

"""Posterior of a function given its targets: means, variances and draws, for any system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsact.learners.gp.kernel import Array, Points
from sparsact.learners.gp.systems.system import System


@dataclass(frozen=True, eq=False)
class Posterior:
    """Gaussian posterior of a function, in units of the targets; ``alpha`` (m,) is the inverse times the targets."""

    system: System
    alpha: Array

    def values(self, points: Points) -> Array:
        """Means (m',) at points (m', n)."""
        return self.system.values(self.alpha, points)

    def variances(self, points: Points) -> Array:
        """Variances (m',) at points (m', n)."""
        return self.system.variances(points)

    def draws_at(self, points: Points, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, m') of the values at distinct points, from their joint covariance."""
        eigenvalues, vectors = np.linalg.eigh(self.system.covariance(points))
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        return np.asarray(self.values(points) + rng.standard_normal((n_samples, len(points))) @ root.T)

    def moments(self, cross: Array, prior: Array) -> tuple[Array, Array]:
        """Means and variances (k,) of quantities, from prior variances (k,) and covariances (m, k) with the rows."""
        return np.asarray(self.alpha @ cross), np.maximum(prior - self.system.explained(cross), 0.0)

"""Base of systems K + D: solutions and variances for a posterior, by Cholesky factors unless overridden."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from sparsact.learners.gp.cholesky import Cholesky, check_room, log_density
from sparsact.learners.gp.kernel import Array, Kernel, Points
from sparsact.statistics.solved import Solved

NUMBERS_AT_ONCE: Final = 1 << 19  # covariances
POINTS_AT_ONCE: Final = 1 << 10


@dataclass(eq=False)
class System(ABC):
    """The matrix K + D at distinct points.

    ``noise`` (m,) is the diagonal of D.
    """

    kernel: Kernel
    points: Points
    noise: Array

    is_direct: ClassVar[bool] = True  # whether variances come from matrices, rather than from draws
    tolerance: ClassVar[float]  # residual of a posterior mean
    solver: ClassVar[str]  # for messages, as is the remedy where it does not converge
    remedy: ClassVar[str]

    def __reduce__(self) -> tuple[type[System], tuple[object, ...]]:
        """Pickle the attributes without cached results."""
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    def __len__(self) -> int:
        return len(self.noise)

    @abstractmethod
    def solve(self, targets: Array, tolerance: float) -> Solved[Array]:
        """Inverse times targets (k, m); residuals have at most this norm relative to that of the targets."""

    def dual_coefficients(self, y: Array) -> Array:
        """Inverse times targets (m,), to the :attr:`tolerance`; with a warning where it is not reached."""
        return np.asarray(self.solve(y[None], self.tolerance).checked(self.solver, self.remedy)[0])

    @cached_property
    def factor(self) -> Cholesky:
        """Cholesky factor of the matrix."""
        return Cholesky.of(self.matrix())

    def matrix(self) -> Array:
        """K + D (m, m), in Fortran order."""
        check_room(len(self))
        matrix = self.kernel.matrix(self.points)
        matrix[np.diag_indices(len(self))] += self.noise
        return matrix

    def log_determinant(self) -> float:
        """Logarithm of the determinant, by a Cholesky factor."""
        return self.factor.log_determinant()

    def log_density(self, y: Array) -> float:
        """Log density of normal targets (m,) with this covariance, by a Cholesky factor."""
        return log_density(float(y @ self.factor.solve(y)), self.log_determinant(), len(y))

    def values(self, alpha: Array, points: Points) -> Array:
        """K between points (m', n) and the system's, times dual coefficients (m,)."""
        at_once = max(1, NUMBERS_AT_ONCE // len(self))
        blocks = (points[start : start + at_once] for start in range(0, len(points), at_once))
        pieces = [alpha @ self.kernel.covariance(self.points, block) for block in blocks]
        return np.concatenate([np.empty(0), *pieces])

    def variances(self, points: Points) -> Array:
        """Posterior variances (m',) at points (m', n): m**2 products a point."""
        found = np.empty(len(points))
        for start in range(0, len(points), POINTS_AT_ONCE):
            block = slice(start, start + POINTS_AT_ONCE)
            cross = self.kernel.covariance(self.points, points[block])
            found[block] = self.kernel.variance - self.explained(cross)
        return np.maximum(found, 0.0)

    def explained(self, cross: Array) -> Array:
        """Variance (k,) that the rows explain of quantities of covariances (m, k) with them."""
        half = self.factor.halved(cross)
        return np.asarray(np.einsum("mk,mk->k", half, half))

    def covariance(self, points: Points) -> Array:
        """Posterior covariances (m', m') of the values at distinct points (m', n)."""
        half = self.factor.halved(self.kernel.covariance(self.points, points))
        return np.asarray(self.kernel.covariance(points, points) - half.T @ half)

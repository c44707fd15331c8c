r"""Dense systems K + D, by Cholesky factors: :math:`m^3 / 3` multiplications and :math:`8 m^2` bytes.

The exact one, to which the others are compared; better than they are up to a thousand points, and wherever the matrix
is neither a transform, nor a Kronecker product, nor near one of low rank.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparsact.learners.gp.cholesky import Cholesky
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.systems.system import System
from sparsact.statistics.solved import Solved


class DenseSystem(System):
    """The matrix K + D, held and factorized."""

    tolerance: ClassVar[float] = 0.0
    solver: ClassVar[str] = "a Cholesky factor"
    remedy: ClassVar[str] = "raise noise_variance"

    def solve(self, targets: Array, tolerance: float, noise: Array | None = None) -> Solved[Array]:
        """Inverse times targets (k, m), exactly; points of infinite ``noise`` (k, m), by default D, are left out."""
        if noise is None:
            return Solved(self.factor.solve(targets.T).T, 0, 0.0, tolerance, True)
        shared, found = self.kernel.matrix(self.points), np.zeros(targets.shape)
        for value, y, own in zip(found, targets, noise, strict=True):
            there = np.flatnonzero(np.isfinite(own))
            matrix = np.asfortranarray(shared[np.ix_(there, there)])
            matrix[np.diag_indices(len(there))] += own[there]
            value[there] = Cholesky.of(matrix).solve(y[there])
        return Solved(found, 0, 0.0, tolerance, True)

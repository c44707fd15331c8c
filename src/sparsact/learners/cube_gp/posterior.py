"""A kernel and a noise variance, and the system and posterior that they give rows of the cube."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.rows import DistinctRows
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.cube import CubePosterior, CubeSystem
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.gp.systems.inducing import InducingSystem


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """A kernel and the noise variance of a row of weight 1."""

    kernel: CubeKernel
    noise_variance: float

    def dense(self, rows: DistinctRows) -> DenseSystem:
        """The covariance matrix of the rows, to be factorized."""
        return DenseSystem(self.kernel, rows.bits, rows.noise(self.noise_variance, self.kernel.variance))

    def system(
        self, rows: DistinctRows, inducing: NDArray[np.intp] | None = None
    ) -> CubeSystem | DenseSystem | InducingSystem:
        """By transforms of the whole cube where it has a table, else by a matrix of the rows or inducing points."""
        dense = self.dense(rows)
        if self.kernel.has_table:
            return CubeSystem(self.kernel, rows.bits, dense.noise)
        return dense if inducing is None else InducingSystem(self.kernel, rows.bits, dense.noise, inducing)

    def posterior(
        self, rows: DistinctRows, inducing: NDArray[np.intp] | None = None, *, known_alpha: Array | None = None
    ) -> Posterior:
        """The posterior of the function, whose dual coefficients may be known."""
        system = self.system(rows, inducing)
        alpha = system.dual_coefficients(rows.y) if known_alpha is None else known_alpha
        return CubePosterior(system, alpha) if isinstance(system, CubeSystem) else Posterior(system, alpha)

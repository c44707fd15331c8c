"""A kernel and a noise variance, and what they make of rows of the cube: likelihood, system and posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.gp.cholesky import log_density_sensitivity
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.cube import CubePosterior, CubeSystem, factor_is_faster
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.gp.systems.inducing import InducingSystem


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """A kernel and the noise variance of a row of weight 1."""

    kernel: CubeKernel
    noise_variance: float

    def log_likelihood(self, rows: DistinctRows) -> float:
        """Log marginal likelihood of the targets, by a Cholesky factor."""
        return self.dense(rows).log_density(rows.y) + rows.repeats_log_likelihood(self.noise_variance)[0]

    def log_likelihood_gradient(self, rows: DistinctRows) -> tuple[float, Array, float]:
        """Log marginal likelihood, and its derivatives by the kernel's ``theta`` and by the noise variance."""
        value, lower = log_density_sensitivity(self.dense(rows).matrix(), rows.y)
        by_noise, by_variance = self.noise_derivatives(rows, lower.diagonal())
        lower[0, 0] += by_variance  # the diagonal is the function's variance everywhere
        repeats = rows.repeats_log_likelihood(self.noise_variance)[0]
        return value + repeats, self.kernel.pullback(rows.bits, lower), by_noise

    def noise_derivatives(self, rows: DistinctRows, by_rows: Array) -> tuple[float, float]:
        """Derivatives of the likelihood by noise and function variance; ``by_rows``: by the noise of each row."""
        slopes = rows.noise_slopes(self.noise_variance, self.kernel.variance)
        by_noise, by_variance = (float(by_rows @ each) for each in slopes)
        return by_noise + rows.repeats_log_likelihood(self.noise_variance)[1], by_variance

    def dense(self, rows: DistinctRows) -> DenseSystem:
        """The covariance matrix of the rows, to be factorized."""
        return DenseSystem(self.kernel, rows.bits, rows.noise(self.noise_variance, self.kernel.variance))

    def system(
        self, rows: DistinctRows, inducing: NDArray[np.intp] | None = None
    ) -> CubeSystem | DenseSystem | InducingSystem:
        """By inducing points if there are some, else by what takes less time: a matrix, or transforms of the cube."""
        dense = self.dense(rows)
        if inducing is not None:
            return InducingSystem(self.kernel, rows.bits, dense.noise, inducing)
        if not self.kernel.has_table or factor_is_faster(len(rows), self.kernel.n):
            return dense
        return CubeSystem(self.kernel, rows.bits, dense.noise)

    def posterior(
        self, rows: DistinctRows, inducing: NDArray[np.intp] | None = None, *, known_alpha: Array | None = None
    ) -> Posterior:
        """The posterior of the function, whose dual coefficients may be known."""
        system = self.system(rows, inducing)
        alpha = system.dual_coefficients(rows.y) if known_alpha is None else known_alpha
        has_table = self.kernel.has_table
        return CubePosterior(system, alpha, self.kernel.spectrum) if has_table else Posterior(system, alpha)

r"""Log marginal likelihood of distinct rows, whose covariance matrix is :math:`A = K + \sigma^2 W^{-1}`."""

from __future__ import annotations

import numpy as np

from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.rows import DistinctRows
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.likelihood import LOG_2PI, log_density_sensitivity
from sparsact.learners.gp.systems.dense import DenseSystem


def repeats_log_likelihood(noise_variance: float, rows: DistinctRows) -> tuple[float, float]:
    """What repeated rows add to the log-likelihood of their means, and its derivative by the noise variance."""
    total, scatter = float(rows.counts.sum()), float(rows.scatter.sum())
    value = 0.5 * (
        float(rows.log_weights.sum())
        - total * (LOG_2PI + np.log(noise_variance))
        + float((LOG_2PI + np.log(noise_variance / rows.weights)).sum())
        - scatter / noise_variance
    )
    return value, 0.5 * (len(rows) - total + scatter / noise_variance) / noise_variance


def dense_system(kernel: CubeKernel, noise_variance: float, rows: DistinctRows) -> DenseSystem:
    """A, to be factorized."""
    return DenseSystem(kernel, rows.bits, rows.noise(noise_variance, kernel.variance))


def log_marginal_likelihood(kernel: CubeKernel, noise_variance: float, rows: DistinctRows) -> float:
    """Log marginal likelihood of the targets, by a Cholesky factor of A."""
    repeats, _ = repeats_log_likelihood(noise_variance, rows)
    return dense_system(kernel, noise_variance, rows).log_density(rows.y) + repeats


def log_marginal_likelihood_gradient(
    kernel: CubeKernel, noise_variance: float, rows: DistinctRows
) -> tuple[float, Array, float]:
    """Log marginal likelihood, and its derivatives by the kernel's ``theta`` and by the noise variance.

    Raises
    ------
    numpy.linalg.LinAlgError
        If A is not positive definite in floating point.
    """
    value, lower = log_density_sensitivity(dense_system(kernel, noise_variance, rows).matrix(), rows.y)
    repeats, slope = repeats_log_likelihood(noise_variance, rows)
    slopes = rows.noise_slopes(noise_variance, kernel.variance)
    by_noise, by_variance = (float(lower.diagonal() @ each) for each in slopes)
    lower[0, 0] += by_variance  # the diagonal is the function's variance everywhere
    return value + repeats, kernel.pullback(rows.bits, lower), by_noise + slope

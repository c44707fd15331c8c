r"""Log marginal likelihood of distinct rows, whose covariance matrix is :math:`A = K + \sigma^2 W^{-1}`."""

from __future__ import annotations

import numpy as np

from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.cube_gp.rows import DistinctRows
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.likelihood import LOG_2PI, log_density_sensitivity


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


def log_marginal_likelihood(given: Hyperparameters, rows: DistinctRows) -> float:
    """Log marginal likelihood of the targets, by a Cholesky factor of A."""
    return given.dense(rows).log_density(rows.y) + repeats_log_likelihood(given.noise_variance, rows)[0]


def log_marginal_likelihood_gradient(given: Hyperparameters, rows: DistinctRows) -> tuple[float, Array, float]:
    """Log marginal likelihood, and its derivatives by the kernel's ``theta`` and by the noise variance.

    Raises
    ------
    numpy.linalg.LinAlgError
        If A is not positive definite in floating point.
    """
    kernel, noise_variance = given.kernel, given.noise_variance
    value, lower = log_density_sensitivity(given.dense(rows).matrix(), rows.y)
    repeats, slope = repeats_log_likelihood(noise_variance, rows)
    slopes = rows.noise_slopes(noise_variance, kernel.variance)
    by_noise, by_variance = (float(lower.diagonal() @ each) for each in slopes)
    lower[0, 0] += by_variance  # the diagonal is the function's variance everywhere
    return value + repeats, kernel.pullback(rows.bits, lower), by_noise + slope

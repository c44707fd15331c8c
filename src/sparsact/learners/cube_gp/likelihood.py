r"""Log marginal likelihood of distinct rows, and its derivatives by the prior variance of every coefficient.

With :math:`A = K + \sigma^2 W^{-1}` and :math:`\alpha = A^{-1} y`,

.. math:: \log p(y) = -\tfrac12 y^\top \alpha - \tfrac12 \log |2 \pi A|, \qquad
          \frac{\partial \log p}{\partial p_S} = \tfrac12 \Big( \sum_i \alpha_i \chi_S(x_i) \Big)^2
          - \tfrac12 \sum_{ij} (A^{-1})_{ij}\, \chi_S(x_i) \chi_S(x_j),

where :math:`\chi_S(x_i) \chi_S(x_j)` depends on the exclusive or of the points' numbers alone: a histogram of
:math:`A^{-1}` over it and one Walsh-Hadamard transform give all :math:`2^n` derivatives.
"""

from __future__ import annotations

import numpy as np

from sparsact.fourier import walsh_hadamard
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.rows import DistinctRows
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.systems.cube import codes_of, difference_sums
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.gp.systems.system import LOG_2PI


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
    factor = dense_system(kernel, noise_variance, rows).factor
    alpha = factor.solve(rows.y)
    repeats, slope = repeats_log_likelihood(noise_variance, rows)
    value = -0.5 * (float(rows.y @ alpha) + factor.log_determinant() + len(rows) * LOG_2PI) + repeats
    inverse = factor.lower_inverse()
    diagonal = inverse.diagonal()
    slopes = rows.noise_slopes(noise_variance, kernel.variance)
    by_noise, by_variance = (0.5 * float((alpha**2 - diagonal) @ each) for each in slopes)
    by_noise += slope
    if kernel.is_by_rows(len(rows)):
        whole = inverse + inverse.T - np.diag(diagonal)
        sensitivity = 0.5 * (np.outer(alpha, alpha) - whole)
        sensitivity[0, 0] += by_variance  # the diagonal is the function's variance everywhere
        return value, kernel.covariance_pullback(rows.bits, sensitivity), by_noise
    size = 2**kernel.n
    codes, scattered = codes_of(rows.bits), np.zeros((2, size))
    scattered[0, codes] = alpha
    scattered[1] = difference_sums(inverse, codes, size)
    of_alpha, of_inverse = walsh_hadamard(scattered, normalize=False, overwrite=True)
    return value, kernel.spectrum_pullback(0.5 * (of_alpha**2 - of_inverse) + by_variance), by_noise

r"""Log marginal likelihood of distinct rows, and its derivatives by the prior variance of every coefficient.

With :math:`A = K + \sigma^2 W^{-1}` and :math:`\alpha = A^{-1} y`,

.. math:: \log p(y) = -\tfrac12 y^\top \alpha - \tfrac12 \log |2 \pi A|, \qquad
          \frac{\partial \log p}{\partial p_S} = \tfrac12 \Big( \sum_i \alpha_i \chi_S(x_i) \Big)^2
          - \tfrac12 \sum_{ij} (A^{-1})_{ij}\, \chi_S(x_i) \chi_S(x_j),

where :math:`\chi_S(x_i) \chi_S(x_j)` depends on the exclusive or of the points' numbers alone: a histogram of
:math:`A^{-1}` over it and one Walsh-Hadamard transform give all :math:`2^n` derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, lapack

from sparsact.fourier import walsh_hadamard
from sparsact.learners.cube_gp.component import Array
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.rows import DistinctRows
from sparsact.memory import has_room

ROWS_AT_ONCE: Final = 1 << 9  # of a matrix that is gathered from a table, or whose histogram is taken
LOG_2PI: Final = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Cholesky:
    """Lower Cholesky factor (m, m) of a covariance matrix; the entries above the diagonal are zero."""

    lower: Array

    @classmethod
    def of(cls, matrix: Array) -> Self:
        """Of a symmetric matrix in Fortran order, whose memory it takes."""
        factor, info = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(f"the leading minor of order {info} is not positive: the noise is too small")
        return cls(factor)

    def solve(self, vectors: Array) -> Array:
        """Inverse times vectors (m,) or (m, k)."""
        return np.asarray(cho_solve((self.lower, True), vectors, check_finite=False))

    def log_determinant(self) -> float:
        """Logarithm of the determinant of the matrix."""
        return 2 * float(np.log(self.lower.diagonal()).sum())

    def lower_inverse(self) -> Array:
        """The inverse on and below the diagonal, zero above."""
        return np.asarray(lapack.dpotri(self.lower, lower=1)[0])


def check_room(n_rows: int) -> None:
    """Refuse a matrix of the rows for which there is no memory."""
    if not has_room(2 * 8 * n_rows**2):
        raise ValueError(
            f"a Cholesky factor of {n_rows:,} distinct rows needs {8 * n_rows**2 / 2**30:.1f} GiB twice, more than is "
            "free: pass fewer rows or, with more than 20 columns, lower max_inducing. With at most 20, only the "
            "likelihood of all rows needs it."
        )


def gathered(table: Array, codes: NDArray[np.intp]) -> Array:
    """Matrix (m, m) of the entries of a table at the exclusive or of each two codes, in Fortran order."""
    matrix = np.empty((len(codes), len(codes)), order="F")
    for start in range(0, len(codes), ROWS_AT_ONCE):
        block = slice(start, start + ROWS_AT_ONCE)
        matrix[:, block] = table[codes[block, None] ^ codes].T  # symmetric: columns are contiguous
    return matrix


def difference_sums(lower: Array, codes: NDArray[np.intp], size: int) -> Array:
    """Sums (size,) of a symmetric matrix, given on and below its diagonal, over each exclusive or of two codes."""
    sums = np.zeros(size)
    for start in range(0, len(codes), ROWS_AT_ONCE):
        block = slice(start, start + ROWS_AT_ONCE)  # columns, of which the rows above are zero
        differing = codes[block, None] ^ codes[start:]
        sums += np.bincount(differing.ravel(), lower[start:, block].T.ravel(), size)
    sums *= 2
    sums[0] -= lower.trace()
    return sums


def covariance_matrix(kernel: CubeKernel, noise_variance: float, rows: DistinctRows) -> Array:
    """A, in Fortran order."""
    check_room(len(rows))
    if _by_rows(kernel, len(rows)):
        matrix = np.asfortranarray(kernel.covariance_of_rows(rows.bits, rows.bits))
    else:
        matrix = gathered(kernel.table, rows.codes)
    matrix[np.diag_indices(len(rows))] += rows.noise(noise_variance, kernel.variance)
    return matrix


def _by_rows(kernel: CubeKernel, n_rows: int) -> bool:
    """Whether matrices of the rows are made without tables of all subsets, which few rows need not pay for."""
    return not (kernel.has_table and (kernel.needs_table or n_rows**2 > 2**kernel.n))


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


def log_marginal_likelihood(kernel: CubeKernel, noise_variance: float, rows: DistinctRows) -> float:
    """Log marginal likelihood of the targets, by a Cholesky factor of A."""
    factor = Cholesky.of(covariance_matrix(kernel, noise_variance, rows))
    fit = float(rows.y @ factor.solve(rows.y))
    repeats, _ = repeats_log_likelihood(noise_variance, rows)
    return -0.5 * (fit + factor.log_determinant() + len(rows) * LOG_2PI) + repeats


def log_marginal_likelihood_gradient(
    kernel: CubeKernel, noise_variance: float, rows: DistinctRows
) -> tuple[float, Array, float]:
    """Log marginal likelihood, and its derivatives by the kernel's ``theta`` and by the noise variance.

    Raises
    ------
    numpy.linalg.LinAlgError
        If A is not positive definite in floating point.
    """
    factor = Cholesky.of(covariance_matrix(kernel, noise_variance, rows))
    alpha = factor.solve(rows.y)
    repeats, slope = repeats_log_likelihood(noise_variance, rows)
    value = -0.5 * (float(rows.y @ alpha) + factor.log_determinant() + len(rows) * LOG_2PI) + repeats
    inverse = factor.lower_inverse()
    diagonal = inverse.diagonal()
    slopes = rows.noise_slopes(noise_variance, kernel.variance)
    by_noise, by_variance = (0.5 * float((alpha**2 - diagonal) @ each) for each in slopes)
    by_noise += slope
    if _by_rows(kernel, len(rows)):
        whole = inverse + inverse.T - np.diag(diagonal)
        sensitivity = 0.5 * (np.outer(alpha, alpha) - whole)
        sensitivity[0, 0] += by_variance  # the diagonal is the function's variance everywhere
        return value, kernel.covariance_pullback(rows.bits, sensitivity), by_noise
    size = 2**kernel.n
    scattered = np.zeros((2, size))
    scattered[0, rows.codes] = alpha
    scattered[1] = difference_sums(inverse, rows.codes, size)
    of_alpha, of_inverse = walsh_hadamard(scattered, normalize=False, overwrite=True)
    return value, kernel.spectrum_pullback(0.5 * (of_alpha**2 - of_inverse) + by_variance), by_noise

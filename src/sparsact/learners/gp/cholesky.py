"""Cholesky factors of covariance matrices, with jitter, memory checks and log densities of normal targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from scipy.linalg import blas, cho_solve, lapack, solve_triangular

from sparsact.learners.gp.kernel import Array
from sparsact.memory import has_room

LOG_2PI: Final = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Cholesky:
    """Lower Cholesky factor (m, m) of a symmetric matrix; the entries above the diagonal are zero."""

    lower: Array

    @classmethod
    def of(cls, matrix: Array, *, jitter: float = 0.0) -> Self:
        """Factorise a symmetric matrix in Fortran order, in its memory.

        ``jitter`` is the share of the diagonal that is added to it, for matrices that are singular to rounding. A
        LinAlgError is raised if the matrix is not positive definite in floating point.
        """
        if jitter:
            matrix[np.diag_indices(len(matrix))] += jitter * np.abs(matrix.diagonal())
        factor, info = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
        if info:
            raise np.linalg.LinAlgError(
                f"covariances must be positive definite; their leading minor of order {info} is not: raise the noise."
            )
        return cls(factor)

    @classmethod
    def nearly_of(cls, matrix: Array) -> Self:
        """Factorise a symmetric matrix with the least jitter that makes it positive definite; else its diagonal."""
        for jitter in (0.0, 1e-12, 1e-9, 1e-6):
            try:
                return cls.of(np.array(matrix, order="F"), jitter=jitter)
            except np.linalg.LinAlgError:
                continue
        return cls(np.diag(np.sqrt(np.maximum(matrix.diagonal(), 1e-300) + 1e-12)))

    def solve(self, vectors: Array) -> Array:
        """Multiply vectors (m,) or (m, k) by the inverse matrix."""
        return np.asarray(cho_solve((self.lower, True), vectors, check_finite=False))

    def halved(self, vectors: Array) -> Array:
        """Multiply vectors (m, k) by the inverse factor; inner products of the results are in the inverse matrix."""
        return np.asarray(solve_triangular(self.lower, vectors, lower=True, check_finite=False))

    def log_determinant(self) -> float:
        """Logarithm of the determinant of the matrix."""
        return 2 * float(np.log(self.lower.diagonal()).sum())

    def lower_inverse(self) -> Array:
        """Inverse matrix on and below the diagonal, zero above."""
        return np.asarray(lapack.dpotri(self.lower, lower=1)[0])


def log_density(quadratic: float, log_determinant: float, m: int) -> float:
    r"""Log density of m normal numbers, from :math:`y^\top A^{-1} y` and :math:`\log |A|`."""
    return -0.5 * (quadratic + log_determinant + m * LOG_2PI)


def log_density_sensitivity(matrix: Array, y: Array) -> tuple[float, Array]:
    r"""Log density of normal targets y (m,), and its derivatives with respect to their covariances A (m, m).

    .. math:: \log p(y) = -\tfrac12 y^\top \alpha - \tfrac12 \log |2 \pi A|, \qquad
              \frac{\partial \log p}{\partial A} = \tfrac12 (\alpha \alpha^\top - A^{-1}), \qquad \alpha = A^{-1} y,

    The kernel turns them into derivatives by its parameters; their diagonal gives the derivatives by the noise. They
    are a symmetric matrix, returned on and below the diagonal, zero above. A is in Fortran order and overwritten.
    :math:`m^3` multiplications.
    """
    factor = Cholesky.of(matrix)
    alpha = factor.solve(y)
    value = log_density(float(y @ alpha), factor.log_determinant(), len(y))
    lower = factor.lower_inverse()
    lower *= -0.5
    return value, np.asarray(blas.dsyr(0.5, alpha, a=lower, lower=1, overwrite_a=1))


def check_room(n_rows: int) -> None:
    """Raise if there is no memory for the covariances of the rows."""
    if not has_room(2 * 8 * n_rows**2):
        raise ValueError(
            f"covariances of {n_rows:,} distinct rows need {16 * n_rows**2 / 2**30:.1f} GiB, more than is free: pass "
            "fewer rows, or lower max_inducing if the model has it (more than 20 columns)."
        )

r"""Log marginal likelihood of targets with a covariance matrix A, and its derivatives by the entries of A.

With :math:`\alpha = A^{-1} y`,

.. math:: \log p(y) = -\tfrac12 y^\top \alpha - \tfrac12 \log |2 \pi A|, \qquad
          \frac{\partial \log p}{\partial A} = \tfrac12 (\alpha \alpha^\top - A^{-1}),

from which a kernel has the derivatives by its parameters, and the diagonal those by the noise. A factor and its inverse
take :math:`m^3` multiplications of m targets, in the memory of two matrices.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.linalg import blas

from sparsact.learners.gp.cholesky import Cholesky
from sparsact.learners.gp.kernel import Array

LOG_2PI: Final = float(np.log(2 * np.pi))


def log_density(quadratic: float, log_determinant: float, m: int) -> float:
    r"""Log density of m normal numbers, from :math:`y^\top A^{-1} y` and :math:`\log |A|`."""
    return -0.5 * (quadratic + log_determinant + m * LOG_2PI)


def log_density_sensitivity(matrix: Array, y: Array) -> tuple[float, Array]:
    """Log density of targets (m,), and its derivatives (m, m) by their covariances.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Covariances in Fortran order, whose memory is taken.
    y : ndarray of shape (m,)
        Targets of mean zero.

    Returns
    -------
    value : float
        The log density.
    lower : ndarray of shape (m, m)
        The derivatives, a symmetric matrix, on and below the diagonal, zero above.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive definite in floating point.
    """
    factor = Cholesky.of(matrix)
    alpha = factor.solve(y)
    value = log_density(float(y @ alpha), factor.log_determinant(), len(y))
    lower = factor.lower_inverse()
    lower *= -0.5
    return value, np.asarray(blas.dsyr(0.5, alpha, a=lower, lower=1, overwrite_a=1))

r"""Sparse coefficients from the same sums: the lasso on the square root of the Gram matrix.

With :math:`G = R^\top R` and :math:`R^\top z = r`, the lasso on (R, z) has the same objective, up to a constant, as
the lasso on all rows, and D rows instead of m. scikit-learn's coordinate descent solves it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.linear_model import Lasso

from sparsact.learners.low_degree.normal_equations import NormalEquations


def lasso(equations: NormalEquations, alpha: float) -> NDArray[np.float64]:
    r"""Minimiser (D, T) of :math:`\frac{1}{2W}\sum_i w_i (y_i - \dots)^2 + \alpha \|\beta\|_1`, W the total weight.

    The scale of ``alpha`` is that of scikit-learn's ``Lasso``. One eigendecomposition, D x D.
    """
    if not len(equations.gram):
        return np.zeros_like(equations.rhs)
    if alpha == 0:  # coordinate descent converges badly without a penalty
        return equations.factor(0.0).solve(equations.rhs)
    values, vectors = eigh(equations.gram)
    kept = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
    root = np.sqrt(values[kept])
    design = np.ascontiguousarray((vectors[:, kept] * root).T)
    targets = (vectors[:, kept].T @ equations.rhs) / root[:, None]
    if not len(design):
        return np.zeros_like(equations.rhs)
    scale = equations.weight / len(design)  # Lasso divides by its own number of rows
    model = Lasso(alpha * scale, fit_intercept=False, precompute=True, tol=1e-8, max_iter=100_000)
    return np.asarray(model.fit(design, targets).coef_.reshape(-1, len(equations.gram)).T)

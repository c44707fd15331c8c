"""Least squares of any degree over cells: conjugate gradients whose product is two Walsh-Hadamard transforms."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from sparsact import kernels
from sparsact.learners.low_degree.cells import Cells
from sparsact.learners.low_degree.family import Family

_TOLERANCE = 1e-13
_MOST_ITERATIONS = 2000


class CellEquations:
    r"""The normal equations over cells, never written out.

    The product with G is: place the coefficients in a table of :math:`2^n`, transform to values, weigh each cell,
    transform back, read off: :math:`2 n 2^n` additions and no D x D matrix.
    """

    def __init__(self, cells: Cells, family: Family, *, fit_intercept: bool, n_threads: int) -> None:
        self._chosen = family.masks[:, 0].astype(np.intp)
        self._weights = cells.weights.to_float()
        self._table = np.empty_like(self._weights)
        self._n_threads = n_threads
        self.weight = cells.totals.total_weight()
        correlations = cells.correlations(family, n_threads=n_threads)
        self._sums = np.zeros(len(family))
        self.target_mean = np.zeros(cells.n_targets)
        if fit_intercept:
            moments = cells.weights.walsh_hadamard(n_threads=n_threads)
            self._sums = moments.take(self._chosen).to_float()
            self.target_mean = correlations[:, 0] / self.weight
        self.rhs = (correlations[:, 1:] - np.outer(self.target_mean, self._sums)).T
        self.feature_mean = self._sums / self.weight

    def product(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """The centred Gram matrix times a vector (D,)."""
        coef = coef.ravel()
        self._table[:] = 0.0
        self._table[self._chosen] = coef
        self._transform()
        self._table *= self._weights
        self._transform()
        return np.asarray(self._table[self._chosen] - self._sums * (self.feature_mean @ coef))

    def _transform(self) -> None:
        kernels.walsh_hadamard(self._table[None, :], n_threads=self._n_threads)

    def solve(self, rhs: NDArray[np.float64], alpha: float) -> tuple[NDArray[np.float64], int]:
        """Solution (D, T) of ``(G + alpha) beta = rhs``, of least norm if singular, and the iterations it took.

        Warns
        -----
        ConvergenceWarning
            If the residual is not below 1e-13 of the right-hand side after 2000 iterations.
        """
        size, iterations = len(rhs), 0

        def count(_: NDArray[np.float64]) -> None:
            nonlocal iterations
            iterations += 1

        operator = LinearOperator((size, size), matvec=lambda v: self.product(v) + alpha * v.ravel(), dtype=np.float64)
        solution = np.zeros_like(rhs)
        for target in range(rhs.shape[1]):
            solution[:, target], left = cg(
                operator, rhs[:, target], rtol=_TOLERANCE, maxiter=_MOST_ITERATIONS, callback=count
            )
            if left:
                warnings.warn(
                    f"conjugate gradients stopped after {_MOST_ITERATIONS} iterations: the rows hardly determine the "
                    f"{size} coefficients; pass alpha > 0, a lower degree, or more rows.",
                    ConvergenceWarning,
                    stacklevel=3,
                )
        return solution, iterations

    def unscaled_variances(self, places: NDArray[np.intp], alpha: float, *, fit_intercept: bool) -> NDArray[np.float64]:
        """Diagonal of ``(G + alpha)^-1 G (G + alpha)^-1`` at places of ``[(), *subsets]``: a solution each, (N,)."""
        variances = np.empty(len(places))
        for i, place in enumerate(places.tolist()):
            unit = np.zeros((len(self._chosen), 1))
            if place == 0:
                unit[:, 0] = self.feature_mean
            else:
                unit[place - 1] = 1.0
            solution = self.solve(unit, alpha)[0]
            variances[i] = solution[:, 0] @ self.product(solution) + (place == 0) * fit_intercept / self.weight
        return variances

"""Least squares of any degree over cells: conjugate gradients whose product is two Walsh-Hadamard transforms."""

from __future__ import annotations

import warnings
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from sparsact import kernels
from sparsact.learners.low_degree.cells import Cells
from sparsact.learners.low_degree.family import Family

_TOLERANCE = 1e-12
_MOST_ITERATIONS = 2000
_PROBE_ENTRIES = 200_000
_NULL = 1e-6


class CellEquations:
    r"""The normal equations over cells, never written out.

    The product with G is: place the coefficients in a table of :math:`2^n`, transform to values, weigh each cell,
    transform back, read off: :math:`2 n 2^n` additions and no D x D matrix.
    """

    def __init__(self, cells: Cells, family: Family, *, fit_intercept: bool, n_threads: int) -> None:
        codes = family.masks[:, 0].astype(np.intp)
        order = codes.argsort()  # vectors in here follow the table, so that a product reads memory in order
        self._graded = order.argsort()
        self._chosen = codes[order]
        self._fit_intercept = fit_intercept
        self._n_threads = n_threads
        self._weights = cells.weights.to_float()
        self._table = np.empty_like(self._weights)
        self.weight = cells.totals.total_weight()
        correlations = cells.correlations(family, n_threads=n_threads)
        self._sums, self.target_mean = np.zeros(len(family)), np.zeros(cells.n_targets)
        if fit_intercept:
            self._sums = cells.weights.walsh_hadamard(self._chosen, n_threads=n_threads).to_float()
            self.target_mean = correlations[:, 0] / self.weight
        self._mean = self._sums / self.weight
        self._constant = bool(fit_intercept and (np.abs(self._mean) >= 1 - 4 * np.finfo(float).eps).all())
        self._rhs = (correlations[:, 1:][:, order] - np.outer(self.target_mean, self._sums)).T

    def solve(self, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """Coefficients (D, T), of least norm if singular, intercepts (T,), and the iterations it took.

        Warns
        -----
        ConvergenceWarning
            If the residual is not below 1e-12 of the right-hand side after 2000 iterations.
        """
        columns, taken = zip(*(self._solved(column, alpha) for column in self._rhs.T), strict=True)
        coef = np.stack(columns, axis=1)
        return coef[self._graded], self.target_mean - self._mean @ coef, sum(taken)

    def effective_parameters(self, alpha: float) -> float:
        """Trace of ``(G + alpha)^-1 G``, the rank when alpha is 0, by Hutchinson's estimate from fixed random signs.

        A probe v gives ``<v, (G + alpha)^-1 G v>``, one solution each; the standard error of the mean is below
        ``sqrt(D / (2 * probes))``, small beside any number of rows that calls for conjugate gradients.
        """
        size = len(self._chosen)
        probes = int(np.clip(_PROBE_ENTRIES / max(1, size), 2, 64))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (probes, size))
        return float(np.mean([v @ self._solved(self._product(v), alpha)[0] for v in signs]))

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Whether the rows determine each coefficient of ``[(), *family]``, (D + 1,).

        What is left of a random vector less its projection on the range of G is a random null vector. It is zero, up to
        the tolerance of conjugate gradients, at the coefficients that the rows determine, and below 1e-6 at any other
        with a chance of about 1e-6 over the length of that unit vector's null part; two vectors are tried.
        """
        found = np.ones(len(self._chosen) + 1, dtype=bool)
        if self._weights.all():
            return found
        rng = np.random.default_rng(0)
        for vector in rng.normal(size=(2, len(self._chosen))):
            null = vector - self._solved(self._product(vector), 0.0)[0]
            found &= np.abs(np.concatenate([[self._mean @ null], null[self._graded]])) <= _NULL
        return found

    def unscaled_variances(self, places: NDArray[np.intp], alpha: float) -> NDArray[np.float64]:
        """Diagonal of ``(G + alpha)^-1 G (G + alpha)^-1`` at places of ``[(), *subsets]``: a solution each, (N,).

        NaN where the rows do not determine the coefficient.

        Raises
        ------
        ValueError
            If conjugate gradients do not converge.
        """
        variances, identified = np.full(len(places), np.nan), self.identified
        for i, place in enumerate(places.tolist()):
            if not identified[place]:
                continue
            unit = np.zeros(len(self._chosen))
            if place:
                unit[self._graded[place - 1]] = 1.0
            else:
                unit[:] = self._mean
            with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
                warnings.simplefilter("ignore", ConvergenceWarning)  # the residual below is the judge
                solution, _ = self._solved(unit, alpha)
            miss = self._product(solution) + alpha * solution - unit
            if not np.linalg.norm(miss) <= 1e-6 * np.linalg.norm(unit):
                raise ValueError(
                    "conjugate gradients did not find the variance of a coefficient, which the rows hardly determine; "
                    "pass alpha > 0, a lower degree or more rows."
                )
            variances[i] = solution @ self._product(solution)
            if place == 0:
                variances[i] += self._fit_intercept / self.weight
        return variances

    def _product(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """The centred Gram matrix times a vector (D,)."""
        self._table[:] = 0.0
        self._table[self._chosen] = coef
        self._transform()
        self._table *= self._weights
        self._transform()
        product = self._table[self._chosen]
        product -= self._sums * (self._mean @ coef)
        return product

    def _transform(self) -> None:
        kernels.walsh_hadamard(self._table[None, :], n_threads=self._n_threads)

    def _solved(self, rhs: NDArray[np.float64], alpha: float) -> tuple[NDArray[np.float64], int]:
        if self._constant:  # G is 0, and what is on the right is rounding
            return np.zeros(len(rhs)), 0
        size, iterations = len(rhs), 0

        def count(_: NDArray[np.float64]) -> None:
            nonlocal iterations
            iterations += 1

        def shifted(v: NDArray[np.float64]) -> NDArray[np.float64]:
            return self._product(v) + alpha * v if alpha else self._product(v)

        operator = LinearOperator((size, size), matvec=shifted, dtype=np.float64)
        solution, left = cg(operator, rhs, rtol=_TOLERANCE, maxiter=_MOST_ITERATIONS, callback=count)
        if left:
            warnings.warn(
                f"conjugate gradients stopped after {_MOST_ITERATIONS} iterations: the rows hardly determine the "
                f"{size} coefficients; pass alpha > 0, a lower degree, or more rows.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return np.asarray(solution), iterations

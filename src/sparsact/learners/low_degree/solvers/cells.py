"""Least squares over cells: every moment by one Walsh-Hadamard transform, or conjugate gradients of two a product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.learners.low_degree.coefficient_precision import Design
from sparsact.learners.low_degree.compact_sums import MAX_N, Cells
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial, Penalty, Solution
from sparsact.learners.low_degree.solvers.solver import LowDegreeStatistic, ProblemSize, Solver, SolverPlan, judged
from sparsact.statistics.solved import Solved, conjugate_gradients

MAX_CELLS_N: Final = 24  # unless requested by name
MAX_CHOLESKY: Final = 3000
_LIMBS: Final = 5  # of a typical double and its weight
_MAX_VARIANCES: Final = 100
_TOLERANCE: Final = 1e-12
MAX_STEPS: Final = 2000
_TELL: Final = (
    "conjugate gradients on cells",
    "the rows hardly determine the coefficients: pass alpha > 0, a lower degree, or more rows",
)
_PROBE_ENTRIES: Final = 200_000
_NULL: Final = 1e-6


def prefers_cells(n: int, n_rows: int) -> bool:
    """Whether a table of 2**n cells is the cheaper statistic for this many rows."""
    return n <= MAX_CELLS_N and 32 * n_rows >= 2**n


def cells_bytes(n: int, n_targets: int) -> float:
    """Bytes of the sums of 2**n cells, and of one transform of them."""
    cells = 2.0 ** min(n, 1000)  # beyond the range of floats it is out of the question all the same
    return 8.0 * cells * (2 * _LIMBS * (1 + n_targets) + 3)


@dataclass(frozen=True)
class CellSolver(Solver):
    """Ridge over the 2**n cells."""

    name = "cells"
    max_cholesky: int = MAX_CHOLESKY

    def cost(self, size: ProblemSize) -> SolverPlan | str:
        """What a fit needs, or that there are too many cells."""
        n, d, m = size.n, size.n_monomials, size.n_rows
        if n > MAX_N:
            return f'solver="cells" serves up to {MAX_N} coordinates; `X` has {n}: pass solver="auto".'
        table = cells_bytes(n, size.n_targets)
        iterative = not size.explicit_gram and d > self.max_cholesky and (m >= 2 * d or 28.0 * d * d > table)
        how = "conjugate gradients, two transforms a product" if iterative else "Cholesky"
        reason = f"n = {n} is small: Walsh-Hadamard transforms of cells give every moment; {d:,} monomials by {how}"
        rank = 1 if prefers_cells(n, m) else 3 if n <= MAX_CELLS_N else None
        nbytes = table + size.nbytes + (0.0 if iterative else 28.0 * d * d)
        return SolverPlan(self, nbytes, reason, rank, explicit_gram=not iterative)

    def solve(
        self, statistic: LowDegreeStatistic, family: Family, penalty: Penalty, plan: SolverPlan, *, n_threads: int
    ) -> Solution:
        """The polynomial of a family that fits the rows of a statistic."""
        if plan.explicit_gram:
            return super().solve(statistic, family, penalty, plan, n_threads=n_threads)
        cells = Cells.of(self.on_points(statistic))
        equations = CellEquations(cells, family, fit_intercept=penalty.fit_intercept, n_threads=n_threads)
        coef, intercept, iterations = equations.solve(penalty.alpha)
        polynomial = FittedPolynomial(family, coef, intercept)
        reason = f"{plan.reason} ({iterations} iterations)."
        mean = equations.target_mean
        return judged(cells, polynomial, self, reason, penalty, mean, equations, n_threads=n_threads)


class CellEquations(Design):
    r"""The normal equations over cells, never written out.

    The product with G is: place the coefficients in a table of :math:`2^n`, transform to values, weigh each cell,
    transform back, read off: :math:`2 n 2^n` additions and no D x D matrix.
    """

    def __init__(
        self, cells: Cells, family: Family, *, fit_intercept: bool, n_threads: int, max_steps: int = MAX_STEPS
    ) -> None:
        self.max_steps = max_steps
        codes = family.masks[:, 0].astype(np.intp)
        order = codes.argsort()  # vectors in here follow the table, so that a product reads memory in order
        self._graded = order.argsort()
        self._chosen = codes[order]
        self._fit_intercept = fit_intercept
        self._n_threads = n_threads
        self._weights = cells.weights.to_float()
        self._table = np.empty_like(self._weights)
        self.weight = cells.weight
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
        found = [self._solved(column, alpha) for column in self._rhs.T]
        coef = np.stack([each.checked(*_TELL) for each in found], axis=1)
        return coef[self._graded], self.target_mean - self._mean @ coef, sum(each.steps for each in found)

    def effective_parameters(self, alpha: float) -> float:
        """Trace of ``(G + alpha)^-1 G``, the rank when alpha is 0, by Hutchinson's estimate from fixed random signs.

        A probe v gives ``<v, (G + alpha)^-1 G v>``, one solution each; the standard error of the mean is below
        ``sqrt(D / (2 * probes))``, small compared with any number of rows that calls for conjugate gradients.
        """
        size = len(self._chosen)
        probes = int(np.clip(_PROBE_ENTRIES / max(1, size), 2, 64))
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (probes, size))
        return float(np.mean([v @ self._solved(self._product(v), alpha).checked(*_TELL) for v in signs]))

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Whether the rows determine each coefficient of ``[(), *family]``, (D + 1,).

        What is left of a random vector minus its projection on the range of G is a random null vector. It is zero, up
        to the tolerance of conjugate gradients, at the coefficients that the rows determine, and below 1e-6 at any
        other with a chance of about 1e-6 over the length of that unit vector's null part; two vectors are tried.
        """
        found = np.ones(len(self._chosen) + 1, dtype=bool)
        if self._weights.all():
            return found
        rng = np.random.default_rng(0)
        for vector in rng.normal(size=(2, len(self._chosen))):
            null = vector - self._solved(self._product(vector), 0.0).checked(*_TELL)
            found &= np.abs(np.concatenate([[self._mean @ null], null[self._graded]])) <= _NULL
        return found

    def unscaled_variances(self, places: NDArray[np.intp], alpha: float) -> NDArray[np.float64]:
        """Diagonal of ``(G + alpha)^-1 G (G + alpha)^-1`` at places of ``[(), *subsets]``: a solution each, (N,).

        NaN where the rows do not determine the coefficient.

        Raises
        ------
        ValueError
            If they are many, or if conjugate gradients do not converge.
        """
        if len(places) > _MAX_VARIANCES:
            raise ValueError(
                f"{len(places):,} standard errors would each need a solution by conjugate gradients; "
                f"name at most {_MAX_VARIANCES} subsets."
            )
        variances, identified = np.full(len(places), np.nan), self.identified
        for i, place in enumerate(places.tolist()):
            if not identified[place]:
                continue
            unit = np.zeros(len(self._chosen))
            if place:
                unit[self._graded[place - 1]] = 1.0
            else:
                unit[:] = self._mean
            solution = self._solved(unit, alpha).value  # the residual below is the judge
            miss = self._product(solution) + alpha * solution - unit
            if not np.linalg.norm(miss) <= 1e-6 * np.linalg.norm(unit):
                raise ValueError(
                    "conjugate gradients did not find the variance of a coefficient that the rows hardly determine; "
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

    def _solved(self, rhs: NDArray[np.float64], alpha: float) -> Solved[NDArray[np.float64]]:
        if self._constant:  # G is 0, and what is on the right is rounding
            return Solved(np.zeros(len(rhs)), 0, 0.0, _TOLERANCE, True)

        def shifted(v: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.stack([self._product(one) + alpha * one for one in v])

        found = conjugate_gradients(shifted, rhs[None].copy(), _TOLERANCE, self.max_steps)
        return replace(found, value=found.value[0])

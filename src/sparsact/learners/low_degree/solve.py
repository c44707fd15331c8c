"""From a statistic to a polynomial: run the planned route."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.cells import Cells
from sparsact.learners.low_degree.conjugate_gradients import CellEquations
from sparsact.learners.low_degree.dual import solve_dual
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.normal_equations import Factor, NormalEquations, normal_equations
from sparsact.learners.low_degree.plan import SolverPlan
from sparsact.learners.low_degree.polynomial import FittedPolynomial
from sparsact.learners.low_degree.rows import DistinctPoints
from sparsact.learners.low_degree.sparse import lasso
from sparsact.learners.low_degree.statistic import Statistic
from sparsact.learners.points import Encoding

_MOST_VARIANCES = 100
_ALL_ZERO = 1e60  # a lasso penalty that leaves no coefficient of targets of size one
_AVERAGES = "the average of y chi_S over the rows estimates each coefficient when inputs are uniform."


@dataclass(frozen=True)
class Penalty:
    """How coefficients are estimated: ``"ridge"`` (least squares at alpha 0), ``"lasso"`` or ``"correlation"``."""

    kind: str
    alpha: float
    fit_intercept: bool

    def origin(self, statistic: Any, place: int) -> NDArray[np.float64]:
        """What the intercept may take from targets in the unit of a place beforehand: their mean, (T,)."""
        if self.fit_intercept and self.kind != "correlation":
            return np.asarray(statistic.mean(place))
        return np.zeros(statistic.n_targets)

    def over(self, unit: float) -> Penalty:
        """The same penalty for targets over a unit: that on a square is as it was, that on a size is in the unit."""
        if self.kind != "lasso":
            return self
        with np.errstate(over="ignore"):
            return replace(self, alpha=min(float(np.float64(self.alpha) / unit), _ALL_ZERO))


@dataclass(frozen=True)
class CVSelection:
    """What cross-validation chose: degree, alpha, mean held-out R2, and the table of all candidates."""

    degree: int
    alpha: float
    score: float
    results: dict[str, NDArray[Any]]


@dataclass(eq=False)
class Solution:
    """A fitted polynomial and what is needed to say how sure it is.

    Attributes
    ----------
    polynomial : FittedPolynomial
        The fitted coefficients.
    solver, reason : str
        The route, and one sentence on why.
    squared_error, target_squares : ndarray of shape (T,)
        Weighted squares of the residuals, and of the targets about their mean, both over ``unit**2``.
    n_rows, total_weight : int, float
        Rows of non-zero weight, and the sum of the weights.
    unit : float
        A power of two near the size of the targets, over which squares are float64 whatever that size.
    """

    polynomial: FittedPolynomial
    solver: str
    reason: str
    squared_error: NDArray[np.float64]
    target_squares: NDArray[np.float64]
    n_rows: int
    total_weight: float
    penalty: Penalty
    equations: NormalEquations | None = None
    cells: CellEquations | None = None
    kernel: tuple[Factor, float] | None = None  # and how many of its effective parameters are not the function's
    encoding: Encoding | None = None
    variances: NDArray[np.float64] | None = None
    parameters: float | None = None
    said_identified: NDArray[np.bool_] | None = None  # by the file
    choice: CVSelection | None = None
    unit: float = 1.0

    def of_targets(self, unit: float, origin: NDArray[np.float64], penalty: Penalty) -> Solution:
        """The solution for the targets themselves, where it was found for targets over a unit, less an origin."""
        self.polynomial, self.unit, self.penalty = self.polynomial.plus(origin).times(unit), unit, penalty
        return self

    @cached_property
    def factor(self) -> Factor | None:
        """Factor of the normal equations, when they were written out."""
        return None if self.equations is None else self.equations.factor(self.penalty.alpha)

    @cached_property
    def residual_degrees_of_freedom(self) -> float:
        """Rows less effective parameters (the intercept is one)."""
        if self.parameters is None and self.cells is not None:
            self.parameters = self.cells.effective_parameters(self.penalty.alpha)
        if self.parameters is None and self.kernel is not None:
            factor, filled = self.kernel
            self.parameters = factor.effective_parameters - filled
        if self.parameters is None:
            size = float(len(self.polynomial.family))
            self.parameters = size if self.factor is None else self.factor.effective_parameters
        return self.n_rows - self.parameters - self.penalty.fit_intercept

    @cached_property
    def identified(self) -> NDArray[np.bool_] | None:
        """Whether the rows determine each coefficient of ``[(), *subsets]``, (D + 1,); None if only they could tell."""
        if self.equations is not None:
            return self.equations.identified
        if self.cells is not None:
            return self.cells.identified
        if self.polynomial.dual is not None:
            return self.polynomial.dual.identified(self.polynomial.family, fit_intercept=self.penalty.fit_intercept)
        return self.said_identified

    def unscaled_variances(self, places: NDArray[np.intp]) -> NDArray[np.float64]:
        """Variance per unit of residual variance of the coefficients at places of ``[(), *subsets]``, (N,).

        NaN where the rows do not determine the coefficient.

        Raises
        ------
        ValueError
            If more are asked for than can be had: by conjugate gradients each one costs a solution.
        """
        if self.variances is None and self.factor is not None and self.equations is not None:
            covariance, mean = self.factor.unscaled_covariance, self.equations.feature_mean
            own = self.penalty.fit_intercept / self.total_weight + mean @ covariance @ mean
            self.variances = np.concatenate([[own], covariance.diagonal()])
            self.variances[~self.equations.identified] = np.nan
        if self.variances is not None:
            return self.variances[places]
        if self.cells is None:
            raise ValueError(
                f'solver_ = "{self.solver}" leaves no covariance of the coefficients; fit the rows with solver="auto", '
                "fewer monomials than rows, and ask before saving."
            )
        if len(places) > _MOST_VARIANCES:
            raise ValueError(
                f"{len(places):,} standard errors would take as many solutions by conjugate gradients; "
                f"name at most {_MOST_VARIANCES} subsets."
            )
        return self.cells.unscaled_variances(places, self.penalty.alpha)


def solve(statistic: Statistic, family: Family, plan: SolverPlan, penalty: Penalty, *, n_threads: int = 1) -> Solution:
    """The polynomial of a family that fits the rows of a statistic."""
    if plan.solver == "kernel" and penalty.kind == "ridge":
        return _by_kernel(statistic, family, plan, penalty, n_threads)
    if plan.iterative and penalty.kind == "ridge":
        return _by_cells(as_cells(statistic), family, plan, penalty, n_threads)
    if penalty.kind == "correlation":
        return _by_correlation(statistic, family, plan, penalty, n_threads)
    equations = normal_equations(statistic, family, fit_intercept=penalty.fit_intercept, n_threads=n_threads)
    return from_equations(equations, family, plan, penalty)


def from_equations(equations: NormalEquations, family: Family, plan: SolverPlan, penalty: Penalty) -> Solution:
    """The polynomial that solves equations which are written out."""
    factor, parameters, feature_mean = None, None, equations.feature_mean
    if penalty.kind == "correlation":
        sums = equations.rhs + equations.weight * np.outer(equations.feature_mean, equations.target_mean)
        coef, feature_mean = sums / (equations.weight + penalty.alpha), np.zeros(len(family))
    elif penalty.kind == "lasso":
        coef = lasso(equations, penalty.alpha)
        parameters = float(np.count_nonzero(coef, axis=0).max(initial=0))
    else:
        factor = equations.factor(penalty.alpha)
        coef = factor.solve(equations.rhs)
    solution = Solution(
        FittedPolynomial(family, coef, equations.target_mean - feature_mean @ coef),
        plan.solver if penalty.kind == "ridge" else penalty.kind,
        _AVERAGES if penalty.kind == "correlation" else plan.reason + _remark(factor),
        equations.squared_error(coef, feature_mean, equations.target_mean),
        equations.target_squares,
        equations.n_rows,
        equations.weight,
        penalty,
        equations,
        parameters=parameters,
    )
    if factor is not None:
        solution.__dict__["factor"] = factor
    return solution


def _remark(factor: Factor | None) -> str:
    if factor is None or factor.method != "eigenvectors":
        return "."
    return f"; the rows determine only {factor.rank:,} directions, so the solution of least norm is taken."


def _by_cells(cells: Cells, family: Family, plan: SolverPlan, penalty: Penalty, n_threads: int) -> Solution:
    equations = CellEquations(cells, family, fit_intercept=penalty.fit_intercept, n_threads=n_threads)
    coef, intercept, iterations = equations.solve(penalty.alpha)
    polynomial = FittedPolynomial(family, coef, intercept)
    return Solution(
        polynomial,
        "cells",
        f"{plan.reason} ({iterations} iterations).",
        squared_error(cells, polynomial, n_threads=n_threads),
        cells.totals.squares_about(equations.target_mean),
        cells.totals.n_rows,
        equations.weight,
        penalty,
        cells=equations,
    )


def _by_correlation(
    statistic: Statistic, family: Family, plan: SolverPlan, penalty: Penalty, n_threads: int
) -> Solution:
    """The textbook estimate ``E[y chi_S]``: no system is solved, and it is right only under uniform inputs."""
    weight = statistic.totals.total_weight()
    sums = statistic.correlations(family, n_threads=n_threads).T
    intercept = sums[0] / weight * penalty.fit_intercept
    polynomial = FittedPolynomial(family, sums[1:] / (weight + penalty.alpha), intercept)
    if statistic.holds_points:
        error = squared_error(statistic, polynomial, n_threads=n_threads)
    else:
        equations = normal_equations(statistic, family, n_threads=n_threads)
        error = equations.squared_error(polynomial.coef, np.zeros(len(family)), intercept)
    return Solution(
        polynomial,
        "correlation",
        _AVERAGES,
        error,
        statistic.totals.squares_about(intercept),
        statistic.totals.n_rows,
        weight,
        penalty,
    )


def _by_kernel(statistic: Statistic, family: Family, plan: SolverPlan, penalty: Penalty, n_threads: int) -> Solution:
    rows = as_rows(statistic)
    assert family.span is not None  # noqa: S101 - the plan refuses lists
    low, high = family.span
    dual, intercept, factor, filled = solve_dual(rows, high, low, penalty.alpha, fit_intercept=penalty.fit_intercept)
    polynomial = FittedPolynomial(family, None, intercept, dual)
    weight = rows.totals.total_weight()
    mean = rows.totals.sums.to_float() / weight if penalty.fit_intercept else np.zeros(rows.n_targets)
    return Solution(
        polynomial,
        "kernel",
        plan.reason + _remark(factor),
        squared_error(rows, polynomial, n_threads=n_threads),
        rows.totals.squares_about(mean),
        rows.totals.n_rows,
        weight,
        penalty,
        kernel=(factor, filled),
    )


def squared_error(statistic: Statistic, polynomial: FittedPolynomial, *, n_threads: int = 1) -> NDArray[np.float64]:
    """Weighted squared error (T,) of a polynomial on the rows of a statistic, point by point."""
    rows = as_rows(statistic)
    rows.join()
    weights, sums = rows.weights.to_float()[:, None], rows.sums.to_float().T
    values = polynomial.values(rows.points, n_threads=n_threads)
    mean = rows.totals.sums.to_float() / rows.totals.total_weight()  # about the mean: nothing large cancels
    about = rows.totals.squares_about(mean)
    values, sums = values - mean, sums - weights * mean
    error = about + np.einsum("mt,mt->t", values, weights * values - 2 * sums)
    return np.asarray(np.maximum(error, 0.0))


def as_cells(statistic: Statistic) -> Cells:
    """The statistic as cells."""
    if isinstance(statistic, DistinctPoints):
        cells = Cells(statistic.n, statistic.n_targets)
        cells.absorb(statistic)
        return cells
    assert isinstance(statistic, Cells)  # noqa: S101 - moments are never planned to be solved over cells
    return statistic


def as_rows(statistic: Statistic) -> DistinctPoints:
    """The statistic as distinct points."""
    if isinstance(statistic, Cells):
        return statistic.rows()
    assert isinstance(statistic, DistinctPoints)  # noqa: S101 - the plan refuses what moments cannot serve
    return statistic

r"""Sparse coefficients from the same sums: the lasso on the square root of the Gram matrix.

With :math:`G = R^\top R` and :math:`R^\top z = r`, the lasso on (R, z) has the same objective, up to a constant, as
the lasso on all rows, and D rows instead of m. scikit-learn's coordinate descent comes near the solution; an active-set
method ends there, as the gap to the dual shows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.low_degree.normal_equations import NormalEquations
from sparsact.learners.low_degree.polynomial import Penalty
from sparsact.learners.low_degree.solvers.solver import ON_POINTS, Estimated, ProblemSize, Solver, SolverPlan, possible
from sparsact.statistics.solved import Solved

_GAP: Final = 1e-10  # of the objective
_DOUBTFUL_GAP: Final = 1e-4
MAX_STEPS: Final = 200
_TINY: Final = float(np.finfo(float).tiny)


class LassoSolver(Solver):
    """Sparse coefficients, from a Gram matrix that is written out."""

    name = penalty = "lasso"
    forms = ON_POINTS | {"moments", "real"}

    def cost(self, size: ProblemSize) -> SolverPlan:
        """What the cheapest way to the Gram matrix needs."""
        plans = possible("auto", replace(size, explicit_gram=True))
        return replace(plans[0], solver=self, nbytes=min(plan.nbytes for plan in plans), rank=None)

    def estimate(self, equations: NormalEquations, penalty: Penalty, plan: SolverPlan) -> Estimated:
        """Coefficients (D, T), the feature means that the intercept makes up for, the reason, effective parameters."""
        coef = lasso(equations, penalty.alpha)
        return coef, equations.feature_mean, f"{plan.reason}.", float(np.count_nonzero(coef, axis=0).max(initial=0))

    def path(self, equations: NormalEquations, alphas: Sequence[float]) -> Iterable[NDArray[np.float64]]:
        """Coefficients (D, T) for each of some penalties, as cross-validation needs them."""
        return lasso_path(equations, alphas)


def lasso(equations: NormalEquations, alpha: float, *, max_steps: int = MAX_STEPS) -> NDArray[np.float64]:
    r"""Minimiser (D, T) of :math:`\frac{1}{2W}\sum_i w_i (y_i - \dots)^2 + \alpha \|\beta\|_1`, W the total weight.

    The scale of ``alpha`` is that of scikit-learn's ``Lasso``. One Cholesky factor, D x D.

    Warns
    -----
    ConvergenceWarning
        If the objective may be more than 1e-4 of itself above its least value.
    """
    gram, rhs = equations.gram, equations.rhs
    if not len(gram):
        return np.zeros_like(rhs)
    coef: NDArray[np.float64] = lasso_path(equations, [alpha], 1e-8, 10_000)[0]
    if alpha == 0:
        return coef
    penalty = alpha * equations.weight
    for target, square in enumerate(equations.target_squares.tolist()):
        found = _ended(gram, rhs[:, target], penalty, square, coef[:, target], max_steps)
        coef[:, target] = found.checked("the lasso (the gap as a share of its objective)", "pass a larger alpha")
    return coef


def lasso_path(
    equations: NormalEquations, alphas: Sequence[float], tol: float = 1e-5, n_sweeps: int = 300
) -> NDArray[np.float64]:
    """Coefficients (A, D, T) near the minimisers for some penalties, by coordinate descent from the largest one on.

    Tiny penalties of more monomials than rows, which cross-validation seldom prefers, may end before the tolerance.
    """
    gram, rhs, given = equations.gram, equations.rhs, np.array(alphas)
    found: NDArray[np.float64] = np.zeros((len(given), *rhs.shape))
    if not gram.any():
        return found
    if not given.all():  # coordinate descent converges badly without a penalty
        found[given == 0] = equations.factor(0.0).solve(rhs)
    places = np.flatnonzero(given)
    places = places[np.argsort(-given[places], kind="stable")]
    with blas_threads(len(gram) ** 3):
        factor, order, rank, _ = lapack.dpstrf(gram, lower=1)  # Cholesky with pivots
        root, order = np.tril(factor[:, :rank]), order - 1
        targets = solve_triangular(root[:rank], rhs[order[:rank]], lower=True)
    design = np.empty((rank, len(gram)), order="F")
    design[:, order] = root.T
    penalties = given[places] * (equations.weight / rank)  # scikit-learn divides by its own number of rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # where it matters, the gap is the judge
        for k, target in enumerate(targets.T):
            path = linear_model.lasso_path(
                design, target, alphas=penalties, precompute=True, tol=tol, max_iter=n_sweeps
            )[1]
            found[places, :, k] = path.T
    return found


def relative_gap(
    gram: NDArray[np.float64], rhs: NDArray[np.float64], penalty: float, square: float, coef: NDArray[np.float64]
) -> float:
    r"""Bound, as a share, on how far :math:`\frac12\|y - X\beta\|^2 + \lambda\|\beta\|_1` is above its minimum.

    The residual, scaled by c until no feature's product with it exceeds :math:`\lambda` by more than rounding may have
    made, is feasible for the dual. With
    :math:`g = X^\top(y - X\beta)`, the gap is
    :math:`\frac12 (1 - c)^2 \|y - X\beta\|^2 + \lambda\|\beta\|_1 - c\langle g, \beta\rangle`.
    """
    products = rhs - gram @ coef
    squares = max(square - float(coef @ (rhs + products)), 0.0)
    rounding = 4 * np.finfo(float).eps * (np.abs(rhs) + np.abs(gram) @ np.abs(coef))
    shrink = min(1.0, penalty / max(float((np.abs(products) - rounding).max()), _TINY))
    norm = penalty * float(np.abs(coef).sum())
    gap = 0.5 * (1 - shrink) ** 2 * squares + norm - shrink * float(products @ coef)
    return max(gap, 0.0) / max(0.5 * squares + norm, _TINY)


def _ended(
    gram: NDArray[np.float64],
    rhs: NDArray[np.float64],
    penalty: float,
    square: float,
    start: NDArray[np.float64],
    max_steps: int,
) -> Solved[NDArray[np.float64]]:
    """The minimiser from a point near it, and its relative gap; the best point met, should rounding bar the way."""
    coef, signs = start.copy(), np.sign(start)
    best, least = start, relative_gap(gram, rhs, penalty, square, start)
    for steps in range(max_steps + 1):
        if least <= _GAP or steps == max_steps:
            break
        if _step(gram, rhs, penalty, coef, signs):
            gap = relative_gap(gram, rhs, penalty, square, coef)
            if gap < least:
                best, least = coef.copy(), gap
            products = rhs - gram @ coef
            worst = int(np.argmax(np.where(signs == 0, np.abs(products), 0.0)))
            if signs[worst] or abs(products[worst]) <= penalty:
                break
            signs[worst] = np.sign(products[worst])
    return Solved(best, steps, least, _DOUBTFUL_GAP, least <= _DOUBTFUL_GAP)


def _step(
    gram: NDArray[np.float64],
    rhs: NDArray[np.float64],
    penalty: float,
    coef: NDArray[np.float64],
    signs: NDArray[np.float64],
) -> bool:
    """Go towards the minimum over coefficients of these signs, in place; whether it was reached before one was 0."""
    active = np.flatnonzero(signs)
    inner, downhill = gram[np.ix_(active, active)], (rhs - gram @ coef - penalty * signs)[active]
    direction = np.linalg.lstsq(inner, downhill, rcond=None)[0]
    level = downhill - inner @ direction
    if np.linalg.norm(level) > 1e-6 * np.linalg.norm(downhill):  # no minimum, but a line without curvature
        direction, reach = level, np.inf
    else:
        reach = 1.0
    until = np.full(len(active), np.inf)
    against = direction * signs[active] < 0
    until[against] = -coef[active][against] / direction[against]
    first = int(until.argmin()) if len(active) else 0
    if len(active) and until[first] < reach:
        coef[active] += until[first] * direction
        coef[active[first]] = signs[active[first]] = 0.0
        return False
    if reach < np.inf:
        coef[active] += direction
    return True

"""Solver contract, solvers that form the normal equations, and the choice among all solvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import n_subsets, n_words
from sparsact.learners.low_degree.coefficient_precision import Design, KnownDesign
from sparsact.learners.low_degree.compact_sums import Cells, Moments
from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.exact_statistic import ExactStatistic
from sparsact.learners.low_degree.factor import Factor
from sparsact.learners.low_degree.normal_equations import NormalEquations
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial, Penalty, Solution
from sparsact.learners.low_degree.real_columns import CentredMoments
from sparsact.memory import available_memory, has_room

LowDegreeStatistic = Cells | DistinctPoints | Moments | CentredMoments
Estimated = tuple[NDArray[np.float64], NDArray[np.float64], str, float | None]
ON_POINTS: Final = frozenset({"rows", "cells"})
_MAX_MONOMIALS: Final = 12_000  # whose moments are summed without being asked for
_MIN_ROWS: Final = 1 << 16
_AVERAGES: Final = "the average of y chi_S over the rows estimates each coefficient when inputs are uniform."


@dataclass(frozen=True)
class ProblemSize:
    """What decides the cost of a fit: n coordinates, D monomials, m rows, T targets.

    Attributes
    ----------
    degree_range : (int, int) or None
        Smallest and largest size of a subset; None for a list of subsets.
    form : {"rows", "cells", "moments", "real"}
        The ``kind`` of the statistic.
    explicit_gram : bool
        Whether the Gram matrix must be written out.
    """

    n: int
    n_monomials: int
    n_rows: int
    n_targets: int
    degree_range: tuple[int, int] | None
    form: str = "rows"
    explicit_gram: bool = False

    @property
    def nbytes(self) -> float:
        """Bytes of the solution itself."""
        return 16.0 * self.n_monomials * n_words(self.n) + 8.0 * self.n_monomials * (self.n_targets + 4)


@dataclass(frozen=True)
class SolverPlan:
    """A solver and what it needs.

    Attributes
    ----------
    nbytes : float
        Memory at the peak, an estimate.
    reason : str
        When the solver is the one to take, as a sentence without its full stop.
    rank : int or None
        Its place in the order of preference; None for a solver that is taken by name only.
    explicit_gram : bool
        Whether it writes the Gram matrix out.
    """

    solver: Solver
    nbytes: float
    reason: str
    rank: int | None
    explicit_gram: bool = True


class Solver(ABC):
    """One way to solve for the coefficients. A subclass in a module of this folder is found by being there.

    By default the normal equations are written out and solved by ridge; a subclass may do only its part otherwise.
    """

    name: ClassVar[str]
    penalty: ClassVar[str] = "ridge"
    forms: ClassVar[frozenset[str]] = ON_POINTS  # kinds of statistics that it can be given
    by_name: ClassVar[bool] = True  # whether users may choose it

    @abstractmethod
    def cost(self, size: ProblemSize) -> SolverPlan | str:
        """What a fit needs, or why this solver cannot serve it."""

    def prefers_sums(self, size: ProblemSize) -> bool:
        """Whether its own sums, not points, are the cheaper statistic."""
        return False

    def offer(self, size: ProblemSize) -> SolverPlan | str:
        """The cost, unless the statistic has another form."""
        if size.form in self.forms:
            return self.cost(size)
        if size.form == "real":
            return (
                f'`X` holds real columns, and solver="{self.name}" needs points of the cube: pass bits or signs, or '
                'solver="auto".'
            )
        return f'the rows were summed into moments and are gone; fit with solver="{self.name}" from the start.'

    def solve(
        self, statistic: LowDegreeStatistic, family: Family, penalty: Penalty, plan: SolverPlan, *, n_threads: int
    ) -> Solution:
        """The polynomial of a family that fits the rows of a statistic."""
        equations = statistic.normal_equations(family, fit_intercept=penalty.fit_intercept, n_threads=n_threads)
        coef, mean, reason, parameters = self.estimate(equations, penalty, plan)
        return Solution(
            FittedPolynomial(family, coef, equations.target_mean - mean @ coef),
            self.name,
            reason,
            equations.squared_error(coef, mean, equations.target_mean),
            equations.target_squares,
            equations.n_rows,
            equations.weight,
            penalty,
            equations,
            parameters=parameters,
        )

    @staticmethod
    def on_points(statistic: LowDegreeStatistic) -> Cells | DistinctPoints:
        """The statistic, which holds points; a TypeError for sums, which no solver on points is given."""
        if isinstance(statistic, Moments | CentredMoments):
            raise TypeError(f"{type(statistic).__name__} holds sums, and no points; pass Cells or DistinctPoints.")
        return statistic

    def estimate(self, equations: NormalEquations, penalty: Penalty, plan: SolverPlan) -> Estimated:
        """Coefficients (D, T), the feature means that the intercept makes up for, the reason, effective parameters."""
        factor = equations.factor(penalty.alpha)
        return factor.solve(equations.rhs), equations.feature_mean, plan.reason + ending(factor), None

    def path(self, equations: NormalEquations, alphas: Sequence[float]) -> Iterable[NDArray[np.float64]]:
        """Coefficients (D, T) for each of some penalties, as cross-validation needs them."""
        return (equations.factor(alpha).solve(equations.rhs) for alpha in alphas)


def judged(
    statistic: ExactStatistic,
    polynomial: FittedPolynomial,
    solver: Solver,
    reason: str,
    penalty: Penalty,
    mean: NDArray[np.float64],
    design: Design,
    *,
    n_threads: int,
) -> Solution:
    """The solution of a polynomial that was found without normal equations, judged by exact sums about a mean (T,)."""
    error, squares = statistic.squared_error(polynomial, n_threads=n_threads), statistic.totals.squares_about(mean)
    rows = statistic.n_rows, statistic.weight
    return Solution(polynomial, solver.name, reason, error, squares, *rows, penalty, design)


def ending(factor: Factor) -> str:
    """The end of a reason: whether the rows determine all coefficients."""
    if factor.method != "eigenvectors":
        return "."
    return f"; the rows determine only {factor.rank:,} directions, so the solution of least norm is taken."


# ---- choice ----


@cache
def solvers() -> dict[str, Solver]:
    """Every solver by its name."""
    package = import_module(__package__)
    for module in iter_modules(package.__path__):
        import_module(f"{__package__}.{module.name}")
    return {kind.name: kind() for kind in Solver.__subclasses__()}


def possible(name: str, size: ProblemSize) -> list[SolverPlan]:
    """What a solver needs or, for ``"auto"``, what each needs that can serve, the preferred first.

    Raises
    ------
    ValueError
        If the solver cannot serve; says why.
    """
    if name == "auto":
        offers = (solver.offer(size) for solver in solvers().values() if solver.penalty == "ridge")
        plans = (offer for offer in offers if isinstance(offer, SolverPlan) and offer.rank is not None)
        return sorted(plans, key=lambda plan: plan.rank or 0)
    offer = solvers()[name].offer(size)
    if isinstance(offer, str):
        raise ValueError(offer)
    return [offer]


def choose_solver(name: str, size: ProblemSize, limit: float | None) -> SolverPlan:
    """The solver for a fit.

    Parameters
    ----------
    name : str
        The requested solver, or ``"auto"``.
    size : ProblemSize
        Size of the fit.
    limit : float or None
        Bytes that may be used; None for 80 % of what is free.

    Raises
    ------
    ValueError
        If the requested solver cannot serve.
    MemoryError
        If none that may be taken fits in ``limit`` bytes; names the sizes and the nearest degree that would.
    """
    plans = possible(name, size)
    found = next((plan for plan in plans if has_room(plan.nbytes, limit)), None)
    if found is None:
        raise MemoryError(_refusal(name, size, min(plans, key=lambda plan: plan.nbytes), limit))
    return found


def _refusal(name: str, size: ProblemSize, cheapest: SolverPlan, limit: float | None) -> str:
    limit = available_memory() if limit is None else limit
    over = f" over {size.n_rows:,} rows" if size.n_rows else ""
    need = (
        f"{size.n_monomials:,} monomials of {size.n} coordinates{over} need about "
        f"{_amount(cheapest.nbytes)} ({cheapest.solver.name}), and {_amount(limit)} may be used"
    )
    if size.degree_range is None:
        return f"{need}; pass fewer subsets, or a larger max_memory."
    low, high = size.degree_range
    sparse = "or where few terms matter SparseFourierRegressor"
    for degree in range(high - 1, low - 1, -1):
        lower = replace(size, n_monomials=Family.count(size.n, degree, low), degree_range=(low, degree))
        if any(plan.nbytes <= limit for plan in possible(name, lower)):
            return f"{need}; degree={degree} fits, or pass a larger max_memory, {sparse}."
    return f"{need}; no lower degree fits either: pass a larger max_memory, {sparse}."


def _amount(nbytes: float) -> str:
    return f"{nbytes / 2**30:,.1f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.3g} MiB"


@dataclass(frozen=True)
class MomentSolver(Solver):
    """Ridge by popcount moments of symmetric differences, for any n."""

    name = "moments"
    forms = ON_POINTS | {"moments"}
    min_rows: int = _MIN_ROWS
    rows_a_monomial: int = 4

    def prefers_sums(self, size: ProblemSize) -> bool:
        """Whether there are many more rows than monomials, and few monomials."""
        enough = max(self.rows_a_monomial * size.n_monomials, self.min_rows)
        return size.n_rows >= enough and size.n_monomials <= _MAX_MONOMIALS

    def cost(self, size: ProblemSize) -> SolverPlan:
        """What a fit needs."""
        d, m, span = size.n_monomials, size.n_rows, size.degree_range
        differences = min(d * (d + 1) / 2.0, float(n_subsets(size.n, 2 * span[1])) if span else float("inf"))
        ranked = span is not None and span[0] == 1  # no search for the differences, no place of every pair
        nbytes = differences * ((8.0 if ranked else 24.0) * n_words(size.n) + 40) + (28.0 if ranked else 32.0) * d * d
        reason = (
            f"n = {size.n} with {m:,} rows: the Gram matrix of {d:,} monomials from popcount moments of their "
            "differences"
        )
        return SolverPlan(self, nbytes + size.nbytes + 48.0 * min(m, 1 << 18), reason, 2)


class DenseSolver(Solver):
    """Ridge by matrix products, for real columns."""

    name = "dense"
    forms = frozenset({"real"})
    by_name = False

    def cost(self, size: ProblemSize) -> SolverPlan:
        """What a fit needs."""
        d = size.n_monomials
        return SolverPlan(self, size.nbytes + 36.0 * d * d, f"real columns: {d:,} monomials by matrix products", 0)


class CorrelationSolver(Solver):
    """Averages of targets times characters."""

    name = penalty = "correlation"
    forms = ON_POINTS | {"moments"}

    def cost(self, size: ProblemSize) -> SolverPlan:
        """At most what the cheapest solver of a system needs."""
        return replace(min(possible("auto", size), key=lambda plan: plan.nbytes), solver=self, rank=None)

    def solve(
        self, statistic: LowDegreeStatistic, family: Family, penalty: Penalty, plan: SolverPlan, *, n_threads: int
    ) -> Solution:
        """The polynomial of a family that fits the rows of a statistic."""
        if isinstance(statistic, CentredMoments):
            raise TypeError("CentredMoments holds sums of real columns; pass a statistic of points of the cube.")
        sums = statistic.correlations(family, n_threads=n_threads).T
        intercept = sums[0] / statistic.weight * penalty.fit_intercept
        polynomial = FittedPolynomial(family, sums[1:] / (statistic.weight + penalty.alpha), intercept)
        design = KnownDesign(float(len(family)))
        return judged(statistic, polynomial, self, _AVERAGES, penalty, intercept, design, n_threads=n_threads)

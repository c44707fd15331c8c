"""LowDegreeRegressorCV: degree and penalty by cross-validation, by taking folds away from one statistic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, check_cv

from sparsact.learners.constraints import AUTO, SIZE, one_of
from sparsact.learners.low_degree.choose import ALPHAS, CVSelection, degrees_in_reach, enough_rows, searched
from sparsact.learners.low_degree.compact_sums import Moments
from sparsact.learners.low_degree.estimator import LowDegree
from sparsact.learners.low_degree.polynomial import Solution
from sparsact.learners.low_degree.real_columns import CentredMoments
from sparsact.learners.low_degree.regressor import LowDegreeRegressor
from sparsact.learners.low_degree.solvers.solver import solvers
from sparsact.statistics.folds import deal
from sparsact.transaction import transaction

MAX_FOLDS: Final = 1 << 16  # sets of sums, each a few kilobytes as objects
Folds: TypeAlias = int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None


class LowDegreeRegressorCV(LowDegreeRegressor):
    """:class:`LowDegreeRegressor` whose degree and penalty are chosen by cross-validation.

    One pass over the rows makes one statistic for each fold. The rows outside a fold are the total minus the fold,
    exactly, so every (degree, alpha, fold) is a small linear system and no row is read again.

    Parameters
    ----------
    degrees : sequence of int or "auto", default="auto"
        Degrees to try; ``"auto"``: all degrees from 0 that time, memory and the number of rows allow.
    alphas : sequence of float or "auto", default="auto"
        Penalties to try; ``"auto"``: for ridge, 0 and the powers of ten from 0.1 to 10,000; for the lasso, 16 penalties
        from .0001 to .5 standard deviations of the targets.
    cv : int or iterable of (train, test) pairs or splitter, default=5
        Number of folds: of every ``cv`` consecutive rows one goes to each fold, in an order drawn from
        ``random_state``, so that a stream can be validated in one pass. Other splits must put each row into exactly
        one test fold, and serve ``fit`` only.
    random_state : int, default=0
        Seed of the folds.
    solver : {"auto", "cells", "moments", "kernel", "lasso"}, default="auto"
        As in :class:`LowDegreeRegressor`.
    fit_intercept, domain, min_degree, subsets, max_memory, n_jobs, verbose
        As in :class:`LowDegreeRegressor`.

    Attributes
    ----------
    degree_, alpha_ : int, float
        The choice: least mean squared error over the folds, as a share of each target's variance. Among degrees
        that are equal up to rounding the lowest, then among such penalties the largest.
    best_score_ : float
        Mean over folds of the held-out R2 of the choice.
    cv_results_ : dict of ndarrays
        ``degree``, ``alpha``, ``mean_mse``, ``std_mse``, ``mean_r2``, ``std_r2`` (n_candidates,) and ``fold_mse``,
        ``fold_r2`` (n_candidates, n_folds); several targets are averaged. Squared errors beyond float64 are inf.
    coefficients_, intercept_, subsets_, spectrum_, solver_, solver_reason_, r2_, residual_variance_, n_samples_seen_
        Attributes of the chosen model, fitted to all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsact import LowDegreeRegressorCV
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 6))
    >>> y = 3.0 * (X[:, 1] ^ X[:, 4])
    >>> LowDegreeRegressorCV().fit(X, y).degree_
    2
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degrees": ["array-like", AUTO],
        "alphas": ["array-like", AUTO],
        "cv": ["cv_object"],
        "random_state": [SIZE],
        "solver": [
            one_of("auto", *(name for name, one in solvers().items() if one.by_name and one.penalty != "correlation"))
        ],
        **{
            name: allowed
            for name, allowed in LowDegree._parameter_constraints.items()
            if name not in ("degree", "alpha", "solver")
        },
    }

    def __init__(
        self,
        degrees: Sequence[int] | str = "auto",
        alphas: Sequence[float] | str = "auto",
        cv: Folds = 5,
        solver: str = "auto",
        fit_intercept: bool = True,
        *,
        random_state: int = 0,
        domain: str = "auto",
        min_degree: int = 1,
        subsets: Sequence[Sequence[int]] | None = None,
        max_memory: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.degrees = degrees
        self.alphas = alphas
        self.cv = cv
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.domain = domain
        self.min_degree = min_degree
        self.subsets = subsets
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose

    _next_folds: NDArray[np.intp] | None = None  # of rows that come next, where they do not follow from their numbers

    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Fit to rows X (m, n) and targets y (m,) or (m, T), discarding an earlier fit."""
        self._next_folds = None if isinstance(self.cv, Integral) or self.cv is None else _test_folds(self.cv, X, y)
        super().fit(X, y, sample_weight)
        self._next_folds = None

    def _restart(self) -> None:
        super()._restart()
        self.rows_dealt_ = 0

    def _n_folds(self) -> int:
        if self.cv is not None and not isinstance(self.cv, Integral):
            if self._next_folds is not None:
                return int(self._next_folds.max()) + 1
            raise ValueError(
                "`cv` lists folds of given rows, which only fit can use; pass a number of folds to stream."
            )
        folds = 5 if self.cv is None else int(self.cv)
        if not 2 <= folds <= MAX_FOLDS:
            raise ValueError(f"cross-validation needs 2 to {MAX_FOLDS:,} folds; got cv={folds:,}.")
        return folds

    def _folds_of(self, n_rows: int, sign: int) -> NDArray[np.intp] | None:
        if sign < 0:
            raise ValueError(
                "the fold of a row is not stored, so the row cannot be forgotten; fit the other rows again."
            )
        first = getattr(self, "rows_dealt_", 0)
        self.rows_dealt_ = first + n_rows
        if self._next_folds is not None:
            return self._next_folds
        return deal(first, n_rows, self._n_folds(), self.random_state)

    def _before_merge(self, other: Self) -> None:
        self.rows_dealt_ = getattr(self, "rows_dealt_", 0) + getattr(other, "rows_dealt_", 0)
        super()._before_merge(other)

    def _chooses_degree(self) -> bool:
        return False  # by folds, when it is solved

    def _chooses_alpha(self) -> bool:
        return False

    def _all_degrees(self) -> bool:
        return isinstance(self.degrees, str)

    def _penalties(self) -> list[float] | None:
        """Penalties to try, ascending; None for ``"auto"``."""
        return None if isinstance(self.alphas, str) else sorted({float(alpha) for alpha in self.alphas})

    def _degrees_in_reach(self, n_rows: int) -> list[int]:
        seen = self.accumulator_
        return degrees_in_reach(seen.n, n_rows, seen.n_targets, self._spec(degree=0), real=seen.domain == "real")

    def _degrees_to_compare(self) -> list[int]:
        if not self._all_degrees():
            return sorted({int(degree) for degree in self.degrees})
        seen, spec = self.accumulator_, self._spec()
        found = enough_rows(self._degrees_in_reach(seen.n_rows), seen.n, seen.n_rows, spec, self._penalties() or ALPHAS)
        kept = [each.family for each in seen.statistics if isinstance(each, Moments | CentredMoments)]  # serve no other
        return [d for d in found if all(len(spec.with_degree(d).family(seen.n)) <= len(family) for family in kept)]

    def _largest_degree(self) -> int:
        """The largest degree that the sums must serve: of ``"auto"``, as many rows as have come allow it."""
        if (alphas := self._penalties()) is not None and not (alphas and alphas[0] >= 0):
            raise ValueError(_EMPTY)
        if self._all_degrees():
            return self._degrees_in_reach(self.rows_dealt_)[-1]
        degrees = [int(degree) for degree in self.degrees]
        if not degrees or min(degrees) < 0:
            raise ValueError(_EMPTY)
        return max(degrees)

    @property
    def _choice(self) -> CVSelection:
        choice: CVSelection = self._fitted.choice  # every solution of this class has one
        return choice

    @property
    def degree_(self) -> int:
        """The degree chosen."""
        return self._choice.degree

    @property
    def degree_reason_(self) -> str:
        """Reason for the choice of the degree, one sentence."""
        return f"least held-out error over degrees {np.unique(self.cv_results_['degree']).tolist()}."

    @property
    def alpha_(self) -> float:
        """The penalty chosen."""
        return self._choice.alpha

    @property
    def best_score_(self) -> float:
        """Mean over folds of the held-out R2 of the choice."""
        return self._choice.score

    @property
    def cv_results_(self) -> dict[str, NDArray[Any]]:
        """Held-out errors of every candidate."""
        return self._choice.results

    def _solve(self) -> Solution:
        spec = self._spec()
        seen = self.accumulator_.resolved(spec)
        if seen.n_rows < seen.n_folds:
            raise ValueError(
                f"cross-validation by {seen.n_folds} folds needs a row for each fold; got n_samples={seen.n_rows}. "
                "Pass more rows or a smaller cv."
            )
        for fold, statistic in enumerate(seen.statistics):
            if not statistic.n_rows:
                raise ValueError(f"fold {fold} holds no row of positive weight; pass a smaller cv, or different folds.")
        everything = seen.total()
        chosen = searched(seen, everything, spec, self._degrees_to_compare(), self._penalties())
        spec = spec.with_degree(chosen.degree)
        solution = self._solve_for(everything, spec, spec.penalty(chosen.alpha))
        solution.encoding = seen.encoding
        solution.choice = chosen
        return solution


_EMPTY: Final = "`degrees` and `alphas` need at least one value each, none negative."


def _test_folds(cv: Folds, X: ArrayLike, y: ArrayLike) -> NDArray[np.intp]:
    """The fold of each row, (m,)."""
    targets = np.asarray(y)
    folds = np.full(len(targets), -1, dtype=np.intp)
    for fold, (_, test) in enumerate(check_cv(cv).split(X, targets)):
        if (folds[test] >= 0).any():
            raise ValueError(
                "`cv` tests some rows twice; folds must not overlap, because each is taken from the total."
            )
        folds[test] = fold
    if folds.max() < 1:
        raise ValueError("cross-validation needs at least 2 folds; `cv` gives one.")
    if (folds < 0).any():
        raise ValueError("`cv` never tests some rows; folds must cover all rows, because the total is their sum.")
    return folds

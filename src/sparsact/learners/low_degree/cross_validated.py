"""LowDegreeRegressorCV: degree and penalty by cross-validation, by taking folds away from one statistic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval, StrOptions

from sparsact.learners.low_degree.choose import CVSelection, assign_folds, fold_scores, summary
from sparsact.learners.low_degree.estimator import LowDegree
from sparsact.learners.low_degree.polynomial import Penalty, Solution
from sparsact.learners.low_degree.regressor import LowDegreeRegressor
from sparsact.learners.low_degree.solvers.solver import solvers
from sparsact.transaction import transaction


class LowDegreeRegressorCV(LowDegreeRegressor):
    """:class:`LowDegreeRegressor` whose degree and penalty are chosen by cross-validation.

    One pass over the rows makes one statistic for each fold. The rows outside a fold are the total minus the fold,
    exactly, so every (degree, alpha, fold) is a small linear system and no row is read again.

    Parameters
    ----------
    degrees : sequence of int, default=(1, 2, 3)
        Degrees to try.
    alphas : sequence of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        Ridge penalties to try.
    cv : int or iterable of (train, test) pairs or splitter, default=5
        Number of folds: of every ``cv`` consecutive rows one goes to each fold, in an order drawn from
        ``random_state``, so that a stream can be validated in one pass. Other splits must put each row into exactly
        one test fold, and serve ``fit`` only.
    random_state : int, default=0
        Seed of the folds.
    solver : {"auto", "cells", "moments", "kernel"}, default="auto"
        As in :class:`LowDegreeRegressor`.
    fit_intercept, domain, min_degree, subsets, max_memory, n_jobs, verbose
        As in :class:`LowDegreeRegressor`.

    Attributes
    ----------
    degree_, alpha_ : int, float
        The choice: least mean squared error over the folds; of equals the lowest degree, then the largest alpha.
    best_score_ : float
        Mean over folds of the held-out R2 of the choice.
    cv_results_ : dict of ndarrays
        ``degree``, ``alpha``, ``mean_mse``, ``std_mse``, ``mean_r2``, ``std_r2`` (n_candidates,) and ``fold_mse``,
        ``fold_r2`` (n_candidates, n_folds); several targets are averaged. Squared errors beyond float64 are inf.
    coef_, intercept_, subsets_, spectrum_, solver_, solver_reason_, r2_, residual_variance_, n_samples_seen_
        Of the choice, fitted to all rows.

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
        "degrees": ["array-like"],
        "alphas": ["array-like"],
        "cv": ["cv_object"],
        "random_state": [Interval(Integral, 0, None, closed="left")],
        "solver": [
            StrOptions({"auto", *(name for name, one in solvers().items() if one.by_name and one.penalty == "ridge")})
        ],
        **{
            name: LowDegree._parameter_constraints[name]
            for name in ("fit_intercept", "domain", "min_degree", "subsets", "max_memory", "n_jobs", "verbose")
        },
    }

    def __init__(
        self,
        degrees: Sequence[int] = (1, 2, 3),
        alphas: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 100.0),
        cv: Any = 5,
        solver: str = "auto",
        fit_intercept: bool = True,
        *,
        random_state: int = 0,
        domain: str = "auto",
        min_degree: int = 1,
        subsets: Iterable[Iterable[int]] | None = None,
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

    _split: NDArray[np.intp] | None = None  # folds of the rows being fitted, when `cv` lists them

    _needs_row_numbers = True  # the fold of a row follows from them
    heredity = None  # not offered here: a selection inside folds would be a different estimator

    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Fit to rows X (m, n) and targets y (m,) or (m, T), forgetting what was seen before."""
        self._split = None if isinstance(self.cv, Integral) or self.cv is None else _test_folds(self.cv, X, y)
        super().fit(X, y, sample_weight)
        self._split = None

    def _restart(self) -> None:
        super()._restart()
        self.rows_dealt_ = 0

    def _n_folds(self) -> int:
        if self._split is not None:
            return int(self._split.max()) + 1
        if self.cv is not None and not isinstance(self.cv, Integral):
            raise ValueError(
                "`cv` lists folds of given rows, which only fit can use; pass a number of folds to stream."
            )
        folds = 5 if self.cv is None else int(self.cv)
        if folds < 2:
            raise ValueError(f"cross-validation needs at least 2 folds; got cv={folds}.")
        return folds

    def _folds_of(self, n_rows: int, sign: int) -> NDArray[np.intp] | None:
        if self._split is not None:
            return self._split
        if sign < 0:
            raise ValueError(
                "which fold a row went to is not kept, so it cannot be forgotten; fit the other rows again."
            )
        first = getattr(self, "rows_dealt_", 0)
        self.rows_dealt_ = first + n_rows
        return assign_folds(first, n_rows, self._n_folds(), self.random_state)

    @transaction
    def merge(self, other: Self) -> None:
        """Add the rows that another estimator of the same parameters has seen, each to the fold that it is in.

        Rows that come later are assigned as if those of both had come before. Where both assigned theirs from row 0,
        the folds are not those of one stream.
        """
        n_rows = getattr(self, "rows_dealt_", 0) + getattr(other, "rows_dealt_", 0)
        super().merge(other)
        self.rows_dealt_ = n_rows

    def _chooses_degree(self) -> bool:
        return False  # by folds, when it is solved

    def _largest_degree(self) -> int:
        degrees = [int(degree) for degree in self.degrees]
        if not degrees or min(degrees) < 0 or not len(self.alphas) or min(self.alphas) < 0:
            raise ValueError("`degrees` and `alphas` need at least one value each, none negative.")
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
        """One sentence: by what the degree was chosen."""
        return f"least held-out error over degrees {sorted({int(d) for d in self.degrees})}."

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
        degrees, alphas = sorted({int(d) for d in self.degrees}), sorted({float(a) for a in self.alphas})
        if seen.n_rows < seen.n_folds:
            raise ValueError(
                f"cross-validation by {seen.n_folds} folds needs as many rows; got n_samples={seen.n_rows}. "
                "Pass more rows or a smaller cv."
            )
        for fold, statistic in enumerate(seen.statistics):
            if not statistic.n_rows:
                raise ValueError(f"fold {fold} holds no row of positive weight; pass a smaller cv, or other folds.")
        everything = seen.total()
        exponent, least_squares = everything.target_exponent(), Penalty("ridge", 0.0, self.fit_intercept)
        of_size_one = seen.rescaled(exponent, least_squares.origin(everything, exponent))
        squared, variance = fold_scores(of_size_one, spec, degrees, alphas, fit_intercept=self.fit_intercept)
        results = summary(degrees, alphas, squared, variance)
        best = int(np.lexsort((-results["alpha"], results["degree"], results["mean_mse"]))[0])
        degree, alpha = int(results["degree"][best]), float(results["alpha"][best])
        solution = self._solve_for(everything, spec.with_degree(degree), Penalty("ridge", alpha, self.fit_intercept))
        solution.encoding = seen.encoding
        with np.errstate(over="ignore"):
            for name in ("mean_mse", "std_mse", "fold_mse"):
                results[name] = solution.unit * (solution.unit * results[name])
        solution.choice = CVSelection(degree, alpha, float(results["mean_r2"][best]), results)
        return solution


def _test_folds(cv: Any, X: ArrayLike, y: ArrayLike) -> NDArray[np.intp]:
    n_rows = len(np.asarray(X))
    folds = np.full(n_rows, -1, dtype=np.intp)
    for fold, (_, test) in enumerate(check_cv(cv).split(np.asarray(X), np.asarray(y))):
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

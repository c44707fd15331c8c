"""What the low-degree estimators share: validation, the additive statistic, and a solution found on demand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sparsact.fourier.estimate import Estimate
from sparsact.fourier.measure import DATA, Measure, checked_measure
from sparsact.kernels.dispatch import threads
from sparsact.learners.constraints import DOMAIN, N_JOBS, NONNEGATIVE, POSITIVE, SIZE, one_of
from sparsact.learners.low_degree.accumulator import Accumulator, FitSpec
from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.exact_statistic import ExactStatistic
from sparsact.learners.low_degree.fitted import FittedLowDegree
from sparsact.learners.low_degree.interpretation import variance_shares
from sparsact.learners.low_degree.polynomial import Penalty, Solution
from sparsact.learners.low_degree.real_columns import CentredMoments
from sparsact.learners.low_degree.solvers.solver import LowDegreeStatistic, choose_solver, solvers
from sparsact.learners.points import numeric_rows
from sparsact.statistics.exact_sum import LIMB_BITS
from sparsact.statistics.statistic import Batch
from sparsact.transaction import lock_of, transaction
from sparsact.validation.arrays import check_row_weights
from sparsact.validation.estimators import checked_sample_weight
from sparsact.validation.parameters import checked_option

MAX_TOTAL: Final = 1e200  # weight of all rows
_NO_STATISTIC: Final = "a model without its statistic cannot take in more rows; save it with statistic=True."


@dataclass(eq=False, repr=False)
class LowDegree(FittedLowDegree, BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    """Base of the low-degree estimators; see :class:`LowDegreeRegressor` for the parameters."""

    degree: int | str = 2
    alpha: float | str = 0.0
    solver: str = "auto"
    fit_intercept: bool = True
    _: KW_ONLY
    domain: str = "auto"
    min_degree: int = 1
    subsets: Sequence[Sequence[int]] | None = None
    max_memory: float | None = None
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [SIZE],
        "alpha": [NONNEGATIVE],
        "solver": [one_of("auto", *(name for name, solver in solvers().items() if solver.by_name))],
        "fit_intercept": ["boolean"],
        "domain": DOMAIN,
        "min_degree": [SIZE],
        "subsets": ["array-like", None],
        "max_memory": [POSITIVE, None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- rows in ----

    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Fit to rows X (m, n) and targets y (m,) or (m, T), discarding an earlier fit."""
        self._restart()
        self._partial_fit(X, y, sample_weight, reset=True, streamed=False)
        _ = self._fitted

    @transaction
    def remove(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Take away rows that were fitted before, as if they had never been seen."""
        check_is_fitted(self)
        self._partial_fit(X, y, sample_weight, reset=False, sign=-1)

    def _partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        *,
        reset: bool,
        sign: int = 1,
        streamed: bool = True,
        **options: ArrayLike | None,
    ) -> None:
        """Add or remove rows; a batch of a stream may be all weight zero, the rows of one fit may not."""
        rows, targets = self._validated(X, y, reset=reset, **options)
        weights = None
        if sample_weight is not None:
            weights = checked_sample_weight(sample_weight, rows, allow_all_zero_weights=streamed)
            check_row_weights(weights)
            _check_products(weights, targets)
        if not streamed:
            self._choose_degree(Batch(rows, targets, weights))
        n_folds = self._n_folds()
        if not self._begun():
            self.accumulator_ = Accumulator(rows.shape[1], targets.shape[1], n_folds)
        found = self.accumulator_.recognized(rows, self.domain, getattr(self, "feature_names_in_", None))
        batch = Batch(found, targets, weights, self._folds_of(len(targets), sign) if n_folds > 1 else None)
        self.accumulator_.change(self._spec(), batch, sign)
        self._solution = None

    @abstractmethod
    def _validated(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Checked rows (m, n) and what is regressed on them (m, T)."""

    def _choose_degree(self, batch: Batch) -> None:
        """Choose what the parameters leave to the rows of a fit."""

    def _fork(self) -> Callable[[bool], None]:
        """What a twin would change in place becomes its own; see :func:`sparsact.transaction.transaction`."""
        if self._begun():
            self.accumulator_ = self.accumulator_.fork()
        return lambda kept: None

    def _n_folds(self) -> int:
        return 1

    def _folds_of(self, n_rows: int, sign: int) -> NDArray[np.intp] | None:
        return None

    def _restart(self) -> None:
        self._solution = None
        for name in ("accumulator_", "_automatic"):
            self.__dict__.pop(name, None)

    def _begun(self) -> bool:
        return "accumulator_" in self.__dict__

    def _checked_with_targets(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool, **checks: bool
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Parameters, X and y as scikit-learn checks them."""
        if not self._begun() and self._solution is not None:
            raise ValueError(_NO_STATISTIC)
        self._validate_params()
        finite = self.domain != "cube"  # there, packing names the column and the row of a NaN
        checked: tuple[NDArray[Any], NDArray[Any]] = numeric_rows(
            self, X, y, reset=reset, ensure_all_finite=finite, **checks
        )
        return checked

    def _spec(self, degree: int | None = None) -> FitSpec:
        return FitSpec(
            self._largest_degree() if degree is None else degree,
            self.min_degree,
            self.subsets,
            self.solver,
            self.fit_intercept,
            None if self.max_memory is None else float(self.max_memory),
            threads(self.n_jobs),
        )

    def _largest_degree(self) -> int:
        return int(self.degree)

    @transaction
    def merge(self, other: Self) -> None:
        """Add the rows that another estimator of the same parameters has seen; the same bits as one fit of all rows.

        Rows stay in the folds that they are in, and later ones are assigned as if the rows of both had come before.

        Raises
        ------
        ValueError
            If the two have seen rows of different width, targets or encoding, or have chosen different degrees.
        """
        check_is_fitted(other)
        if not other._begun() or (not self._begun() and self._solution is not None):
            raise ValueError(_NO_STATISTIC)
        self._before_merge(other)
        for name in ("feature_names_in_", "classes_"):
            mine, theirs = np.asarray(getattr(self, name, None)), np.asarray(getattr(other, name, None))
            if self._begun() and not np.array_equal(mine, theirs):
                raise ValueError(f"cannot merge: the two have different {name}; fit both with the same {name}.")
        if not self._begun():
            self.n_features_in_ = other.n_features_in_
            seen = other.accumulator_
            self.accumulator_ = Accumulator(seen.n, seen.n_targets, seen.n_folds)
            for name in ("feature_names_in_", "classes_", "_single_target", "_automatic"):
                if hasattr(other, name):
                    setattr(self, name, getattr(other, name))
        self.accumulator_.merge(self._spec(), other.accumulator_)
        self._solution = None

    def _before_merge(self, other: Self) -> None:
        """Check that what the two have chosen is the same, and take over what no sum holds."""

    # ---- solution out ----

    @property
    def degree_(self) -> int:
        """Largest size of an interaction in the model."""
        check_is_fitted(self)
        return self._largest_degree()

    @property
    def alpha_(self) -> float:
        """The penalty."""
        check_is_fitted(self)
        return float(self.alpha)

    @property
    def frequencies_(self) -> NDArray[np.float64]:
        """How often each column is bit 1 (sign -1), by weight of the rows, (n_features,): the measure ``"data"``."""
        if (found := self._fitted.frequencies) is None:
            raise ValueError("frequencies of the columns were not kept, or they are real; pass probabilities instead.")
        return found.copy()

    def variance_shares(self, measure: Measure = DATA, by: str = "degree") -> Estimate:
        """Shares of the variance under a product measure, by degree from 1 or by column, with standard errors.

        Parameters
        ----------
        measure : {"data", "uniform"}, float or array-like of shape (n,), default="data"
            Probabilities of bit 1, independent of each other; ``"data"``: :attr:`frequencies_`.
        by : {"degree", "column"}, default="degree"
            Shares of degrees add up to 1; the share of a column counts all products that contain it.

        Returns
        -------
        shares : Estimate
            Values and standard errors (r,), or (T, r) for several functions; see its ``interval``.

        Raises
        ------
        ValueError
            If the rows do not determine all coefficients, or the model has no covariance of them.

        Notes
        -----
        What noise adds to squares is subtracted, so small shares may be below 0. Errors are given rows and measure;
        with a penalty, of the shrunken function. They are too small where the same rows chose the products, since
        these miss weak ones. The cost is two products of D x D matrices.

        Examples
        --------
        >>> from sparsact import LowDegreeRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = (rng.random((2000, 8)) < 0.2).astype(int)
        >>> y = X[:, 0] + 3 * X[:, 1] * X[:, 2] + rng.normal(0, 0.1, 2000)
        >>> LowDegreeRegressor(2).fit(X, y).variance_shares(0.2).value.round(2)
        array([0.55, 0.45])
        """
        checked_option(by, "`by`", ("degree", "column"))
        solution = self._fitted
        if solution.encoding is None:
            raise ValueError('real columns have no measure on the cube; fit signs or bits with domain="cube".')
        p = checked_measure(measure, self.n_features_in_, self)
        values, errors = variance_shares(solution, p, by)
        return Estimate(self._squeezed(values), self._squeezed(errors), solution.n_rows)

    def __sklearn_is_fitted__(self) -> bool:
        return self._begun() or self._solution is not None

    @property
    def _fitted(self) -> Solution:
        if (solution := self._solution) is None:
            check_is_fitted(self)
            with lock_of(self):
                if (solution := self._solution) is None:
                    self._solution = solution = self._solve()
                    if self.verbose:
                        print(f"{type(self).__name__}: {solution.solver}: {solution.reason}")
        return solution

    def _solve(self) -> Solution:
        spec = self._spec()
        seen = self.accumulator_.resolved(spec)
        solution = self._solve_for(seen.statistics[0], spec, spec.penalty(self.alpha_))
        solution.encoding = seen.encoding
        return solution

    def _solve_for(self, statistic: LowDegreeStatistic, spec: FitSpec, penalty: Penalty) -> Solution:
        if not statistic.n_rows:
            raise ValueError("no row of positive weight was fitted; fit some rows.")
        weight = statistic.weight
        if not weight < MAX_TOTAL:
            raise ValueError(
                f"the total weight, {weight:.1e} over {statistic.n_rows:.1e} rows, leaves no room for sums of "
                f"squares; keep it below {MAX_TOTAL:.0e}: scale the weights down."
            )
        try:
            exponent = statistic.target_exponent()
            unit = 2.0 ** (LIMB_BITS * exponent)
            origin = penalty.origin(statistic, exponent)
            found = self._solve_rescaled(statistic.rescaled(exponent, origin), spec, penalty.over(unit))
        except OverflowError as error:  # no rows can do that, but a file that was made up may say so
            raise ValueError(f"the sums of targets are beyond any float ({error}); fit the rows again.") from error
        if isinstance(statistic, ExactStatistic):  # points of the cube
            found.first_alike, found.frequencies = statistic.first_alike(), statistic.frequencies()
        return found.undo_scaling(unit, origin, penalty)

    def _solve_rescaled(self, statistic: LowDegreeStatistic, spec: FitSpec, penalty: Penalty) -> Solution:
        """The solution of a statistic whose targets have size one, and mean zero if there is an intercept."""
        n_rows = statistic.n_rows
        if isinstance(statistic, DistinctPoints) and spec.solver == "kernel":
            statistic.deduplicate()
            n_rows = statistic.n_points
        size = spec.size(statistic.n, n_rows, statistic.n_targets, statistic.kind)
        plan = choose_solver(spec.solver, size, spec.max_memory)
        family = spec.family(statistic.n)
        if isinstance(statistic, CentredMoments) and self.fit_intercept:
            statistic.check_kept(family)
        return plan.solver.solve(statistic, family, penalty, plan, n_threads=spec.n_threads)


def _check_products(weights: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Refuse rows whose target times weight overflows, or loses digits near the smallest floats."""
    with np.errstate(over="ignore", under="ignore"):
        products = weights[:, None] * y
    normal = np.abs(products) >= np.finfo(float).tiny
    back = np.divide(products, weights[:, None], where=weights[:, None] > 0, out=y.copy())
    lost = ~np.isfinite(products) | (~normal & (back != y))
    if lost.any():
        row, target = (int(i) for i in np.argwhere(lost)[0])
        raise ValueError(
            f"row {row} has weight {weights[row]:g} and target {y[row, target]:g}, whose product is beyond float64; "
            "scale the weights or the targets."
        )

"""What the low-degree estimators share: the door, the additive statistic, and the solution that is found on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsact.kernels.dispatch import threads
from sparsact.learners.low_degree.fitted import FittedLowDegree
from sparsact.learners.low_degree.heredity import select
from sparsact.learners.low_degree.normal_equations import normal_equations
from sparsact.learners.low_degree.plan import available_memory, plan
from sparsact.learners.low_degree.real import RealStatistic
from sparsact.learners.low_degree.rows import DistinctPoints
from sparsact.learners.low_degree.solve import Penalty, Solution, from_equations, solve
from sparsact.learners.low_degree.stream import Batch, Request, Stream
from sparsact.learners.points import kernel_dtype
from sparsact.statistics.exact_sum import LIMB_BITS
from sparsact.transaction import lock_of, transaction
from sparsact.validation.arrays import check_row_weights
from sparsact.validation.estimators import checked_rows, checked_sample_weight
from sparsact.validation.former_names import renamed_attributes

MOST_TOTAL = 1e200  # weight of all rows
_NO_STATISTIC = "a model without its statistic cannot take in more rows; save it with statistic=True."


@renamed_attributes(forget="remove")
class LowDegree(FittedLowDegree, BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    """Base of the low-degree estimators; see :class:`LowDegreeRegressor` for the parameters."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 0, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"auto", "cells", "moments", "kernel", "correlation", "lasso"})],
        "fit_intercept": ["boolean"],
        "domain": [StrOptions({"auto", "cube", "real"})],
        "min_degree": [Interval(Integral, 0, None, closed="left")],
        "subsets": ["array-like", None],
        "heredity": [StrOptions({"strong", "weak"}), None],
        "max_memory": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        degree: Any = 2,
        alpha: float = 0.0,
        solver: str = "auto",
        fit_intercept: bool = True,
        *,
        domain: str = "auto",
        min_degree: int = 1,
        subsets: Iterable[Iterable[int]] | None = None,
        heredity: str | None = None,
        max_memory: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.alpha = alpha
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.domain = domain
        self.min_degree = min_degree
        self.subsets = subsets
        self.heredity = heredity
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---- rows in ----

    def _fork(self) -> Callable[[bool], None]:
        """What a twin would change in place becomes its own; see :func:`sparsact.transaction.transaction`."""
        if self._begun():
            self.stream_ = self.stream_.fork()
        return lambda kept: None

    def _see(
        self,
        X: NDArray[Any],
        y: NDArray[np.float64],
        sample_weight: ArrayLike | None,
        *,
        sign: int = 1,
        streamed: bool = True,
    ) -> None:
        """Add validated rows to the statistic, (m, n) and (m, T); rows of weight zero are left out.

        A batch of a stream may be all weight zero, the rows of one fit may not.
        """
        weights = None
        if sample_weight is not None:
            weights = checked_sample_weight(sample_weight, X, allow_all_zero_weights=streamed)
            check_row_weights(weights)
            _check_products(weights, y)
        if "stream_" not in self.__dict__:
            self.stream_ = Stream(X.shape[1], y.shape[1], self._n_folds())
        batch = Batch(y, weights, self._folds_of(len(y), sign) if self._n_folds() > 1 else None, sign)
        self.stream_.add(self._request(), X, batch, getattr(self, "feature_names_in_", None))
        self.__dict__.pop("_solution", None)

    def _n_folds(self) -> int:
        return 1

    def _folds_of(self, n_rows: int, sign: int) -> NDArray[np.intp] | None:
        return None

    def _restart(self) -> None:
        for name in ("stream_", "_solution", "_automatic"):
            self.__dict__.pop(name, None)

    def _begun(self) -> bool:
        return "stream_" in self.__dict__

    def _checked_with_targets(
        self, X: ArrayLike, y: ArrayLike, *, reset: bool, **checks: bool
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Parameters, X and y as scikit-learn checks them."""
        if "stream_" not in self.__dict__ and "_solution" in self.__dict__:
            raise ValueError(_NO_STATISTIC)
        self._validate_params()
        finite = self.domain != "cube"  # there, packing names the column and the row of a NaN
        rows, targets = checked_rows(self, X, y, reset=reset, dtype="numeric", ensure_all_finite=finite, **checks)
        return kernel_dtype(rows), targets

    def _request(self, degree: int | None = None) -> Request:
        limit = available_memory() if self.max_memory is None else float(self.max_memory)
        solver = self.solver if self.solver in ("cells", "moments", "kernel") else "auto"
        return Request(
            self._largest_degree() if degree is None else degree,
            self.min_degree,
            self.subsets,
            solver,
            self.domain,
            limit,
            threads(self.n_jobs),
        )

    def _largest_degree(self) -> int:
        return int(self.degree)

    @transaction
    def merge(self, other: Self) -> None:
        """Add the rows that another estimator of the same parameters has seen; the same bits as one fit of all rows.

        Raises
        ------
        ValueError
            If the two have seen rows of different width, targets or encoding.
        """
        check_is_fitted(other)
        if not other._begun() or (not self._begun() and "_solution" in self.__dict__):
            raise ValueError(_NO_STATISTIC)
        for name in ("feature_names_in_", "classes_"):
            mine, theirs = np.asarray(getattr(self, name, None)), np.asarray(getattr(other, name, None))
            if self._begun() and not np.array_equal(mine, theirs):
                raise ValueError(f"cannot merge: the two were fitted with different {name}; fit both alike.")
        if not self._begun():
            self.n_features_in_ = other.n_features_in_
            self.stream_ = Stream(other.stream_.n, other.stream_.n_targets, other.stream_.n_folds)
            self._adopt(other)
        self.stream_.merge(self._request(), other.stream_)
        self.__dict__.pop("_solution", None)

    def _adopt(self, other: Self) -> None:
        """Take over what the first rows would have told."""
        for name in ("feature_names_in_", "classes_", "_single_target", "_automatic"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    # ---- solution out ----

    @property
    def degree_(self) -> int:
        """Largest size of an interaction in the model."""
        check_is_fitted(self)
        return self._largest_degree()

    def __sklearn_is_fitted__(self) -> bool:
        return self._begun() or "_solution" in self.__dict__

    @property
    def _fitted(self) -> Solution:
        solution: Solution | None = self.__dict__.get("_solution")
        if solution is None:
            check_is_fitted(self)
            with lock_of(self):
                if "_solution" not in self.__dict__:
                    self._solution = self._solve()
                    if self.verbose:
                        print(f"{type(self).__name__}: {self._solution.solver}: {self._solution.reason}")
                solution = self._solution
        return solution

    def _solve(self) -> Solution:
        request = self._request()
        stream = self.stream_.settled(request)
        solution = self._solve_for(stream.statistics[0], request, self._penalty())
        solution.encoding = stream.encoding
        return solution

    def _penalty(self) -> Penalty:
        kind = self.solver if self.solver in ("lasso", "correlation") else "ridge"
        return Penalty(kind, float(self.alpha), self.fit_intercept)

    def _solve_for(self, statistic: Any, request: Request, penalty: Penalty) -> Solution:
        if not statistic.n_rows:
            raise ValueError("no row of positive weight has been seen; fit some.")
        weight = statistic.weight
        if not weight < MOST_TOTAL:
            raise ValueError(
                f"the total weight, {weight:.1e} over {statistic.n_rows:.1e} rows, leaves no room for sums of "
                f"squares; keep it below {MOST_TOTAL:.0e}: scale the weights down."
            )
        try:
            place = statistic.place()
            unit = 2.0 ** (LIMB_BITS * place)
            origin = penalty.origin(statistic, place)
            found = self._in_unit(statistic.in_unit(place, origin), request, penalty.over(unit))
        except OverflowError as error:  # no rows can do that, but a file that was made up may say so
            raise ValueError(f"the sums of targets are beyond any float ({error}); fit the rows again.") from error
        return found.of_targets(unit, origin, penalty)

    def _in_unit(self, statistic: Any, request: Request, penalty: Penalty) -> Solution:
        """The solution of a statistic whose targets are of size one, and about their mean if there is an intercept."""
        if isinstance(statistic, RealStatistic):
            if penalty.kind == "correlation":
                raise ValueError(
                    'solver="correlation" needs points of the cube, and `X` holds real columns: pass bits or signs, or '
                    'solver="auto".'
                )
            size = request.size(statistic.family.n, statistic.n_rows, statistic.n_targets)
            route = plan(size, "dense", request.max_memory)
            family = statistic.family.leading(request.family(size.n))
            equations = statistic.normal_equations(fit_intercept=self.fit_intercept).part(slice(len(family)))
        else:
            n_rows = statistic.n_rows
            if request.solver == "kernel" and isinstance(statistic, DistinctPoints):
                n_rows = statistic.n_points  # distinct ones: the statistic is joined, as it is in a unit
            size = request.size(statistic.n, n_rows, statistic.n_targets)
            written = self.heredity is not None or penalty.kind == "lasso"
            route = plan(size, request.solver, request.max_memory, written=written, rows_kept=statistic.holds_points)
            family = request.family(statistic.n)
            if self.heredity is None:
                return solve(statistic, family, route, penalty, n_threads=request.n_threads)
            equations = normal_equations(
                statistic, family, fit_intercept=self.fit_intercept, n_threads=request.n_threads
            )
        if self.heredity is not None:
            chosen = select(equations, family, self.heredity)
            family, equations = family.part(chosen), equations.part(chosen)
        return from_equations(equations, family, route, penalty)


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

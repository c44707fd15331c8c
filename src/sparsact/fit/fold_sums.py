"""What a pass over a table sums up: for each fold a low-degree statistic, and a sample of the rows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsact.datasets.columns import Classes, Real
from sparsact.datasets.extrapolation import DesignSums
from sparsact.fit.folds import out_of_fold
from sparsact.learners import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.low_degree.accumulator import Accumulator
from sparsact.learners.predictor import predictor
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix
from sparsact.statistics.folds import assign_folds, mixed

MAX_HELD_OUT: Final = 5000  # rows whose held-out predictions are kept for the figures
_OTHER_SEED: Final = 1 << 62  # folds are drawn from the numbers of rows too


class RowSample:
    """Rows of a table drawn at random, or all where they are few: those whose numbers have the smallest hashes.

    They depend on the seed and the numbers of rows alone, not on batches or on who has read which of them.
    """

    def __init__(self, most: int, n_folds: int, seed: int) -> None:
        self.most, self.n_folds, self.seed, self.n_passed = most, n_folds, seed, 0
        self._parts: list[tuple[NDArray[Any], ...]] = []  # X, y, fold, number, weight, hash
        self._below = np.iinfo(np.uint64).max  # hashes of other rows are no longer among the smallest

    def empty(self) -> RowSample:
        """A sample of no rows."""
        return RowSample(self.most, self.n_folds, self.seed)

    @property
    def is_complete(self) -> bool:
        """Whether no row was left out."""
        return self.n_passed <= self.most

    def add(
        self,
        X: NDArray[Any],
        y: NDArray[np.float64],
        first: int,
        folds: NDArray[np.intp] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        """The rows of the table from number ``first`` on; folds follow from the numbers unless they are given."""
        self.n_passed += len(X)
        numbers = np.arange(first, first + len(X), dtype=np.uint64)
        hashes = mixed(numbers, self.seed + _OTHER_SEED)
        kept = hashes <= self._below
        if folds is None:
            folds = assign_folds(first, len(X), self.n_folds, self.seed)
        weights = np.ones(len(X)) if weights is None else weights
        self._append(X[kept], y[kept], folds[kept], numbers[kept], weights[kept], hashes[kept])

    def _append(self, *part: NDArray[Any]) -> None:
        self._parts.append(part)
        if sum(len(each[0]) for each in self._parts) > 2 * self.most:
            self._parts = [self._smallest()]

    def _smallest(self) -> tuple[NDArray[Any], ...]:
        parts = tuple(np.concatenate(each) for each in zip(*self._parts, strict=True))
        if len(parts[-1]) > self.most:
            self._below = np.partition(parts[-1], self.most - 1)[self.most - 1]
            parts = tuple(part[parts[-1] <= self._below] for part in parts)
        order = parts[3].argsort(kind="stable")
        return tuple(part[order] for part in parts)

    def rows(self) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.intp]]:
        """X, y and the folds of the rows, in the order of the table."""
        self._parts = [self._smallest()]
        X, y, folds, *_ = self._parts[0]
        return X, y, folds

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of :meth:`rows`."""
        self._parts = [self._smallest()]
        return self._parts[0][4]

    def smallest(self, most: int) -> NDArray[np.intp]:
        """Places in :meth:`rows` of at most ``most`` rows, in their order: a sample of the sample."""
        self._parts = [self._smallest()]
        hashes = self._parts[0][-1]
        return np.sort(hashes.argsort(kind="stable")[:most])

    def at_most(self, most: int) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.intp]]:
        """X, y and folds of the rows of :meth:`smallest`."""
        places = self.smallest(most)
        X, y, folds = self.rows()
        return X[places], y[places], folds[places]

    def merge(self, other: RowSample) -> None:
        """Add what another has drawn from other rows of the table."""
        self.n_passed += other.n_passed
        for part in other._parts:
            self._append(*part)

    def state(self, arrays: Arrays) -> State:
        """The state of the draw; its rows are added to ``arrays``."""
        if self._parts:
            self._parts = [self._smallest()]
            arrays |= {f"sample.{name}": part for name, part in zip(_NAMES, self._parts[0], strict=True)}
        return {"passed": self.n_passed}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore the draw from a saved state."""
        self.n_passed = int(state["passed"])
        self._parts = [tuple(arrays[f"sample.{name}"] for name in _NAMES)] if "sample.X" in arrays else []


_NAMES: Final = ("X", "y", "folds", "numbers", "weights", "hashes")


@dataclass
class FoldSums:
    """A low-degree statistic for each fold, a sample of the rows, their design, and the range of each target."""

    target: Real | Classes
    search: LowDegreeRegressorCV
    sample: RowSample
    design: DesignSums
    low: NDArray[np.float64] = field(default_factory=lambda: np.array(np.inf))
    high: NDArray[np.float64] = field(default_factory=lambda: np.array(-np.inf))

    @property
    def n_rows(self) -> int:
        """Rows summed."""
        return int(self.search.n_samples_seen_) if self.search._begun() else 0

    def empty(self) -> FoldSums:
        """The same without rows."""
        return FoldSums(self.target, clone(self.search), self.sample.empty(), self.design.empty())

    def add(
        self,
        X: NDArray[Any],
        y: NDArray[np.float64],
        folds: NDArray[np.intp] | None,
        weights: NDArray[np.float64] | None,
        first: int,
    ) -> None:
        """The rows of the table from number ``first`` on."""
        self.search.rows_dealt_, self.search._next_folds = first, folds
        self.search.partial_fit(X, as_numbers(self.target, y), weights)
        self.sample.add(X, y, first, folds, weights)
        self.design.add(X)
        self.low, self.high = np.minimum(self.low, y.min(axis=0)), np.maximum(self.high, y.max(axis=0))

    def merge(self, other: FoldSums) -> None:
        """Add the rows of other sums."""
        if other.n_rows:
            self.search.merge(other.search)
            self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.sample.merge(other.sample)
        self.design.merge(other.design)

    def state(self, arrays: Arrays) -> State:
        """The state as JSON holds it; arrays are added to ``arrays``."""
        of_search: Arrays = {}
        state = {"search": self.search._state(of_search), "sample": self.sample.state(arrays)}
        arrays |= add_prefix("search", of_search) | {"low": np.atleast_1d(self.low), "high": np.atleast_1d(self.high)}
        arrays |= self.design.arrays()
        return state

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore the sums from a saved state."""
        self.search._restore(state["search"], strip_prefix("search", arrays))
        self.sample.restore(state["sample"], arrays)
        self.design.restore(arrays)
        self.low, self.high = arrays["low"], arrays["high"]

    def by_lasso(self) -> FoldSums:
        """The same sums, with terms chosen by the lasso."""
        search = copy(self.search).set_params(solver="lasso")
        search.__dict__.pop("_solution", None)
        return replace(self, search=search)

    def models(self, degree: int, alpha: float, domain: str) -> FoldModels:
        """Polynomials of a degree and penalty."""
        kind = LowDegreeClassifier if isinstance(self.target, Classes) else LowDegreeRegressor
        return FoldModels(self, kind(degree=degree, alpha=alpha, solver=self.search.solver, domain=domain))


class FoldModels:
    """Polynomials of one degree and penalty: of all rows, and of those outside a fold."""

    def __init__(self, sums: FoldSums, estimator: LowDegreeRegressor | LowDegreeClassifier) -> None:
        search, self.estimator = sums.search, estimator
        self.seen = search.accumulator_.resolved(search._spec())
        estimator.n_features_in_ = search.n_features_in_
        if isinstance(sums.target, Classes):
            estimator.classes_ = sums.target.labels
        else:
            estimator._single_target = search._single_target
        self.whole = self._model(self.seen.total())

    def _model(self, statistic: Any) -> LowDegreeRegressor | LowDegreeClassifier:
        seen, model = self.seen, copy(self.estimator)
        statistic = statistic.restricted(model._spec().family(seen.n))
        model.accumulator_ = Accumulator(seen.n, seen.n_targets, 1, seen.domain, seen.encoding, [statistic])
        return model

    def held_out(self, X: NDArray[Any], folds: NDArray[np.intp]) -> NDArray[np.float64]:
        """Values for some rows, each by the polynomial of the folds that it is not in."""
        return out_of_fold(folds, lambda fold, rows: predictor(self._without(fold)).values(X[rows]))

    def _without(self, fold: int) -> LowDegreeRegressor | LowDegreeClassifier:
        """The polynomial of the rows outside of a fold."""
        others = self.whole.accumulator_.statistics[0].copy()
        others.merge(self.seen.statistics[fold].restricted(self.estimator._spec().family(self.seen.n)), -1)
        return self._model(others)


@dataclass(frozen=True)
class Prediction:
    """Held-out rows: the table's answers (rows, targets) and the model's values (rows, functions), if it was asked."""

    actual: NDArray[np.float64]
    predicted: NDArray[np.float64] | None


def as_numbers(target: Real | Classes, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Targets of a regression as LowDegreeClassifier makes them: of two classes a sign, of more one indicator each."""
    if isinstance(target, Real):
        return y
    if len(target.values) == 2:
        return 2.0 * y - 1.0
    return np.equal(y[:, None], np.arange(len(target.values))).astype(np.float64)


def add_batch(model: Any, target: Real | Classes, X: NDArray[Any], y: NDArray[np.float64]) -> None:
    """Fit a model to more rows; class numbers as labels."""
    if isinstance(target, Classes):
        model.partial_fit(X, target.labels[y.astype(np.intp)], classes=target.labels)
    else:
        model.partial_fit(X, y)

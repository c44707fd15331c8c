"""What a pass over a table sums up: for each fold a low-degree statistic, and a sample of the rows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsact.datasets.columns import Classes, Encoding, LogReal, Real
from sparsact.datasets.extrapolation import DesignSums
from sparsact.learners import LowDegreeClassifier, LowDegreeRegressor
from sparsact.learners.low_degree.accumulator import Accumulator
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix
from sparsact.statistics.sample import RowSample as RowSample
from sparsact.statistics.statistic import Batch

MAX_HELD_OUT: Final = 5000  # rows whose held-out predictions are kept for the figures


@dataclass
class FoldSums:
    """A low-degree statistic for each fold, a sample of the rows, their design, and the range of each target."""

    target: Real | Classes
    search: Any  # a LowDegreeRegressorCV
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

    def add(self, batch: Batch) -> None:
        """Add rows of the table."""
        X, y = batch.X, batch.y
        self.search.rows_dealt_, self.search._next_folds = batch.first_row, batch.folds
        self.search.partial_fit(X, as_numbers(self.target, y), batch.weights)
        self.sample.add(batch)
        self.design.add(X)
        self.low, self.high = np.minimum(self.low, y.min(axis=0)), np.maximum(self.high, y.max(axis=0))

    def merge(self, other: FoldSums) -> None:
        """Add the rows of other sums."""
        if other.n_rows:
            self.search.merge(other.search)
            self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.sample.merge(other.sample)
        self.design.merge(other.design)

    def state(self) -> tuple[State, Arrays]:
        """Return the sums as JSON and arrays."""
        of_search: Arrays = {}
        sample, arrays = self.sample.state()
        state = {"search": self.search._state(of_search), "sample": sample}
        arrays |= add_prefix("search", of_search) | {"low": np.atleast_1d(self.low), "high": np.atleast_1d(self.high)}
        return state, arrays | self.design.arrays()

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

    def __init__(self, sums: FoldSums, estimator: Any) -> None:
        search, self.estimator = sums.search, estimator
        self.seen = search.accumulator_.resolved(search._spec())
        estimator.n_features_in_ = search.n_features_in_
        if isinstance(sums.target, Classes):
            estimator.classes_ = sums.target.labels
        else:
            estimator._single_target = search._single_target
        self.whole = self._model(self.seen.total())

    def _model(self, statistic: Any) -> Any:
        seen, model = self.seen, copy(self.estimator)
        statistic = statistic.restricted(model._spec().family(seen.n))
        model.accumulator_ = Accumulator(seen.n, seen.n_targets, 1, seen.domain, seen.encoding, [statistic])
        return model

    def held_out(self, X: NDArray[Any], folds: NDArray[np.intp]) -> NDArray[np.float64]:
        """Values for some rows, each by the polynomial of the folds that it is not in."""
        pieces = []
        for fold, statistic in enumerate(self.seen.statistics):
            others = self.whole.accumulator_.statistics[0].copy()
            others.merge(statistic.restricted(self.estimator._spec().family(self.seen.n)), -1)
            pieces.append(values(self._model(others), X[folds == fold]))
        found = np.empty((len(X), pieces[0].shape[1]))
        for fold, piece in enumerate(pieces):
            found[folds == fold] = piece
        return found


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


def values(model: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """Values of the fitted functions, (m, functions): targets, or what a classifier compares."""
    if not len(X):
        return np.empty((0, _n_functions(model)))
    if hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        shares = np.asarray(model.predict_proba(X))
        return shares[:, 1:] - shares[:, :1] if shares.shape[1] == 2 else shares
    value = model.decision_function if hasattr(model, "decision_function") else model.predict
    return np.asarray(value(X), dtype=np.float64).reshape(len(X), -1)


def inputs(model: Any, encoding: Encoding, X: NDArray[Any]) -> NDArray[Any]:
    """Encoded rows as a model takes them: as letters, if it is a model of letters."""
    return encoding.letters(X) if hasattr(model, "letters_") else X


def _n_functions(model: Any) -> int:
    if hasattr(model, "intercept_"):
        return len(np.atleast_1d(model.intercept_))
    if not hasattr(model, "table_"):  # networks, one for each of several classes, Gaussian processes, and ensembles
        return len(getattr(model, "estimators_", [model]))
    n_targets = int(model.table_.layout.n_targets)
    return 1 if hasattr(model, "classes_") and n_targets == 2 else n_targets


def answers(model: Any, encoding: Encoding, X: NDArray[Any]) -> NDArray[Any]:
    """Predictions for encoded rows: numbers, (m,) or (m, targets), or names of classes."""
    found = brought_back(encoding, values(model, inputs(model, encoding, X)))
    target = encoding.targets[0]
    if isinstance(target, Classes):
        return target.named[class_numbers(found)]
    return found[:, 0] if len(encoding.targets) == 1 else found


def brought_back(encoding: Encoding, found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Targets (m, targets) as the table has them: logarithms that were learned are undone."""
    logs = [isinstance(target, LogReal) for target in encoding.targets]
    with np.errstate(over="ignore"):
        return np.where(logs, np.exp(found), found) if any(logs) else found


def class_numbers(function_values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Class that a classifier's values name, as its place among the classes."""
    if function_values.shape[1] == 1:
        return (function_values[:, 0] > 0).astype(np.intp)
    return np.asarray(function_values.argmax(axis=1))

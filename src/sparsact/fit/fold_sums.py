"""What a pass over a table sums up: for each fold a low-degree statistic, and a sample of the rows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsact.datasets.columns import Classes, Real
from sparsact.datasets.unseen_rows import DesignSums
from sparsact.fit.scores import Selected
from sparsact.learners import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.low_degree.accumulator import Accumulator
from sparsact.learners.low_degree.solvers.solver import LowDegreeStatistic
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix
from sparsact.statistics.row_sample import RowSample
from sparsact.statistics.statistic import Batch

MAX_BITS: Final = 1 << 29  # of a sample of packed rows: half a gigabyte where a model takes a byte for each
MAX_HELD_OUT: Final = 5000  # rows whose held-out predictions are kept for the figures


@dataclass
class FoldSums:
    """A low-degree statistic for each fold, a sample of the rows, their design, and the range of each target.

    ``packed`` is a larger sample, which has the rows of the other, with eight columns of bits a byte; it holds none
    where no model takes more rows.
    """

    target: Real | Classes
    search: LowDegreeRegressorCV
    sample: RowSample
    packed: RowSample
    design: DesignSums
    low: NDArray[np.float64] = field(default_factory=lambda: np.array(np.inf))
    high: NDArray[np.float64] = field(default_factory=lambda: np.array(-np.inf))

    @property
    def n_rows(self) -> int:
        """Rows summed."""
        return int(self.search.n_samples_seen_) if self.search._begun() else 0

    def empty(self) -> FoldSums:
        """The same without rows."""
        samples = self.sample.empty(), self.packed.empty()
        return FoldSums(self.target, clone(self.search), *samples, self.design.empty())

    def add(self, batch: Batch) -> None:
        """Add rows of the table."""
        X, y = batch.X, batch.y
        self.search.rows_dealt_, self.search._next_folds = batch.first_row, batch.folds
        self.search.partial_fit(X, as_numbers(self.target, y), batch.weights)
        self.sample.add(batch)
        if self.packed.most:
            self.packed.add(replace(batch, X=np.packbits(X, axis=1)))
        self.design.add(X)
        self.low, self.high = np.minimum(self.low, y.min(axis=0)), np.maximum(self.high, y.max(axis=0))

    def merge(self, other: FoldSums) -> None:
        """Add the rows of other sums."""
        if other.n_rows:
            self.search.merge(other.search)
            self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.sample.merge(other.sample)
        self.packed.merge(other.packed)
        self.design.merge(other.design)

    def state(self) -> tuple[State, Arrays]:
        """Return the sums as JSON and arrays."""
        search, of_search = self.search.state()
        sample, arrays = self.sample.state()
        packed, of_packed = self.packed.state()
        state = {"search": search, "sample": sample, "packed": packed}
        arrays |= add_prefix("packed", of_packed)
        arrays |= add_prefix("search", of_search) | {"low": np.atleast_1d(self.low), "high": np.atleast_1d(self.high)}
        return state, arrays | self.design.arrays()

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore the sums from a saved state."""
        self.search.restore(state["search"], strip_prefix("search", arrays))
        self.sample.restore(state["sample"], arrays)
        self.packed.restore(state["packed"], strip_prefix("packed", arrays))
        self.design.restore(arrays)
        self.low, self.high = arrays["low"], arrays["high"]

    def bits_of_many(self, most: int) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.intp]]:
        """Columns of bits (m, n), targets and folds of at most ``most`` rows; rows in the sample come first."""
        if most <= self.sample.most or not self.packed.most:
            X, y, folds = self.sample.at_most(most)
            return X.astype(bool), y, folds
        packed, y, folds = self.packed.at_most(most)
        return np.unpackbits(packed, axis=1, count=self.search.n_features_in_).view(np.bool_), y, folds

    def drawn(self, n_rows: int) -> RowSample:
        """The sample that holds ``n_rows`` rows."""
        return self.sample if n_rows <= len(self.sample.rows()[1]) else self.packed

    def by_lasso(self) -> FoldSums:
        """The same sums, with terms chosen by the lasso."""
        search = copy(self.search).set_params(solver="lasso")
        search.__dict__.pop("_solution", None)
        return replace(self, search=search)

    def models(self, selected: Selected, domain: str) -> FoldModels:
        """Polynomials of the selected degree and penalty."""
        kind = LowDegreeClassifier if isinstance(self.target, Classes) else LowDegreeRegressor
        estimator = kind(degree=selected.degree, alpha=selected.alpha, solver=self.search.solver, domain=domain)
        return FoldModels(self, estimator)


class FoldModels:
    """Polynomials of one degree and penalty: fitted to all rows, and to the rows outside each fold."""

    def __init__(self, sums: FoldSums, estimator: LowDegreeRegressor | LowDegreeClassifier) -> None:
        search, self.estimator = sums.search, estimator
        self.seen = search.accumulator_.resolved(search._spec())
        estimator.n_features_in_ = search.n_features_in_
        if isinstance(sums.target, Classes):
            estimator.classes_ = sums.target.labels
        else:
            estimator._single_target = search._single_target
        self.whole = self._model(self.seen.total())

    def _model(self, statistic: LowDegreeStatistic) -> LowDegreeRegressor | LowDegreeClassifier:
        seen, model = self.seen, copy(self.estimator)
        statistic = statistic.restricted(model._spec().family(seen.n))
        model.accumulator_ = Accumulator(seen.n, seen.n_targets, 1, seen.domain, seen.encoding, [statistic])
        return model

    def without(self, fold: int) -> LowDegreeRegressor | LowDegreeClassifier:
        """The polynomial of the rows outside of a fold."""
        others = self.whole.accumulator_.statistics[0].copy()
        left_out = self.seen.statistics[fold].restricted(self.estimator._spec().family(self.seen.n))
        others.merge(left_out, -1)  # type: ignore[arg-type] # of one form
        return self._model(others)


def as_numbers(target: Real | Classes, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Targets of a regression as LowDegreeClassifier makes them: of two classes a sign, of more one indicator each."""
    if isinstance(target, Real):
        return y
    if len(target.values) == 2:
        return 2.0 * y - 1.0
    return np.equal(y[:, None], np.arange(len(target.values))).astype(np.float64)

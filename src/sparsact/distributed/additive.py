"""Learners whose rows add up, and what they have seen as plain state and arrays: all that travels between processes."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from sparsact.learners import (
    DSMRegressor,
    LowDegreeClassifier,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHClassifier,
    LSHRegressor,
)
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.statistic import Batch

WITH_CLASSES: Final = (LowDegreeClassifier, LSHClassifier)  # which must be known before the first row
WITH_LAYOUT: Final = (LSHRegressor, LSHClassifier, DSMRegressor)  # chosen from a sample before rows are summed
_ADDITIVE: Final = (LowDegreeRegressor, LowDegreeClassifier, LowDegreeRegressorCV, *WITH_LAYOUT)
AdditiveLearner = LowDegreeRegressor | LowDegreeClassifier | LSHRegressor | LSHClassifier | DSMRegressor
L = TypeVar("L", bound=AdditiveLearner)


def check_additive(estimator: AdditiveLearner) -> None:
    """Refuse a learner whose statistic cannot be summed over partitions.

    Raises
    ------
    TypeError
        If it is none of the learners whose statistic is additive.
    ValueError
        If its parameters leave it without one; says which.
    """
    if type(estimator) not in _ADDITIVE:
        names = ", ".join(kind.__name__ for kind in _ADDITIVE)
        name = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(f"a {name} has no sums to merge; partitions can be fitted by {names}.")
    try:
        _ = estimator.partial_fit, estimator.merge
    except AttributeError as error:
        raise ValueError(str(error.__cause__ or error)) from error
    cv = getattr(estimator, "cv", None)
    if cv is not None and not isinstance(cv, Integral):
        raise ValueError("`cv` lists folds of given rows, but no process holds all rows here; pass a number of folds.")
    estimator._validate_params()


def seeded(estimator: L) -> L:
    """A clone whose random numbers are the same on every worker: a seed is drawn now where none was given."""
    twin: L = clone(estimator)
    if "random_state" in twin.get_params() and not isinstance(twin.random_state, Integral):
        twin.random_state = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    return twin


def empty(learner: L) -> L:
    """A learner of the same layout or layer, where there is one, that holds no rows, and will remember none."""
    if "table_" in vars(learner):
        return learner.blank(remember_rows=False)
    return learner.blank() if "layer_" in vars(learner) else clone(learner)


@dataclass
class LearnerSum(Generic[L]):
    """What a learner sees, of the given classes where it needs them: a statistic of partitions."""

    learner: L  # blank, until rows come
    classes: NDArray[Any] | None = None
    n_rows: int = 0  # of any weight
    seen: bool = False

    def empty(self) -> LearnerSum[L]:
        """The same without rows."""
        return LearnerSum(empty(self.learner), self.classes)

    def add(self, batch: Batch) -> None:
        """Add rows."""
        learner, y, weights = self.learner, batch.y, batch.weights
        if isinstance(learner, LowDegreeRegressorCV):
            learner.rows_dealt_ = batch.first_row
        self.n_rows += len(y)
        # Of rows without weight, low-degree models look at labels and encoding; a layout would refuse them.
        if len(y) and (weights is None or np.any(weights) or not isinstance(learner, WITH_LAYOUT)):
            if isinstance(learner, WITH_CLASSES):
                learner.partial_fit(batch.X, y, self.classes, weights)
            else:
                learner.partial_fit(batch.X, y, sample_weight=weights)
            self.seen = True
        if isinstance(learner, LowDegreeRegressorCV):
            learner.rows_dealt_ = self.n_rows  # of this partition alone: `merge` adds them up

    def merge(self, other: LearnerSum[L]) -> None:
        """Add what another has seen."""
        if other.seen:
            self.learner = self.learner if self.seen else empty(other.learner)  # which knows its layer
            self.learner.merge(other.learner)
        self.n_rows, self.seen = self.n_rows + other.n_rows, self.seen or other.seen

    def state(self) -> tuple[State, Arrays]:
        """Return what was seen as JSON and arrays."""
        seen, arrays = self.learner.state() if self.seen else (None, {})
        return {"rows": self.n_rows, "seen": seen}, arrays

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore what was seen from a saved state."""
        self.n_rows, self.seen = state["rows"], state["seen"] is not None
        if self.seen:
            self.learner.restore(state["seen"], arrays)


def with_params_of(learner: L, estimator: L) -> L:
    """The learner with the seed that the user gave, rather than the one drawn from it."""
    if hasattr(estimator, "random_state"):
        learner = copy(learner)
        learner.random_state = estimator.random_state
    return learner

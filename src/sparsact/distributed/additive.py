"""Learners whose rows add up, and what they have seen as plain state and arrays: all that travels between processes."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any

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

_ADDITIVE = (LowDegreeRegressor, LowDegreeClassifier, LowDegreeRegressorCV, LSHRegressor, LSHClassifier, DSMRegressor)


def check_additive(estimator: Any) -> None:
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
        raise TypeError(f"a {name} keeps no sums that could be merged; partitions can be fitted by {names}.")
    try:
        _ = estimator.partial_fit, estimator.merge
    except AttributeError as error:
        raise ValueError(str(error.__cause__ or error)) from error
    if getattr(estimator, "combine", "average") == "joint":
        raise ValueError('combine="joint" keeps every row, so partitions cannot be summed; pass combine="average".')
    cv = getattr(estimator, "cv", None)
    if cv is not None and not isinstance(cv, Integral):
        raise ValueError("`cv` lists folds of given rows, which are in no one place here; pass a number of folds.")
    estimator._validate_params()


def seeded(estimator: Any) -> Any:
    """A clone whose random numbers are the same on every worker: a seed is drawn now where none was given."""
    twin = clone(estimator)
    if "random_state" in twin.get_params() and not isinstance(twin.random_state, Integral):
        twin.random_state = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    return twin


def takes_classes(estimator: Any) -> bool:
    """Whether all classes must be known before the first row."""
    return isinstance(estimator, LowDegreeClassifier | LSHClassifier)


def takes_layout(estimator: Any) -> bool:
    """Whether something is chosen from a sample of rows before they are summed."""
    chosen: bool = getattr(estimator, "bottom", None) == "pca"
    return chosen or isinstance(estimator, LSHRegressor | LSHClassifier)


def takes_row_numbers(estimator: Any) -> bool:
    """Whether a row's number in the whole decides what becomes of it: the fold that it goes to."""
    return isinstance(estimator, LowDegreeRegressorCV)


def takes_weightless(estimator: Any) -> bool:
    """Whether it learns rows that have no weight, all of them; else they are passed over, as among others."""
    return isinstance(estimator, LowDegreeRegressor | LowDegreeClassifier)


def empty(learner: Any) -> Any:
    """A learner of the same layout or layer, where there is one, that holds no rows, and will remember none."""
    if "table_" in vars(learner):
        return learner.blank(remember_rows=False)
    return learner.blank() if "layer_" in vars(learner) else clone(learner)


def seen_out(learner: Any) -> tuple[State, Arrays]:
    """What a learner has seen."""
    arrays: Arrays = {}
    return learner._state(arrays), arrays


def seen_in(blank: Any, state: State, arrays: Arrays) -> Any:
    """A learner like the blank one that has seen this."""
    learner = empty(blank)
    learner._restore(state, arrays)
    return learner


def solved(learner: Any) -> Any:
    """The learner, once it has found what it predicts by, so that predictions change nothing."""
    _ = getattr(learner, "intercept_", None)
    return learner


def with_params_of(learner: Any, estimator: Any) -> Any:
    """The learner with the seed that the user gave, rather than the one drawn from it."""
    if hasattr(estimator, "random_state"):
        learner = copy(learner)
        learner.random_state = estimator.random_state
    return learner

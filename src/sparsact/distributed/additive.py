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


def needs(estimator: Any, what: str) -> bool:
    """Whether an estimator declares a need: ``"classes"``, a ``"layout"``, or ``"row_numbers"``."""
    return bool(getattr(estimator, f"_needs_{what}", False))


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

"""What the file of a learner holds: parameters as JSON spells them, arrays of the dtype and shape that are due."""

from __future__ import annotations

from math import isfinite
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.points import Encoding

State = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
LARGEST_PARAMETER = 2**63  # which the seeds of routers may reach
MOST_COUNTED = 2**53  # columns, units: beyond it they are no longer told apart as floats
MOST_ROWS = 2**200  # models may be merged with themselves again and again


def plain(value: Any) -> Any:
    """A parameter as JSON spells it; a RandomState, whose past is gone, as None."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple | range | set | frozenset):
        return [plain(item) for item in value]
    return None if isinstance(value, np.random.RandomState) else value


def prefixed(name: str, arrays: Arrays) -> Arrays:
    """Arrays under names that begin with a name and a dot; :func:`under` is the inverse."""
    return {f"{name}.{key}": array for key, array in arrays.items()}


def under(name: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin with a name and a dot, less that."""
    return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}


def expect(arrays: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """An array of a file, of the dtype and shape (None: any length) that it must have."""
    array = arrays[name]
    fits = array.ndim == len(shape) and all(due in (None, is_) for due, is_ in zip(shape, array.shape, strict=True))
    if array.dtype != dtype or not fits:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
    return array


def remade(make: Any, state: State) -> Any:
    """An estimator with the parameters of a file, checked as its own ``fit`` checks them, and the columns it knows."""
    for name, value in state["params"].items():
        if isinstance(value, int) and abs(value) > MOST_COUNTED:  # as a float it might overflow
            raise ValueError(f"the parameter {name} is {str(value)[:40]}")
    learner = make(**state["params"])
    for name, value in state["params"].items():
        if isinstance(value, int) and abs(value) > LARGEST_PARAMETER:
            raise ValueError(f"{name} is a number of {len(str(value))} digits")
    learner._validate_params()
    take_columns(learner, state["learned"]["n_features_in_"], state)
    return learner


def take_columns(learner: Any, n: Any, state: State) -> None:
    """Let an estimator know its n columns, and their names if the state has them."""
    learner.n_features_in_ = whole(n, "n_features_in_", least=1)
    if "feature_names" in state:
        names = texts(state["feature_names"], "feature_names")
        if len(names) != learner.n_features_in_:
            raise ValueError(f"{len(names)} names of {learner.n_features_in_} columns")
        learner.feature_names_in_ = np.array(names, dtype=object)


def rows_in(value: Any, name: str) -> int:
    """A number of rows of a file."""
    return whole(value, name, most=MOST_ROWS)


def whole(value: Any, name: str, *, least: int = 0, most: int = MOST_COUNTED) -> int:
    """A whole number of a file that counts something."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} is {str(value)[:40]}, not a whole number from {least} on")
    return value


def number(value: Any, name: str) -> float:
    """A finite number of a file, 0 or more."""
    if type(value) not in (int, float) or not isfinite(value) or value < 0:
        raise ValueError(f"{name} is {str(value)[:40]}, not a number from 0 on")
    return float(value)


def flag(value: Any, name: str) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {str(value)[:40]}, neither true nor false")
    return value


def text(value: Any, name: str) -> str:
    """A text of a file."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is a {type(value).__name__}, not a text")
    value.encode()  # a half of a character, which JSON can spell, is an error
    return value


def texts(value: Any, name: str) -> list[str]:
    """A list of texts of a file."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is a {type(value).__name__}, not a list of texts")
    return [text(one, name) for one in value]


def classes_in(state: State, arrays: Arrays) -> NDArray[Any]:
    """The labels of a classifier: texts of the state, or an array of numbers; in ascending order."""
    labels = np.array(texts(state["classes"], "classes")) if state.get("classes") is not None else arrays["classes"]
    if labels.ndim != 1 or len(labels) < 2 or not (labels[:-1] < labels[1:]).all():
        raise ValueError(f"classes of shape {labels.shape} that are not two or more in ascending order")
    return labels


def encoding_named(name: Any) -> Encoding | None:
    """The encoding of that name, if there is one."""
    if name not in ("signs", "bits", None):
        raise ValueError(f"unknown encoding {name!r}")
    return cast("Encoding | None", name)

"""Fields that classes declare for their files: JSON values, and arrays of a required dtype, shape and range.

An estimator declares what it learned as a mapping of attributes to checks, and its arrays as a mapping of names to
:class:`ArrayField`; it then has a method ``save`` and a class method ``_from_file(state, arrays)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from inspect import signature
from math import isfinite
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.saving.modelfile import ModelFileError
from sparsact.validation.arrays import Shape, has_shape

State = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
Checks = Mapping[str, Callable[[Any, str], Any]]
MAX_COUNT: Final = 2**53  # columns, units: beyond it floats no longer distinguish them
FORMER: Final = {  # names in files of version 0.1
    "coef_": ("coefficients_",),
    "k": ("n_active",),
    "seed": ("random_state",),
    "width": ("n_units", "bucket_width"),
    "width_": ("bucket_width_",),
}
# Parameters of earlier versions, and the one value whose models can still be read.
REMOVED: Final = {"combine": "average", "heredity": None}
MAX_ROWS: Final = 2**200  # models may be merged with themselves again and again


# ---- estimators ----


def params_of(learner: Any) -> State:
    """Return the parameters of an estimator as JSON values."""
    return {name: to_json(value) for name, value in learner.get_params(deep=False).items()}


def present_names(written: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Rename the values of a file whose names have changed since version 0.1."""
    names = {name: next((new for new in FORMER.get(name, ()) if new in known), name) for name in written}
    return {names[name]: value for name, value in written.items()}


def learned_state(learner: object, learned: Checks) -> State:
    """Return the names of the declared attributes that an estimator has, and of its columns."""
    state: State = {"learned": {name: to_json(getattr(learner, name)) for name in learned if hasattr(learner, name)}}
    if hasattr(learner, "feature_names_in_"):
        state["feature_names"] = [str(name) for name in learner.feature_names_in_]
    return state


def restore_learned(learner: Any, state: State, learned: Checks, optional: Collection[str] = ()) -> None:
    """Give an estimator the declared attributes and the names of its columns that :func:`learned_state` returned."""
    values = present_names(state["learned"], learned)
    for name, check in learned.items():
        if name in values or name not in optional:
            setattr(learner, name, check(values[name], name))
    learner.n_features_in_ = as_count(learner.n_features_in_, "n_features_in_", minimum=1)
    if "feature_names" in state:
        names = as_strs(state["feature_names"], "feature_names")
        if len(names) != learner.n_features_in_:
            raise ValueError(f"{len(names)} names of {learner.n_features_in_} columns")
        learner.feature_names_in_ = np.array(names, dtype=object)


def rebuild(make: Any, state: State, learned: Checks, optional: Collection[str] = ()) -> Any:
    """Rebuild an estimator from a file: parameters, checked as its ``fit`` checks them, and declared attributes."""
    known = signature(make).parameters
    parameters = present_names(state["params"], known)
    for name in REMOVED.keys() & parameters.keys() - known.keys():
        if (value := parameters.pop(name)) != REMOVED[name]:
            raise ModelFileError(
                f"a model of {make.__name__} with {name}={str(value)[:40]!r}, which this version no longer fits; fit "
                f"it again without `{name}`, or load it with the version that saved it."
            )
    for name, value in parameters.items():
        if isinstance(value, int) and abs(value) > MAX_COUNT:  # as a float it might overflow
            raise ValueError(f"the parameter {name} is {str(value)[:40]}")
    learner = make(**parameters)
    learner._validate_params()
    restore_learned(learner, state, learned, optional)
    return learner


def write_classes(classes: NDArray[Any], arrays: Arrays) -> list[str] | None:
    """Return the labels of a classifier for the state; for numbers None, and they go to the arrays."""
    if classes.dtype.kind in "OUS":
        return [str(label) for label in classes]
    arrays["classes"] = classes
    return None


def read_classes(state: State, arrays: Arrays) -> NDArray[Any]:
    """Read the labels of a classifier, texts or numbers, in ascending order."""
    labels = np.array(as_strs(state["classes"], "classes")) if state.get("classes") is not None else arrays["classes"]
    if labels.ndim != 1 or len(labels) < 2 or not (labels[:-1] < labels[1:]).all():
        raise ValueError(f"classes of shape {labels.shape} that are not two or more in ascending order")
    return labels


# ---- arrays ----


class ArrayField(NamedTuple):
    """An array that a file must hold.

    Attributes
    ----------
    shape : str
        Its axes, such as ``"m n"``: numbers, or letters; a letter is the same length wherever it stands.
    dtype : dtype
        Its type.
    finite, nonnegative : bool
        Whether its entries must be.
    optional : bool
        Whether a file may lack it.
    """

    shape: str
    dtype: Any = np.float64
    finite: bool = False
    nonnegative: bool = False
    optional: bool = False


def read_arrays(fields: Mapping[str, ArrayField], arrays: Arrays, prefix: str = "", **lengths: int) -> Arrays:
    """Read the declared arrays of a file, without the prefix; ``lengths`` maps letters of shapes to known lengths."""
    read: Arrays = {}
    for name, field in fields.items():
        if field.optional and prefix + name not in arrays:
            continue
        axes = field.shape.split()
        due = tuple(int(axis) if axis.isdigit() else lengths.get(axis) for axis in axes)
        array = read[name] = check_array(arrays, prefix + name, field.dtype, due)
        lengths |= {axis: length for axis, length in zip(axes, array.shape, strict=True) if not axis.isdigit()}
        if field.finite and not np.isfinite(array).all():
            raise ValueError(f"{prefix}{name} is not finite")
        if field.nonnegative and (array < 0).any():
            raise ValueError(f"{prefix}{name} is negative somewhere")
    return read


def check_array(arrays: Arrays, name: str, dtype: Any, shape: Shape) -> NDArray[Any]:
    """Check the dtype and shape (None: any length) of an array of a file, and return it."""
    array = arrays[name]
    if array.dtype != dtype or not has_shape(array, shape):
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
    return array


def add_prefix(name: str, arrays: Mapping[str, NDArray[Any] | None]) -> Arrays:
    """Arrays that are not None, under names that begin with a name and a dot; :func:`strip_prefix` is the inverse."""
    return {f"{name}.{key}": array for key, array in arrays.items() if array is not None}


def strip_prefix(name: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names begin with a name and a dot, and remove this prefix."""
    return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}


# ---- JSON values ----


def to_json(value: object) -> Any:
    """Return a parameter as a JSON value; a RandomState becomes None, as its history is lost."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple | range | set | frozenset):
        return [to_json(item) for item in value]
    return None if isinstance(value, np.random.RandomState) else value


def as_count(value: object, name: str, *, minimum: int = 0, maximum: int = MAX_COUNT) -> int:
    """Check a count in a file."""
    if type(value) is not int or not minimum <= value <= maximum:
        raise ValueError(f"{name} is {str(value)[:40]}, not a whole number from {minimum} on")
    return value


def as_n_rows(value: object, name: str) -> int:
    """Check a number of rows in a file."""
    return as_count(value, name, maximum=MAX_ROWS)


def as_nonnegative(value: object, name: str) -> float:
    """Check a finite number in a file, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise ValueError(f"{name} is {str(value)[:40]}, not a number from 0 on")
    return float(value)


def as_bool(value: object, name: str) -> bool:
    """Check a bool in a file."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {str(value)[:40]}, neither true nor false")
    return value


def as_str(value: object, name: str) -> str:
    """Check a text in a file."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is a {type(value).__name__}, not a text")
    value.encode()  # a half of a character, which JSON can spell, is an error
    return value


def as_strs(value: object, name: str) -> list[str]:
    """Check a list of texts in a file."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is a {type(value).__name__}, not a list of texts")
    return [as_str(one, name) for one in value]


def as_encoding(value: object, name: str = "encoding") -> Literal["signs", "bits"] | None:
    """Check the name of an encoding of points, or None."""
    if value not in ("signs", "bits", None):
        raise ValueError(f"unknown {name} {value!r}")
    return value

"""What the file of a learner holds: parameters as JSON spells them, arrays of the dtype and shape that are due."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.points import Encoding

State = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


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


def encoding_named(name: Any) -> Encoding | None:
    """The encoding of that name, if there is one."""
    if name not in ("signs", "bits", None):
        raise ValueError(f"unknown encoding {name!r}")
    return cast("Encoding | None", name)

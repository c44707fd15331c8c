"""What a file may hold: arrays of the dtype and shape that they must have, and families that fit in memory."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import WORD, n_words
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.plan import available_memory
from sparsact.learners.points import Encoding

State = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def spanned(n: int, span: tuple[int, int]) -> Family:
    """All subsets of those sizes, unless that is absurd."""
    low, high = (int(size) for size in span)
    if not 0 <= low <= n or not high <= n or Family.count(n, high, low) * 8.0 * n_words(n) > available_memory():
        raise ValueError(f"degrees {low} to {high} of {n} coordinates, more than memory holds")
    return Family.full(n, high, low)


def listed(n: int, masks: NDArray[np.uint64]) -> Family:
    """The family of masks that name coordinates there are."""
    check_bits(masks, n)
    return Family(n, masks, None)


def check_bits(words: NDArray[np.uint64], n: int) -> None:
    """Refuse packed words that name coordinates beyond the n there are."""
    if n % WORD and (words[:, -1] >> np.uint64(n % WORD)).any():
        raise ValueError(f"coordinates beyond the {n} there are")


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

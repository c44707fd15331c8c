"""The number that stands for each category."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from sparsact.learners.lsh.layout import Array

TEXT: Final = 1 << 52  # codes of texts lie from here to 2**53, all exact in float64
ROUNDED: Final = 1 << 53  # integers from here on have the code of their digits as a text: float64 would merge some


def codes_of(column: ArrayLike, name: Hashable) -> Array:
    """Codes (m,) of a column of categories."""
    codes: dict[Hashable, float] = {}
    if hasattr(column, "cat"):  # pandas makes floats of integers among which one is missing, and rounds them
        kinds = np.array([*column.cat.categories, None], dtype=object)
        column = kinds[column.cat.codes]
    values = np.asarray(column, dtype=object)
    found = np.empty(len(values))
    for row, value in enumerate(values):
        number = value.item() if isinstance(value, np.generic) else value
        if _is_missing(number):
            found[row] = np.nan
            continue
        if number not in codes:
            codes[number] = _code(number)
        found[row] = codes[number]
    if len({isinstance(value, int | float) for value in codes}) > 1:
        raise ValueError(f"column {name!r} of `X` mixes numbers and other categories; convert all of them to texts.")
    return found


def _is_missing(value: object) -> bool:
    """Whether it is None, NaN, or what pandas has for them."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _code(value: object) -> float:
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < ROUNDED):
        return float(value)
    digest = hashlib.blake2b(str(value).encode(), digest_size=8).digest()
    return float(TEXT | int.from_bytes(digest, "little") >> 12)

"""Columns that say the same or nothing, and the warning where effects are read that depend on them."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.polynomial import Solution

_ENOUGH_ROWS: Final = 20  # fewer make columns alike by chance; 20 make one pair of random bits in 500,000 alike
_NAMED: Final = 3  # columns in a warning


def warn_of_columns_alike(solution: Solution, names: NDArray[Any] | None) -> None:
    """Warn of columns whose monomials share coefficients with monomials of another column, or of none.

    Values at the rows do not depend on how they are shared; what is named the effect of a column does.
    """
    first = solution.first_alike
    if first is None or solution.n_rows < _ENOUGH_ROWS:
        return
    own, masks = np.arange(len(first)), solution.polynomial.family.masks
    words = np.bitwise_or.reduce(masks, axis=0, initial=np.uint64(0)).astype("<u8")
    used = np.unpackbits(words.view(np.uint8), count=len(own), bitorder="little").astype(bool)
    found = np.flatnonzero((first != own) & used & ((first < 0) | used[first])).tolist()
    if not found:
        return
    label = (own if names is None else names).tolist()
    facts = [
        f"column {label[i]!r} is " + ("constant" if first[i] < 0 else f"a copy of column {label[first[i]]!r}")
        for i in found[:_NAMED]
    ]
    more = f", and {len(found) - _NAMED:,} more are so" if len(found) > _NAMED else ""
    warnings.warn(
        f"effects need columns that differ; {', '.join(facts)}{more} (up to sign) in all {solution.n_rows:,} rows, "
        "and monomials that are equal there share their coefficients: fit without these columns.",
        stacklevel=3,
    )

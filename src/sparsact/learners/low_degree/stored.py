"""Families that a file may hold: of coordinates there are, and no more than memory holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import WORD, n_words
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.plan import available_memory
from sparsact.learners.stored import whole


def spanned(n: int, span: tuple[int, int], due: int | None = None) -> Family:
    """All subsets of those sizes, unless there are more than memory holds, or not as many as are due."""
    low, high = (whole(size, "span") for size in span)
    if not low <= n or not high <= n:
        raise ValueError(f"degrees {low} to {high} of {n} coordinates")
    count = Family.count(n, high, low)
    if due not in (None, count) or 8.0 * n_words(n) * count > available_memory():
        raise ValueError(f"{count} subsets of {low} to {high} of {n} coordinates, where there are {due or 'fewer'}")
    return Family.full(n, high, low)


def listed(n: int, masks: NDArray[np.uint64]) -> Family:
    """The family of masks that name coordinates there are."""
    check_bits(masks, n)
    if not masks.any(axis=1).all() or len(np.unique(masks, axis=0)) < len(masks):
        raise ValueError("a subset is empty, or stands twice")
    return Family(n, masks, None)


def check_bits(words: NDArray[np.uint64], n: int) -> None:
    """Refuse packed words that name coordinates beyond the n there are."""
    if n % WORD and (words[:, -1] >> np.uint64(n % WORD)).any():
        raise ValueError(f"coordinates beyond the {n} there are")

"""Families that a file may hold: of coordinates there are, and no more than memory holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import WORD, n_words
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.plan import available_memory


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

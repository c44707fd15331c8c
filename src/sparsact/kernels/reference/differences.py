"""Symmetric differences of all pairs of subsets of a family."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Masks


def symmetric_differences(masks: Masks, position: NDArray[np.int32]) -> Masks:
    """Distinct masks ``S xor T``, in numeric order; ``position`` (D, D) is filled with their places."""
    a, b = np.tril_indices(len(masks))
    pairs = masks[a] ^ masks[b]
    order = np.lexsort(pairs.T)  # the last key, the highest word, is the primary one
    ordered = pairs[order]
    first = np.ones(len(pairs), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    place = np.cumsum(first, dtype=np.int32) - np.int32(1)
    position[a[order], b[order]] = place
    position[b[order], a[order]] = place
    return ordered[first]

"""The order of subsets: by size, then lexicographically."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Masks, sizes

_REVERSED_BYTES: Final = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1), bitorder="little")


def subset_order(masks: Masks) -> NDArray[np.intp]:
    """Indices that sort masks (N, words) by size, then lexicographically; stable, ``N log N`` comparisons.

    >>> subset_order(np.array([[6], [9], [1], [0]], dtype=np.uint64))  # (1, 2), (0, 3), (0,), ()
    array([3, 2, 1, 0])
    """
    differing = masks[:, (masks != masks[:1]).any(axis=0)]  # few words, where coordinates are many
    return np.lexsort((*_tuple_ranks(differing).T[::-1], sizes(masks)))


def _tuple_ranks(masks: Masks) -> Masks:
    """Words that compare as the tuples do, among subsets of one size.

    Where two tuples first differ, the earlier one holds the smaller coordinate: read with coordinate 0 as the highest
    bit, its mask is the larger number. Complementing turns the comparison round.
    """
    mirrored = _REVERSED_BYTES[np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)]
    return ~mirrored.view(">u8").astype(np.uint64)


def strongest(
    coefficients: NDArray[np.float64],
    sizes: NDArray[Any],
    masks_at: Callable[[NDArray[np.intp]], Masks],
    k: int,
    min_degree: int,
) -> NDArray[np.intp]:
    """Indices of the k coefficients of largest magnitude with ``|S| >= min_degree``; ties as :func:`subset_order`.

    Partitions instead of sorting, so that the cost is linear in the number of coefficients.
    """
    magnitude = np.where(sizes >= min_degree, np.abs(coefficients), -1.0)
    k = min(k, int(np.count_nonzero(magnitude >= 0)))
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    least = np.partition(magnitude, -k)[-k]
    above = np.flatnonzero(magnitude > least)
    tied = np.flatnonzero(magnitude == least)
    # Nearly all of a table may be tied at zero: keep only the sizes that the missing ones can come from.
    missing = k - len(above)
    tied = tied[sizes[tied] <= np.partition(sizes[tied], missing - 1)[missing - 1]]
    chosen = np.concatenate([above, tied])
    order = np.lexsort((*_tuple_ranks(masks_at(chosen)).T[::-1], sizes[chosen], -magnitude[chosen]))
    return chosen[order[:k]]

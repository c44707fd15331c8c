r"""All subsets of at most K coordinates in numeric order, and the rank of each among them.

The subsets before :math:`U = \{e_0 > e_1 > \dots\}` part from it at some :math:`e_j`, which they lack: they hold at
most :math:`K - j` of the coordinates below it. So the rank of U is the sum over j of the number of those.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import WORD, Masks, sizes, subset_masks


def subsets_in_order(n: int, size: int, masks: Masks) -> None:
    """Fill ``masks`` (N, W) with the subsets of at most ``size`` of n coordinates, in numeric order."""
    subsets = subset_masks(n, size)
    masks[:] = subsets[np.lexsort(subsets.T)]  # the last key, the highest word, is the primary one


def ranked_gram(
    masks: Masks, moments: NDArray[np.float64], n: int, size: int, gram: NDArray[np.float64], n_threads: int
) -> None:
    """Fill ``gram`` (D, D) with the moments of ``masks[a] ^ masks[b]``; the reference has one thread."""
    counts = _counts(n, size)
    for row, mask in zip(gram, masks, strict=True):
        row[:] = moments[_ranks(masks ^ mask, counts)]


def _counts(n: int, size: int) -> NDArray[np.int64]:
    """Number of subsets of ``range(e)`` with at most r members, (n + 1, size + 1), by Pascal's rule."""
    counts = np.ones((n + 1, size + 1), dtype=np.int64)
    for e in range(n):
        counts[e + 1, 1:] = counts[e, 1:] + counts[e, :-1]
    return counts


def _ranks(masks: Masks, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    size = counts.shape[1] - 1
    ranks, above = np.zeros(len(masks), dtype=np.int64), sizes(masks)
    for w, word in enumerate(masks.T):
        left = word.copy()
        while len(some := np.flatnonzero(left)):  # take the lowest members off
            lowest = left[some] & -left[some]
            left[some] ^= lowest
            above[some] -= 1
            member = WORD * w + np.bitwise_count(lowest - np.uint64(1)).astype(np.intp)  # its bytes end at 255
            ranks[some] += counts[member, size - above[some]]
    return ranks

r"""Subsets of at most K coordinates in numeric order, their ranks, and symmetric differences of pairs.

The subsets before :math:`U = \{e_0 > e_1 > \dots\}` part from it at some :math:`e_j`, which they lack: they hold at
most :math:`K - j` of the coordinates below it. So the rank of U is the sum of these numbers over j.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import WORD, Masks, members_in_rounds, n_subsets, n_words, sizes, subset_masks
from sparsact.kernels import dispatch

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
_NARROWEST, _WIDEST = 5, 10  # columns of a block, as many cells as rows fill with words of 64


def symmetric_differences(masks: Masks) -> tuple[Masks, NDArray[np.int32]]:
    """List the distinct symmetric differences of pairs of subsets, with the place of each pair's difference.

    Parameters
    ----------
    masks : ndarray of shape (D, W), uint64
        Distinct subsets, C-contiguous.

    Returns
    -------
    unique : ndarray of shape (N, W), uint64
        Distinct masks ``S xor T``, in the order of the numbers they spell (the last word is the most significant).
    position : ndarray of shape (D, D), int32
        Symmetric; ``unique[position[a, b]] == masks[a] ^ masks[b]``.
    """
    position = np.empty((len(masks), len(masks)), dtype=np.int32)
    return dispatch.chosen.symmetric_differences(masks, position), position


@dispatch.kernel
def _symmetric_differences(masks: Masks, position: NDArray[np.int32]) -> Masks:
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


def subsets_in_order(n: int, size: int) -> Masks:
    """List all subsets of n coordinates with at most ``size`` members as masks (N, W), in numeric order.

    They are the ``unique`` of :func:`symmetric_differences` for the family of all subsets with at most ``size / 2``.
    """
    masks = np.empty((n_subsets(n, size), n_words(n)), dtype=np.uint64)
    dispatch.chosen.subsets_in_order(n, size, masks)
    return masks


@dispatch.kernel
def _subsets_in_order(n: int, size: int, masks: Masks) -> None:
    subsets = subset_masks(n, size)
    masks[:] = subsets[np.lexsort(subsets.T)]  # the last key, the highest word, is the primary one


def ranked_gram(masks: Masks, moments: Array, n: int, size: int, *, n_threads: int = 1) -> Array:
    """Gram matrix (D, D) of D monomials: the moment of each pair's symmetric difference.

    Parameters
    ----------
    masks : ndarray of shape (D, W), uint64
        Subsets, C-contiguous; no two differ in more than ``size`` coordinates.
    moments : ndarray of shape (N,), float64
        One for each subset of :func:`subsets_in_order`.
    """
    gram = np.empty((len(masks), len(masks)))
    dispatch.chosen.ranked_gram(masks, moments, n, size, gram, n_threads)
    return gram


@dispatch.kernel
def _ranked_gram(masks: Masks, moments: Array, n: int, size: int, gram: Array, n_threads: int) -> None:
    counts = subset_counts(n, size)
    for row, mask in zip(gram, masks, strict=True):
        row[:] = moments[_ranks(masks ^ mask, counts)]


def character_sums(codes: Masks, values: Integers, n: int, size: int, *, n_threads: int = 1) -> Integers:
    r"""Exact :math:`\sum_i v_i \chi_S(x_i)` for all subsets S of at most ``size`` coordinates, (L, N).

    Codes (m, ceil(n / 64)) are points packed by row, n >= 3; values (L, m) are in ``range(-2**32, 2**32)``; subsets are
    in the order of :func:`subsets_in_order`. Rows are sorted by a block of columns: for a subset P of the columns
    beyond, one pass over them then gives the sums of P with every subset of the block.
    """
    counts = subset_counts(n, size)
    sums = np.empty((len(values), counts[n, size]), dtype=np.int64)
    width = min(max(len(codes) // WORD, 1).bit_length() - 1, _WIDEST)
    dispatch.chosen.character_sums(codes, values, counts, max(width, _NARROWEST), sums, n_threads)
    return sums


@dispatch.kernel
def _character_sums(
    codes: Masks, values: Integers, counts: Integers, width: int, sums: Integers, n_threads: int
) -> None:
    for place, mask in enumerate(subsets_in_order(len(counts) - 1, counts.shape[1] - 1)):
        odd = np.bitwise_count(codes & mask).sum(axis=1, dtype=np.int64) & 1
        sums[:, place] = values @ (1 - 2 * odd)


def subset_counts(n: int, size: int) -> Integers:
    """Number of subsets of ``range(e)`` with at most r members, (n + 1, size + 1), by Pascal's rule."""
    counts = np.ones((n + 1, size + 1), dtype=np.int64)
    for e in range(n):
        counts[e + 1, 1:] = counts[e, 1:] + counts[e, :-1]
    return counts


def _ranks(masks: Masks, counts: Integers) -> Integers:
    size = counts.shape[1] - 1
    ranks, above = np.zeros(len(masks), dtype=np.int64), sizes(masks)
    for rows, members in members_in_rounds(masks):
        above[rows] -= 1
        ranks[rows] += counts[members, size - above[rows]]
    return ranks

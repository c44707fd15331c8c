r"""The hypercube :math:`\{-1, 1\}^n`: points, subsets of coordinates, and characters.

**The convention**, used everywhere in this library and stated only here:

- *sign and bit*: bit 0 is sign :math:`+1`, bit 1 is sign :math:`-1`, so ``sign = 1 - 2 * bit``;
- *order*: coordinate ``i`` is bit ``i`` (the bit of value ``2**i``) of a number. The point number ``p`` has
  ``x_i = 1 - 2 * ((p >> i) & 1)``, the subset number ``S`` holds coordinate ``i`` when ``(S >> i) & 1``. A table of
  length ``2**n`` lists points, or subsets, by number;
- hence :math:`\chi_S(x_p) = \prod_{i \in S} x_i = (-1)^{|S \& p|}`;
- *packed*: uint64 words, coordinate ``i`` at bit ``i % 64`` of word ``i // 64``. A family of N subsets of n coordinates
  is an array of *masks* of shape (N, ceil(n / 64)); a person reads and writes a subset as a sorted tuple, ``(0, 3)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import comb
from operator import index
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

WORD: Final = 64
Masks = NDArray[np.uint64]
Subset = tuple[int, ...]


def bits_to_signs(bits: ArrayLike) -> NDArray[np.int8]:
    """Signs ``1 - 2 * bit`` of an array of bits (0, 1, False, True), in the same shape.

    Parameters
    ----------
    bits : array-like
        Bits in any shape.

    Returns
    -------
    signs : ndarray, int8
        Signs in the same shape.

    Examples
    --------
    >>> bits_to_signs([0, 1])
    array([ 1, -1], dtype=int8)
    """
    return np.int8(1) - np.int8(2) * np.asarray(bits).astype(np.int8)


def signs_to_bits(signs: ArrayLike) -> NDArray[np.uint8]:
    """Bits of an array of signs, in the same shape: 0 where the sign is positive, 1 where it is negative.

    Parameters
    ----------
    signs : array-like
        Signs in any shape.

    Returns
    -------
    bits : ndarray, uint8
        Bits in the same shape.

    Examples
    --------
    >>> signs_to_bits([1, -1])
    array([0, 1], dtype=uint8)
    """
    return (np.asarray(signs) < 0).astype(np.uint8)


def points(n: int) -> NDArray[np.int8]:
    """All points of the cube as signs, shape (2**n, n), in table order.

    Parameters
    ----------
    n : int
        Number of coordinates.

    Returns
    -------
    signs : ndarray of shape (2**n, n), int8
        A point a row.

    Examples
    --------
    >>> points(2)
    array([[ 1,  1],
           [-1,  1],
           [ 1, -1],
           [-1, -1]], dtype=int8)
    """
    numbers = np.arange(2**n, dtype=np.uint32)
    return bits_to_signs(numbers[:, None] >> np.arange(n, dtype=np.uint32) & 1)


def n_words(n: int) -> int:
    """Words of 64 bits that hold n coordinates (at least one).

    Parameters
    ----------
    n : int
        Number of coordinates.

    Returns
    -------
    count : int
        From 1.
    """
    return max(1, -(-n // WORD))


def n_subsets(n: int, degree: int, min_degree: int = 0) -> int:
    """Number of subsets of n coordinates with ``min_degree <= |S| <= degree``.

    Parameters
    ----------
    n : int
        Number of coordinates.
    degree, min_degree : int
        Largest and smallest size.

    Returns
    -------
    count : int
        Exact.

    Examples
    --------
    >>> n_subsets(20, 3)
    1351
    """
    return sum(comb(n, size) for size in range(min_degree, min(degree, n) + 1))


def subset_masks(n: int, degree: int, min_degree: int = 0) -> Masks:
    """Masks of all subsets with ``min_degree <= |S| <= degree``: by size, then lexicographic as tuples.

    The order is that of ``itertools.combinations``, size by size. Cost: the size of the result, times ``degree``.

    Parameters
    ----------
    n : int
        Number of coordinates.
    degree, min_degree : int
        Largest and smallest size.

    Returns
    -------
    masks : ndarray of shape (N, words), uint64
        A subset a row, coordinate i in bit i.

    Examples
    --------
    >>> subset_masks(3, 2).ravel()
    array([0, 1, 2, 4, 3, 5, 6], dtype=uint64)
    """
    families = [np.zeros((int(min_degree <= 0), n_words(n)), dtype=np.uint64)]
    members = np.zeros((1, 0), dtype=np.intp)
    for size in range(1, min(degree, n) + 1):
        members = _extended(members, n)
        if size >= min_degree:
            families.append(masks_of(members, n))
    return np.concatenate(families)


def _extended(members: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Every way to add one later coordinate to each row of ``members``, in lexicographic order."""
    last = members[:, -1] if members.shape[1] else np.full(len(members), -1)
    choices = n - 1 - last
    parent = np.repeat(np.arange(len(members)), choices)
    first = np.repeat(np.cumsum(choices) - choices, choices)
    return np.column_stack([members[parent], np.arange(len(parent)) - first + last[parent] + 1])


def masks_of(subsets: Sequence[Iterable[int]] | NDArray[np.intp], n: int) -> Masks:
    """Masks (N, words) of N subsets, given as tuples of coordinates or as an (N, size) array.

    Parameters
    ----------
    subsets : sequence of N iterables of int, or array of shape (N, size)
        Coordinates of each subset.
    n : int
        Number of coordinates.

    Returns
    -------
    masks : ndarray of shape (N, words), uint64
        A subset a row, coordinate i in bit i.

    Raises
    ------
    ValueError
        If a subset names a coordinate outside ``range(n)`` or the same coordinate twice.

    Examples
    --------
    >>> masks_of([(), (0, 2), (65,)], n=66)
    array([[0, 0],
           [5, 0],
           [0, 2]], dtype=uint64)
    """
    if isinstance(subsets, np.ndarray):
        row = np.repeat(np.arange(len(subsets)), subsets.shape[1])
        coordinate = subsets.ravel()
    else:
        rows = [tuple(map(index, subset)) for subset in subsets]
        row = np.repeat(np.arange(len(rows)), [len(subset) for subset in rows])
        coordinate = np.array([i for subset in rows for i in subset], dtype=np.intp)
        _check_members(rows, n)
    masks = np.zeros((len(subsets), n_words(n)), dtype=np.uint64)
    bit = np.uint64(1) << (coordinate % WORD).astype(np.uint64)
    np.bitwise_or.at(masks, (row, coordinate // WORD), bit)
    return masks


def _check_members(subsets: Sequence[Subset], n: int) -> None:
    for subset in subsets:
        if len(set(subset)) < len(subset):
            raise ValueError(f"subset {subset} names a coordinate twice; each may stand once.")
        for i in subset:
            if not 0 <= i < n:
                raise ValueError(f"subset {subset} names coordinate {i}; there are {n}, numbered from 0.")


def subsets_of(masks: Masks) -> list[Subset]:
    """Sorted tuples of coordinates of an array of masks (N, words).

    Parameters
    ----------
    masks : ndarray of shape (N, words), uint64
        A subset a row.

    Returns
    -------
    subsets : list of N tuples of int
        Coordinates in ascending order.

    Examples
    --------
    >>> subsets_of(np.array([[0], [5]], dtype=np.uint64))
    [(), (0, 2)]
    """
    found: list[list[int]] = [[] for _ in masks]
    rows, words = np.nonzero(masks)  # few, where n is large
    for row, w, word in zip(rows.tolist(), words.tolist(), masks[rows, words].tolist(), strict=True):
        found[row] += [WORD * w + i for i in _members(word)]
    return list(map(tuple, found))


def _members(word: int) -> Iterable[int]:
    while word:
        lowest = word & -word
        yield lowest.bit_length() - 1
        word ^= lowest


def members_in_rounds(masks: Masks) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows and coordinates of all members, in rounds: the lowest one left in a word of every row, word by word.

    Parameters
    ----------
    masks : ndarray of shape (N, words), uint64
        A subset a row.

    Yields
    ------
    rows, coordinates : ndarray of int
        Two arrays of the same length; a subset's members come in ascending order.
    """
    for w, word in enumerate(masks.T):
        rows = np.flatnonzero(word)
        rest = word[rows]
        while rows.size:
            below = rest - np.uint64(1)
            yield rows, WORD * w + np.bitwise_count(~rest & below).astype(np.intp)
            rest &= below
            left = rest != 0
            rows, rest = rows[left], rest[left]


def sizes(masks: Masks) -> NDArray[np.intp]:
    """Number of coordinates in each subset, shape (N,).

    Parameters
    ----------
    masks : ndarray of shape (N, words), uint64
        A subset a row.

    Returns
    -------
    sizes : ndarray of shape (N,), int
        Bits that are set.
    """
    return np.asarray(np.bitwise_count(masks).sum(axis=1, dtype=np.intp))


def characters(signs: ArrayLike, subsets: Sequence[Iterable[int]]) -> NDArray[np.float64]:
    r"""Values :math:`\chi_S(x) = \prod_{i \in S} x_i`, shape (m, N), one column a subset.

    Total on real inputs (a multilinear monomial). Builds the full matrix: for small sizes, examples and tests.

    Parameters
    ----------
    signs : array-like of shape (m, n)
        Points, a row each.
    subsets : sequence of N iterables of int
        Coordinates of each subset.

    Returns
    -------
    values : ndarray of shape (m, N), float64
        A column a subset.

    Examples
    --------
    >>> characters([[1, -1, -1]], [(), (0,), (0, 1), (1, 2)])
    array([[ 1.,  1., -1.,  1.]])
    """
    signs = np.asarray(signs, dtype=np.float64)
    return np.stack([signs[:, list(subset)].prod(axis=1) for subset in subsets], axis=1)

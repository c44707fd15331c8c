r"""Exact correlations of values with characters, :math:`\sum_i v_i \chi_S(x_i)`, by XOR and popcount.

A Gram matrix of characters consists of such correlations, one for each symmetric difference of two subsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hypercube import WORD, Masks
from sparsact.learners.low_degree.polynomial import Family
from sparsact.learners.points import Points
from sparsact.statistics.exact_sum import LIMB_BITS, ExactSum

_COUNTS_AT_ONCE = 1 << 22


def correlations(points: Points, values: ExactSum, masks: Masks, *, n_threads: int = 1) -> ExactSum:
    r"""Exact :math:`\sum_i v_i \chi_S(x_i)` for every subset.

    Each limb of the values is cut into bit planes; a plane's correlation is its popcount minus twice the popcount of
    its overlap with the parity of the columns in S.

    Parameters
    ----------
    points : Points
        m points of n coordinates.
    values : ExactSum of shape (..., m)
        One value a point.
    masks : ndarray of shape (N, words), uint64
        The subsets; fastest when neighbours share high coordinates.
    n_threads : int
        Threads of the kernel; the result does not depend on it.

    Returns
    -------
    correlations : ExactSum of shape (..., N)

    Notes
    -----
    ``N * planes * m / 64`` word operations: one plane for counts, about 70 for general doubles.
    """
    values.normalize()
    n_values = prod(values.shape[:-1])
    limbs = values.limbs.reshape(len(values.limbs), n_values, points.n_rows)
    result = np.zeros((*limbs.shape[:2], len(masks)), dtype=np.int64)
    for place in range(limbs.shape[0]):
        for row in range(limbs.shape[1]):
            planes, worth = _bit_planes(limbs[place, row], top=place == limbs.shape[0] - 1)
            if len(planes):
                result[place, row] = _signed_sums(points, planes, worth, masks, n_threads)
    bound = max(1, points.n_rows) << (LIMB_BITS + 1)
    return ExactSum(values.base, result.reshape(len(limbs), *values.shape[:-1], len(masks)), bound)


def _bit_planes(limb: NDArray[np.int64], *, top: bool) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Non-empty bit planes (P, words) of a normalised limb, and what a set bit of each is worth."""
    words = np.ascontiguousarray(limb).view(np.uint64)[:, None]
    planes = kernels.transpose_bits(words, 64)[: LIMB_BITS + top]
    worth = np.int64(1) << np.arange(len(planes), dtype=np.int64)
    if top:
        worth[-1] = -worth[-1]  # two's complement: the top limb lies in [-2**32, 2**32)
    some = planes.any(axis=1)
    return np.ascontiguousarray(planes[some]), worth[some]


def _signed_sums(
    points: Points, planes: NDArray[np.uint64], worth: NDArray[np.int64], masks: Masks, n_threads: int
) -> NDArray[np.int64]:
    ones = np.bitwise_count(planes).sum(axis=1, dtype=np.int64)
    sums = np.empty(len(masks), dtype=np.int64)
    step = max(1, _COUNTS_AT_ONCE // len(planes))
    for start in range(0, len(masks), step):
        odd = kernels.parity_counts(points.columns, planes, masks[start : start + step], n_threads=n_threads)
        for plane, each in zip(odd, worth.tolist(), strict=True):
            plane *= -2 * each
        sums[start : start + step] = odd.sum(axis=0) + int(worth @ ones)
    return sums


def agreeing(points: Points, masks: Masks, place: int) -> NDArray[np.bool_]:
    """Whether each character equals, up to sign, that of ``place`` at all points, (N,)."""
    every = np.full((1, points.columns.shape[1]), ~np.uint64(0))
    every[0, -1] >>= np.uint64(-points.n_rows % WORD)
    odd = kernels.parity_counts(points.columns, every, masks ^ masks[place])[0]
    return np.asarray((odd == 0) | (odd == points.n_rows))


@dataclass(frozen=True, eq=False)
class SymmetricDifferences:
    """The distinct ``S xor T`` of the subsets of a family, the empty one among them.

    Attributes
    ----------
    masks : ndarray of shape (N, words), uint64
        In the order of the numbers they spell.
    size : int
        They are all subsets of at most so many coordinates, where ``position`` is None: members give the place of each.
    position : ndarray of shape (D + 1, D + 1), int32, or None
        The place of the difference of every pair.
    """

    masks: Masks
    size: int = 0
    position: NDArray[np.int32] | None = None

    @classmethod
    def of(cls, family: Family) -> SymmetricDifferences:
        """By rank when the family holds all subsets up to some size; else by search."""
        if family.degree_range is not None and family.degree_range[0] == 1:
            size = min(2 * family.degree_range[1], family.n)
            return cls(kernels.subsets_in_order(family.n, size), size)
        masks, position = kernels.symmetric_differences(family.with_empty)
        return cls(masks, position=position)

    def places(self, masks: Masks) -> NDArray[np.intp]:
        """Places of some of the masks."""
        return np.searchsorted(_as_bytes(self.masks), _as_bytes(masks))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.masks.nbytes + (0 if self.position is None else self.position.nbytes)

    def gram(self, family: Family, moments: NDArray[np.float64], *, n_threads: int = 1) -> NDArray[np.float64]:
        """Moments (N,) arranged by pair, (D + 1, D + 1), for the family or a leading part of it."""
        if self.position is None:
            return kernels.ranked_gram(family.with_empty, moments, family.n, self.size, n_threads=n_threads)
        size = len(family) + 1
        return np.asarray(moments[self.position[:size, :size]])


def _as_bytes(masks: Masks) -> NDArray[np.bytes_]:
    """Masks as strings of bytes that sort like the numbers they spell."""
    words = np.ascontiguousarray(masks[:, ::-1].astype(">u8"))
    return words.view(f"S{words.shape[1] * words.itemsize}").ravel()

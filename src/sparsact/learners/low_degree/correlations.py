r"""Exact correlations of values with characters, :math:`\sum_i v_i \chi_S(x_i)`, by XOR and popcount."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hypercube import Masks
from sparsact.learners.points import Points
from sparsact.statistics.exact_sum import LIMB_BITS, ExactSum

_COUNTS_AT_ONCE = 1 << 22


def correlations(points: Points, values: ExactSum, masks: Masks, *, n_threads: int = 1) -> ExactSum:
    r"""Exact :math:`\sum_i v_i \chi_S(x_i)` for every subset.

    Each limb of the values is cut into bit planes; a plane's correlation is its popcount less twice the popcount of
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

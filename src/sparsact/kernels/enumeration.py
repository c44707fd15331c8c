"""Histograms of the number of active units over the points of the cube."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Rounding of a pre-activation in `count_active`: n additions at half an eps each, n <= 26, and some room.
ROUNDING_STEPS: Final = 16


class ActiveCounts(NamedTuple):
    """Histograms of the points of the cube by the number of units that are surely, and possibly, active.

    ``lower_histogram[k]`` is the number of points that switch on k units surely, of shape (s + 1,), and
    ``lower_witness`` the smallest number of a point with the most of them; ``upper`` counts possible ones too.
    """

    lower_histogram: Integers
    upper_histogram: Integers
    lower_witness: int
    upper_witness: int


def count_active(W: Array, b: Array, tolerance: Array, *, n_threads: int = 1) -> ActiveCounts:
    r"""Count the active units at each of the 2**n points of the cube, and return histograms.

    Unit j is surely active where :math:`z_j > t_j`, and possibly where :math:`z_j > -t_j`, for the computed
    :math:`z_j = \langle w_j, x \rangle - b_j` and the tolerance :math:`t_j \ge 0`.

    Parameters
    ----------
    W : ndarray of shape (s, n), float64
        Input weights, C-contiguous, n >= 1, s < 2**15.
    b : ndarray of shape (s,), float64
        Thresholds.
    tolerance : ndarray of shape (s,), float64
        0 for a unit whose sums are exact in floating point: the sign of its computed pre-activation is then the true
        one, and ties are off. Else at least ``ROUNDING_STEPS * eps * (sum_i |w_ji| + |b_j|)`` holds the truth between
        the two counts.

    Notes
    -----
    Each half of the coordinates has its own table of :math:`2^{n/2}` signed sums, so that z is one sum of a low and a
    high entry: no step depends on the step before it, as in a Gray code, and rounding does not pile up. For a fixed
    high half the low entries that switch a unit on are the last of the sorted ones; the native kernel compares their
    places, small integers, in place of the sums. Cost: ``s * 2**n`` comparisons, and memory ``s * 2**(n/2)``.
    """
    s, n = W.shape
    if s >= 2**15 or n > 30:
        raise ValueError(
            f"enumeration is possible for fewer than {2**15} units on at most 30 inputs; got {s} units on {n} inputs."
        )
    histograms = np.zeros((2, s + 1), dtype=np.int64)
    lower_witness, upper_witness = dispatch.chosen.count_active(W, b, tolerance, histograms, n_threads)
    return ActiveCounts(histograms[0], histograms[1], lower_witness, upper_witness)


@dispatch.kernel
def _count_active(W: Array, b: Array, tolerance: Array, histograms: Integers, n_threads: int) -> tuple[int, int]:
    """Add to ``histograms`` (2, s + 1); the first points with the largest counts.

    Unit j counts at a point when the sum of its low half exceeds ``+-tolerance[j] - (sum of its high half - b[j])``:
    this rounding is the definition.
    """
    half = W.shape[1] - W.shape[1] // 2
    low = _signed_sums(np.zeros(len(b)), W[:, :half])
    high = _signed_sums(-b, W[:, half:])
    most, witnesses = [-1, -1], [0, 0]
    for q in range(high.shape[1]):
        for side, margin in enumerate((tolerance, -tolerance)):
            counts = np.count_nonzero(low > (margin - high[:, q])[:, None], axis=0)
            histograms[side] += np.bincount(counts, minlength=len(b) + 1)
            first = int(np.argmax(counts))
            if counts[first] > most[side]:
                most[side], witnesses[side] = int(counts[first]), q << half | first
    return witnesses[0], witnesses[1]


def _signed_sums(start: Array, weights: Array) -> Array:
    """``start +- w_0 +- w_1 ...`` of every unit in table order, (s, 2**columns), added in the order of the columns."""
    sums = start[:, None]
    for column in weights.T:
        sums = np.concatenate([sums + column[:, None], sums - column[:, None]], axis=1)
    return sums

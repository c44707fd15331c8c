"""Active units at every point of the cube, from the sums of each half of the coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def count_active(
    W: NDArray[np.float64],
    b: NDArray[np.float64],
    tolerance: NDArray[np.float64],
    histograms: NDArray[np.int64],
    n_threads: int,
) -> tuple[int, int]:
    """Fill ``histograms`` (2, s + 1), of zeros, with points by count; the first points with the largest counts.

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


def _signed_sums(start: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """``start +- w_0 +- w_1 ...`` of every unit in table order, (s, 2**columns), added in the order of the columns."""
    sums = start[:, None]
    for column in weights.T:
        sums = np.concatenate([sums + column[:, None], sums - column[:, None]], axis=1)
    return sums

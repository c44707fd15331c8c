"""Kernels that choose the largest values of each row, exactly and with ties broken by place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch


def top_k(values: NDArray[Any], k: int, *, absolute: bool = False, n_threads: int = 1) -> NDArray[np.int64]:
    """Places (m, k), in increasing order, of the k largest values of each row; of equal values the first wins.

    Parameters
    ----------
    values : ndarray of shape (m, t)
        float32 or float64, C-contiguous, without NaN.
    k : int
        1 to t.
    absolute : bool
        Rank by absolute value.
    """
    places = np.empty((len(values), k), dtype=np.int64)
    dispatch.chosen().top_k(values, k, absolute, places, n_threads)
    return places

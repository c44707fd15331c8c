"""Equal rows as one row: a weight is then a number of rows, and their order says nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def distinct_rows(
    rows: NDArray[Any], weights: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.float64]]:
    """The distinct rows (k, n) in lexicographic order, which of them each row is, (m,), and their total weights (k,).

    Examples
    --------
    >>> rows, place, total = distinct_rows(np.array([[1, 0], [0, 1], [1, 0]]), np.array([1.0, 1.0, 3.0]))
    >>> rows.tolist(), place.tolist(), total.tolist()
    ([[0, 1], [1, 0]], [1, 0, 1], [1.0, 4.0])
    """
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    place = place.ravel()  # NumPy 2.0 kept an axis
    return distinct, place, np.bincount(place, weights).astype(np.float64)

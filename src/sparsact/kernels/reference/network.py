"""One hidden layer of ReLU units, in blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

PREACTIVATIONS_AT_ONCE = 2**20


def network_values(
    X: NDArray[np.float64], W: Any, u: NDArray[np.float64], b: NDArray[np.float64], values: NDArray[np.float64]
) -> None:
    """Fill ``values`` (m,) with ``sum_j u[j] * relu(W[j] @ x - b[j])``, never holding m x s numbers."""
    rows = max(1, PREACTIVATIONS_AT_ONCE // max(1, len(u)))
    for start in range(0, len(X), rows):
        block = slice(start, start + rows)
        values[block] = u @ np.maximum(W @ X[block].T - b[:, None], 0)

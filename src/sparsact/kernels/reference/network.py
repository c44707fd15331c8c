"""One hidden layer of ReLU units, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

PREACTIVATIONS_AT_ONCE = 2**20


def network_values(
    X: NDArray[Any], W: NDArray[np.float64], u: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Values (m,) of a network with dense weights: products of matrices, never m x s numbers at once."""
    values = np.empty(len(X))
    rows = max(1, PREACTIVATIONS_AT_ONCE // max(1, len(u)))
    for start in range(0, len(X), rows):
        block = slice(start, start + rows)
        values[block] = u @ np.maximum(W @ X[block].T.astype(np.float64, copy=False) - b[:, None], 0)
    return values


def sparse_network_values(
    X: NDArray[Any],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float64],
    u: NDArray[np.float64],
    b: NDArray[np.float64],
    values: NDArray[np.float64],
    n_threads: int,
) -> None:
    """Fill ``values`` (m,); this order of additions defines the rounding.

    A unit's products are added from 0 in the order stored, its threshold last; units are added in order, from 0.
    """
    values[:] = 0.0
    for j, z in enumerate(_preactivations(X, indptr, indices, weights, b)):
        values += u[j] * np.maximum(z, 0)


def sparse_active_units(
    X: NDArray[Any],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float64],
    b: NDArray[np.float64],
    tolerance: NDArray[np.float64],
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    n_threads: int,
) -> None:
    """Fill ``lower`` and ``upper`` (m,) with the units above their tolerance, and above minus that."""
    lower[:] = upper[:] = 0
    for j, z in enumerate(_preactivations(X, indptr, indices, weights, b)):
        lower += z > tolerance[j]
        upper += z > -tolerance[j]


def _preactivations(
    X: NDArray[Any],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float64],
    b: NDArray[np.float64],
) -> Iterator[NDArray[np.float64]]:
    """Those of each unit in turn, (m,)."""
    columns = np.ascontiguousarray(X.T, dtype=np.float64)
    for j, threshold in enumerate(b):
        z = np.zeros(len(X))
        for k in range(indptr[j], indptr[j + 1]):
            z += weights[k] * columns[indices[k]]
        yield z - threshold

"""Values of tables of buckets at rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.reference.bucket_index import find
from sparsact.kernels.reference.bucket_statistics import add_weighted, average_over_weights, features
from sparsact.kernels.reference.hashing import places, project

Array = NDArray[np.float64]


@np.errstate(over="ignore", invalid="ignore")  # rows that are not finite have such values: native kernels do not warn
def bucket_values(
    X: Array,
    centre: Array,
    local: Array,
    directions: Array,
    offsets: Array,
    seeds: NDArray[np.uint64],
    grid: bool,
    signs: bool,
    slots: NDArray[np.uint64],
    degree: int,
    coefficients: Array,
    weights: Array,
    trend: Array,
    average: bool,
    values: Array,
    total: Array,
    n_threads: int,
) -> None:
    """Fill values (m, targets) and the weight (m,) that stands behind each; 0 where every table misses."""
    m, p, n_tables = len(X), local.shape[1], len(seeds)
    Z, V = np.empty((m, p)), np.empty((m, n_tables if grid else 1, p))
    keys, ids = np.empty((m, n_tables), dtype=np.uint64), np.empty(m * n_tables, dtype=np.int32)
    places(X, centre, local, directions, offsets, seeds, grid, signs, Z, V, keys)
    find(slots, keys.ravel(), ids)
    by_table = ids.reshape(m, n_tables)
    values[:], total[:] = 0.0, 0.0
    for t in range(n_tables):
        at = by_table[:, t]
        known = (at >= 0) & (at < len(weights))
        weight, own = np.zeros(m), np.zeros((m, *coefficients.shape[1:]))
        weight[known], own[known] = weights[at[known]], coefficients[at[known]]
        add_weighted(values, total, features(V[:, t % V.shape[1]], degree), own, weight)
    if average:
        average_over_weights(values, total)
    values += project(X, centre, trend, np.zeros(trend.shape[1]))


class BucketPredictor:
    """:func:`bucket_values` that holds all but the rows."""

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def __call__(self, X: Array, values: Array, total: Array, n_threads: int) -> None:
        """Fill values (m, targets) and the weight (m,) behind each."""
        bucket_values(*(X, *self._parts, values, total, n_threads))

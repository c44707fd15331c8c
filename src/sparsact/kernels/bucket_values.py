"""Values of tables of buckets at rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.bucket_statistics import add_weighted, average_over_weights, features
from sparsact.kernels.hashing import Hashes, project, unfilled_places

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]


def bucket_values(
    X: Array,
    hashes: Hashes,
    slots: Keys,
    degree: int,
    coefficients: Array,
    weights: Array,
    trend: Array,
    *,
    average: bool = True,
    n_threads: int = 1,
) -> tuple[Array, Array]:
    """Values (m, targets) at rows: the trend (d, targets), and the weighted average (or sum) over tables.

    ``weights`` (B,) are those of buckets; at 0 a bucket is empty. The second result (m,) is the weight behind each
    value: 0 where every table misses.
    """
    values, total = np.empty((len(X), trend.shape[1])), np.empty(len(X))
    dispatch.chosen.bucket_values(
        X, *hashes, slots, degree, coefficients, weights, trend, average, values, total, n_threads
    )
    return values, total


@dispatch.kernel
@np.errstate(over="ignore", invalid="ignore")  # rows that are not finite have such values: native kernels do not warn
def _bucket_values(X: Array, *arguments: Any) -> None:
    hashes = Hashes(*arguments[:7])
    slots, degree, coefficients, weights, trend, average, values, total, _ = arguments[7:]
    m, n_tables, found = len(X), len(hashes.seeds), unfilled_places(len(X), hashes)
    dispatch.reference.places(X, *hashes, *found)
    ids = np.empty(m * n_tables, dtype=np.int32)
    dispatch.reference.find(slots, found.keys.ravel(), ids)
    by_table = ids.reshape(m, n_tables)
    values[:], total[:] = 0.0, 0.0
    for t in range(n_tables):
        at = by_table[:, t]
        known = (at >= 0) & (at < len(weights))
        weight, own = np.zeros(m), np.zeros((m, *coefficients.shape[1:]))
        weight[known], own[known] = weights[at[known]], coefficients[at[known]]
        add_weighted(values, total, features(found.V[:, t % found.V.shape[1]], degree), own, weight)
    if average:
        average_over_weights(values, total)
    values += project(X, hashes.centre, trend, np.zeros(trend.shape[1]))


def predictor(
    hashes: Hashes, slots: Keys, degree: int, coefficients: Array, weights: Array, trend: Array, *, average: bool = True
) -> Any:
    """:func:`bucket_values` that holds all but the rows: half the time of a single query.

    It is called with ``(X, values, total, n_threads)`` and fills ``values`` (m, targets) and ``total`` (m,). Arrays are
    held, not copied; the kernels are those chosen when it was made.
    """
    return dispatch.chosen.BucketPredictor(*hashes, slots, degree, coefficients, weights, trend, average)


@dispatch.kernel
class _BucketPredictor:
    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def __call__(self, X: Array, values: Array, total: Array, n_threads: int) -> None:
        _bucket_values(*(X, *self._parts, values, total, n_threads))

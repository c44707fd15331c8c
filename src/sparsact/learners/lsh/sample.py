"""The rows that choices are made from: distinct, without outliers, and in an order that says nothing."""

from __future__ import annotations

from typing import Final

import numpy as np

from sparsact.kernels import hashing
from sparsact.learners.lsh.layout import Array
from sparsact.statistics.centred import about_mean
from sparsact.statistics.units import standard_units

OUTLYING: Final = 100.0  # interquartile ranges beyond the quartiles
ROWS_FOR_QUARTILES: Final = 1 << 14  # they are a sample
ORDER_STEP: Final = 2.0**-16  # of a column's deviation: coarse beside rounding, and few rows share all steps

Rows = tuple[Array, Array, Array]


def distinct(X: Array, Y: Array, weights: Array) -> Rows:
    """Distinct rows with their total weights, in the order of a hash of X; rows of equal X are ordered by Y.

    A choice then sees a row of weight 2 as the same row twice, never leaves one copy of a row in where another is left
    out, and depends neither on the order of the rows nor on the units of Y.
    """
    kept = weights > 0
    X, Y, weights = X[kept], Y[kept], weights[kept]
    keys = hashing.row_keys(np.ascontiguousarray(np.concatenate([X, Y], axis=1) + 0.0))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    X, Y, weights = X[first], Y[first], np.bincount(inverse, weights).astype(np.float64)
    return _ordered(X, X, Y, weights)


def in_order(X: Array, Y: Array, weights: Array) -> Rows:
    """Distinct rows in the order of a hash of their columns in small steps of these columns' deviations.

    So rounding, an offset or a unit of X leave samples and folds as they are.
    """
    _, centred = about_mean(X, weights / weights.sum(), 1.0)
    steps = np.floor(centred * standard_units(X, weights) / ORDER_STEP)
    return _ordered(steps, X, Y, weights)


def _ordered(hashed: Array, X: Array, Y: Array, weights: Array) -> Rows:
    order = np.lexsort((*Y.T[::-1], hashing.row_keys(np.ascontiguousarray(hashed + 0.0))))
    return X[order], Y[order], weights[order]


def without_outliers(X: Array, Y: Array, weights: Array) -> Rows:
    """Rows without a value far outside the quartiles of its column: a sentinel such as -99999 must not set all scales.

    They are left out of the choice alone, if they are less than half. A column whose quartiles are equal, such as a
    rare indicator, has no say.
    """
    low, high = np.quantile(X[:ROWS_FOR_QUARTILES], (0.25, 0.75), axis=0)
    reach = np.where(high > low, OUTLYING * np.minimum(high - low, 1e300), np.inf)
    inside = ((low - reach <= X) & (high + reach >= X)).all(axis=1)
    enough = np.count_nonzero(inside) >= len(X) / 2  # else there is nothing special about the others
    if inside.all() or not enough:
        return X, Y, weights
    return X[inside], Y[inside], weights[inside]

"""Columns that drop out, and columns that say the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from sparsact.learners.lsh.layout import Array, standard_units

MIN_ROWS, MIN_COLUMNS = 500, 3  # fewer do not tell
ROWS = 1 << 13
SHARES = (1e-4, 1e-3, 1e-2, 5e-2)  # of the largest importance, below which columns drop out
GAIN = 0.01  # of the error, by which fewer columns must be better
SAME = 0.999  # correlation of columns that say the same
MOST_COMPARED = 2000  # columns: their correlations are a square matrix


def kept_columns(
    X: Array, Y: Array, weights: Array, error: Callable[[Array], float], seed: int
) -> NDArray[np.int64] | None:
    """Columns for the tables, in ascending order; None for all.

    Columns are ordered by what shuffling them costs small boosted trees on held-out rows; how many of them are kept is
    decided by ``error``, that of tables of some columns X on rows left out.
    """
    if len(X) < MIN_ROWS or X.shape[1] < MIN_COLUMNS:
        return None
    importance = _importances(X[:ROWS], Y[:ROWS], weights[:ROWS], seed)
    kept = [np.flatnonzero(importance > share * importance.max()) for share in SHARES]
    subsets = {len(columns): columns for columns in kept if 0 < len(columns) < X.shape[1]}
    if not subsets:
        return None
    errors = {n: error(np.ascontiguousarray(X[:, columns])) for n, columns in subsets.items()}
    best = min(errors, key=lambda n: errors[n])
    return subsets[best] if errors[best] < (1 - GAIN) * error(X) else None


def _importances(X: Array, Y: Array, weights: Array, seed: int) -> Array:
    """How much the squared error of boosted trees on the last quarter grows as each column (d,) is shuffled there."""
    learned, held = slice(0, 3 * len(X) // 4), slice(3 * len(X) // 4, len(X))
    total = np.zeros(X.shape[1])
    some = None if np.ptp(weights) == 0 else weights[learned]  # with weights, columns are binned 20 times as slowly
    unit = Y.std(axis=0)
    for y in (Y / np.where(unit > 0, unit, 1.0)).T:
        trees = HistGradientBoostingRegressor(early_stopping=False, random_state=seed % 2**31)
        trees.fit(X[learned], y[learned], some)
        rows, share = X[held].copy(), weights[held] / weights[held].sum()
        least = share @ (trees.predict(rows) - y[held]) ** 2
        for j, column in enumerate(X[held].T):
            rows[:, j] = np.roll(column, len(rows) // 2)  # rows stand in no order
            total[j] += max(float(share @ (trees.predict(rows) - y[held]) ** 2 - least), 0.0)
            rows[:, j] = column
    return total


def near_duplicates(X: Array, weights: Array) -> tuple[tuple[int, int], ...]:
    """Pairs of columns (i < j) that correlate by more than ``SAME``, up to their sign."""
    units = standard_units(X[:ROWS], weights[:ROWS])
    moving = np.flatnonzero(units)
    if len(moving) > MOST_COMPARED:
        return ()
    share = weights[:ROWS] / weights[:ROWS].sum()
    rows = X[:ROWS, moving]
    rows = (rows - share @ rows) * units[moving]
    pairs = np.argwhere(np.triu(np.abs((rows * share[:, None]).T @ rows) > SAME, k=1))
    return tuple((int(moving[i]), int(moving[j])) for i, j in pairs)

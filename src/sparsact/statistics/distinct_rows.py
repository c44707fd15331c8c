"""Equal rows as one row: a weight is then a number of rows, and their order says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RowGroups:
    """The distinct rows of a table, in lexicographic order.

    Attributes
    ----------
    rows : ndarray of shape (k, n)
        The distinct rows.
    place : ndarray of shape (m,)
        Which of them each row of the table is.
    row_weights : ndarray of shape (m,)
        Weights of the rows of the table.

    Examples
    --------
    >>> groups = RowGroups.of(np.array([[1, 0], [0, 1], [1, 0]]), np.array([1.0, 1.0, 3.0]))
    >>> groups.rows.tolist(), groups.place.tolist(), groups.weights.tolist()
    ([[0, 1], [1, 0]], [1, 0, 1], [1.0, 4.0])
    >>> groups.means(np.array([2.0, 5.0, 6.0])).tolist()
    [5.0, 5.0]
    """

    rows: NDArray[Any]
    place: NDArray[np.intp]
    row_weights: Array

    @classmethod
    def of(cls, rows: NDArray[Any], weights: Array) -> Self:
        """Group rows (m, n) of weights (m,)."""
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        return cls(distinct, place.ravel(), weights)  # NumPy 2.0 kept an axis

    @property
    def weights(self) -> Array:
        """Sums of the weights of equal rows, (k,)."""
        return np.bincount(self.place, self.row_weights).astype(np.float64)

    def means(self, values: Array) -> Array:
        """Weighted means (k,) of values (m,)."""
        return np.asarray(np.bincount(self.place, self.row_weights * values) / self.weights)

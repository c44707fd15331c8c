"""What a statistic is: sums over rows, which merge, so that rows may come in any pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sparsact.saving.schema import Arrays, State


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows that come together; indexing gives some of them, without ``first_row``.

    Attributes
    ----------
    X : Points or ndarray of shape (m, n)
        Packed points of the cube, or columns as they are.
    y : ndarray of shape (m, T)
        Targets; labels of shape (m,) for classifiers.
    weights : ndarray of shape (m,), or None
        None for ones.
    folds : ndarray of shape (m,), or None
        The fold that each row goes to, if there are several.
    first_row : int, default=0
        Number of the first row in its table.
    """

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None = None
    folds: NDArray[np.intp] | None = None
    first_row: int = 0

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> Batch:
        weights = None if self.weights is None else self.weights[rows]
        return Batch(self.X[rows], self.y[rows], weights, None if self.folds is None else self.folds[rows])

    @staticmethod
    def joined(batches: Sequence[Batch]) -> Batch:
        """The rows of several, with their weights written out."""
        X, y, weights = zip(*((batch.X, batch.y, batch.row_weights()) for batch in batches), strict=True)
        return Batch(np.concatenate(X), np.concatenate(y), np.concatenate(weights))

    def without(self, others: Batch) -> Batch:
        """The rows minus one copy of each of the others, which must all be among them."""
        removed = Counter(row.tobytes() for row in others._as_numbers())
        kept = np.ones(len(self), dtype=bool)
        for i, row in enumerate(self._as_numbers()):
            if removed[row.tobytes()]:
                removed[row.tobytes()] -= 1
                kept[i] = False
        return self[kept]

    def _as_numbers(self) -> NDArray[np.float64]:
        return np.column_stack([self.X, self.y, self.row_weights()]) + 0.0  # -0.0 becomes 0.0

    def blocks(self, n_rows: int) -> Iterator[Batch]:
        """Iterate over the rows in batches of at most the given size."""
        return (self[start : start + n_rows] for start in range(0, len(self), n_rows))

    def positive(self) -> Batch:
        """The rows of positive weight."""
        return self if self.weights is None or self.weights.all() else self[self.weights > 0]

    def row_weights(self) -> NDArray[np.float64]:
        """The weights, (m,), written out."""
        return np.ones(len(self)) if self.weights is None else self.weights


B_contra = TypeVar("B_contra", bound=Sized, contravariant=True)


class Resumable(Protocol[B_contra]):
    """A summary of rows that come in their order, which goes on from a saved state."""

    def add(self, batch: B_contra, /) -> None:
        """Add rows: all of them or, on an error, none that a saved state shows."""

    def state(self) -> tuple[State, Arrays]:
        """Return the summary as JSON and arrays."""

    def restore(self, state: State, arrays: Arrays, /) -> None:
        """Restore what :meth:`state` returned; called on a summary without rows."""


@runtime_checkable
class Statistic(Resumable[B_contra], Protocol[B_contra]):
    """Sums over rows, in any order and in any parts: other processes can sum parts up, and their states travel."""

    @property
    def n_rows(self) -> int:
        """Rows that were added, as the statistic counts them; 0 before the first."""

    def merge(self, other: Self, /) -> None:
        """Add the rows of another, which stays as it is."""

    def empty(self) -> Self:
        """Return the same layout without rows: what a worker starts from."""

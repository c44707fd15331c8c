"""What a statistic is: sums over rows, which merge, so that rows may come in any pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sparsact.saving.schema import Arrays, State


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows that come together; indexing gives some of them.

    Attributes
    ----------
    X : Points or ndarray of shape (m, n)
        Packed points of the cube, or columns as they are.
    y : ndarray of shape (m, T)
        Targets.
    weights : ndarray of shape (m,), or None
        None for ones.
    folds : ndarray of shape (m,), or None
        The fold that each row goes to, if there are several.
    """

    X: Any
    y: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    folds: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice | NDArray[np.bool_]) -> Batch:
        weights = None if self.weights is None else self.weights[rows]
        return Batch(self.X[rows], self.y[rows], weights, None if self.folds is None else self.folds[rows])

    @staticmethod
    def joined(batches: Sequence[Batch]) -> Batch:
        """The rows of several, with their weights written out."""
        parts = zip(*((batch.X, batch.y, batch.row_weights()) for batch in batches), strict=True)
        return Batch(*(np.concatenate(part) for part in parts))

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


@runtime_checkable
class Statistic(Protocol):
    """Sums over rows."""

    @property
    def n_rows(self) -> int:
        """Rows of positive weight."""

    def add(self, batch: Batch) -> None:
        """Add rows."""

    def merge(self, other: Self) -> None:
        """Add the rows of another, which stays as it is."""

    def empty(self) -> Self:
        """The same layout without rows: what a worker starts from."""

    def state(self) -> tuple[State, Arrays]:
        """The sums as JSON and arrays."""

    def restore(self, state: State, arrays: Arrays) -> None:
        """Become the sums that :meth:`state` wrote; called on a statistic without rows."""


@runtime_checkable
class Removable(Statistic, Protocol):
    """Sums that rows can leave."""

    def remove(self, batch: Batch) -> None:
        """Take away rows that were added before."""


class PassStatistic(Protocol):
    """What one pass over the rows of a table sums up."""

    @property
    def add(self) -> Callable[..., None]:
        """Adds a batch of the source, whose entries are followed by the number of its first row."""

    def state(self, arrays: Arrays) -> State:
        """All of it, as JSON spells it; arrays are put among the others."""

    def restore(self, state: State, arrays: Arrays) -> None:
        """Have summed what another had."""


class DivisibleStatistic(PassStatistic, Protocol):
    """What parts of the rows can sum up apart, in other processes: its state alone travels."""

    def empty(self) -> Self:
        """The same without rows: what a worker starts from."""

    def merge(self, other: Self) -> None:
        """Add the rows of another, which stays as it is."""

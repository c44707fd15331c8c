"""What an update will change in arrays that are shared, until it is known that nothing can fail any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PendingUpdate:
    """Changes of a shallow copy of a table, which shares its arrays.

    Rows are checked and hashed, buckets numbered and memory taken first; their sums change at the end, by
    :meth:`make`, all or none of them.
    """

    def __init__(self, table: Any) -> None:
        self._table, self._n_buckets = table, len(table.index)
        self.apart = False  # the copy has arrays of its own: changes need not wait
        self._changes: list[Callable[[], None]] = []
        self._rows: list[Any] = []

    def then(self, change: Callable[[], None]) -> None:
        """Make a change with all the others, or at once."""
        if self.apart:
            change()
        else:
            self._changes.append(change)

    def save_rows(self, keys: NDArray[np.uint64]) -> None:
        """Keep how often rows are remembered, before they are more or fewer."""
        self._rows.append(self._table.rows.save(keys))

    def make(self) -> None:
        """Make the changes. None of them can fail."""
        for change in self._changes:
            change()

    def drop(self) -> None:
        """Give the table its rows back, and forget the buckets that were numbered."""
        for saved in reversed(self._rows):
            self._table.rows.restore(saved)
        if not self.apart:
            self._table.index.truncate(self._n_buckets)

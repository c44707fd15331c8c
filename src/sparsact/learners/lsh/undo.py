"""What a table of buckets held before an update that is made in place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.bucket_statistics import Visited


class Undo:
    """Counts and sums of buckets, and copies of rows, before a shallow copy of their table was changed.

    What is kept more than once is given back in reverse. An update of few rows meets few buckets of a large table.
    """

    def __init__(self, table: Any) -> None:
        self._table, self._n_buckets, self._n_most = table, len(table.index), 0
        self.apart = False  # the copy has buckets of its own
        self._buckets: list[tuple[NDArray[np.int32], Visited]] = []
        self._rows: list[Any] = []

    def visited(self, ids: NDArray[np.int32], n_sums: int) -> Visited | None:
        """What the kernel is to fill in as rows fall into buckets (m, T); None where that need not be known."""
        if self.apart:
            return None
        self._n_most = max(self._n_most, len(self._table.index))
        visited = Visited.unfilled(ids.size, n_sums)
        self._buckets.append((ids.T.ravel(), visited))
        return visited

    def save(self, ids: NDArray[np.int32]) -> None:
        """Keep what buckets (k,) hold."""
        table, visited = self._table, self.visited(ids, self._table.layout.n_sums)
        if visited is not None:
            old = ids < self._n_buckets
            visited.sums[old] = table._sums[ids[old]]
            visited.counts[old] = table._counts[ids[old]]

    def save_rows(self, keys: NDArray[np.uint64]) -> None:
        """Keep how often rows are remembered, before they are more or fewer."""
        self._rows.append(self._table.rows.save(keys))

    def restore(self) -> None:
        """Give the table its rows back."""
        table = self._table
        for saved in reversed(self._rows):
            table.rows.restore(saved)
        if self.apart:
            return
        most = max(self._n_most, len(table.index))
        table.index.truncate(self._n_buckets)
        for ids, visited in reversed(self._buckets):
            there = np.flatnonzero((visited.counts >= 0) & (ids < self._n_buckets))[::-1]
            own = ids[there]
            table._counts[own], table._sums[own] = visited.counts[there], visited.sums[there]
            table._forget(own)
        table.clear_spare(most)

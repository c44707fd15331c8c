"""What an update of a table of buckets changes in place, kept so that it can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sparsact.learners.lsh.table import BucketTable


class Undo:
    """The counts and sums that buckets of a table had before an update.

    The update is made on a shallow copy of the table. The two share the sums, of which small batches change few.
    """

    def __init__(self, table: BucketTable) -> None:
        self._table = table
        self._n_buckets, self._n_keys = len(table.index), len(table.rows)
        self._unsaved = np.ones(self._n_buckets, dtype=bool)
        self._last = np.empty(self._n_buckets, dtype=np.int64)  # place of a bucket among the ids of a call
        self._saved: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]]] = []

    def save(self, ids: NDArray[np.int32]) -> None:
        """Keep what buckets hold, before it is changed; new buckets hold nothing."""
        old = ids[ids < self._n_buckets]
        old = old[self._unsaved[old]]
        places = np.arange(len(old))
        self._last[old] = places
        old = old[self._last[old] == places]  # each once, without sorting
        self._saved.append((self._table.counts[old], self._table.sums.take(old, axis=0), old))
        self._unsaved[old] = False

    def restore(self) -> None:
        """Give the table its rows back."""
        table = self._table
        table.index.truncate(self._n_buckets)
        table.rows.truncate(self._n_keys)
        for counts, sums, ids in self._saved:
            table.counts[ids], table.sums[ids] = counts, sums
        table.clear_spare()

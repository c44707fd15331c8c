"""The additive table of buckets: rows come and go, tables of the same layout merge, failed updates are undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import bucket_statistics, hashing
from sparsact.kernels.bucket_index import BucketIndex
from sparsact.learners.lsh.layout import Array, Layout
from sparsact.memory import has_room
from sparsact.saving.schema import ArrayField, Arrays, State, read_arrays
from sparsact.statistics.statistic import Batch

ROWS_AT_ONCE = 8192
KEY_BYTES = 8 + 4 * 16  # of a bucket: its key, and slots of which at least a quarter is full
MAX_CELLS = 2.0**50  # from the centre: beyond it a float does not tell places within a cell
MAX_COUNT = 2**62  # of rows, over all tables
LARGEST = 1e100  # of a row's weight times squares of its features and targets: sums then have room

_ARRAYS = {
    "keys": ArrayField("B", np.uint64),
    "counts": ArrayField("B", np.int64, nonnegative=True),
    "sums": ArrayField("B n_sums", finite=True),
    "totals": ArrayField("totals", finite=True),
}
_ROWS = {"keys": ArrayField("m", np.uint64), "copies": ArrayField("m", np.int64, nonnegative=True)}


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


class BucketTable:
    """Counts, positions, Gram statistics and targets of each bucket, under an open-addressing index.

    Buckets are numbered 0, 1, ... in the order of their first row, over all tables together. Rows are remembered by a
    64-bit key each, so that only rows that were added can be taken away; a table that keeps none lets none be taken
    away, and grows with the inhabited buckets alone.
    """

    def __init__(self, layout: Layout, *, keeps_rows: bool = True) -> None:
        self.layout = layout
        self.index = BucketIndex()
        self.rows = BucketIndex()
        self.copies = np.zeros(0, dtype=np.int64)
        self.keeps_rows = keeps_rows
        self.totals = np.zeros(1 + layout.n_targets)  # weight, and weighted sums of targets less level, in units
        self._finest = float(np.abs(layout.hashes.directions).max()) if layout.hashes.grid else 0.0
        self._counts = np.zeros(0, dtype=np.int64)
        self._sums = np.zeros((0, layout.n_sums))
        self._undo: Undo | None = None

    def empty(self, *, keeps_rows: bool = True) -> BucketTable:
        """The same layout without rows."""
        return BucketTable(self.layout, keeps_rows=keeps_rows)

    def state(self, *, rows: bool = True) -> tuple[State, Arrays]:
        """Every part as an array; with the keys of its ``rows``, if it remembers them and they may be taken away."""
        kept = {"keys": self.index.keys, "counts": self.counts, "sums": self.sums, "totals": self.totals}
        if rows and self.keeps_rows:
            kept |= {"rows.keys": self.rows.keys, "rows.copies": self.copies}
        return {}, kept

    def restore(self, state: State, arrays: Arrays) -> None:
        """Become the table that :meth:`state` took apart."""
        read = read_arrays(_ARRAYS, arrays, n_sums=self.layout.n_sums, totals=1 + self.layout.n_targets)
        self.index = _index(read["keys"], "two buckets have one key")
        self._counts, self._sums, self.totals = read["counts"], read["sums"], read["totals"]
        self.keeps_rows = "rows.keys" in arrays
        if self.keeps_rows:
            read = read_arrays(_ROWS, arrays, "rows.")
            self.rows, self.copies = _index(read["keys"], "two rows have one key"), read["copies"]

    @property
    def n_rows(self) -> int:
        """Rows held."""
        return int(self.counts.sum()) // self.layout.n_tables

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows in each bucket, (B,)."""
        return self._counts[: len(self.index)]

    @property
    def sums(self) -> Array:
        """Sums of each bucket, (B, n_sums); see :func:`sparsact.kernels.bucket_statistics.accumulate`."""
        return self._sums[: len(self.index)]

    def add(self, batch: Batch) -> None:
        """Add rows. After an error the table is of no use: change a fork."""
        X, Y, weights = batch.X, batch.y, batch.row_weights()
        self._check_range(X, Y, weights)
        self._check_room(len(X) * self.layout.n_tables, lambda: self._n_new(X))
        if self.keeps_rows:
            self._remember(_row_keys(X, Y, weights), 1)
        self._accumulate(X, Y, weights, 1)

    def remove(self, batch: Batch) -> None:
        """Take rows away; none, if one was never added. After another error the table is of no use: change a fork."""
        X, Y, weights = batch.X, batch.y, batch.row_weights()
        keys = _row_keys(X, Y, weights)
        ids = self.rows.find(keys)
        present = np.where(ids >= 0, self.copies[ids] if len(self.copies) else 0, 0)
        _, first, asked = np.unique(keys, return_index=True, return_counts=True)
        missing = first[asked > present[first]]
        if len(missing):
            row = int(missing.min())
            raise ValueError(
                f"row {row} was not added, or is asked to be removed more often than it was added (with the same "
                "values, target and weight); nothing was removed: drop it from the rows."
            )
        self.copies = self.copies.copy()
        np.subtract.at(self.copies, ids, 1)
        self._accumulate(X, Y, weights, -1)
        self._drop_empty()

    def _accumulate(self, X: Array, Y: Array, weights: Array, sign: int) -> None:
        """Add (or, with sign -1, take away) rows in the sums of their buckets."""
        layout, centred = self.layout, (Y - self.layout.level) / self.layout.unit
        self.totals = self.totals + sign * np.concatenate([[weights.sum()], weights @ centred])
        for part in _parts(len(X)):
            found = hashing.places(X[part], layout.hashes)
            own = self.index.insert(found.keys) if sign > 0 else self.index.find(found.keys)
            self._make_room()
            self._save(own)
            residual = layout.residual(X[part], Y[part])
            bucket_statistics.accumulate(
                found, own, residual, weights[part], sign, layout.degree, self._counts, self._sums
            )

    def merge(self, other: BucketTable) -> None:
        """Take in all rows of a table of the same layout; where one of the two keeps no rows, nor does the sum.

        Raises
        ------
        ValueError
            If counts, or their sum over tables, would exceed int64, or buckets their numbers.
        MemoryError
            If there is no room for its buckets.
        """
        n_rows = self.n_rows + other.n_rows
        if n_rows * self.layout.n_tables > MAX_COUNT:
            raise ValueError(
                f"{n_rows:,} rows in {self.layout.n_tables} tables are more than counts hold, {MAX_COUNT:,}; "
                "merge fewer models."
            )
        keys = other.index.keys.copy()
        self._check_room(len(keys), lambda: self.index.n_new(keys))
        if not (self.keeps_rows and other.keeps_rows):
            self.rows, self.copies, self.keeps_rows = BucketIndex(), np.zeros(0, dtype=np.int64), False
        else:
            self._remember(other.rows.keys.copy(), other.copies)
        ids = self.index.insert(keys)
        self._make_room()
        self._save(ids)
        self._counts[ids] += other.counts
        self._sums[ids] += other.sums
        self.totals = self.totals + other.totals

    def frozen(self) -> BucketTable:
        """A copy for prediction alone, which later updates leave as it is."""
        other = copy(self)
        other.index = BucketIndex(self.index.keys, self.index.most)
        other._counts, other._sums, other._undo = self.counts.copy(), self.sums.copy(), None
        return other

    def fork(self, *, apart: bool) -> tuple[BucketTable, Callable[[bool], None]]:
        """A copy to change in this one's stead, and a function to call after that: with False, it undoes the changes.

        The two share arrays or, if ``apart``, only the rows that are remembered: this one serves predictions still.
        """
        twin, undo = self.frozen() if apart else copy(self), Undo(self)
        twin._undo = None if apart else undo

        def finish(kept: bool) -> None:
            twin._undo = None
            if not kept:
                undo.restore()

        return twin, finish

    def clear_spare(self) -> None:
        """Empty the room for new buckets."""
        self._counts[len(self.index) :], self._sums[len(self.index) :] = 0, 0.0

    def means(self) -> Array:
        """Mean target of each bucket without level and trend, (B, targets), in the units of y."""
        layout = self.layout
        total = self.sums[:, layout.n_local]
        start = layout.n_local + layout.n_features * (layout.n_features + 1) // 2
        sums = self.sums[:, start : start + layout.n_targets]
        means: Array = sums / np.where(total > 0, total, 1.0)[:, None] * layout.unit
        return means

    def mean(self) -> Array:
        """Mean target of all rows, (targets,)."""
        mean: Array = self.layout.level + self.layout.unit * (self.totals[1:] / self.totals[0])
        return mean

    def positions(self) -> Array:
        """Mean local coordinates of the rows of each bucket, (B, p)."""
        total = self.sums[:, self.layout.n_local]
        positions: Array = self.sums[:, : self.layout.n_local] / np.where(total > 0, total, 1.0)[:, None]
        return positions

    def _remember(self, keys: NDArray[np.uint64], copies: NDArray[np.int64] | int) -> None:
        ids = self.rows.insert(keys)
        self.copies = _padded(self.copies, len(self.rows))
        np.add.at(self.copies, ids, copies)

    def _save(self, ids: NDArray[np.int32]) -> None:
        if self._undo is not None:
            self._undo.save(ids)

    def _n_new(self, X: Array) -> int:
        """Buckets that these rows would be the first in."""
        keys = (hashing.places(X[part], self.layout.hashes).keys.ravel() for part in _parts(len(X)))
        new = [np.unique(part[self.index.find(part) < 0]) for part in keys]
        return self.index.n_new(np.concatenate(new)) if new else 0

    def _check_room(self, n_new: int, exactly: Callable[[], int]) -> None:
        """Raise unless there is room for new buckets: at most ``n_new``, counted only where so many would be too many.

        Raises
        ------
        ValueError
            If there are more buckets than numbers.
        MemoryError
            If they need more than is free.
        """
        if self._has_room(len(self.index) + n_new):
            return
        total = len(self.index) + exactly()
        if total > self.index.most:
            raise ValueError(
                f"rows fall into {total:,} buckets, more than have numbers of 32 bits, {self.index.most:,}; raise "
                "`bucket_width`, or lower `n_tables` or `n_hashes`."
            )
        if not self._has_room(total):
            raise MemoryError(
                f"rows fall into {total:,} buckets, which need {self._room_bytes(total):,.0f} bytes more than there is "
                "room for; raise `bucket_width`, lower `n_tables` or `n_hashes`, take a low-degree model (--model "
                "low-degree), or a machine of more memory."
            )

    def _has_room(self, total: int) -> bool:
        return total <= self.index.most and has_room(self._room_bytes(total))

    def _room_bytes(self, n_buckets: int) -> float:
        """Bytes needed, at most, for so many buckets in all."""
        if n_buckets <= len(self._counts):
            return 0.0
        return max(n_buckets, 2.0 * len(self._counts)) * (KEY_BYTES + 8 * (1 + self.layout.n_sums))

    def _make_room(self) -> None:
        needed = len(self.index)
        if needed > len(self._counts):
            room = max(needed, 2 * len(self._counts))
            self._counts = _padded(self._counts, room)
            self._sums = np.concatenate([self._sums, np.zeros((room - len(self._sums), self._sums.shape[1]))])

    def _drop_empty(self) -> None:
        """Renumber the buckets that still hold rows."""
        kept = self.counts > 0
        if not kept.all():
            self.index, self._counts, self._sums = (
                BucketIndex(self.index.keys[kept], self.index.most),
                self.counts[kept],
                self.sums[kept],
            )
        known = self.copies > 0
        if known.sum() < len(known) / 2:
            self.rows, self.copies = BucketIndex(self.rows.keys[known]), self.copies[known]

    def _check_range(self, X: Array, Y: Array, weights: Array) -> None:
        for part in _parts(len(X)):
            with np.errstate(over="ignore", invalid="ignore"):
                Z = (X[part] - self.layout.hashes.centre) @ self.layout.hashes.local
                residual = self.layout.residual(X[part], Y[part])
                size = weights[part] * np.maximum(np.abs(Z).max(axis=1, initial=1), np.abs(residual).max(axis=1)) ** 2
                near = (size < LARGEST) & (np.abs(Z).max(axis=1) * self._finest < MAX_CELLS)
            if not near.all():
                raise ValueError(
                    f"row {part.start + int(np.argmin(near))} lies too far from the rows the model was laid out on, or "
                    f"its target or weight is too large for them (squares beyond {LARGEST:g} of their scale), or "
                    f"`bucket_width` is too small to tell cells apart (beyond {MAX_CELLS:g} of them); check the row, "
                    "fit again with it, or raise `bucket_width`."
                )


def _row_keys(X: Array, Y: Array, weights: Array) -> NDArray[np.uint64]:
    rows = np.concatenate([X, Y, weights[:, None]], axis=1) + 0.0  # -0.0 becomes 0.0
    return hashing.row_keys(np.ascontiguousarray(rows))


def _index(keys: NDArray[np.uint64], complaint: str) -> BucketIndex:
    if len(np.unique(keys)) != len(keys):
        raise ValueError(complaint)
    return BucketIndex(keys)


def _padded(array: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    return np.concatenate([array, np.zeros(length - len(array), dtype=np.int64)])


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, min(n, start + ROWS_AT_ONCE)) for start in range(0, n, ROWS_AT_ONCE))

"""The table of buckets: add and remove rows, merge tables of one layout, undo failed updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy, deepcopy
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import bucket_statistics, hashing
from sparsact.kernels.bucket_index import BucketIndex
from sparsact.kernels.bucket_values import Combination
from sparsact.learners.lsh.bucket_solution import BucketSolution, LiveSolution
from sparsact.learners.lsh.coarse_grids import backup_layout
from sparsact.learners.lsh.compiled import CompiledTable, Slots
from sparsact.learners.lsh.layout import Array, Layout
from sparsact.learners.lsh.updates import PendingUpdate, RememberedRows, RowNames, check_range, check_room, row_keys
from sparsact.saving.schema import ArrayField, Arrays, State, add_prefix, read_arrays, strip_prefix
from sparsact.statistics.statistic import Batch

ROWS_AT_ONCE, MAX_COUNT = 8192, 2**62  # rows in a step, and over all tables
FEW_BUCKETS: Final = 512  # up to which empty ones are dropped at once; of more, when they are half

_ARRAYS: Final = {
    "keys": ArrayField("B", np.uint64),
    "counts": ArrayField("B", np.int64, nonnegative=True),
    "sums": ArrayField("B n_sums", finite=True),
    "totals": ArrayField("totals", finite=True),
    "scores": ArrayField("n targets", finite=True, nonnegative=True, optional=True),
    "range": ArrayField("2 targets", optional=True),
}


class BucketTable:
    """Counts, positions, Gram statistics and targets of each bucket, under an open-addressing index.

    Buckets are numbered 0, 1, ... in the order of their first row, over all tables together. Rows are remembered by a
    64-bit key each, so that only rows that were added can be taken away; a table that keeps none lets none be taken
    away, and grows with the inhabited buckets alone.
    """

    rows_at_once = ROWS_AT_ONCE

    def __init__(self, layout: Layout, *, keeps_rows: bool = True, with_backup: bool = True) -> None:
        self.layout = layout
        self.backup = BucketTable(backup_layout(layout), keeps_rows=False, with_backup=False) if with_backup else None
        self.index = BucketIndex()
        self.rows = RememberedRows(layout.n_targets)
        self.keeps_rows = keeps_rows
        self.totals = np.zeros(1 + layout.n_targets)  # weight, and weighted sums of targets less level, in units
        self.finest = float(np.abs(layout.hashes.directions).max()) if layout.hashes.grid else 0.0
        self.low, self.high = np.full(layout.n_targets, np.inf), np.full(layout.n_targets, -np.inf)
        self.n_rows = 0
        self._counts = np.zeros(0, dtype=np.int64)
        self._sums = np.zeros((0, layout.n_sums))
        self._n_empty = 0
        self._solution: LiveSolution | None = None
        self._pending: PendingUpdate | None = None
        self.scores: Array | None = None  # of rows held out; see :mod:`sparsact.learners.lsh.leave_one_out`
        self._readers: list[Any] = []  # predictors of the table, while a shallow copy of it is changed

    def empty(self, *, keeps_rows: bool = True) -> BucketTable:
        """The same layout without rows."""
        other = BucketTable(self.layout, keeps_rows=keeps_rows, with_backup=self.backup is not None)
        other.scores = self.scores
        return other

    def state(self, *, rows: bool = True) -> tuple[State, Arrays]:
        """Every part as an array; with the keys of its ``rows``, if it remembers them and they may be taken away."""
        tidy = self.tidied()
        kept = {"keys": tidy.index.keys, "counts": tidy.counts, "sums": tidy.sums, "totals": self.totals}
        if rows and self.keeps_rows:
            kept |= add_prefix("rows", self.rows.arrays())
        if self.scores is not None:
            kept["scores"] = self.scores
        if self.backup is not None:
            kept |= {"range": np.stack([self.low, self.high])} | add_prefix("backup", self.backup.state()[1])
        return {}, kept

    def restore(self, state: State, arrays: Arrays) -> None:
        """Become the table that :meth:`state` took apart."""
        arrays = {**arrays, "sums": self.layout.sums_of_file(arrays["sums"])}
        read = read_arrays(_ARRAYS, arrays, n_sums=self.layout.n_sums, totals=1 + len(self.low), targets=len(self.low))
        if len(np.unique(read["keys"])) != len(read["keys"]):
            raise ValueError("two buckets have the same key")
        self.index = BucketIndex(read["keys"])
        self._counts, self._sums, self.totals = read["counts"], read["sums"], read["totals"]
        self.scores = read.get("scores")
        self._n_empty = int(np.count_nonzero(self._counts == 0))
        self.n_rows = int(self._counts.sum()) // self.layout.n_tables
        if self.backup is not None and "range" in read:
            self.low, self.high = read["range"].copy()
            self.backup.restore({}, strip_prefix("backup", arrays))
        elif self.backup is not None:  # a file from before there were backups: none, and no limits
            self.backup, self.low, self.high = None, -self.low, -self.high
        self.keeps_rows = "rows.keys" in arrays
        if self.keeps_rows:
            self.rows = RememberedRows.from_arrays(arrays, "rows.", self.layout.n_targets)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows in each bucket, (B,)."""
        return self._counts[: len(self.index)]

    @property
    def sums(self) -> Array:
        """Sums of each bucket, (B, n_sums); see :func:`sparsact.kernels.bucket_statistics.accumulate`."""
        return self._sums[: len(self.index)]

    def add(self, batch: Batch, known_by: RowNames | None = None) -> None:
        """Add rows, under their own keys or ``known_by``. An error leaves the table unusable: change a fork."""
        X, Y, weights = batch.X, batch.y, batch.row_weights()
        keys, targets = known_by or (None, Y)
        self._begin_change(len(X))
        if len(X) > self.rows_at_once:  # else the check of the one part is in time
            self._check_room(len(X) * self.layout.n_tables, lambda: self._n_new(X))
        self._change(X, Y, weights, 1)
        if self.keeps_rows:
            self._remember(row_keys(X, Y, weights[:, None]) if keys is None else keys, 1, targets)
        self.low = np.minimum(self.low, targets.min(axis=0, initial=np.inf))
        self.high = np.maximum(self.high, targets.max(axis=0, initial=-np.inf))

    def remove(self, batch: Batch, known_by: RowNames | None = None) -> None:
        """Remove rows; none, if one was never added. Any other error leaves the table unusable: change a fork."""
        X, Y, weights = batch.X, batch.y, batch.row_weights()
        self._begin_change(len(X))
        keys, targets = known_by or (row_keys(X, Y, weights[:, None]), Y)
        if self._pending is not None:
            self._pending.save_rows(keys)
        self.rows.remove(keys)
        self._change(X, Y, weights, -1)
        if ((self.low >= targets) | (self.high <= targets)).any():
            self.low, self.high = self.rows.target_range() or (self.low, self.high)

    def _change(self, X: Array, Y: Array, weights: Array, sign: int) -> None:
        """Add rows to the sums of their buckets, here and in the backup, or subtract them with sign -1."""
        layout, centred = self.layout, (Y - self.layout.level) / self.layout.unit
        totals = np.concatenate([[weights.sum()], weights @ centred])
        self.n_rows += sign * len(X)
        self.totals = self.totals + sign * totals
        for part in self._parts(len(X)):
            residual, own = layout.residual(X[part], Y[part]), weights[part]
            found = hashing.places(X[part], layout.hashes)
            if sign > 0:
                check_range(found.Z, residual, own, self.finest, part.start)
            self._accumulate(found, residual, own, sign)
            if self.backup is not None:
                self.backup._accumulate(hashing.places(X[part], self.backup.layout.hashes), residual, own, sign)
        for table in (self, self.backup):
            if sign < 0 and table is not None:
                table._defer(table._drop_empty)

    def _accumulate(self, found: hashing.BucketPlaces, residual: Array, weights: Array, sign: int) -> None:
        n_before, keys = len(self.index), found.keys
        if sign > 0 and n_before + keys.size > len(self._counts):
            n_new = int(np.count_nonzero(self.index.find(keys) < 0))
            self._check_room(n_new, lambda: self.index.n_new(keys.ravel()))
        ids = self.index.insert(keys) if sign > 0 else self.index.find(keys)
        self._make_room()
        self._forget(ids)
        self._n_empty += len(self.index) - n_before

        def change() -> None:
            self._n_empty -= bucket_statistics.accumulate(
                found, ids, residual, weights, sign, self.layout.degree, self._counts, self._sums
            )

        self._defer(change)

    def _defer(self, change: Callable[[], None]) -> None:
        """Make a change at once, or in a fork when the fork is finished."""
        if self._pending is None:
            change()
        else:
            self._pending.defer(change)

    def merge(self, other: BucketTable) -> None:
        """Add all rows of a table of the same layout; the sum remembers rows only if both tables do.

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
                f"{n_rows:,} rows in {self.layout.n_tables} tables are more than the counts can hold, {MAX_COUNT:,}; "
                "merge fewer models."
            )
        self._begin_change(len(other.index) // self.layout.n_tables)
        keys = other.index.keys.copy()
        self._check_room(len(keys), lambda: self.index.n_new(keys))
        if not (self.keeps_rows and other.keeps_rows):
            self.rows, self.keeps_rows = RememberedRows(self.layout.n_targets), False
        else:
            theirs = other.rows.arrays()
            self._remember(theirs["keys"].copy(), theirs["copies"], theirs.get("targets"))
        self._take_in(other)
        if self.backup is not None and other.backup is not None:
            self.backup._take_in(other.backup)
        else:
            self.backup = None
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)

    def _take_in(self, other: BucketTable) -> None:
        held, n_before = other.counts > 0, len(self.index)
        ids = self.index.insert(other.index.keys[held])
        self._make_room()
        self._forget(ids)
        counts, sums = self._counts[ids] + other.counts[held], self._sums[ids]
        bucket_statistics.add_sums(sums, other.sums[held], self.layout.n_target_sums)
        self._n_empty += len(self.index) - n_before - int(np.count_nonzero(self._counts[ids] == 0))

        def change() -> None:
            self._counts[ids], self._sums[ids] = counts, sums

        self._defer(change)
        self.n_rows += other.n_rows
        self.totals = self.totals + other.totals

    def detached(self, *, with_rows: bool = True) -> BucketTable:
        """A copy that shares nothing that updates change; for prediction alone, without rows."""
        other = self._with(slice(0, len(self.index)))
        other.rows = deepcopy(self.rows) if with_rows else RememberedRows(self.layout.n_targets)
        other.keeps_rows = self.keeps_rows and with_rows
        other.backup = self.backup and self.backup.detached(with_rows=with_rows)
        return other

    def tidied(self) -> BucketTable:
        """The table without empty buckets: itself, if it has none."""
        return self._with(self.counts > 0) if self._n_empty else self

    def _with(self, kept: NDArray[np.bool_] | slice) -> BucketTable:
        """A copy of some buckets; the rows that are remembered are shared."""
        other = copy(self)
        other.index = BucketIndex(self.index.keys[kept], self.index.most)
        other._counts, other._sums = self.counts[kept].copy(), self.sums[kept].copy()
        other.totals = self.totals.copy()
        other._n_empty = int(np.count_nonzero(other._counts == 0))
        other._pending, other._readers, other._solution = None, [], None
        return other

    def copy_on_write(self, readers: list[Any]) -> tuple[BucketTable, Callable[[bool], None]]:
        """A copy to change in this one's stead, and a function that makes the changes (True) or drops them.

        Both share arrays. The ``readers``, all predictors that read them, are taken from the list before they are
        changed. They are gone then, unless another thread is in the middle of a prediction that lasts longer than a
        copy of the sums: that thread goes on with its own, and the copy gets new arrays, as where the rows are many.
        """
        twin = copy(self)
        twin._readers, twin.rows, twin.backup = readers, copy(self.rows), copy(self.backup)
        tables = [(twin, PendingUpdate(self.index, self.rows))]
        if twin.backup is not None:
            tables.append((twin.backup, PendingUpdate(twin.backup.index, twin.backup.rows)))
        for table, pending in tables:
            table._pending = pending

        def finish(kept: bool) -> None:
            for table, pending in tables:
                pending.finish(kept)
                table._pending, table._readers = None, []

        return twin, finish

    def _begin_change(self, n_rows: int) -> None:
        """See :meth:`copy_on_write`. Notes of rows in place take no more memory than a fraction of the sums."""
        if self._pending is None:
            return
        readers, self._readers = self._readers, []
        many = n_rows > max(self.rows_at_once, len(self.index) // self.layout.n_tables)
        if not many:
            self._pending.await_readers(readers, self._sums.nbytes)
        if many or readers:
            self._separate()

    def _separate(self) -> None:
        """Copy all shared arrays except the remembered rows."""
        self.__dict__.update(vars(self._with(slice(0, len(self.index)))) | {"_pending": self._pending})
        if self._pending is not None:
            self._pending.is_detached = True
        if self.backup is not None:
            self.backup._separate()

    def solution(self, alpha: float, least: int) -> LiveSolution:
        """The polynomials of the buckets; each is solved when a row first meets it."""
        if (held := self._solution) is None or (held.alpha, held.least) != (alpha, least):
            held = self._solution = LiveSolution(self.layout, len(self._counts), alpha, least)
        return held

    def solved(self, alpha: float, least: int) -> BucketSolution:
        """The polynomials of all buckets as they are now."""
        return BucketSolution.of(self.layout, self.counts, self.sums, alpha, least)

    def compiled(
        self, alpha: float, least: int, combine: Combination = "average", *, is_live: bool
    ) -> CompiledTable[Slots]:
        """The buckets as they predict: solved as rows meet them and updates change them, or all as they are now."""
        if is_live:
            storage = self.solution(alpha, least).storage(self.index, self.counts, self.sums)
        else:
            solved = self.solved(alpha, least)
            storage = Slots.of(self.index.slots, solved.coefficients, solved.weights)
        return CompiledTable(self.layout.hashes, self.layout.degree, storage, combine)

    def _forget(self, ids: NDArray[np.int32]) -> None:
        if self._solution is not None:
            self._solution.stale[ids] = 1

    def _remember(self, keys: NDArray[np.uint64], copies: NDArray[np.int64] | int, targets: Array | None) -> None:
        if self._pending is not None:
            self._pending.save_rows(keys)
        self.rows.add(keys, copies, targets)

    def _n_new(self, X: Array) -> int:
        """Number of buckets that these rows would open."""
        keys = (hashing.places(X[part], self.layout.hashes).keys.ravel() for part in self._parts(len(X)))
        new = [np.unique(part[self.index.find(part) < 0]) for part in keys]
        return self.index.n_new(np.concatenate(new)) if new else 0

    def _check_room(self, n_new: int, exactly: Callable[[], int]) -> None:
        check_room(self.index, len(self._counts), self.layout.n_sums, n_new, exactly)

    def _make_room(self) -> None:
        needed, held = len(self.index), len(self._counts)
        if needed > held:
            room = max(needed, 2 * held)
            counts, sums = self._counts, self._sums
            self._counts, self._sums = np.zeros(room, dtype=np.int64), np.zeros((room, sums.shape[1]))
            self._counts[:held], self._sums[:held] = counts, sums  # the rest takes no memory until it is written to
            if self._solution is not None:
                self._solution.grow(room)

    def _drop_empty(self) -> None:
        """Renumber the buckets that still hold rows, where that is worth it and there is room."""
        with suppress(MemoryError):
            if self._n_empty and (len(self.index) <= FEW_BUCKETS or 2 * self._n_empty > len(self.index)):
                self.__dict__.update(vars(self.tidied()) | {"_pending": self._pending})
            self.rows = self.rows.tidied(self.n_rows)

    def _parts(self, n: int) -> Iterator[slice]:
        return (slice(start, min(n, start + self.rows_at_once)) for start in range(0, n, self.rows_at_once))

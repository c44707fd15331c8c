"""Updates of a table of buckets: the rows it remembers, limits, and changes made all at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import hashing
from sparsact.kernels.bucket_index import BucketIndex
from sparsact.learners.lsh.layout import Array
from sparsact.memory import has_room
from sparsact.saving.schema import ArrayField, Arrays, read_arrays

Keys = NDArray[np.uint64]
SavedRows = tuple[int, NDArray[np.int32], NDArray[np.int64]]  # what a change of rows is undone by
_ROWS: Final = {
    "keys": ArrayField("m", np.uint64),
    "copies": ArrayField("m", np.int64, nonnegative=True),
    "targets": ArrayField("m T", finite=True, optional=True),
}
KEY_BYTES: Final = 8 + 4 * 16  # of a bucket: its key, and slots, at least a quarter of them full
MAX_CELLS: Final = 2.0**50  # from the centre: beyond it floats do not resolve places within a cell
SECONDS_A_BYTE: Final = 5e-10  # to copy sums into new memory: how long it pays to wait for who reads them
LARGEST: Final = 1e100  # of a row's weight times squares of its features and targets: sums then have room


class RowNames(NamedTuple):
    """Names of rows where the table sees other rows than were given: keys (m,), and their targets."""

    keys: Keys
    targets: Array


class RememberedRows:
    """Keys, number of copies and targets of the distinct rows, so that the range of targets can shrink again.

    A shallow copy shares all arrays. What changes in them is written back by :meth:`restore`.
    """

    def __init__(self, n_targets: int) -> None:
        self.index = BucketIndex()
        self.copies = np.zeros(0, dtype=np.int64)
        self.targets: Array | None = np.zeros((0, n_targets))  # None where a file of an earlier version has none

    def __len__(self) -> int:
        return len(self.index)

    @property
    def keys(self) -> Keys:
        """Key of each row, by number."""
        return self.index.keys

    def arrays(self) -> Arrays:
        """Every part of the rows that are held as an array."""
        parts: Arrays = {"keys": self.index.keys, "copies": self.copies}
        parts |= {} if self.targets is None else {"targets": self.targets}
        held = np.flatnonzero(self.copies[: len(self)])
        return {name: part[held] for name, part in parts.items()}

    @classmethod
    def from_arrays(cls, arrays: Arrays, prefix: str, n_targets: int) -> RememberedRows:
        """The rows that :meth:`arrays` took apart."""
        read = read_arrays(_ROWS, arrays, prefix, T=n_targets)
        if len(np.unique(read["keys"])) != len(read["keys"]):
            raise ValueError("two rows have the same key")
        rows = cls(n_targets)
        rows.index, rows.copies, rows.targets = BucketIndex(read["keys"]), read["copies"], read.get("targets")
        return rows

    def add(self, keys: Keys, copies: NDArray[np.int64] | int, targets: Array | None) -> NDArray[np.int32]:
        """Remember rows, and return their numbers. After an error: :meth:`restore`."""
        held = len(self.copies)
        ids = self.index.insert(keys)
        if len(self) > held:
            room = max(len(self), 2 * held) - held
            self.copies = np.concatenate([self.copies, np.zeros(room, dtype=np.int64)])
            if self.targets is not None:
                self.targets = np.concatenate([self.targets, np.zeros((room, self.targets.shape[1]))])
        if self.targets is not None and targets is not None:
            self.targets[ids] = targets
        else:
            self.targets = None
        np.add.at(self.copies, ids, copies)
        return ids

    def remove(self, keys: Keys) -> None:
        """Forget a copy of each row; none, if there are too few."""
        ids = self.index.find(keys)
        if (ids >= 0).all():
            np.subtract.at(self.copies, ids, 1)
            if (self.copies[ids] >= 0).all():
                return
            np.add.at(self.copies, ids, 1)
        present = np.where(ids >= 0, self.copies[ids] if len(self) else 0, 0)
        _, first, asked = np.unique(keys, return_index=True, return_counts=True)
        row = int(first[asked > present[first]].min())
        raise ValueError(
            f"row {row} was not added, or not as often as it is to be removed (with the same "
            "values, target and weight); nothing was removed: drop it, or pass the values exactly as they were added."
        )

    def tidied(self, n_rows: int) -> RememberedRows:
        """Without rows of no copies, if they may be more than the ``n_rows`` that there are."""
        if len(self) <= 2 * n_rows:
            return self
        held, other = self.arrays(), RememberedRows(0)
        other.index, other.copies, other.targets = BucketIndex(held["keys"]), held["copies"], held.get("targets")
        return other

    def target_range(self) -> tuple[Array, Array] | None:
        """Least and largest targets, (targets,) each; None where they are not known."""
        if self.targets is None:
            return None
        held = self.targets[: len(self)][self.copies[: len(self)] > 0]
        return held.min(axis=0, initial=np.inf), held.max(axis=0, initial=-np.inf)

    def save(self, keys: Keys) -> SavedRows:
        """What :meth:`restore` writes back after a change of these rows."""
        ids = self.index.find(keys)
        ids = ids[ids >= 0]
        return len(self), ids, self.copies[ids]

    def restore(self, saved: SavedRows) -> None:
        """Be as :meth:`save` found it."""
        n, ids, copies = saved
        self.index.truncate(n)
        self.copies[ids] = copies
        self.copies[n:] = 0


def row_keys(*columns: Array) -> Keys:
    """Keys (m,) of rows of some arrays side by side, each (m, k)."""
    return hashing.row_keys(np.ascontiguousarray(np.concatenate(columns, axis=1) + 0.0))  # -0.0 becomes 0.0


def check_room(index: BucketIndex, held: int, n_sums: int, n_new: int, exactly: Callable[[], int]) -> None:
    """Raise unless there is room for new buckets: at most ``n_new``, counted exactly if that would be too many.

    There is memory for ``held`` buckets of ``n_sums`` sums already.

    Raises
    ------
    ValueError
        If there are more buckets than numbers.
    MemoryError
        If they need more than is free.
    """

    def more_bytes(total: int) -> float:
        return 0.0 if total <= held else max(total, 2.0 * held) * (KEY_BYTES + 8 * (1 + n_sums))

    most = len(index) + n_new
    if most <= index.most and has_room(more_bytes(most)):
        return
    total = len(index) + exactly()
    if total > index.most:
        raise ValueError(
            f"rows fall into {total:,} buckets, more than 32 bits can number, {index.most:,}; raise "
            "`bucket_width`, or lower `n_tables` or `n_hashes`."
        )
    if not has_room(more_bytes(total)):
        raise MemoryError(
            f"rows fall into {total:,} buckets, which need {more_bytes(total):,.0f} bytes more than there is "
            "room for; raise `bucket_width`, lower `n_tables` or `n_hashes`, take a low-degree model (--model "
            "low-degree), or a machine with more memory."
        )


def check_range(Z: Array, residual: Array, weights: Array, finest: float, first: int) -> None:
    """Raise unless sums of rows with these local coordinates fit in floats, and their cells are distinguishable.

    ``finest`` is the largest number of cells to a unit of a coordinate; the number of the first row is ``first``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(Z).max(initial=1), np.abs(residual).max(initial=0), weights.max(initial=0)
        if _within(*largest, finest).all():
            return
        near = _within(np.abs(Z).max(axis=1, initial=1), np.abs(residual).max(axis=1), weights, finest)
    if not near.all():
        raise ValueError(
            f"row {first + int(np.argmin(near))} lies too far from the first rows, or its target or weight is too "
            f"large (squares beyond {LARGEST:g} of their scale, or {MAX_CELLS:g} cells); check the row, fit again with "
            "it, or raise `bucket_width`."
        )


def _within(
    coordinate: Array | np.float64, residual: Array | np.float64, weight: Array | np.float64, finest: float
) -> NDArray[np.bool_] | np.bool_:
    return (weight * np.maximum(coordinate, residual) ** 2 < LARGEST) & (coordinate * finest < MAX_CELLS)


class PendingUpdate:
    """Changes of a shallow copy of a table, which shares its arrays.

    Rows are checked and hashed, buckets numbered and memory taken first; their sums change at the end, by
    :meth:`finish`, all or none of them.
    """

    def __init__(self, index: BucketIndex, rows: RememberedRows) -> None:
        self._index, self._rows, self._n_buckets = index, rows, len(index)
        self.is_detached = False  # the copy has arrays of its own: changes need not wait
        self._changes: list[Callable[[], None]] = []
        self._saved: list[SavedRows] = []

    def defer(self, change: Callable[[], None]) -> None:
        """Make a change with all the others, or at once."""
        if self.is_detached:
            change()
        else:
            self._changes.append(change)

    @staticmethod
    def await_readers(readers: list[Any], nbytes: int) -> None:
        """Take the readers from the list; put back each that is read for longer than a copy of the bytes takes."""
        gone = SimpleQueue[Any]()  # which the end of a reader, in any thread, puts its reference in
        held = [ref(reader, gone.put) for reader in readers]
        readers.clear()  # whoever wants to predict now waits for the lock of the model
        end = monotonic() + SECONDS_A_BYTE * nbytes
        with suppress(Empty):
            for _ in held:
                gone.get(timeout=max(0.0, end - monotonic()))
        readers[:] = [reader for weak in held if (reader := weak()) is not None]

    def save_rows(self, keys: NDArray[np.uint64]) -> None:
        """Keep the numbers of copies of rows before they change."""
        self._saved.append(self._rows.save(keys))

    def finish(self, kept: bool) -> None:
        """Make the changes, which cannot fail, or give the table its rows back and forget its new buckets."""
        if kept:
            for change in self._changes:
                change()
            return
        for saved in reversed(self._saved):
            self._rows.restore(saved)
        if not self.is_detached:
            self._index.truncate(self._n_buckets)

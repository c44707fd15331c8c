"""Limits of a table of buckets: memory for rows, sums that are floats; and the pending changes of an update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.lsh.layout import Array
from sparsact.memory import has_room

KEY_BYTES: Final = 8 + 4 * 16  # of a bucket: its key, and slots, at least a quarter of them full
MAX_CELLS: Final = 2.0**50  # from the centre: beyond it a float does not tell places within a cell
LARGEST: Final = 1e100  # of a row's weight times squares of its features and targets: sums then have room


def check_room(table: Any, n_new: int, exactly: Callable[[], int]) -> None:
    """Raise unless there is room for new buckets: at most ``n_new``, counted exactly if that would be too many.

    Raises
    ------
    ValueError
        If there are more buckets than numbers.
    MemoryError
        If they need more than is free.
    """
    if _fits(table, len(table.index) + n_new):
        return
    total = len(table.index) + exactly()
    if total > table.index.most:
        raise ValueError(
            f"rows fall into {total:,} buckets, more than 32 bits can number, {table.index.most:,}; raise "
            "`bucket_width`, or lower `n_tables` or `n_hashes`."
        )
    if not _fits(table, total):
        raise MemoryError(
            f"rows fall into {total:,} buckets, which need {_room_bytes(table, total):,.0f} bytes more than there is "
            "room for; raise `bucket_width`, lower `n_tables` or `n_hashes`, take a low-degree model (--model "
            "low-degree), or a machine with more memory."
        )


def _fits(table: Any, total: int) -> bool:
    return total <= table.index.most and has_room(_room_bytes(table, total))


def _room_bytes(table: Any, n_buckets: int) -> float:
    """Bytes that ``n_buckets`` in all need at most, beside those held."""
    held = len(table._counts)
    return 0.0 if n_buckets <= held else max(n_buckets, 2.0 * held) * (KEY_BYTES + 8 * (1 + table.layout.n_sums))


def check_range(Z: Array, residual: Array, weights: Array, finest: float, first: int) -> None:
    """Raise unless sums of rows with these local coordinates are floats, and their cells are told apart.

    ``finest`` is the largest number of cells to a unit of a coordinate; the number of the first row is ``first``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(Z).max(initial=1), np.abs(residual).max(initial=0), weights.max(initial=0)
        if _within(*largest, finest):
            return
        near = _within(np.abs(Z).max(axis=1, initial=1), np.abs(residual).max(axis=1), weights, finest)
    if not near.all():
        raise ValueError(
            f"row {first + int(np.argmin(near))} lies too far from the rows the model was laid out on, or "
            f"its target or weight is too large for them (squares beyond {LARGEST:g} of their scale), or "
            f"`bucket_width` is too small to tell cells apart (beyond {MAX_CELLS:g} of them); check the row, "
            "fit again with it, or raise `bucket_width`."
        )


def _within(coordinate: Any, residual: Any, weight: Any, finest: float) -> Any:
    return (weight * np.maximum(coordinate, residual) ** 2 < LARGEST) & (coordinate * finest < MAX_CELLS)


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
        """Keep the numbers of copies of rows before they change."""
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

"""Updates of a table of buckets: their limits, and their changes made all at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.bucket_index import BucketIndex
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.remembered_rows import RememberedRows, SavedRows
from sparsact.memory import has_room

KEY_BYTES: Final = 8 + 4 * 16  # of a bucket: its key, and slots, at least a quarter of them full
MAX_CELLS: Final = 2.0**50  # from the centre: beyond it a float does not tell places within a cell
LARGEST: Final = 1e100  # of a row's weight times squares of its features and targets: sums then have room


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
    """Raise unless sums of rows with these local coordinates are floats, and their cells are told apart.

    ``finest`` is the largest number of cells to a unit of a coordinate; the number of the first row is ``first``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(Z).max(initial=1), np.abs(residual).max(initial=0), weights.max(initial=0)
        if _within(*largest, finest).all():
            return
        near = _within(np.abs(Z).max(axis=1, initial=1), np.abs(residual).max(axis=1), weights, finest)
    if not near.all():
        raise ValueError(
            f"row {first + int(np.argmin(near))} lies too far from the rows the model was laid out on, or "
            f"its target or weight is too large for them (squares beyond {LARGEST:g} of their scale), or "
            f"`bucket_width` is too small to tell cells apart (beyond {MAX_CELLS:g} of them); check the row, "
            "fit again with it, or raise `bucket_width`."
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

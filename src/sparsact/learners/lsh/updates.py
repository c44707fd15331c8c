"""Updates of a table of buckets: their limits, their changes made all at once, and one row in one native call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.bucket_index import BucketIndex
from sparsact.learners.lsh.bucket_solution import LiveSolution
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.layout import Array, Layout
from sparsact.learners.lsh.remembered_rows import RememberedRows
from sparsact.memory import has_room

KEY_BYTES: Final = 8 + 4 * 16  # of a bucket: its key, and slots, at least a quarter of them full
MAX_CELLS: Final = 2.0**50  # from the centre: beyond it a float does not tell places within a cell
LARGEST: Final = 1e100  # of a row's weight times squares of its features and targets: sums then have room


class UpdatedTable(Protocol):
    """The parts of a :class:`~sparsact.learners.lsh.bucket_table.BucketTable` that an update changes."""

    layout: Layout
    index: BucketIndex
    rows: RememberedRows
    keeps_rows: bool
    totals: Array
    low: Array
    high: Array
    finest: float
    _counts: NDArray[np.int64]
    _sums: Array
    _solution: LiveSolution | None

    @property
    def backup(self) -> UpdatedTable | None:
        """The coarse grids beneath it."""


RowUpdate = Callable[[list[Any], UpdatedTable, Any, Any, int], bool]


def check_room(table: UpdatedTable, n_new: int, exactly: Callable[[], int]) -> None:
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


def _fits(table: UpdatedTable, total: int) -> bool:
    return total <= table.index.most and has_room(_room_bytes(table, total))


def _room_bytes(table: UpdatedTable, n_buckets: int) -> float:
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
    :meth:`finish`, all or none of them.
    """

    def __init__(self, table: UpdatedTable) -> None:
        self._table, self._n_buckets = table, len(table.index)
        self.is_detached = False  # the copy has arrays of its own: changes need not wait
        self._changes: list[Callable[[], None]] = []
        self._rows: list[Any] = []

    def defer(self, change: Callable[[], None]) -> None:
        """Make a change with all the others, or at once."""
        if self.is_detached:
            change()
        else:
            self._changes.append(change)

    def save_rows(self, keys: NDArray[np.uint64]) -> None:
        """Keep the numbers of copies of rows before they change."""
        self._rows.append(self._table.rows.save(keys))

    def finish(self, kept: bool) -> None:
        """Make the changes, which cannot fail, or give the table its rows back and forget its new buckets."""
        if kept:
            for change in self._changes:
                change()
            return
        for saved in reversed(self._rows):
            self._table.rows.restore(saved)
        if not self.is_detached:
            self._table.index.truncate(self._n_buckets)


def row_update(table: UpdatedTable, fixed: FixedPart, n_columns: int) -> RowUpdate | None:
    """A function that adds a row of ``n_columns`` numbers to a table, or takes it away; None where no one call can.

    It is called with ``(readers, table, X, y, sign)``, X (1, d) and y of one number, both float64. It returns True, or
    False and has changed nothing: if a bucket would be new or empty, or the row or the range of targets is; if the row
    is not finite, or was not added; or if the predictor, the one entry of the list ``readers``, is in use.
    """
    layout, rows = table.layout, table.rows
    is_possible = dispatch.chosen is not dispatch.reference and fixed.trees is None and layout.n_targets == 1
    if not (is_possible and table.keeps_rows and rows.targets is not None):
        return None
    update: RowUpdate = dispatch.native._RowUpdater(
        _sums(table),
        None if table.backup is None else _sums(table.backup),
        [stage.table.kernel for stage in fixed.stages],
        np.zeros(0, np.int64) if fixed.columns is None else fixed.columns,
        n_columns,
        float(layout.level[0]),
        float(layout.unit[0]),
        layout.hashes.centre,
        np.ascontiguousarray(layout.trend[:, 0]),
        table.finest,
        float(table.low[0]),
        float(table.high[0]),
        rows,
        fixed.learned,
        table.totals,
    )
    return update


def _sums(table: UpdatedTable) -> Any:
    """The arrays of a table that a row changes."""
    stale = np.zeros(0, np.uint8) if table._solution is None else table._solution.stale
    return dispatch.native._TableSums(
        *table.layout.hashes, table.index.slots, table.layout.degree, table._counts, table._sums, stale
    )

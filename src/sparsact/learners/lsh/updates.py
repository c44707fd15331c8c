"""Rows that enter or leave a model: what its table sees of them, and one row in one native call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsact.kernels import dispatch
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.remembered_rows import RowNames, row_keys
from sparsact.statistics.statistic import Batch

RowUpdate = Callable[[list[Any], BucketTable, Any, Any, int], bool]


def seen_by_table(batch: Batch, fixed: FixedPart) -> tuple[Batch, RowNames | None]:
    """Rows as the table sees them, their targets less the fixed part, and the keys it knows them by.

    A row that the fixed part was learned from counts out of sample whenever it comes or goes, so that rows in any
    order, in parts or removed and added again, give the same table.
    """
    X, weights = fixed.selected(batch.X), batch.row_weights()
    names = RowNames(row_keys(batch.X, batch.y, weights), batch.y) if fixed.adds or fixed.columns is not None else None
    targets = batch.y - fixed.values_out_of_sample(batch.X, batch.y) if fixed.adds else batch.y
    return Batch(X, targets, weights), names


def row_update(table: BucketTable, fixed: FixedPart, n_columns: int) -> RowUpdate | None:
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
        table._finest,
        float(table.low[0]),
        float(table.high[0]),
        rows,
        fixed.learned,
        table.totals,
    )
    return update


def _sums(table: BucketTable) -> Any:
    """The arrays of a table that a row changes."""
    stale = np.zeros(0, np.uint8) if table._solution is None else table._solution.stale
    return dispatch.native._TableSums(
        *table.layout.hashes, table.index.slots, table.layout.degree, table._counts, table._sums, stale
    )

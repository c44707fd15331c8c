"""One row in or out of a model in one native call."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsact.kernels import dispatch
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.fixed_part import LearnedRows
from sparsact.learners.lsh.predictor import TablePredictor


def row_updater(predictor: TablePredictor, learned: LearnedRows | None) -> Any:
    """A function that adds a row to the table of a predictor, or takes it away; None where no single call can.

    It is called with ``(readers, table, X, y, sign)``, X (1, d) and y of one number, both float64. It returns True, or
    False and has changed nothing: if a bucket would be new or empty, or the row or the range of targets is; if the row
    is not finite, or was not added; or if the predictor, the one entry of the list ``readers``, is in use.
    """
    table, fixed, layout = predictor.table, predictor.fixed, predictor.table.layout
    possible = (
        dispatch.chosen is not dispatch.reference
        and predictor.inputs.is_plain
        and predictor.policy.fallback != "nearest"  # whose index is of the sums as they were
        and fixed.trees is None
        and layout.n_targets == 1
        and table.keeps_rows
        and table.rows.targets is not None
    )
    if not possible:
        return None
    none = np.zeros_like(layout.trend)
    return dispatch.native._RowUpdater(
        _sums(table),
        None if table.backup is None else _sums(table.backup),
        [stage.table.kernel(none) for stage in fixed.stages],
        np.zeros(0, np.int64) if fixed.columns is None else fixed.columns,
        predictor.inputs.n_columns,
        float(layout.level[0]),
        float(layout.unit[0]),
        layout.hashes.centre,
        np.ascontiguousarray(layout.trend[:, 0]),
        table._finest,
        float(table.low[0]),
        float(table.high[0]),
        table.rows,
        learned,
        table.totals,
    )


def _sums(table: BucketTable) -> Any:
    """What a row changes in a table."""
    stale = np.zeros(0, np.uint8) if table._solution is None else table._solution.stale
    return dispatch.native._TableSums(
        *table.layout.hashes, table.index.slots, table.layout.degree, table._counts, table._sums, stale
    )

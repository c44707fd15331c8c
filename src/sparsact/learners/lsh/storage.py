"""LSH estimators as plain state and arrays, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sparsact import storage
from sparsact.kernels.buckets import BucketIndex, n_sums
from sparsact.learners.lsh.choice import Trial
from sparsact.learners.lsh.layout import Layout
from sparsact.learners.lsh.table import BucketTable
from sparsact.learners.stored import Arrays, State, expect, plain

_LEARNED = ("n_features_in_", "width_", "alpha_", "directions_")
_KEPT = ("X", "Y", "weights")


def save_learner(learner: Any, path: str | Path, *, statistic: bool) -> None:
    """Write a fitted estimator."""
    table: BucketTable = learner.table_
    params = {name: plain(value) for name, value in learner.get_params(deep=False).items()}
    state: State = {
        "params": params,
        "learned": {name: plain(getattr(learner, name)) for name in _LEARNED},
        "trials": [vars(trial) for trial in learner.trials_],
        "single": bool(learner._single),
    }
    if hasattr(learner, "table_encoding_"):  # how the command encoded the columns of a table
        state["table_encoding"] = str(learner.table_encoding_)
    if hasattr(learner, "feature_names_in_"):
        state["feature_names"] = [str(name) for name in learner.feature_names_in_]
    arrays: Arrays = {f"layout.{name}": array for name, array in table.layout.arrays().items()}
    arrays["column_shares"] = learner.column_shares_
    arrays |= table_out(table, rows=statistic or learner.combine == "joint")
    if statistic or learner.combine == "joint":
        parts = [np.concatenate(part) for part in zip(*learner._rows, strict=True)]
        arrays |= {f"kept.{name}": part for name, part in zip(_KEPT, parts, strict=False)}
    state |= learner._state_of_targets(arrays)
    storage.write(path, type(learner).__name__, state, arrays)


def load_learner(make: Any, state: State, arrays: Arrays) -> Any:
    """The estimator that :func:`save_learner` wrote; ``make`` is its class."""
    learner = make(**state["params"])
    learner._validate_params()
    for name in _LEARNED:
        setattr(learner, name, state["learned"][name])
    learner.trials_ = tuple(Trial(**trial) for trial in state["trials"])
    if "table_encoding" in state:
        learner.table_encoding_ = str(state["table_encoding"])
    if "feature_names" in state:
        learner.feature_names_in_ = np.array(state["feature_names"], dtype=object)
    layout = _layout({name[7:]: array for name, array in arrays.items() if name.startswith("layout.")})
    learner.table_ = table_in(layout, arrays)
    learner.column_shares_ = expect(arrays, "column_shares", np.float64, (learner.table_.layout.n_columns,))
    if learner.table_.layout.n_columns != learner.n_features_in_:
        raise ValueError("the layout has other columns")
    kept = [arrays[f"kept.{name}"] for name in _KEPT if f"kept.{name}" in arrays]
    learner._rows = [tuple(kept)] if kept else []
    learner._first_rows = []
    learner._set_targets(state, arrays)
    learner._forget_solution()
    return learner


def statistic_out(learner: Any, arrays: Arrays) -> State:
    """What a learner has seen, without its layout: arrays, put among the others."""
    arrays |= table_out(learner.table_, rows=True)
    return {}


def statistic_in(learner: Any, state: State, arrays: Arrays) -> None:
    """Let a blank learner of the same layout have seen what :func:`statistic_out` wrote."""
    learner.table_ = table_in(learner.table_.layout, arrays)


def table_out(table: BucketTable, *, rows: bool) -> Arrays:
    """Arrays of a table; with the keys of its ``rows``, if it has them and they are to be taken away some day."""
    arrays: Arrays = {"keys": table.index.keys, "counts": table.counts, "sums": table.sums, "totals": table.totals}
    return arrays | (
        {"rows.keys": table.rows.keys, "rows.copies": table.copies} if rows and not table.forgets_rows else {}
    )


def table_in(layout: Layout, arrays: Arrays) -> BucketTable:
    """The table that :func:`table_out` wrote, with its layout."""
    table = BucketTable(layout)
    keys = expect(arrays, "keys", np.uint64, (None,))
    table.index = BucketIndex(keys)
    if len(np.unique(keys)) != len(keys):
        raise ValueError("two buckets have one key")
    table._counts = expect(arrays, "counts", np.int64, (len(keys),))
    table._sums = expect(arrays, "sums", np.float64, (len(keys), layout.n_sums))
    table.totals = expect(arrays, "totals", np.float64, (1 + layout.n_targets,))
    if (table._counts < 0).any() or not np.isfinite(table._sums).all():
        raise ValueError("counts are negative or sums not finite")
    if "rows.keys" in arrays:
        table.rows = BucketIndex(expect(arrays, "rows.keys", np.uint64, (None,)))
        table.copies = expect(arrays, "rows.copies", np.int64, (len(table.rows),))
    else:
        table.forgets_rows = True
    return table


def _layout(arrays: Arrays) -> Layout:
    d, p = arrays["local"].shape
    n_targets, n_tables = len(arrays["level"]), len(arrays["seeds"])
    codes = len(arrays["offsets"])
    grid, _, degree = (int(expect(arrays, name, np.int64, (1,))[0]) for name in ("grid", "signs", "degree"))
    due: dict[str, tuple[Any, tuple[int | None, ...]]] = {
        "centre": (np.float64, (d,)),
        "local": (np.float64, (d, p)),
        "directions": (np.float64, (p if grid else d, codes)),
        "offsets": (np.float64, (codes,)),
        "seeds": (np.uint64, (n_tables,)),
        "trend": (np.float64, (d, n_targets)),
        "level": (np.float64, (n_targets,)),
        "unit": (np.float64, (n_targets,)),
    }
    for name, (dtype, shape) in due.items():
        expect(arrays, name, dtype, shape)
    if not n_tables or codes % n_tables or not codes or (grid and codes != p * n_tables) or degree not in (0, 1, 2):
        raise ValueError("the hash functions do not fit together")
    if n_sums(p, degree, n_targets) > 2**24:
        raise ValueError("a bucket holds too many sums")
    return Layout.from_arrays(arrays)

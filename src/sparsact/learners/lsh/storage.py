"""LSH estimators as plain state and arrays, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sparsact import storage
from sparsact.kernels.bucket_index import BucketIndex
from sparsact.kernels.bucket_statistics import n_sums
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.layout import Layout
from sparsact.learners.lsh.tuning import Trial
from sparsact.learners.stored import Arrays, State, expect, number, plain, remade, text, under, whole

_LEARNED: dict[str, Callable[[Any, str], Any]] = {
    "n_features_in_": whole,
    "width_": number,
    "alpha_": number,
    "directions_": text,
}
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
    learner = remade(make, state)
    for name, check in _LEARNED.items():
        setattr(learner, name, check(state["learned"][name], name))
    learner.trials_ = tuple(_trial(**trial) for trial in state["trials"])
    if "table_encoding" in state:
        learner.table_encoding_ = text(state["table_encoding"], "table_encoding")
    learner.table_ = table_in(_layout(under("layout", arrays)), arrays)
    learner.column_shares_ = expect(arrays, "column_shares", np.float64, (learner.table_.layout.n_columns,))
    if learner.table_.layout.n_columns != learner.n_features_in_:
        raise ValueError("the layout has other columns")
    learner._rows = _rows_kept(arrays, learner.table_.layout)
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
    if (table._counts < 0).any() or not np.isfinite(table._sums).all() or not np.isfinite(table.totals).all():
        raise ValueError("counts are negative or sums not finite")
    if "rows.keys" in arrays:
        table.rows = BucketIndex(expect(arrays, "rows.keys", np.uint64, (None,)))
        table.copies = expect(arrays, "rows.copies", np.int64, (len(table.rows),))
        if (table.copies < 0).any() or len(np.unique(table.rows.keys)) != len(table.rows):
            raise ValueError("copies of rows are negative, or two rows have one key")
    else:
        table.forgets_rows = True
    return table


def _rows_kept(arrays: Arrays, layout: Layout) -> list[tuple[Any, ...]]:
    """The rows that a file holds, all together: X (m, d), Y (m, targets) and weights (m,); none or one part."""
    if "kept.X" not in arrays:
        return []
    X = expect(arrays, "kept.X", np.float64, (None, layout.n_columns))
    parts = X, expect(arrays, "kept.Y", np.float64, (len(X), layout.n_targets))
    kept = (*parts, expect(arrays, "kept.weights", np.float64, (len(X),)))
    if not all(np.isfinite(part).all() for part in kept) or (kept[2] < 0).any():
        raise ValueError("rows that are kept are not finite, or a weight is negative")
    return [kept]


def _trial(directions: Any, n_hashes: Any, n_buckets: Any, **numbers: Any) -> Trial:
    sizes: dict[str, Any] = {name: number(value, name) for name, value in numbers.items()}
    n_hashes, n_buckets = whole(n_hashes, "n_hashes"), whole(n_buckets, "n_buckets")
    return Trial(text(directions, "directions"), n_hashes=n_hashes, n_buckets=n_buckets, **sizes)


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
        if not np.isfinite(expect(arrays, name, dtype, shape)).all():
            raise ValueError(f"{name} is not finite")
    if not n_tables or codes % n_tables or not codes or (grid and codes != p * n_tables) or degree not in (0, 1, 2):
        raise ValueError("the hash functions do not fit together")
    if n_sums(p, degree, n_targets) > 2**24:
        raise ValueError("a bucket holds too many sums")
    return Layout.from_arrays(arrays)

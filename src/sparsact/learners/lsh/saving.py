"""Write LSH estimators to files, and read them."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.fixed_part import FixedPart, LearnedRows
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Layout
from sparsact.learners.lsh.tuning import Trial
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import ArrayField, Arrays, Checks, State


def _as_pairs(value: object, name: str) -> tuple[tuple[int, int], ...]:
    """Pairs of columns of a file."""
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise ValueError(f"{name} is not a list of pairs")
    return tuple((schema.as_count(i, name), schema.as_count(j, name)) for i, j in value)


_LEARNED: Final[Checks] = {
    "n_features_in_": schema.as_count,
    "bucket_width_": schema.as_nonnegative,
    "alpha_": schema.as_nonnegative,
    "directions_": schema.as_str,
    "near_duplicates_": _as_pairs,
}
_TRIAL: Final[Checks] = {  # the others are numbers
    "directions": schema.as_str,
    "n_hashes": schema.as_count,
    "n_buckets": schema.as_count,
    "n_tables": schema.as_count,
    "stage": schema.as_count,
}


def write_model(model: Any, path: str | Path, *, statistic: bool) -> None:
    """Write a fitted model to a file; with the keys of its rows if ``statistic``."""
    arrays = schema.add_prefix("layout", model.table_.layout.arrays()) | model.table_.state(rows=statistic)[1]
    arrays |= schema.add_prefix("inputs", model._inputs.arrays())
    arrays |= schema.add_prefix("frozen", model._fixed.arrays())
    if statistic and model._fixed.learned is not None:
        arrays |= schema.add_prefix("learned_rows", model._fixed.learned.arrays())
    arrays["column_shares"] = model.column_shares_
    if model.table_errors_ is not None:
        arrays["table_errors"] = model.table_errors_
    state = schema.learned_state(model, _LEARNED) | {
        "params": schema.params_of(model),
        "trials": [vars(trial) for trial in model.trials_],
        "single": model._single,
    }
    if hasattr(model, "table_encoding_"):  # how the command encoded the columns of a table
        state["table_encoding"] = str(model.table_encoding_)
    state |= model._state_of_targets(arrays)
    modelfile.write(path, type(model).__name__, state, arrays)


def read_model(kind: type[Any], state: State, arrays: Arrays) -> Any:
    """The model that :func:`write_model` wrote."""
    model = schema.rebuild(kind, state, _LEARNED, optional=("near_duplicates_",))
    model.__dict__.setdefault("near_duplicates_", ())
    model.trials_ = tuple(map(_trial, state["trials"]))
    if "table_encoding" in state:
        model.table_encoding_ = schema.as_str(state["table_encoding"], "table_encoding")
    layout = Layout.from_arrays(schema.strip_prefix("layout", arrays))
    d, names = model.n_features_in_, tuple(getattr(model, "feature_names_in_", ()))
    inputs = model._inputs = InputRules.from_arrays(schema.strip_prefix("inputs", arrays), d, names)
    model.is_categorical_ = np.isin(np.arange(d), [code.column for code in inputs.categories])
    fixed = FixedPart.from_arrays(schema.strip_prefix("frozen", arrays), len(inputs.sources), layout.n_targets)
    if layout.n_columns != (fixed.n_columns if fixed.columns is None else len(fixed.columns)):
        raise ValueError("the layout has other columns")
    rows = schema.strip_prefix("learned_rows", arrays)
    model._fixed = replace(fixed, learned=LearnedRows.from_arrays(rows, layout.n_targets) if rows else None)
    model.table_ = BucketTable(layout)
    model.table_.restore(state, arrays)
    model.column_shares_ = schema.read_arrays({"column_shares": ArrayField("n")}, arrays, n=d)["column_shares"]
    errors = {"table_errors": ArrayField("tables", optional=True)}
    model.table_errors_ = schema.read_arrays(errors, arrays, tables=layout.n_tables).get("table_errors")
    model._set_targets(state, arrays)
    model._forget_solution()
    if model.table_.n_rows:
        _ = model._predictor._row  # made now: the first query takes no longer than others
    return model


def _trial(state: State) -> Trial:
    values = schema.present_names(state, [field.name for field in fields(Trial)])
    checks: Checks = {name: _TRIAL.get(name, schema.as_nonnegative) for name in values}
    return Trial(**{name: checks[name](value, name) for name, value in values.items()})

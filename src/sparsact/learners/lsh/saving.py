"""Saving and loading of LSH estimators, and of their sums between processes."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, Final, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.fixed_part import FixedPart, LearnedRows
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Layout
from sparsact.learners.lsh.tuning import Trial
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import ArrayField, Arrays, Checks, State
from sparsact.transaction import locked


def _as_pairs(value: Any, name: str) -> tuple[tuple[int, int], ...]:
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


class SavedLSH:
    """Saving and loading of an :class:`~sparsact.learners.lsh.estimator.LSHModel`."""

    table_: BucketTable

    @locked
    def save(self: Any, path: str | Path, *, statistic: bool = True) -> None:
        """Write the model to one file: safetensors with a JSON header and a digest of everything.

        Parameters
        ----------
        path : path-like
            The file; it is replaced whole or not at all.
        statistic : bool, default=True
            Also keep what ``remove`` needs, a key and a count for each row; without it the file is smaller.
        """
        check_is_fitted(self)
        arrays = schema.add_prefix("layout", self.table_.layout.arrays()) | self.table_.state(rows=statistic)[1]
        arrays |= schema.add_prefix("inputs", self._inputs.arrays())
        arrays |= schema.add_prefix("frozen", self._fixed.arrays())
        if statistic and self._learned_rows is not None:
            arrays |= schema.add_prefix("learned_rows", self._learned_rows.arrays())
        arrays["column_shares"] = self.column_shares_
        if self.table_errors_ is not None:
            arrays["table_errors"] = self.table_errors_
        state = schema.learned_state(self, _LEARNED) | {
            "params": schema.params_of(self),
            "trials": [vars(trial) for trial in self.trials_],
            "single": bool(self._single),
        }
        if hasattr(self, "table_encoding_"):  # how the command encoded the columns of a table
            state["table_encoding"] = str(self.table_encoding_)
        state |= self._state_of_targets(arrays)
        modelfile.write(path, type(self).__name__, state, arrays)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The estimator that :meth:`save` wrote."""
        learner: Any = schema.rebuild(cls, state, _LEARNED, optional=("near_duplicates_",))
        learner.__dict__.setdefault("near_duplicates_", ())
        learner.trials_ = tuple(map(_trial, state["trials"]))
        if "table_encoding" in state:
            learner.table_encoding_ = schema.as_str(state["table_encoding"], "table_encoding")
        layout = Layout.from_arrays(schema.strip_prefix("layout", arrays))
        names = tuple(getattr(learner, "feature_names_in_", ()))
        learner._inputs = InputRules.from_arrays(schema.strip_prefix("inputs", arrays), learner.n_features_in_, names)
        learner.is_categorical_ = np.isin(
            np.arange(learner.n_features_in_), [code.column for code in learner._inputs.categories]
        )
        n_encoded = len(learner._inputs.sources)
        learner._fixed = FixedPart.from_arrays(schema.strip_prefix("frozen", arrays), n_encoded, layout.n_targets)
        if layout.n_columns != (n_encoded if learner._fixed.columns is None else len(learner._fixed.columns)):
            raise ValueError("the layout has other columns")
        learned_rows = schema.strip_prefix("learned_rows", arrays)
        learner._learned_rows = LearnedRows.from_arrays(learned_rows, layout.n_targets) if learned_rows else None
        learner.table_ = BucketTable(layout)
        learner.table_.restore(state, arrays)
        shares = schema.read_arrays({"column_shares": ArrayField("n")}, arrays, n=learner.n_features_in_)
        learner.column_shares_ = shares["column_shares"]
        errors = {"table_errors": ArrayField("tables", optional=True)}
        learner.table_errors_ = schema.read_arrays(errors, arrays, tables=layout.n_tables).get("table_errors")
        learner._first_rows = []
        learner._set_targets(state, arrays)
        learner._forget_solution()
        return cast("Self", learner)

    def _state(self, arrays: Arrays) -> State:
        """The sums of the model, without its layout, added to ``arrays``."""
        arrays |= self.table_.state()[1]
        return {}

    def _restore(self, state: State, arrays: Arrays) -> None:
        """Restore what :meth:`_state` wrote into a blank model of the same layout."""
        self.table_ = self.table_.empty()
        self.table_.restore(state, arrays)


def _trial(state: State) -> Trial:
    values = schema.present_names(state, [field.name for field in fields(Trial)])
    checks: Checks = {name: _TRIAL.get(name, schema.as_nonnegative) for name in values}
    return Trial(**{name: checks[name](value, name) for name, value in values.items()})

"""LSH models of a table: laid out on a sample of its rows, measured on held-out rows, learned from all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsact.cli.fitting.choice import FitOptions
from sparsact.cli.fitting.folds import MAX_HELD_OUT, see
from sparsact.cli.fitting.held_out import HeldOut, HeldOutScores
from sparsact.cli.fitting.resumption import Resumption
from sparsact.cli.fitting.rows import RowSample
from sparsact.cli.progress import OnRows
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.learners.lsh.storage import table_in, table_out
from sparsact.learners.stored import Arrays, State

MOST_COLUMNS_FOR_GRADIENTS = 128  # beyond it, slopes at many places cost more than all the rest


def laid_out(table: Table, wish: FitOptions, sample: RowSample) -> Any:
    """An LSH model whose hash functions, width and penalty suit the sample; it has learned the sample's rows."""
    X, y, _ = sample.rows()
    model = _estimator(table, wish.seed)
    see(model, table, X, y)
    return model


@dataclass(frozen=True)
class _Buckets:
    """What a pass over the rows sums up in the tables of a model."""

    model: Any

    def state(self, arrays: Arrays) -> State:
        """The tables."""
        arrays |= table_out(self.model.table_, rows=True)
        return {}

    def restore(self, state: State, arrays: Arrays) -> None:
        """As those of another model of the same layout."""
        self.model.table_ = table_in(self.model.table_.layout, arrays)
        self.model._forget_solution()


def learned(table: Table, model: Any, sample: RowSample, on_rows: OnRows, kept: Resumption | None = None) -> Any:
    """A model of every row with the hash functions of another."""
    if sample.is_whole:
        return model
    whole = model.blank(remember_rows=False)
    for X, y, _ in (kept or Resumption()).rows("learning", sample.batches, _Buckets(whole), on_rows):
        see(whole, table, X, y)
    return whole


def measured(
    table: Table, model: Any, wish: FitOptions, sample: RowSample, on_rows: OnRows, kept: Resumption | None = None
) -> HeldOut:
    """Held-out scores of models like this one, fold by fold, over every row of the table.

    A fold's model shares width, penalty and kind of directions with the given one. Its hash functions, directions and
    trend are found anew from rows outside of the fold: those of the given model have seen all folds.
    """
    kept = kept or Resumption()
    asked = {"width": model.width_, "alpha": model.alpha_, "n_hashes": model.n_hashes_, "directions": model.directions_}
    tally = HeldOutScores(np.random.default_rng([wish.seed, 2]), min(1.0, MAX_HELD_OUT / max(1, table.n_rows or 1)))
    done = 0
    if (outcome := kept.outcome("measuring")) is not None:
        done = int(outcome[0]["folds"])
        tally.restore(outcome[0]["tally"], outcome[1])
        on_rows(done * rows_of_fold(sample))
    for fold in range(done, wish.folds):
        X, y, folds = sample.rows()
        of_others = _estimator(table, wish.seed, **asked)
        see(of_others, table, X[folds != fold], y[folds != fold])
        if not sample.is_whole:
            of_others = of_others.blank(remember_rows=False)
            for X, y, folds in kept.rows("learning the others", sample.batches, _Buckets(of_others), on_rows):
                see(of_others, table, X[folds != fold], y[folds != fold])
        for X, y, folds in kept.rows("predicting a fold", sample.batches, tally, on_rows):
            tally.add(of_others, table, fold, X[folds == fold], y[folds == fold])
        arrays: Arrays = {}
        state = {"folds": fold + 1, "tally": tally.state(arrays)}
        kept.keep("measuring", state, arrays, instead_of=("learning the others", "predicting a fold"))
    return tally.held_out()


def rows_of_fold(sample: RowSample) -> int:
    """Rows that pass by when a fold is measured: once to predict, and before it to learn, if they are read again."""
    return (sample.table.n_rows or 0) * (1 if sample.is_whole else 2)


def _estimator(table: Table, seed: int, **asked: Any) -> Any:
    from sparsact import LSHClassifier, LSHRegressor

    kind = LSHClassifier if isinstance(table.encoding.targets[0], Classes) else LSHRegressor
    directions = "auto" if len(table.feature_names) <= MOST_COLUMNS_FOR_GRADIENTS else "standard"
    return kind(random_state=seed, **({"directions": directions} | asked))

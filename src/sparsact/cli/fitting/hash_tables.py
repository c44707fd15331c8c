"""LSH models of a table: laid out on a sample of its rows, measured on held-out rows, learned from all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsact.cli.fitting.choice import OnRows, Wish
from sparsact.cli.fitting.folds import MAX_HELD_OUT, see
from sparsact.cli.fitting.held_out import HeldOut, Tally
from sparsact.cli.fitting.rows import RowSample
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes

MOST_COLUMNS_FOR_GRADIENTS = 128  # beyond it, slopes at many places cost more than all the rest


def laid_out(table: Table, wish: Wish, sample: RowSample) -> Any:
    """An LSH model whose hash functions, width and penalty suit the sample; it has learned the sample's rows."""
    X, y, _ = sample.rows()
    model = _estimator(table, wish.seed)
    see(model, table, X, y)
    return model


def learned(table: Table, model: Any, sample: RowSample, on_rows: OnRows) -> Any:
    """A model of every row with the hash functions of another."""
    if sample.is_whole:
        return model
    whole = model.blank()
    for X, y, _ in sample.batches():
        see(whole, table, X, y)
        on_rows(len(X))
    return whole


def measured(table: Table, model: Any, wish: Wish, sample: RowSample, on_rows: OnRows) -> HeldOut:
    """Held-out scores of models like this one, fold by fold, over every row of the table.

    A fold's model shares width, penalty and kind of directions with the given one. Its hash functions, directions and
    trend are found anew from rows outside of the fold: those of the given model have seen all folds.
    """
    asked = {"width": model.width_, "alpha": model.alpha_, "n_hashes": model.n_hashes_, "directions": model.directions_}
    drawn = sample.rows()
    tally = Tally(np.random.default_rng([wish.seed, 2]), min(1.0, MAX_HELD_OUT / max(1, table.n_rows or 1)))
    for fold in range(wish.folds):
        X, y, folds = drawn
        of_others = _estimator(table, wish.seed, **asked)
        see(of_others, table, X[folds != fold], y[folds != fold])
        if not sample.is_whole:
            of_others = of_others.blank()
            for X, y, folds in sample.batches():
                see(of_others, table, X[folds != fold], y[folds != fold])
        for X, y, folds in sample.batches():
            tally.add(of_others, table, fold, X[folds == fold], y[folds == fold])
            on_rows(int((folds == fold).sum()))
    return tally.held_out()


def _estimator(table: Table, seed: int, **asked: Any) -> Any:
    from sparsact import LSHClassifier, LSHRegressor

    kind = LSHClassifier if isinstance(table.encoding.targets[0], Classes) else LSHRegressor
    directions = "auto" if len(table.feature_names) <= MOST_COLUMNS_FOR_GRADIENTS else "standard"
    return kind(random_state=seed, **({"directions": directions} | asked))

"""Models that have not seen a fold, by merging those of the other folds: one pass over the rows, none of it kept."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.cli.fitting.choice import OnRows, regression_targets
from sparsact.datasets import Table

MAX_HELD_OUT = 5000  # rows whose held-out predictions are kept for the figures


@dataclass
class HeldOut:
    """A sample of rows, each with the fold that it is in."""

    points: list[NDArray[Any]] = field(default_factory=list)
    targets: list[NDArray[np.float64]] = field(default_factory=list)
    folds: list[NDArray[np.intp]] = field(default_factory=list)


@dataclass(frozen=True)
class Prediction:
    """Held-out rows: what was seen and what was predicted, both (rows, targets), and the fold of each."""

    actual: NDArray[np.float64]
    predicted: NDArray[np.float64]
    fold: NDArray[np.intp]


def fold_numbers(n_rows: int, n_folds: int, first_row: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """A fold for each of so many rows: sizes differ by one at most, places are random."""
    return rng.permutation((first_row + np.arange(n_rows)) % n_folds)


def learn(estimator: Any, table: Table, n_folds: int, seed: int, on_rows: OnRows) -> tuple[list[Any], HeldOut]:
    """One model a fold, each learned from its own rows only, and a sample of the rows."""
    rng = np.random.default_rng(seed)
    models = [deepcopy(estimator) for _ in range(n_folds)]
    sample = HeldOut()
    share = min(1.0, MAX_HELD_OUT / max(1, table.n_rows or 1))
    first_row = 0
    for X, y in table.batches():
        targets = regression_targets(table, y)
        folds = fold_numbers(len(X), n_folds, first_row, rng)
        for fold, model in enumerate(models):
            if (folds == fold).any():
                model.partial_fit(X[folds == fold], targets[folds == fold])
        kept = rng.random(len(X)) < share
        sample.points.append(X[kept])
        sample.targets.append(targets[kept])
        sample.folds.append(folds[kept])
        first_row += len(X)
        on_rows(len(X))
    return models, sample


def merged(models: list[Any]) -> Any:
    """One model of all their rows; the models stay as they are."""
    whole = deepcopy(models[0])
    for model in models[1:]:
        whole.merge(model)
    return whole


def predictions(models: list[Any], sample: HeldOut) -> Prediction:
    """Each row of the sample, predicted by the model of the folds that it is not in."""
    X, y, folds = np.concatenate(sample.points), np.concatenate(sample.targets), np.concatenate(sample.folds)
    predicted = np.empty_like(y)
    for fold, model in enumerate(_leaving_one_out(models)):
        here = folds == fold
        if here.any():
            predicted[here] = model.predict(X[here])
    rows = len(y)
    return Prediction(y.reshape(rows, -1), predicted.reshape(rows, -1), folds)


def _leaving_one_out(models: list[Any]) -> Iterator[Any]:
    for fold in range(len(models)):
        yield merged([model for other, model in enumerate(models) if other != fold])

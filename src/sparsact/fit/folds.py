"""Models that have not seen a fold, by merging those of the other folds, and the rows that they predict."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.fit.checkpoint import Checkpoint
from sparsact.fit.progress import OnRows
from sparsact.learners.low_degree.choose import assign_folds
from sparsact.learners.lsh.tuning import ROWS_FOR_WIDTH
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix

MAX_HELD_OUT = 5000  # rows whose held-out predictions are kept for the figures


@dataclass
class Draw:
    """Rows drawn at random as they pass by: a share of them, or all; ``names`` are those of the parts of a row."""

    rng: np.random.Generator
    share: float
    names: tuple[str, ...] = ("sample.X", "sample.y", "sample.folds")
    _taken: list[tuple[NDArray[Any], ...]] = field(default_factory=list)

    def take(self, *parts: NDArray[Any]) -> None:
        """The next rows."""
        if self.share < 1:
            kept = self.rng.random(len(parts[0])) < self.share
            parts = tuple(part[kept] for part in parts)
        self._taken.append(parts)

    def rows(self) -> tuple[NDArray[Any], ...]:
        """The rows drawn."""
        self._taken = [tuple(np.concatenate(parts) for parts in zip(*self._taken, strict=True))]
        return self._taken[0]

    def merge(self, other: Draw) -> None:
        """Add what another has drawn from the next rows."""
        self._taken += other._taken

    def state(self, arrays: Arrays) -> State:
        """The state of the draw; the rows are put among the arrays."""
        arrays |= dict(zip(self.names, self.rows() if self._taken else (), strict=False))
        return dict(self.rng.bit_generator.state)

    def restore(self, state: State, arrays: Arrays) -> None:
        """Have drawn what another had."""
        self.rng.bit_generator.state = state
        self._taken = [tuple(arrays[name] for name in self.names)] if self.names[0] in arrays else []


@dataclass(frozen=True)
class Prediction:
    """Held-out rows: the table's answers (rows, targets), the model's values (rows, functions), the folds (rows,).

    Without folds there are answers only.
    """

    actual: NDArray[np.float64]
    predicted: NDArray[np.float64] | None
    fold: NDArray[np.intp]


@dataclass
class _FoldModels:
    """What a pass of learning sums up: one model per fold, and a sample of the rows."""

    table: Table
    models: list[Any]
    sample: Draw
    seed: int
    row: int = 0
    divisible: ClassVar[bool] = True

    def begin(self, first_row: int) -> None:
        self.row = first_row
        self.sample.rng.bit_generator.advance(first_row)  # type: ignore[attr-defined] # of PCG64, one number a row

    def take(self, X: NDArray[Any], y: NDArray[np.float64]) -> None:
        folds = assign_folds(self.row, len(X), len(self.models), self.seed)
        self.row += len(X)
        for fold, model in enumerate(self.models):
            if (folds == fold).any():
                add_batch(model, self.table, X[folds == fold], y[folds == fold])
        self.sample.take(X, y, folds)

    def end(self, first_row: int) -> None:
        pass

    def merge(self, other: _FoldModels) -> None:
        for model, of_other in zip(self.models, other.models, strict=True):
            if of_other._begun():
                model.merge(of_other)
        self.sample.merge(other.sample)

    def state(self, arrays: Arrays) -> State:
        states = []
        for fold, model in enumerate(self.models):
            of_fold: Arrays = {}
            states.append(model._state(of_fold))
            arrays |= add_prefix(f"model{fold}", of_fold)
        return {"models": states, "rng": self.sample.state(arrays)}

    def restore(self, state: State, arrays: Arrays) -> None:
        for fold, (model, seen) in enumerate(zip(self.models, state["models"], strict=True)):
            model._restore(seen, strip_prefix(f"model{fold}", arrays))
        self.row = sum(model.n_samples_seen_ for model in self.models if model._begun())
        self.sample.restore(state["rng"], arrays)


def fit_folds(
    estimator: Any, table: Table, n_folds: int, seed: int, on_rows: OnRows, checkpoint: Checkpoint, name: str
) -> tuple[list[Any], Draw]:
    """One model per fold, each fitted to its own rows only, and a sample of the rows.

    The folds are those of the cross-validation with this seed. ``name`` is that of the pass in the checkpoint.
    """
    share = min(1.0, MAX_HELD_OUT / max(1, table.n_rows or 1))
    models = [deepcopy(estimator) for _ in range(n_folds)]
    sums = _FoldModels(table, models, Draw(np.random.default_rng(seed), share), seed)
    for X, y in checkpoint.rows(name, table.batches, sums, on_rows):
        sums.take(X, y)
    return sums.models, sums.sample


def add_batch(model: Any, table: Table, X: NDArray[Any], y: NDArray[np.float64]) -> None:
    """Fit a model to more rows; class numbers as labels."""
    target = table.encoding.targets[0]
    if isinstance(target, Classes):
        model.partial_fit(X, target.labels[y.astype(np.intp)], classes=target.labels)
    else:
        model.partial_fit(X, y)


def merged(models: list[Any]) -> Any:
    """One model of all their rows; the models stay as they are."""
    whole = deepcopy(models[0])
    for model in models[1:]:
        whole.merge(model)
    return whole


def predictions(models: list[Any], sample: Draw) -> Prediction:
    """Each row of the sample, predicted by the model of the folds that it is not in."""
    X, y, folds = sample.rows()
    if len(models) == 1:
        return Prediction(y.reshape(len(X), -1), None, folds)
    pieces = []
    for fold in range(len(models)):
        others = merged(models[:fold] + models[fold + 1 :])
        pieces.append(values(others, X[folds == fold]))
    predicted = np.empty((len(X), pieces[0].shape[1]))
    for fold, piece in enumerate(pieces):
        predicted[folds == fold] = piece
    return Prediction(y.reshape(len(X), -1), predicted, folds)


def values(model: Any, X: NDArray[Any]) -> NDArray[np.float64]:
    """Values of the fitted functions, (m, functions): targets, or what a classifier compares."""
    if not len(X):
        return np.empty((0, _n_functions(model)))
    if hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        shares = np.asarray(model.predict_proba(X))
        return shares[:, 1:] - shares[:, :1] if shares.shape[1] == 2 else shares
    value = model.decision_function if hasattr(model, "decision_function") else model.predict
    return np.asarray(value(X), dtype=np.float64).reshape(len(X), -1)


def _n_functions(model: Any) -> int:
    if hasattr(model, "coef_"):
        return len(np.atleast_2d(model.coef_))
    n_targets = int(model.table_.layout.n_targets)
    return 1 if hasattr(model, "classes_") and n_targets == 2 else n_targets


def class_numbers(function_values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Class that a classifier's values name, as its place among the classes."""
    if function_values.shape[1] == 1:
        return (function_values[:, 0] > 0).astype(np.intp)
    return np.asarray(function_values.argmax(axis=1))


MOST_ROWS = ROWS_FOR_WIDTH  # an LSH model looks at no more to lay itself out
ROOM = 0.98  # of the most rows, drawn on average: of 131,072 more are then drawn once in 10^12 tables
MOST_NUMBERS = 1 << 25  # a quarter of a gigabyte


class RowSample:
    """Rows drawn from a whole table as they pass by, each with its fold; all of them where the table is small.

    A sample of the whole table, and not its first rows: a table may be sorted.
    """

    def __init__(self, table: Table, n_folds: int, seed: int, most: int = MOST_ROWS) -> None:
        self.table, self.n_folds, self.seed = table, n_folds, seed
        most = min(most, MOST_NUMBERS // len(table.feature_names))
        n_rows = table.n_rows or 0
        self._draw = Draw(np.random.default_rng([seed, 1]), 1.0 if n_rows <= most else ROOM * most / n_rows)
        self._passed = 0
        self.rows = self._draw.rows

    @property
    def is_complete(self) -> bool:
        """Whether no row was left out."""
        return self._draw.share == 1.0

    def take(self, X: NDArray[Any], y: NDArray[np.float64]) -> None:
        """The next rows of the table."""
        self._draw.take(X, y, assign_folds(self._passed, len(X), self.n_folds, self.seed))
        self._passed += len(X)

    def batches(self, first_row: int = 0) -> Iterator[tuple[NDArray[Any], ...]]:
        """Every row of the table with its fold, in its order; from a row on at which a batch begins."""
        if self.is_complete:
            if first_row < self._passed:
                yield self.rows()
            return
        for X, y in self.table.batches(first_row):
            yield X, y, assign_folds(first_row, len(X), self.n_folds, self.seed)
            first_row += len(X)

    def state(self, arrays: Arrays) -> State:
        """What was drawn, and the state of the draw; arrays are put among the others."""
        return {"passed": self._passed, "rng": self._draw.state(arrays)}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Have drawn what another sample had drawn."""
        self._passed = int(state["passed"])
        self._draw.restore(state["rng"], arrays)

"""Models that have not seen a fold, by merging those of the other folds, and the rows that they predict."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsact.cli.fitting.resumption import Resumption
from sparsact.cli.progress import OnRows
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.learners.low_degree.choose import assign_folds as dealt
from sparsact.learners.lsh.tuning import ROWS_FOR_WIDTH
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix

MAX_HELD_OUT = 5000  # rows whose held-out predictions are kept for the figures


@dataclass
class HeldOutSample:
    """Some rows, each with the fold that it is in."""

    points: list[NDArray[Any]] = field(default_factory=list)
    answers: list[NDArray[np.float64]] = field(default_factory=list)
    folds: list[NDArray[np.intp]] = field(default_factory=list)


@dataclass(frozen=True)
class Prediction:
    """Held-out rows: the table's answers (rows, targets), the model's values (rows, functions), the folds (rows,).

    Without folds there are answers only.
    """

    actual: NDArray[np.float64]
    predicted: NDArray[np.float64] | None
    fold: NDArray[np.intp]


@dataclass
class _Lessons:
    """What a pass of learning sums up: a model a fold, and a sample of the rows."""

    table: Table
    models: list[Any]
    sample: HeldOutSample
    rng: np.random.Generator
    share: float
    seed: int
    divisible: ClassVar[bool] = True

    def begin(self, first_row: int) -> None:
        """Before the rows of a part: each row has its own number of the draw."""
        self.rng.bit_generator.advance(first_row)  # type: ignore[attr-defined] # of PCG64, one number a row

    def take(self, X: NDArray[Any], y: NDArray[np.float64], folds: NDArray[np.intp]) -> None:
        """The next rows, each with its fold."""
        for fold, model in enumerate(self.models):
            if (folds == fold).any():
                see(model, self.table, X[folds == fold], y[folds == fold])
        chosen = self.rng.random(len(X)) < self.share
        self.sample.points.append(X[chosen])
        self.sample.answers.append(y[chosen])
        self.sample.folds.append(folds[chosen])

    def take_part(self, X: NDArray[Any], y: NDArray[np.float64], first_row: int) -> None:
        """The next rows of a part, of which the first has this number in the table."""
        self.take(X, y, dealt(first_row, len(X), len(self.models), self.seed))

    def end(self, first_row: int) -> None:
        """After the rows of a part."""

    def merge(self, other: _Lessons) -> None:
        """Take in what was summed over the next part."""
        for model, of_other in zip(self.models, other.models, strict=True):
            if of_other._begun():
                model.merge(of_other)
        self.sample.points += other.sample.points
        self.sample.answers += other.sample.answers
        self.sample.folds += other.sample.folds

    def state(self, arrays: Arrays) -> State:
        """The statistics, and the state of the draw."""
        states = []
        for fold, model in enumerate(self.models):
            of_fold: Arrays = {}
            states.append(model._state(of_fold))
            arrays |= add_prefix(f"model{fold}", of_fold)
        parts = {"X": self.sample.points, "y": self.sample.answers, "folds": self.sample.folds}
        arrays |= {f"sample.{name}": np.concatenate(part) for name, part in parts.items() if part}
        return {"models": states, "rng": self.rng.bit_generator.state}

    def restore(self, state: State, arrays: Arrays) -> None:
        """As another pass had it."""
        for fold, (model, seen) in enumerate(zip(self.models, state["models"], strict=True)):
            model._restore(seen, strip_prefix(f"model{fold}", arrays))
        if drawn := strip_prefix("sample", arrays):
            self.sample = HeldOutSample([drawn["X"]], [drawn["y"]], [drawn["folds"]])
        self.rng.bit_generator.state = state["rng"]


def learn(
    estimator: Any,
    table: Table,
    n_folds: int,
    seed: int,
    on_rows: OnRows,
    kept: Resumption | None = None,
    name: str = "learning",
) -> tuple[list[Any], HeldOutSample]:
    """One model a fold, each learned from its own rows only, and a sample of the rows.

    The folds are those of the cross-validation with this seed. ``name`` is that of the pass where it is kept.
    """
    share = min(1.0, MAX_HELD_OUT / max(1, table.n_rows or 1))
    models = [deepcopy(estimator) for _ in range(n_folds)]
    lessons = _Lessons(table, models, HeldOutSample(), np.random.default_rng(seed), share, seed)
    kept = kept or Resumption()
    for X, y, folds in kept.rows(name, lambda first: dealt_batches(table, n_folds, seed, first), lessons, on_rows):
        lessons.take(X, y, folds)
    return lessons.models, lessons.sample


def dealt_batches(
    table: Table, n_folds: int, seed: int, first_row: int = 0
) -> Iterator[tuple[NDArray[Any], NDArray[np.float64], NDArray[np.intp]]]:
    """Every row of a table, each with its fold; from a row on at which a batch begins."""
    for X, y in table.batches(first_row):
        yield X, y, dealt(first_row, len(X), n_folds, seed)
        first_row += len(X)


def see(model: Any, table: Table, X: NDArray[Any], y: NDArray[np.float64]) -> None:
    """Teach a model more rows; class numbers as labels."""
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


def predictions(models: list[Any], sample: HeldOutSample) -> Prediction:
    """Each row of the sample, predicted by the model of the folds that it is not in."""
    X, y, folds = np.concatenate(sample.points), np.concatenate(sample.answers), np.concatenate(sample.folds)
    if len(models) == 1:
        return Prediction(y.reshape(len(X), -1), None, folds)
    pieces = [values(model, X[folds == fold]) for fold, model in enumerate(_leaving_one_out(models))]
    predicted = np.empty((len(X), pieces[0].shape[1]))
    for fold, piece in enumerate(pieces):
        predicted[folds == fold] = piece
    return Prediction(y.reshape(len(X), -1), predicted, folds)


def _leaving_one_out(models: list[Any]) -> Iterator[Any]:
    for fold in range(len(models)):
        yield merged([model for other, model in enumerate(models) if other != fold])


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
_ROWS = ("X", "y", "folds")
Rows = tuple[NDArray[Any], NDArray[np.float64], NDArray[np.intp]]


class RowSample:
    """Rows drawn from a whole table as they pass by, each with its fold; all of them where the table is small.

    A sample of the whole table, and not its first rows: a table may be sorted.
    """

    def __init__(self, table: Table, n_folds: int, seed: int, most: int = MOST_ROWS) -> None:
        self.table, self.n_folds, self.seed = table, n_folds, seed
        most = min(most, MOST_NUMBERS // len(table.feature_names))
        n_rows = table.n_rows or 0
        self._share = 1.0 if n_rows <= most else ROOM * most / n_rows
        self._rng = np.random.default_rng([seed, 1])
        self._passed = 0
        self._taken: list[Rows] = []

    @property
    def is_whole(self) -> bool:
        """Whether no row was left out."""
        return self._share == 1.0

    def take(self, X: NDArray[Any], y: NDArray[np.float64]) -> None:
        """The next rows of the table."""
        folds = dealt(self._passed, len(X), self.n_folds, self.seed)
        self._passed += len(X)
        kept = self._rng.random(len(X)) < self._share
        self._taken.append((X[kept], y[kept], folds[kept]) if not self.is_whole else (X, y, folds))

    def rows(self) -> Rows:
        """The rows drawn."""
        X, y, folds = (np.concatenate(parts) for parts in zip(*self._taken, strict=True))
        self._taken = [(X, y, folds)]
        return X, y, folds

    def batches(self, first_row: int = 0) -> Iterator[Rows]:
        """Every row of the table, in its order; from a row on at which a batch begins."""
        if self.is_whole:
            X, y, folds = self.rows()
            if first_row < len(X):
                yield X, y, folds
            return
        yield from dealt_batches(self.table, self.n_folds, self.seed, first_row)

    def state(self, arrays: Arrays) -> State:
        """What was drawn, and the state of the draw; arrays are put among the others."""
        parts = self.rows() if self._taken else ()
        arrays |= {f"sample.{name}": part for name, part in zip(_ROWS, parts, strict=False)}
        return {"passed": self._passed, "rng": self._rng.bit_generator.state}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Have drawn what another sample had drawn."""
        self._passed, self._rng.bit_generator.state = int(state["passed"]), state["rng"]
        self._taken = [tuple(arrays[f"sample.{name}"] for name in _ROWS)] if "sample.X" in arrays else []  # type: ignore[list-item]

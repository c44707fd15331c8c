"""Held-out scores, summed as the rows pass by, and LSH models laid out, scored and learned in such passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.fit.checkpoint import Checkpoint
from sparsact.fit.choose import as_numbers
from sparsact.fit.folds import MAX_HELD_OUT, Draw, RowSample, add_batch, values
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import OnRows
from sparsact.fit.scores import FoldScores
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix

KEPT = ("kept.actual", "kept.predicted", "kept.fold")
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # probabilities at which prediction intervals are checked


class _Fold:
    """Sums over the held-out rows of one fold, for each function."""

    def __init__(self, actual: NDArray[np.float64]) -> None:
        self.origin, self.n = actual.mean(axis=0), 0
        self.low, self.high = actual[0], actual[0]
        self.away, self.squares, self.errors = (np.zeros(actual.shape[1]) for _ in range(3))

    def arrays(self) -> Arrays:
        return {name: np.atleast_1d(value) for name, value in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> _Fold:
        fold = cls.__new__(cls)
        vars(fold).update(arrays | {"n": int(arrays["n"][0])})
        return fold

    def add(self, actual: NDArray[np.float64], error: NDArray[np.float64]) -> None:
        away = actual - self.origin
        self.n += len(actual)
        self.low, self.high = np.minimum(self.low, actual.min(axis=0)), np.maximum(self.high, actual.max(axis=0))
        self.away += away.sum(axis=0)
        self.squares += (away**2).sum(axis=0)
        self.errors += (error**2).sum(axis=0)

    @property
    def r2(self) -> NDArray[np.float64]:
        """R2 of each function; where its target is constant 0, or 1 if there is no error, as for polynomials."""
        about_mean = self.squares - self.away**2 / self.n
        varies = (self.low < self.high) & (about_mean > 0)
        constant = np.where(self.errors == 0, 1.0, 0.0)
        return np.where(varies, 1.0 - self.errors / np.where(varies, about_mean, 1.0), constant)

    @property
    def rmse(self) -> NDArray[np.float64]:
        return np.asarray(np.sqrt(self.errors / self.n))


@dataclass
class HeldOutScores:
    """What models that had not seen a row say of it: sums over the rows of each fold, and a few of the rows.

    ``missed`` counts the rows that fell into empty buckets in every table.
    """

    kept: Draw
    folds: dict[int, _Fold] = field(default_factory=dict)
    within: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(LEVELS)))
    judged: int = 0
    missed: int = 0
    rows: int = 0

    def add(self, model: Any, table: Table, fold: int, X: NDArray[Any], y: NDArray[np.float64]) -> None:
        """Held-out rows of a fold, and what its model says."""
        if not len(X):
            return
        predicted = values(model, X)
        actual = as_numbers(table.encoding.targets[0], y).reshape(predicted.shape)
        error = actual - predicted
        self.folds.setdefault(fold, _Fold(actual)).add(actual, error)
        self.rows += len(X)
        self._judge_intervals(model, X, error)
        self.kept.take(y.reshape(len(X), -1), predicted, np.full(len(X), fold))

    def _judge_intervals(self, model: Any, X: NDArray[Any], error: NDArray[np.float64]) -> None:
        if not hasattr(model, "predict_interval"):
            self.missed += int((model.apply(X) < 0).all(axis=1).sum())
            return
        bounds = model.predict_interval(X, LEVELS[0]).reshape(len(X), -1, 2)
        reach = (bounds[..., 1] - bounds[..., 0]) / 2 / ndtri((1 + LEVELS[0]) / 2)  # one standard deviation
        known = np.isfinite(reach)
        self.missed += int((~known[:, 0]).sum())
        self.judged += int(known.sum())
        size = np.abs(error[known])
        for place, level in enumerate(LEVELS):
            self.within[place] += int((size <= ndtri((1 + level) / 2) * reach[known]).sum())

    def state(self, arrays: Arrays) -> State:
        """All of it, as JSON spells it; arrays are put among the others."""
        for number, fold in self.folds.items():
            arrays |= add_prefix(f"fold{number}", fold.arrays())
        arrays["within"] = self.within.copy()
        counts = {"judged": self.judged, "missed": self.missed, "rows": self.rows}
        return counts | {"folds": list(self.folds), "rng": self.kept.state(arrays)}

    def restore(self, state: State, arrays: Arrays) -> None:
        """As other scores had it."""
        self.folds = {fold: _Fold.from_arrays(strip_prefix(f"fold{fold}", arrays)) for fold in state["folds"]}
        self.judged, self.missed, self.rows = (int(state[name]) for name in ("judged", "missed", "rows"))
        self.within = arrays["within"].copy()
        self.kept.restore(state["rng"], arrays)

    def by_fold(self, score: str) -> tuple[FoldScores, ...]:
        """``"r2"`` or ``"rmse"`` of each function."""
        folds = np.array([getattr(self.folds[fold], score) for fold in sorted(self.folds)])
        return tuple(FoldScores(tuple(of_function.tolist())) for of_function in folds.T)

    @property
    def mean_r2(self) -> FoldScores:
        """Mean R2 over the functions, fold by fold, as cross-validation of low-degree models has it."""
        return FoldScores(tuple(np.mean([scores.folds for scores in self.by_fold("r2")], axis=0).tolist()))

    @property
    def coverage(self) -> tuple[float, ...]:
        """Share of targets inside their prediction intervals at each of :data:`LEVELS`; empty for classes."""
        return tuple((self.within / self.judged).tolist()) if self.judged else ()


MOST_COLUMNS_FOR_GRADIENTS = 128  # beyond it, slopes at many places cost more than all the rest


def laid_out(table: Table, options: FitOptions, sample: RowSample) -> Any:
    """An LSH model whose hash functions, width and penalty suit the sample; it has learned the sample's rows."""
    X, y, _ = sample.rows()
    model = _estimator(table, options.random_state)
    add_batch(model, table, X, y)
    return model


@dataclass(frozen=True)
class _Buckets:
    """What a pass over the rows sums up in the tables of a model."""

    model: Any

    def state(self, arrays: Arrays) -> State:
        state: State = self.model._state(arrays)
        return state

    def restore(self, state: State, arrays: Arrays) -> None:
        self.model._restore(state, arrays)
        self.model._forget_solution()


def fit_rows(table: Table, model: Any, sample: RowSample, on_rows: OnRows, checkpoint: Checkpoint) -> Any:
    """A model of every row with the hash functions of another."""
    if sample.is_complete:
        return model
    whole = model.blank(remember_rows=False)
    for X, y, _ in checkpoint.rows("learning", sample.batches, _Buckets(whole), on_rows):
        add_batch(whole, table, X, y)
    return whole


def held_out_scores(
    table: Table, model: Any, options: FitOptions, sample: RowSample, on_rows: OnRows, checkpoint: Checkpoint
) -> HeldOutScores:
    """Held-out scores of models like this one, fold by fold, over every row of the table.

    A fold's model shares width, penalty and kind of directions with the given one. Its hash functions, directions and
    trend are found again from rows outside of the fold: those of the given model have seen all folds.
    """
    fixed = {
        "bucket_width": model.bucket_width_,
        "alpha": model.alpha_,
        "n_hashes": model.n_hashes_,
        "directions": model.directions_,
    }
    share = min(1.0, MAX_HELD_OUT / max(1, table.n_rows or 1))
    scores = HeldOutScores(Draw(np.random.default_rng([options.random_state, 2]), share, KEPT))
    done = 0
    if (result := checkpoint.result("measuring")) is not None:
        done = int(result[0]["folds"])
        scores.restore(result[0]["tally"], result[1])
        on_rows(done * rows_of_fold(sample))
    for fold in range(done, options.folds):
        X, y, folds = sample.rows()
        of_others = _estimator(table, options.random_state, **fixed)
        add_batch(of_others, table, X[folds != fold], y[folds != fold])
        if not sample.is_complete:
            of_others = of_others.blank(remember_rows=False)
            for X, y, folds in checkpoint.rows("learning the others", sample.batches, _Buckets(of_others), on_rows):
                add_batch(of_others, table, X[folds != fold], y[folds != fold])
        for X, y, folds in checkpoint.rows("predicting a fold", sample.batches, scores, on_rows):
            scores.add(of_others, table, fold, X[folds == fold], y[folds == fold])
        arrays: Arrays = {}
        state = {"folds": fold + 1, "tally": scores.state(arrays)}
        checkpoint.save("measuring", state, arrays, instead_of=("learning the others", "predicting a fold"))
    return scores


def rows_of_fold(sample: RowSample) -> int:
    """Rows that pass by when a fold is measured: once to predict, and before it to learn, if they are read again."""
    return (sample.table.n_rows or 0) * (1 if sample.is_complete else 2)


def _estimator(table: Table, seed: int, **fixed: Any) -> Any:
    from sparsact import LSHClassifier, LSHRegressor

    kind = LSHClassifier if isinstance(table.encoding.targets[0], Classes) else LSHRegressor
    directions = "auto" if len(table.feature_names) <= MOST_COLUMNS_FOR_GRADIENTS else "standard"
    return kind(random_state=seed, **({"directions": directions} | fixed))

"""LSH models of a table: laid out on a sample of its rows, measured on held-out rows, learned from all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sparsact.cli.fitting.choice import OnRows, Wish, as_numbers
from sparsact.cli.fitting.folds import MAX_HELD_OUT, Prediction, see, values
from sparsact.cli.fitting.rows import RowSample
from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.reports import Spread

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)  # probabilities at which prediction intervals are checked


@dataclass(frozen=True)
class HeldOut:
    """What models that had not seen a row said of it: scores of each function (by fold), and some of the rows.

    ``coverage`` is the share of targets inside their prediction intervals at each of :data:`LEVELS` (empty for
    classes), ``missed`` the share of rows that fell into empty buckets in every table.
    """

    r2: tuple[Spread, ...]
    rmse: tuple[Spread, ...]
    sample: Prediction
    coverage: tuple[float, ...]
    missed: float

    @property
    def mean_r2(self) -> Spread:
        """Mean R2 over the functions, fold by fold, as cross-validation of low-degree models has it."""
        folds = np.mean([spread.folds for spread in self.r2], axis=0)
        return Spread(tuple(folds.tolist()))


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
    tally = _Tally(np.random.default_rng([wish.seed, 2]), min(1.0, MAX_HELD_OUT / max(1, table.n_rows or 1)))
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
    return kind(random_state=seed, **asked)


@dataclass
class _Tally:
    """Sums over held-out rows, and a few of the rows themselves."""

    rng: np.random.Generator
    share: float
    sums: dict[int, NDArray[np.float64]] = field(default_factory=dict)  # fold -> (4, functions), about `origin`
    origin: NDArray[np.float64] | None = None
    within: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(LEVELS)))
    judged: int = 0
    missed: int = 0
    rows: int = 0
    kept: list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]] = field(default_factory=list)

    def add(self, model: Any, table: Table, fold: int, X: NDArray[Any], y: NDArray[np.float64]) -> None:
        """Held-out rows of a fold, and what its model says."""
        if not len(X):
            return
        predicted = values(model, X)
        actual = as_numbers(table.encoding.targets[0], y).reshape(predicted.shape)
        if self.origin is None:
            self.origin = actual.mean(axis=0)
        away, error = actual - self.origin, actual - predicted
        found = np.array([np.full(predicted.shape[1:], len(X)), away.sum(0), (away**2).sum(0), (error**2).sum(0)])
        self.sums[fold] = self.sums.get(fold, 0.0) + found
        self.rows += len(X)
        self._judge_intervals(model, X, error)
        chosen = self.rng.random(len(X)) < self.share
        raw = y.reshape(len(X), -1)[chosen]
        self.kept.append((raw, predicted[chosen], np.full(len(raw), fold)))

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

    def held_out(self) -> HeldOut:
        """The scores."""
        sums = np.array([self.sums[fold] for fold in sorted(self.sums)])  # (folds, 4, functions)
        n, away, squares, errors = np.moveaxis(sums, 1, 0)
        about_mean = np.maximum(squares - away**2 / n, 0.0)
        r2 = 1.0 - errors / np.where(about_mean > 0, about_mean, 1.0)
        rmse = np.sqrt(errors / n)
        actual, predicted, fold = (np.concatenate(parts) for parts in zip(*self.kept, strict=True))
        return HeldOut(
            tuple(Spread(tuple(column.tolist())) for column in r2.T),
            tuple(Spread(tuple(column.tolist())) for column in rmse.T),
            Prediction(actual, predicted, fold),
            tuple((self.within / self.judged).tolist()) if self.judged else (),
            self.missed / self.rows,
        )

"""Scores of models on rows that they have not seen, fold by fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.columns import Classes, Real
from sparsact.fit.fold_sums import as_numbers
from sparsact.fit.scores import FoldScores, mean_scores
from sparsact.learners.predictor import predictor
from sparsact.statistics.folds import out_of_fold
from sparsact.statistics.row_sample import RowSample


def out_of_fold_values(
    model_without: Callable[[int], Any], X: NDArray[Any], folds: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Values (rows, functions) of every row by the model without the fold that it is in."""
    if not len(X):
        return np.empty((0, 0))
    return out_of_fold(folds, lambda fold, rows: predictor(model_without(fold)).values(X[rows]))


@dataclass(frozen=True)
class HeldOutScores:
    """Targets and predictions, (rows, functions), of rows that each model has not seen; folds, and weights if any."""

    actual: NDArray[np.float64]
    predicted: NDArray[np.float64]
    folds: NDArray[np.intp]
    weights: NDArray[np.float64] | None = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls,
        model_without: Callable[[int], Any],
        target: Real | Classes,
        X: NDArray[Any],
        y: NDArray[Any],
        folds: NDArray[np.intp],
    ) -> Self:
        """Every row by the model without the fold that it is in."""
        predicted = out_of_fold_values(model_without, X, folds)
        return cls(as_numbers(target, y).reshape(predicted.shape), predicted, folds)

    def first(self, sample: RowSample, n_rows: int) -> HeldOutScores:
        """The scores, without weights, of the first ``n_rows`` of the sample that the rows are from."""
        places = np.searchsorted(sample.smallest(len(self.folds)), sample.smallest(n_rows))
        return HeldOutScores(self.actual[places], self.predicted[places], self.folds[places])

    @cached_property
    def _by_fold(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Mean squared errors and variances of each fold's rows, (functions,)."""
        found: list[Any] = []
        for fold in np.unique(self.folds):
            rows = self.folds == fold
            weights = None if self.weights is None else self.weights[rows]
            error, actual = self.actual[rows] - self.predicted[rows], self.actual[rows]
            about = (actual - np.average(actual, axis=0, weights=weights)) * (np.ptp(actual, axis=0) > 0)
            found.append(tuple(np.average(each**2, axis=0, weights=weights) for each in (error, about)))
        return found

    def r2(self) -> tuple[FoldScores, ...]:
        """R2 of each function; NaN in a fold where its target is constant."""
        scores = [1 - error / np.where(variance > 0, variance, np.nan) for error, variance in self._by_fold]
        return tuple(FoldScores(tuple(of_function.tolist())) for of_function in np.transpose(scores))

    def rmse(self) -> tuple[FoldScores, ...]:
        """Root of the mean squared error of each function."""
        roots = np.sqrt([error for error, _ in self._by_fold])
        return tuple(FoldScores(tuple(of_function.tolist())) for of_function in roots.T)

    @property
    def mean_r2(self) -> FoldScores:
        """Mean R2 over the functions that have one, fold by fold."""
        return mean_scores(self.r2())

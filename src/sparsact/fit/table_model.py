"""A fitted model as the rows and targets of its table see it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from math import floor, log10
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.columns import Classes, Encoding, LogReal, Real
from sparsact.learners import LatentRegressor, LettersRegressor
from sparsact.learners.predictor import predictor

Array = NDArray[np.float64]
DIGITS: Final = 13
MOST_DECIMALS: Final = 300  # powers of ten beyond are no floats


def letters_and_numbers(encoding: Encoding, X: NDArray[Any]) -> NDArray[np.str_]:
    """Letters (m, sites) of points X, and after these the numbers, as texts, of each column of numbers."""
    owners = [column for column in encoding.columns for _ in column.features]
    numbers = [(place, column) for place, column in enumerate(owners) if isinstance(column, Real)]
    if not numbers:
        return encoding.letters(X)
    bits = (np.delete(X, [place for place, _ in numbers], axis=1) < 0).astype(np.uint8)
    texts = [[f"{value:.12g}" for value in _unscaled(X[:, place], of)] for place, of in numbers]
    columns = np.array(texts).reshape(len(numbers), len(X)).T
    return np.concatenate([encoding.letters(bits), columns], axis=1) if encoding.sites else columns


def _unscaled(values: NDArray[Any], column: Real) -> Array:
    """Numbers of a column as the table has them: scaling rounds the 16th digit of the largest, so 13 are kept."""
    decimals = DIGITS - floor(log10(abs(column.centre) + column.scale))
    return np.asarray(np.round(values * column.scale + column.centre, min(decimals, MOST_DECIMALS)) + 0.0)  # no -0


class FromTable(Protocol):
    """A model that was fitted to a table."""

    table_encoding_: str


@dataclass(frozen=True)
class TableModel:
    """A fitted model with the encoding of its table; ``X`` are rows as the encoding makes them."""

    model: object
    encoding: Encoding

    def rows(self, X: NDArray[Any]) -> NDArray[Any]:
        """The rows as the model takes them."""
        return letters_and_numbers(self.encoding, X) if isinstance(self.model, LettersRegressor) else X

    def values(self, X: NDArray[Any]) -> Array:
        """Values (m, functions): targets as they were learned, or what a classifier compares."""
        return predictor(self.model).values(self.rows(X))

    def functions(self, X: NDArray[Any]) -> Array:
        """Values (m, functions) that effects describe: the latent of a measurement model, else the predictions."""
        if isinstance(self.model, LatentRegressor):
            return np.asarray(self.model.predict_latent(X)[:, None])
        return self.values(X)

    @property
    def letters(self) -> list[list[int]]:
        """Places of the letters of each site that the model can predict."""
        known: Any = self.model.letters_ if isinstance(self.model, LettersRegressor) else repeat(None)
        pairs = zip(self.encoding.sites, known, strict=False)
        return [[i for i, one in enumerate(letters) if own is None or one in own] for (_, letters), own in pairs]

    def answers(self, X: NDArray[Any]) -> NDArray[Any]:
        """Predictions: numbers, (m,) or (m, targets), or names of classes."""
        found = brought_back(self.encoding, self.values(X))
        target = self.encoding.targets[0]
        if isinstance(target, Classes):
            return target.named[class_numbers(found)]
        return found[:, 0] if len(self.encoding.targets) == 1 else found

    def intervals(self, X: NDArray[Any], found: Array, confidence: float) -> tuple[Array, Array]:
        """Lower and upper ends (m, targets) about values, as the targets were learned; infinite where unknown.

        If the model gives none, they are as wide as its held-out errors where about this value is predicted.
        """
        by_method, design = predictor(self.model), self.encoding.design
        ends = by_method.interval(self.rows(X), found, confidence)
        if ends is not None:
            return ends[:, :1], ends[:, 1:]
        reach, held_out = np.full(found.shape, np.inf), None if design is None else design.held_out
        if held_out is not None and len(held_out.errors):
            for i in range(held_out.errors.shape[1]):
                reach[:, i] = held_out.reach(i, found[:, i], confidence)
        return np.clip(found - reach, *by_method.bounds), np.clip(found + reach, *by_method.bounds)


def brought_back(encoding: Encoding, found: Array) -> Array:
    """Targets (m, targets) as the table has them: logarithms that were learned are undone."""
    logs = [isinstance(target, LogReal) for target in encoding.targets]
    with np.errstate(over="ignore"):
        return np.where(logs, np.exp(found), found) if any(logs) else found


def class_numbers(function_values: Array) -> NDArray[np.intp]:
    """Class that a classifier's values name, as its place among the classes."""
    if function_values.shape[1] == 1:
        return (function_values[:, 0] > 0).astype(np.intp)
    return np.asarray(function_values.argmax(axis=1))

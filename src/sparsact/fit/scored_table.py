"""Scores of a fitted model on a table of its own, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from sparsact.datasets import Encoding, Table, encoded_table
from sparsact.datasets.chosen_rows import complete_rows, weighted_rows
from sparsact.datasets.columns import Classes, LogReal
from sparsact.datasets.table_files import Data
from sparsact.datasets.unseen_rows import left_out, readable
from sparsact.fit.options import FitOptions
from sparsact.fit.scores import Score
from sparsact.fit.table_model import TableModel, brought_back, class_numbers
from sparsact.fit.term import REACH


@dataclass(frozen=True)
class ScoredTarget:
    """One target of numbers: R2 (of logarithms, where these were learned), and errors in the units of the table.

    R2 compares ``actual`` and ``predicted``. ``relative_error`` is the mean size of predicted / actual - 1, of a
    target whose logarithm was learned.
    """

    name: str
    r2: Score
    rmse: float
    relative_error: float | None
    actual: NDArray[np.float64]
    predicted: NDArray[np.float64]


@dataclass(frozen=True)
class ScoredTable:
    """How well the rows of another table are predicted: targets of numbers, or the accuracy of classes."""

    name: str
    n_rows: int
    targets: tuple[ScoredTarget, ...] = ()
    accuracy: Score | None = None
    left_out: str = ""  # how many rows could not be read, and why not the first of them

    @property
    def lines(self) -> list[str]:
        """The scores, for a person."""
        last = [f"left out of that score: {self.left_out}"] * bool(self.left_out)
        if self.accuracy is not None:
            return [f"on {self.name} ({self.n_rows:,} rows): accuracy {self.accuracy}", *last]
        if not self.targets:
            return [f"no score on {self.name}: a score needs 2 rows, and {self.n_rows} can be read", *last]
        return [
            f"on {self.name} ({self.n_rows:,} rows): R² {target.r2}{f' for {target.name}' * (len(self.targets) > 1)}, "
            f"root mean squared error {target.rmse:.4g}"
            + ("" if target.relative_error is None else f", mean relative error {target.relative_error:.2%}")
            for target in self.targets
        ] + last

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it, with 95 % intervals."""
        found: dict[str, Any] = {"table": self.name, "rows": self.n_rows, "left_out": self.left_out}
        if self.accuracy is not None:
            return found | {"accuracy": self.accuracy.value, "low": self.accuracy.low, "high": self.accuracy.high}
        return found | {
            "targets": [
                {"name": one.name, "r2": one.r2.value, "r2_low": one.r2.low, "r2_high": one.r2.high}
                | {"rmse": one.rmse, "relative_error": one.relative_error}
                for one in self.targets
            ]
        }


def open_test(data: Data, encoding: Encoding, options: FitOptions) -> Table:
    """A test table with the columns of the fit, targets included; without rows that lack values, if asked.

    If it has the column of weights, rows of weight 0 are left out as in the fit.
    """
    table = encoded_table(data, encoding)
    lacking = [name for name in encoding.target_names if name not in table.parts.names]
    if lacking:
        raise ValueError(f"{table.parts.name} has no column {lacking[0]!r}, the target, which its scores need.")
    parts = table.parts
    if options.drop_missing:
        parts, _ = complete_rows(parts, [*encoding.source_columns, *encoding.target_names])
    if options.weights is not None and options.weights in parts.names:
        parts, _ = weighted_rows(parts, options.weights)
    return replace(table, parts=parts)


def score_table(model: object, table: Table, name: str) -> ScoredTable:
    """Score a model on a table of this name in the encoding of the fit."""
    encoding = table.encoding
    learned = TableModel(model, encoding)
    pairs, reasons = [], dict[int, str]()
    for batch in table.parts.batches([*encoding.source_columns, *encoding.target_names], table.batch_rows):
        with batch:
            X, y, unread = readable(encoding, batch, answers=True)
        pairs.append((np.reshape(y, (len(X), len(encoding.targets))), learned.values(X)))
        reasons |= {batch.overall + place: why for place, why in unread.items()}
    if sum(len(y) for y, _ in pairs) + len(reasons) < 2:
        raise ValueError(f"{name} has fewer than 2 rows; scores need more.")
    actual, found = (np.concatenate(each) for each in zip(*pairs, strict=True))
    n_rows = len(actual)
    rest = left_out(reasons, n_rows + len(reasons))
    if n_rows < 2:
        return ScoredTable(name, n_rows, left_out=rest)
    if isinstance(encoding.targets[0], Classes):
        n_right = int((class_numbers(found) == actual[:, 0]).sum())
        ends = binomtest(n_right, n_rows).proportion_ci(method="wilson")
        accuracy = Score(n_right / n_rows, float(ends.low), float(ends.high))
        return ScoredTable(name, n_rows, accuracy=accuracy, left_out=rest)
    actual_then, found_then = brought_back(encoding, actual), brought_back(encoding, found)
    targets = []
    for i, target in enumerate(encoding.targets):
        if not np.ptp(actual[:, i]):
            raise ValueError(f"target {target.name!r} is constant in {name}, so that R² has no meaning there.")
        relative = None
        if isinstance(target, LogReal):
            relative = float(np.abs(found_then[:, i] / actual_then[:, i] - 1).mean())
        rmse = float(np.sqrt(((actual_then[:, i] - found_then[:, i]) ** 2).mean()))
        r2 = r2_score(actual[:, i], found[:, i])
        targets.append(ScoredTarget(target.name, r2, rmse, relative, actual[:, i], found[:, i]))
    return ScoredTable(name, n_rows, tuple(targets), left_out=rest)


def r2_score(actual: NDArray[np.float64], predicted: NDArray[np.float64]) -> Score:
    r"""R2 of independent rows with its interval: 1 - A / B, where A and B are means of squares.

    By the delta method the error of A / B has the variance of :math:`(e^2 - (A / B)\, d^2) / B` over m, with e the
    error and d the distance from the mean.
    """
    error, spread = (actual - predicted) ** 2, (actual - actual.mean()) ** 2
    ratio = error.mean() / spread.mean()
    reach = REACH * float(np.std(error - ratio * spread, ddof=1)) / spread.mean() / np.sqrt(len(actual))
    return Score(float(1 - ratio), float(1 - ratio - reach), float(min(1.0, 1 - ratio + reach)))

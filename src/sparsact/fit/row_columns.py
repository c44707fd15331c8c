"""Columns that give each row's precision and group: weights and grouped folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.datasets.cell_values import numbers, refuse_missing, texts_of
from sparsact.datasets.table_files import Parts, PlacedRows, piece_name, resolve
from sparsact.fit.options import FitOptions
from sparsact.passes.source import Partition, Pass, S
from sparsact.statistics.folds import deal_groups
from sparsact.statistics.statistic import Batch

BATCH_ROWS: Final = 1 << 16


@dataclass(frozen=True)
class RowColumns:
    """The column of groups and the column of weights or deviations, as one pass over all rows has found them.

    Weights are precisions over their mean: a row of deviation sigma has 1 / sigma**2 over the mean of these.
    """

    groups: str | None = None
    precision: str | None = None
    is_sigma: bool = False
    fold_of: dict[str, int] | None = None
    mean: float = 1.0

    @classmethod
    def of(cls, parts: Parts, options: FitOptions) -> RowColumns:
        """Read the columns that the options name, if any."""
        groups, precision = (
            None if name is None else resolve([name], parts.names, "column")[0]
            for name in (options.groups, options.sigma or options.weights)
        )
        if groups is None and precision is None:
            return cls()
        counts: dict[str, int] = {}
        total = n_rows = 0.0
        of_rows = cls(None, precision, options.sigma is not None)
        for batch in parts.batches([name for name in (groups, precision) if name], BATCH_ROWS):
            with batch:
                if groups is not None:
                    for text, count in zip(*_grouped(batch, groups)[::2], strict=True):
                        counts[text] = counts.get(text, 0) + count
                weights = of_rows.weights(batch)
            total += 0.0 if weights is None else float(weights.sum())
            n_rows += len(batch)
        fold_of = None if groups is None else _dealt(groups, counts, options)
        if precision is not None and not 0 < total < np.inf:
            raise ValueError(f"column {precision!r} leaves no finite weight; write it in another unit.")
        return cls(groups, precision, of_rows.is_sigma, fold_of, total / n_rows if precision else 1.0)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [name for name in (self.groups, self.precision) if name is not None]

    def folds(self, batch: PlacedRows) -> NDArray[np.intp] | None:
        """Folds of the rows; None where they follow from the numbers of rows."""
        if self.groups is None or self.fold_of is None:
            return None
        texts, places, _ = _grouped(batch, self.groups)
        return np.array([self.fold_of[text] for text in texts], dtype=np.intp)[places]

    def weights(self, batch: PlacedRows) -> NDArray[np.float64] | None:
        """Weights of the rows, of mean 1 over all of them; None without such a column."""
        if (name := self.precision) is None:
            return None
        values = numbers(batch.columns.column(name), name, batch.row)
        if not (values > 0).all():
            row = int(np.argmin(values > 0))
            what = "standard deviations" if self.is_sigma else "weights"
            fact = f"column {name!r}, row {batch.row + row + 1}: {values[row]:g}, where {what} must be positive"
            raise ValueError(f"{fact}; correct the row, or drop it.")
        with np.errstate(over="ignore", divide="ignore", under="ignore"):
            return (1 / values / values if self.is_sigma else values) / self.mean


@dataclass(frozen=True)
class FitRows:
    """Rows of a table as a fit sums them: points, targets, and folds and weights where columns say them."""

    table: Table
    columns: RowColumns

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Batches in the order of the file, from ``first_row`` on, which begins a batch."""
        encoding, parts = self.table.encoding, self.table.parts
        names = [*encoding.source_columns, *encoding.target_names, *self.columns.names]
        for batch in parts.batches(names, self.table.batch_rows, first_row):
            with batch:
                X, y = encoding.points(batch), encoding.answers(batch)
                folds, weights = self.columns.folds(batch), self.columns.weights(batch)
            yield Batch(X, y, weights, folds, batch.overall)

    def partitions(self) -> list[Partition[FitRows]]:
        """Every file, or piece of a large one, for a worker to read."""
        return [
            Partition(
                piece_name(parts.sources[0]), replace(self, table=replace(self.table, parts=parts)), (), parts.n_rows
            )
            for parts in self.table.parts.divided()
        ]

    def summed_by(self, name: str, statistic: S) -> Pass[Batch, S]:
        """The pass of a name that adds all rows to a statistic."""
        return Pass(name, self, statistic, self.partitions)


def _grouped(batch: PlacedRows, name: str) -> tuple[list[str], NDArray[np.intp], list[int]]:
    """Names of the groups of a batch, the place of each row among them, and how many rows each has."""
    array = batch.columns.column(name)
    refuse_missing(array, name, batch.row)
    encoded = pc.dictionary_encode(array)
    places = encoded.indices.to_numpy().astype(np.intp)
    texts = list(texts_of(encoded.dictionary))
    return texts, places, np.bincount(places, minlength=len(texts)).tolist()


def _dealt(name: str, counts: dict[str, int], options: FitOptions) -> dict[str, int]:
    """A fold for each group; a ValueError if there are too few."""
    n_folds = options.folds
    if len(counts) < 2:
        raise ValueError(f"column {name!r} holds one group; held-out groups need at least 2: leave groups out.")
    if len(counts) < n_folds:
        raise ValueError(f"column {name!r} holds {len(counts)} groups, fewer than {n_folds} folds; choose fewer folds.")
    return deal_groups(counts, n_folds, options.random_state)

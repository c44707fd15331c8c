"""Columns that give each row's precision and group: weights and grouped folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.datasets.cell_values import DROP, UnreadableError, numbers, refuse_missing, texts_of
from sparsact.datasets.chosen_rows import numbers_of
from sparsact.datasets.column_survey import NEARLY_ALL
from sparsact.datasets.side_columns import note_on_weights
from sparsact.datasets.table_files import Parts, PlacedRows, piece_name, resolve
from sparsact.fit.options import FitOptions
from sparsact.passes.source import Partition, Pass, S
from sparsact.statistics.folds import deal_groups
from sparsact.statistics.statistic import Batch

FLOOR: Final = 0.25  # quantile of the errors that counts in place of 0
MOST_ERRORS: Final = 1 << 20  # of the first rows, which tell it
WHAT: Final = {1: "weights", -1: "variances", -2: "standard deviations"}


@dataclass(frozen=True)
class RowColumns:
    """The column of groups and the column of weights or errors, as one pass over all rows has found them.

    Weights are precisions over their mean: a row of deviation sigma has 1 / sigma**2 over the mean of these. An error
    of 0, by rounding or of a row measured once, says little: it counts as ``floor``, the lower quartile of the others.
    The least of them would give such rows nearly all of the weight.
    """

    groups: str | None = None
    precision: str | None = None
    power: int = 1  # of the column's numbers: the weight
    fold_of: dict[str, int] | None = None
    mean: float = 1.0
    floor: float = 0.0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, parts: Parts, options: FitOptions) -> RowColumns:
        """Read the columns that the options name, if any."""
        of_rows, power = options.precision or (None, 1)
        groups, precision = (
            None if name is None else resolve([name], parts.names, "column")[0] for name in (options.groups, of_rows)
        )
        if groups is None and precision is None:
            return cls()
        counts: dict[str, int] = {}
        total = n_rows = 0.0
        found = cls(groups, precision, power)
        if precision is not None and power == 1 and (note := note_on_weights(precision, options.target)):
            found = replace(found, notes=(note,))
        if precision is not None and power < 0:
            found = replace(found, **_floor(parts, precision))
        for batch in parts.batches(found.names):
            with batch:
                if groups is not None:
                    for text, count in zip(*_grouped(batch, groups)[::2], strict=True):
                        counts[text] = counts.get(text, 0) + count
                weights = found.weights(batch)
            total += 0.0 if weights is None else float(weights.sum())
            n_rows += len(batch)
        fold_of = None if groups is None else _dealt(groups, counts, options)
        if fold_of is not None and len(counts) < options.folds:
            few = f"{groups} holds {len(counts)} groups, so there are as many folds, not {options.folds}."
            found = replace(found, notes=(*found.notes, few))
        if len(counts) > NEARLY_ALL * n_rows:
            fact = f"warning: {groups} holds {len(counts):,} groups in {n_rows:,.0f} rows, nearly one for each row"
            remedy = "rows of a plate or family are not kept together; choose a column whose values rows share."
            found = replace(found, notes=(*found.notes, f"{fact}: {remedy}"))
        if precision is not None and not 0 < total < np.inf:
            raise ValueError(f"column {precision!r} leaves no finite weight; write it in another unit.")
        return replace(found, fold_of=fold_of, mean=total / n_rows if precision else 1.0)

    def folds_of(self, options: FitOptions) -> FitOptions:
        """The options with as many folds as there are."""
        n_folds = len({*(self.fold_of or {}).values()}) or options.folds
        return options if n_folds == options.folds else replace(options, folds=n_folds)

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
        refuse_missing(batch.columns.column(name), name, batch.row, DROP)
        values = numbers(batch.columns.column(name), name, batch.row)
        if self.power < 0:
            values = np.where(values == 0, self.floor, values)
        if not (values > 0).all():
            row = int(np.argmin(values > 0))
            why = f"{values[row]:g}, where {WHAT[self.power]} must be positive; correct the row, or drop it."
            raise UnreadableError(name, batch.row, {row: why})
        with np.errstate(over="ignore", divide="ignore", under="ignore"):
            weights = values if self.power == 1 else 1 / values
            return (weights / values if self.power == -2 else weights) / self.mean


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


def _floor(parts: Parts, name: str) -> dict[str, Any]:
    """What an error of 0 counts as, by the others, and a note that says so."""
    n_rows, n_zero, others = 0, 0, np.empty(0)
    for values in numbers_of(parts, name):
        n_rows, n_zero = n_rows + len(values), n_zero + int((values == 0).sum())
        others = np.concatenate([others, values[values != 0][: MOST_ERRORS - len(others)]])
    if not n_zero:
        return {}
    if n_rows and n_zero == n_rows:
        raise ValueError(f"column {name!r} is 0 in every row, which says nothing of the rows; leave it out.")
    floor = float(np.quantile(others, FLOOR))
    note = f"{name} is 0 in {n_zero:,} of {n_rows:,} rows; there it counts as {floor:.3g}, the others' lower quartile."
    return {"floor": floor, "notes": (note,)}


def _grouped(batch: PlacedRows, name: str) -> tuple[list[str], NDArray[np.intp], list[int]]:
    """Names of the groups of a batch, the place of each row among them, and how many rows each has."""
    array = batch.columns.column(name)
    refuse_missing(array, name, batch.row, DROP)
    encoded = pc.dictionary_encode(array)
    places = encoded.indices.to_numpy().astype(np.intp)
    texts = list(texts_of(encoded.dictionary))
    return texts, places, np.bincount(places, minlength=len(texts)).tolist()


def _dealt(name: str, counts: dict[str, int], options: FitOptions) -> dict[str, int]:
    """A fold for each group, no more of them than groups; a ValueError if there is one."""
    if len(counts) < 2:
        raise ValueError(f"column {name!r} holds one group; held-out groups need at least 2: leave groups out.")
    return deal_groups(counts, min(options.folds, len(counts)), options.random_state)

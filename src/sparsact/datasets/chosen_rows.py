"""Rows of a table that are learned from: complete ones, of positive weight, of a part of a split.

Among numbers, marks such as ``-`` and ``n.d.`` stand for no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sparsact.datasets.cell_values import DASHES, DROP, at_limits, is_text, listed, numbers, refuse_missing
from sparsact.datasets.dialect import NULLS
from sparsact.datasets.readers import Source
from sparsact.datasets.table_files import BATCH_ROWS, Parts

MARKS: Final = pa.array([*NULLS, *DASHES])
Rule = Callable[[pa.RecordBatch], pa.Array]  # whether each row is kept, by the columns that are needed


@dataclass(frozen=True)
class ChosenRows(Source):
    """The rows of another source that a rule keeps."""

    source: Source = field(kw_only=True)
    needed: tuple[str, ...] = field(kw_only=True)
    rule: Rule = field(kw_only=True)
    counted: ClassVar[str] = "of the rows that are left: "

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Chosen rows in the order of the file; no batch is empty."""
        for batch in self.source.batches(list(dict.fromkeys([*columns, *self.needed])), batch_rows):
            kept = batch.filter(self.rule(batch.select(list(self.needed)))).select(list(columns))
            if kept.num_rows:
                yield kept

    def row_in_file(self, row: int) -> int:
        """Rows of the file before the chosen row of a number; the file is read up to it."""
        before = 0
        for batch in self.source.batches(list(self.needed), BATCH_ROWS):
            places = np.flatnonzero(np.asarray(self.rule(batch)))
            if row < len(places):
                return self.source.row_in_file(before + int(places[row]))
            row, before = row - len(places), before + len(batch)
        return before


def chosen_rows(parts: Parts, needed: Sequence[str], rule: Rule) -> Parts:
    """The rows that a rule keeps, by the columns that it needs."""
    sources = tuple(
        ChosenRows(source.path, source.columns, None, source.first_row, source=source, needed=tuple(needed), rule=rule)
        for source in parts.sources
    )
    return replace(parts, sources=sources, lengths=[None] * len(sources))


def _complete(marked: frozenset[str], rows: pa.RecordBatch) -> pa.Array:
    """Rows that have a value, and no mark where columns are ``marked``, in each column."""
    pairs = zip(rows.schema.names, rows.columns, strict=True)
    return pc.invert(reduce(pc.or_, (_missing(column, name in marked) for name, column in pairs)))


def _missing(column: pa.Array, marked: bool) -> pa.BooleanArray:
    missing = column.is_null(nan_is_null=True)
    return pc.or_(missing, pc.is_in(pc.utf8_trim_whitespace(column.cast(pa.string())), MARKS)) if marked else missing


def _marked(parts: Parts, needed: Sequence[str]) -> frozenset[str]:
    """Columns of text in which there are marks, and all else is numbers."""
    marks = dict.fromkeys(needed, 0)
    for batch in parts.batches(needed):
        for name in list(marks):
            column = batch.columns.column(name)
            missing = _missing(column, is_text(column.type))
            marks[name] += missing.true_count - column.null_count
            try:
                pc.cast(at_limits(pc.utf8_trim_whitespace(column.filter(pc.invert(missing)))), pa.float64())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # words, or numbers already
                del marks[name]
        if not marks:
            break
    return frozenset(name for name, count in marks.items() if count)


def _not_zero(rows: pa.RecordBatch) -> pa.Array:
    return pa.array(numbers(rows.columns[0], rows.schema.names[0], 0) != 0)


def complete_rows(parts: Parts, needed: Sequence[str], targets: Sequence[str] = ()) -> tuple[Parts, str]:
    """The rows that lack none of the columns, and a note that says how many were left out (empty if none was).

    If one of several targets lacks values, the note says how the others keep their rows.

    The table is read to count them, and once more where columns of text may be numbers with marks among them.
    """
    n_rows = n_complete = 0
    lacking, marked = dict.fromkeys(needed, 0), _marked(parts, needed)
    for batch in parts.batches(needed):
        missing = {name: _missing(batch.columns.column(name), name in marked) for name in needed}
        for name, of_column in missing.items():
            lacking[name] += of_column.true_count
        n_rows += len(batch)
        n_complete += len(batch) - reduce(pc.or_, missing.values()).true_count
    if n_complete == n_rows:
        return parts, ""
    worst = sorted((name for name in lacking if lacking[name]), key=lambda name: -lacking[name])
    counts = ", ".join(f"{name} ({lacking[name]:,})" for name in worst[:5]) + ", ..." * (len(worst) > 5)
    if not n_complete:
        remedy = f"leave out the column with most gaps: ignore={worst[0]!r}"
        raise ValueError(f"every row has a missing value ({counts} of {n_rows:,}); {remedy}.")
    note = f"left out, since a value is missing: {n_rows - n_complete:,} of {n_rows:,} rows, which lack {counts}."
    if marked:
        note += f" A mark such as '-' or 'n.d.' among numbers counts as missing: {listed(sorted(marked))}."
    if len(targets) > 1 and any(lacking[name] for name in targets):
        note += " These rows are left out for every target; fit targets one at a time to keep more rows."
    return chosen_rows(parts, needed, partial(_complete, marked)), note


def numbers_of(parts: Parts, name: str) -> Iterator[NDArray[np.float64]]:
    """The numbers of a column, in pieces (m,), none missing."""
    for batch in parts.batches([name]):
        with batch:
            refuse_missing(column := batch.columns.column(name), name, batch.row, DROP)
            values = numbers(column, name, batch.row, "correct the row, or name another column")
        yield values


def weighted_rows(parts: Parts, name: str) -> tuple[Parts, str]:
    """The rows whose weight is not 0, and a note that says how many were left out (empty if none was).

    The table is read once, to count them.
    """
    n_rows = n_zero = 0
    for weights in numbers_of(parts, name):
        n_rows, n_zero = n_rows + len(weights), n_zero + int((weights == 0).sum())
    if n_rows and n_zero == n_rows:
        raise ValueError(f"column {name!r} is 0 in every row, so no row has a weight; leave weights out.")
    note = f"left out, since their weight {name} is 0: {n_zero:,} of {n_rows:,} rows."
    return (chosen_rows(parts, [name], _not_zero), note) if n_zero else (parts, "")

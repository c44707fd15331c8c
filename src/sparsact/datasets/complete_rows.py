"""Rows of a table in which no value is missing; among numbers, marks such as ``-`` and ``n.d.`` stand for none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from sparsact.datasets.cell_values import DASHES, at_limits, is_text, listed
from sparsact.datasets.dialect import NULLS
from sparsact.datasets.readers import Source
from sparsact.datasets.table_files import Parts

MARKS: Final = pa.array([*NULLS, *DASHES])


@dataclass(frozen=True)
class CompleteRows(Source):
    """The rows of another source that have a value, and no mark if it is a ``marked`` one, in each of some columns."""

    source: Source = field(kw_only=True)
    needed: tuple[str, ...] = field(kw_only=True)
    marked: frozenset[str] = field(kw_only=True)
    counted: ClassVar[str] = "of the complete rows: "

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Complete rows in the order of the file."""
        for batch in self.source.batches(list(dict.fromkeys([*columns, *self.needed])), batch_rows):
            lacking = reduce(pc.or_, (_missing(batch.column(name), name in self.marked) for name in self.needed))
            yield batch.filter(pc.invert(lacking)).select(list(columns))


def _missing(column: pa.Array, marked: bool) -> pa.BooleanArray:
    missing = column.is_null(nan_is_null=True)
    return pc.or_(missing, pc.is_in(pc.utf8_trim_whitespace(column.cast(pa.string())), MARKS)) if marked else missing


def _marked(parts: Parts, needed: Sequence[str]) -> frozenset[str]:
    """Columns of text in which there are marks, and all else is numbers."""
    marks = dict.fromkeys(needed, 0)
    for batch in parts.batches(needed, 1 << 16):
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


def complete_rows(parts: Parts, needed: Sequence[str], targets: Sequence[str] = ()) -> tuple[Parts, str]:
    """The rows that lack none of the columns, and a note that says how many were left out (empty if none was).

    If one of several targets lacks values, the note says how the others keep their rows.

    The table is read to count them, and once more where columns of text may be numbers with marks among them.
    """
    n_rows = n_complete = 0
    lacking = dict.fromkeys(needed, 0)
    marked = _marked(parts, needed)
    for batch in parts.batches(needed, 1 << 16):
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
        remedy = f"leave the column out that lacks most: --ignore {worst[0]}"
        raise ValueError(f"every row lacks a value of some column: {counts} of {n_rows:,}; {remedy}.")
    sources = tuple(
        CompleteRows(one.path, one.columns, None, one.first_row, source=one, needed=tuple(needed), marked=marked)
        for one in parts.sources
    )
    note = f"left out, since a value is missing: {n_rows - n_complete:,} of {n_rows:,} rows, which lack {counts}."
    if marked:
        note += f" A mark such as '-' or 'n.d.' among numbers counts as missing: {listed(sorted(marked))}."
    if len(targets) > 1 and any(lacking[name] for name in targets):
        note += " They are left out for every target; fitted one at a time, each target keeps the rows that have it."
    return replace(parts, sources=sources, lengths=[None] * len(sources)), note

"""Rows of a table in which no value is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from sparsact.datasets.readers import Source
from sparsact.datasets.table_files import Parts


@dataclass(frozen=True)
class CompleteRows(Source):
    """The rows of another source that have a value in each of some columns."""

    source: Source = field(kw_only=True)
    needed: tuple[str, ...] = field(kw_only=True)
    counted: ClassVar[str] = "of the complete rows: "

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Complete rows in the order of the file."""
        for batch in self.source.batches(list(dict.fromkeys([*columns, *self.needed])), batch_rows):
            lacking = reduce(pc.or_, (batch.column(name).is_null(nan_is_null=True) for name in self.needed))
            yield batch.filter(pc.invert(lacking)).select(list(columns))


def complete_rows(parts: Parts, needed: Sequence[str], targets: Sequence[str] = ()) -> tuple[Parts, str]:
    """The rows that lack none of the columns, and a note that says how many were left out (empty if none was).

    If one of several targets lacks values, the note says how the others keep their rows.

    The table is read once, to count them.
    """
    n_rows = n_complete = 0
    lacking = dict.fromkeys(needed, 0)
    for batch in parts.batches(needed, 1 << 16):
        missing = {name: batch.columns.column(name).is_null(nan_is_null=True) for name in needed}
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
        CompleteRows(source.path, source.columns, None, source.first_row, source=source, needed=tuple(needed))
        for source in parts.sources
    )
    note = f"left out, since a value is missing: {n_rows - n_complete:,} of {n_rows:,} rows, which lack {counts}."
    if len(targets) > 1 and any(lacking[name] for name in targets):
        note += " They are left out for every target; fitted one at a time, each target keeps the rows that have it."
    return replace(parts, sources=sources, lengths=[None] * len(sources)), note

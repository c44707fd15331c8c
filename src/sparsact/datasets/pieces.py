"""Large Parquet files as pieces, so that many workers can read one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import pyarrow.parquet

from sparsact.datasets.sources import ParquetSource, Source

LEAST_ROWS = 1 << 18  # of a piece: below it, merging costs more than the rows
MOST_PIECES = 1024  # of all files together, where none is one already


def pieces(sources: Sequence[Source], least_rows: int = LEAST_ROWS) -> list[list[Source]]:
    """Each file in pieces: consecutive row groups of a Parquet file, any other file whole.

    How files are cut follows from their rows and row groups alone, not from who reads them.

    Parameters
    ----------
    sources : sequence of Source
        Files of one table.
    least_rows : int
        Rows of every piece but the last of its file, at least; more, where there would be more than 1,024 pieces.

    Returns
    -------
    pieces : list of list of Source
        Of each file in its order; together they have its rows.
    """
    least = max(least_rows, -(-sum(source.n_rows or 0 for source in sources) // MOST_PIECES))
    return [_of_file(source, least) for source in sources]


def piece_name(piece: Source) -> str:
    """What messages call it: the file's name and, of a piece, its rows."""
    if not isinstance(piece, ParquetSource) or piece.groups is None:
        return piece.path.name
    return f"{piece.path.name}, rows {piece.first_row + 1:,} to {piece.first_row + piece.n_rows:,}"


def _of_file(source: Source, least: int) -> list[Source]:
    if not isinstance(source, ParquetSource) or source.n_rows <= least:
        return [source]
    with pyarrow.parquet.ParquetFile(source.path) as file:
        rows = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    starts = [0, *accumulate(rows)]
    found: list[Source] = []
    begin = 0
    for end in range(1, len(rows) + 1):
        n_rows = starts[end] - starts[begin]
        if n_rows >= least or (end == len(rows) and n_rows):
            groups = tuple(range(begin, end))
            found.append(replace(source, n_rows=n_rows, groups=groups, first_row=starts[begin]))
            begin = end
    return found if len(found) > 1 else [source]

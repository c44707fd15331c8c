"""Several files, or pieces of large ones, as one table: their order, that their columns agree, that none changes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from glob import glob, has_magic
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet

from sparsact.datasets.cell_values import UnreadableError, as_number
from sparsact.datasets.dialect import SNIFFED, Dialect
from sparsact.datasets.frames import open_frame
from sparsact.datasets.readers import DAMAGE, ArrowSource, ParquetSource, Source, one_line, open_source

Paths = str | Path | Sequence[str | Path]
BATCH_ROWS: Final = 1 << 16
Data = Any  # paths, a frame of pandas or polars, or a pyarrow.Table


class Stamp(NamedTuple):
    """Size of a file in bytes, and when it was last written (ns): it is unchanged as long as both are."""

    size: int
    written: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The present stamp of a file."""
        found = path.stat()
        return cls(found.st_size, found.st_mtime_ns)


@dataclass(eq=False)
class Parts:
    """Files of the same columns, one after the other, or a table in memory.

    ``lengths`` are their rows: None of a file that does not say it, until it has been read to its end. ``stamps`` are
    None of a table in memory.
    """

    sources: tuple[Source, ...]
    stamps: tuple[Stamp | None, ...]
    lengths: list[int | None]

    @classmethod
    def open(cls, data: Data, dialect: Dialect = SNIFFED) -> Parts:
        """Files, or patterns of files (see :func:`files`), with the columns of the first; or a table in memory."""
        if isinstance(data, Parts):
            return data
        if not is_paths(data):
            dialect.refuse("the table")
            frame = open_frame(data)
            return cls((frame,), (None,), [frame.n_rows])
        found = files(data)
        stamps = tuple(Stamp.of(path) if path.is_file() else Stamp(0, 0) for path in found)
        sources: list[Source] = []
        for path in found:
            sources.append(open_source(path, dialect))
            _agree(sources[0], sources[-1])
        return cls(tuple(sources), stamps, [source.n_rows for source in sources])

    @property
    def name(self) -> str:
        """Name of the file; of several the first and the last."""
        names = [source.path.name for source in self.sources]
        return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]} ({len(names):,} files)"

    def files(self, purpose: str) -> list[Path]:
        """Paths of the files; a ValueError that names ``purpose`` for a table in memory."""
        if None in self.stamps:
            raise ValueError(f"{purpose} needs a table on disk, but this one is in memory; write it to Parquet first.")
        return [source.path for source in self.sources]

    def stamped(self, purpose: str) -> list[tuple[Path, Stamp]]:
        """Paths and stamps of the files, as :meth:`files`."""
        return [(path, stamp) for path, stamp in zip(self.files(purpose), self.stamps, strict=True) if stamp]

    def divided(self) -> list[Parts]:
        """Every file, or piece of a large one (see :func:`pieces`), alone."""
        return [
            Parts((piece,), (stamp,), [length if piece.n_rows is None else piece.n_rows])
            for of_file, stamp, length in zip(pieces(self.sources), self.stamps, self.lengths, strict=True)
            for piece in of_file
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """Columns, in the order of the first file."""
        return self.sources[0].names

    @property
    def n_rows(self) -> int | None:
        """Rows of all files, where all are known."""
        return None if None in self.lengths else sum(length or 0 for length in self.lengths)

    def batches(self, columns: Sequence[str], batch_rows: int = BATCH_ROWS, first_row: int = 0) -> Iterator[PlacedRows]:
        """Rows of the named columns, file by file, in batches.

        ``first_row``, if not 0, must be where a batch began in an earlier pass. The batches are the same as then;
        earlier files are not opened, earlier rows of the same file are read and dropped.
        """
        before = 0
        for part, (source, stamp) in enumerate(zip(self.sources, self.stamps, strict=True)):
            length = self.lengths[part]
            if length is not None and before + length <= first_row:
                before += length
                continue
            row = 0
            batches = source.batches(list(dict.fromkeys(columns)), batch_rows)
            while (batch := _next(batches, source, row, stamp)) is not None:
                if before + row >= first_row:
                    file = f"{source.path.name}: " if len(self.sources) > 1 else ""
                    yield PlacedRows(batch, source.counted + file, source.first_row + row, before + row, source)
                row += batch.num_rows
            _check_unchanged(source.path, stamp)
            self.lengths[part] = row
            before += row


def _next(batches: Iterator[pa.RecordBatch], source: Source, row: int, stamp: Stamp | None) -> pa.RecordBatch | None:
    """The batch after ``row`` rows of a source; None at its end. Errors name the file and the row."""
    try:
        return next(batches, None)
    except pa.ArrowMemoryError as error:
        raise MemoryError(f"not enough memory for the next rows of {source.path.name} ({one_line(error)}).") from error
    except DAMAGE as error:
        _check_unchanged(source.path, stamp)
        has_remedy = isinstance(error, ValueError) and not isinstance(error, pa.ArrowInvalid)
        fact = f"{source.path.name}, after row {source.first_row + row}: {one_line(error)}"
        remedy = "save it as UTF-8" if "UTF8" in str(error) else "correct the file"
        raise ValueError(fact if has_remedy else f"{fact}; {remedy}.") from error


@dataclass(frozen=True)
class PlacedRows:
    """Rows of some columns, and where they stand: the rows before them in their file, and in all files."""

    columns: pa.RecordBatch
    file: str  # for messages: the file's name where there are several, or nothing
    row: int
    overall: int
    source: Source

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def __enter__(self) -> PlacedRows:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Say in which file, and in which of its rows, bad input stands."""
        if self.file and isinstance(error, ValueError):
            found, file = error, self.file.removeprefix(self.source.counted)
            if isinstance(error, UnreadableError):
                row = self.source.row_in_file(self.row - self.source.first_row + min(error.reasons))
                found = UnreadableError(error.name, row, {0: error.reasons[min(error.reasons)]})
            elif ", row " in str(error):
                file = self.file
            raise ValueError(f"{file}{found}") from error


def is_paths(data: Data) -> bool:
    """Whether a table is named by its files."""
    return isinstance(data, str | Path) or (
        isinstance(data, Sequence) and all(isinstance(path, str | Path) for path in data)
    )


def files(paths: Paths) -> list[Path]:
    """The files that names and patterns stand for, each once, in the natural order of their names.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, or patterns with ``*``, ``?``, ``[...]`` or ``**``. A name of a file that exists is that file.

    Returns
    -------
    files : list of Path
        Numbers in names are ordered by size. The order given does not count, so that a pattern means the same
        whether the shell expands it or not.

    Raises
    ------
    FileNotFoundError
        If a pattern matches no file.
    ValueError
        If a file is named twice.

    Examples
    --------
    >>> [path.name for path in files(["part-10.csv", "part-9.csv"])]
    ['part-9.csv', 'part-10.csv']
    """
    found: list[Path] = []
    for path in [paths] if isinstance(paths, str | Path) else paths:
        if not has_magic(str(path)) or Path(path).exists():
            found.append(Path(path))
            continue
        matching = [Path(m) for m in glob(str(path), recursive=True) if Path(m).is_file()]  # noqa: PTH207 - may be absolute
        if not matching:
            raise FileNotFoundError(f"no file matches {str(path)!r}; check the folder and the pattern.")
        found += matching
    if not found:
        raise ValueError("no table is given; name at least one file.")
    seen: set[str] = set()
    for path in found:
        if (real := os.path.realpath(path)) in seen:
            raise ValueError(f"{str(path)!r} is given twice, so its rows would count twice; name it once.")
        seen.add(real)
    return sorted(found, key=lambda path: (_natural(str(path)), str(path)))


def _natural(name: str) -> list[tuple[int, int | str]]:
    """A key by which numbers in names go by size."""
    return [(0, int(piece)) if piece.isdecimal() else (1, piece) for piece in re.split(r"(\d+)", name) if piece]


def _agree(first: Source, other: Source) -> None:
    """Raise unless two files hold the same columns, and typed files the same kinds of values in them."""
    for lacking, having in ((other, first), (first, other)):
        there = set(lacking.names)
        for name in having.names:
            if name not in there:
                raise ValueError(
                    f"{lacking.path.name} has no column {name!r}, which {having.path.name} has; files of one table "
                    "need the same columns."
                )
    if type(first) is type(other) and isinstance(first, ParquetSource | ArrowSource):
        for name, kind in first.columns.items():
            if kind != other.columns[name]:
                raise ValueError(
                    f"column {name!r} of {other.path.name} holds {other.columns[name]}, but in {first.path.name} "
                    f"{kind}; files of one table need the same kinds of values."
                )
    elif type(first) is not type(other):
        raise ValueError(
            f"{first.path.name} and {other.path.name} have different formats; files of one table need the same one."
        )


def _check_unchanged(path: Path, stamp: Stamp | None) -> None:
    if stamp is None:
        return
    try:
        now = Stamp.of(path)
    except FileNotFoundError:
        raise ValueError(f"{path.name} disappeared while it was read; put it back and start again.") from None
    if now != stamp:
        what = f"{stamp.size:,} bytes before, {now.size:,} now" if now.size != stamp.size else "it was written again"
        raise ValueError(f"{path.name} changed while it was read ({what}); start again when no program writes to it.")


LEAST_ROWS: Final = 1 << 18  # of a piece: below it, merging costs more than the rows
MOST_PIECES: Final = 1024  # of all files together, where none is one already


def pieces(sources: Sequence[Source], least_rows: int = LEAST_ROWS) -> list[list[Source]]:
    """Each file in pieces: consecutive row groups of a Parquet file, any other file whole.

    Every piece but the last of its file has at least ``least_rows`` rows; more, where there would be more than 1,024
    pieces. How files are cut follows from their rows and row groups alone, not from who reads them.
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


def resolve(wanted: Sequence[str], names: Sequence[str], role: str) -> list[str]:
    """Columns that the wanted names stand for, in the order asked."""
    there = set(names)
    found: dict[str, None] = {}
    for name in wanted:
        members = [name] if name in there else [column for column in names if _is_member(column, name)]
        if not members:
            raise ValueError(f"no {role} {name!r} in the table{did_you_mean(name, names)}")
        found |= dict.fromkeys(members)
    return list(found)


def resolve_patterns(wanted: Sequence[str], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Columns that names, lists of names with commas, and patterns stand for, and the columns that are named in full.

    >>> resolve_patterns(["a,b?", "b2"], ["a", "b1", "b2"])
    (['a', 'b1', 'b2'], ['a', 'b2'])
    """
    found: dict[str, None] = {}
    in_full: dict[str, None] = {}
    for name in wanted:
        pieces = [] if name in names else [piece for piece in map(str.strip, name.split(",")) if piece]
        for piece in pieces or [name]:
            some = [column for column in names if piece not in names and fnmatchcase(column, piece)]
            if not (some and has_magic(piece)):
                some = resolve([piece], names, "column")
                in_full |= dict.fromkeys(some)
            found |= dict.fromkeys(some)
    return list(found), list(in_full)


def _is_member(column: str, array: str) -> bool:
    return column.startswith(f"{array}[") and column.endswith("]") and column[len(array) + 1 : -1].isdigit()


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """The end of a message about a name that is not there: what may be meant."""
    if all(as_number(column) is not None for column in names) and list(names) != [*map(str, range(len(names)))]:
        return f"; its first row holds numbers ({', '.join(names[:3])}, ...) instead of names: add a row of names."
    if len(names) == 1 and (marks := [mark for mark in ";\t|, " if mark in names[0]]):
        return f"; its only column is {names[0]!r}: name the separator, such as separator={marks[0]!r}."
    nearest = get_close_matches(name, names, n=3, cutoff=0.5)
    if nearest:
        return f"; did you mean {' or '.join(map(repr, nearest))}?"
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; its columns are {shown}."

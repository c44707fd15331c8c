"""Tables as streams of record batches: text (every column as text), Parquet, Arrow files and NPZ.

Files are read in batches: memory does not grow with the file.
"""

from __future__ import annotations

import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import IO, Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from sparsact.datasets.cell_values import as_number, is_text
from sparsact.datasets.dialect import NULLS, SNIFFED, Dialect

ARROW: Final = (".feather", ".arrow")  # Arrow's IPC format, as a file or as a stream
SUFFIXES: Final = (".csv", ".tsv", ".txt", ".parquet", ".pq", *ARROW, ".npz")
SPREADSHEETS: Final = (".xlsx", ".xls", ".ods")
PARQUET_BUFFER_BYTES: Final = 1 << 16  # of a column; without it Arrow holds whole row groups, and a file may be one
MAX_DEFLATION: Final = 1032  # a deflated file is at most this many times shorter than its content


@dataclass(frozen=True)
class Source(ABC):
    """A table, or consecutive row groups of a Parquet file that begin at row ``first_row``.

    ``columns`` are names, each with its spelling in a text file, its kind of values in a Parquet file, or its place in
    an NPZ archive. ``n_rows`` is None where the file does not state it. ``note`` is a sentence for people.
    """

    path: Path
    columns: dict[str, Any]
    n_rows: int | None
    first_row: int = 0
    note: str = ""
    unread: frozenset[str] = frozenset()  # columns of values that are neither booleans, numbers nor texts
    counted: ClassVar[str] = ""  # what the numbers of rows in messages count, if not all

    @property
    def names(self) -> tuple[str, ...]:
        """Columns, in the order of the file."""
        return tuple(self.columns)

    def row_in_file(self, row: int) -> int:
        """Rows of the file before a row of a number."""
        return self.first_row + row

    @abstractmethod
    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in the order of the file, the named columns only."""


def kind_of(path: Path) -> str:
    """The suffix that names the kind of a file, in lower case, without the suffix of its compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in (".gz", ".bz2", ".zst") else path.suffix.lower()


def open_source(path: str | Path, dialect: Dialect = SNIFFED) -> Source:
    """The reader for the suffix of a file; ``dialect`` is that of text."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a table in it.")
    if not path.is_file():
        raise FileNotFoundError(f"no table {str(path)!r}; check the path.")
    kind = kind_of(path)
    with _naming_file(path, kind[1:].upper()):
        if kind in (".csv", ".tsv", ".txt"):
            return _open_csv(path, dialect.of_file(path, "," if kind == ".csv" else "\t"))
        if kind in SUFFIXES:
            dialect.refuse(path.name)
        if kind in (".parquet", ".pq"):
            return _open_parquet(path)
        if kind in ARROW:
            return _open_arrow(path)
        if kind == ".npz":
            return _open_npz(path)
    if kind in SPREADSHEETS:
        remedy = f"save its sheet as CSV, or pass pandas.read_excel({path.name!r}) to sparsact.fit_table"
        raise ValueError(f"{path.name} is a spreadsheet; {remedy}.")
    raise ValueError(f"{path.name} cannot be read as a table; its name must end in {', '.join(SUFFIXES)}.")


# Raised by readers of damaged files; PyArrow's decompression raises OSError.
DAMAGE: Final = (
    *(ValueError, TypeError, LookupError, ArithmeticError, EOFError, MemoryError, NotImplementedError, RuntimeError),
    *(OSError, SyntaxError, pa.ArrowException, zipfile.BadZipFile, zlib.error),
)


@contextmanager
def _naming_file(path: Path, kind: str) -> Iterator[None]:
    """Turn the errors of readers at a damaged file into a ValueError that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 text ({one_line(error)}); save it as UTF-8.") from error
    except DAMAGE as error:
        if path.name in str(error) and isinstance(error, ValueError | OSError):
            raise
        raise ValueError(f"cannot read {path.name} as {kind}: {one_line(error)}; check the file.") from error


@dataclass(frozen=True)
class CsvSource(Source):
    """Text, one row a line. Every column is read as text, so that ``0010`` keeps its zeros."""

    dialect: Dialect = field(kw_only=True)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in the order of the file."""
        spelled = [self.columns[name] for name in columns]
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(spelled, pa.string()),
            include_columns=spelled,
            null_values=NULLS,
            strings_can_be_null=True,
        )
        with self.dialect.open(self.path, convert) as reader:
            for block in reader:
                plain = pa.RecordBatch.from_arrays(list(map(self.dialect.plain, block.columns)), names=list(columns))
                yield from (plain.slice(row, batch_rows) for row in range(0, len(plain), batch_rows))


def _open_csv(path: Path, dialect: Dialect) -> CsvSource:
    with dialect.open(path) as reader:
        spelled = reader.schema.names
    names = distinct_names([name.strip() for name in spelled], path)
    return CsvSource(path, dict(zip(names, spelled, strict=True)), None, note=dialect.note, dialect=dialect)


@dataclass(frozen=True)
class ParquetSource(Source):
    """A Parquet file, or some consecutive row groups of it."""

    n_rows: int
    groups: tuple[int, ...] | None = None  # None: all

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in the order of the file."""
        with pa.parquet.ParquetFile(self.path, buffer_size=PARQUET_BUFFER_BYTES, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=batch_rows, row_groups=self.groups, columns=list(columns)):
                yield pa.RecordBatch.from_pydict({name: plain_column(batch.column(name), name) for name in columns})


def _open_parquet(path: Path) -> ParquetSource:
    with pa.parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        kinds = dict(zip(distinct_names(schema.names, path), map(_kind, schema.types), strict=True))
        return ParquetSource(path, kinds, file.metadata.num_rows, unread=unread_columns(schema))


@dataclass(frozen=True)
class ArrowSource(Source):
    """A file in Arrow's IPC format: Feather (version 2), or the stream that Hugging Face keeps its data sets in."""

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Iterate over rows in the order of the file; batches end where the file's own batches end."""
        with _arrow_batches(self.path, list(columns)) as (_, batches):
            for batch in batches:
                for row in range(0, batch.num_rows, batch_rows):
                    piece = batch.slice(row, batch_rows)
                    yield pa.RecordBatch.from_pydict({n: plain_column(piece.column(n), n) for n in columns})


@contextmanager
def _arrow_batches(
    path: Path, columns: list[str] | None = None
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The schema of an IPC file, and its batches, which are read from the disk when their turn comes."""
    with pa.memory_map(str(path)) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        open_ = pa.ipc.open_file if is_file else pa.ipc.open_stream
        with open_(file) as reader:
            schema = reader.schema
        file.seek(0)
        fields = [schema.get_field_index(name) for name in columns or ()]  # none: all
        with open_(file, options=pa.ipc.IpcReadOptions(included_fields=fields)) as reader:
            yield schema, (map(reader.get_batch, range(reader.num_record_batches)) if is_file else iter(reader))


def _open_arrow(path: Path) -> ArrowSource:
    with _arrow_batches(path) as (schema, _):
        kinds = dict(zip(distinct_names(schema.names, path), map(_kind, schema.types), strict=True))
        return ArrowSource(path, kinds, None, unread=unread_columns(schema))


def _kind(of: pa.DataType) -> str:
    if pa.types.is_dictionary(of):
        return _kind(of.value_type)
    if is_text(of):
        return "texts"
    return "numbers" if pa.types.is_integer(of) or pa.types.is_floating(of) else str(of)


@dataclass(frozen=True)
class ArraySource(Source):
    """An NPZ archive: an array ``y`` of one axis is a column ``y``, a matrix ``X`` is columns ``X[0]``, ``X[1]``..."""

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in order; the arrays are read a block of rows at a time."""
        places = {name: self.columns[name] for name in columns}
        arrays = dict.fromkeys(array for array, _ in places.values())
        with ExitStack() as opened:
            archive = opened.enter_context(zipfile.ZipFile(self.path))
            readers = [_blocks(opened.enter_context(archive.open(f"{name}.npy")), batch_rows) for name in arrays]
            for blocks in zip(*readers, strict=True):
                block = dict(zip(arrays, blocks, strict=True))
                vectors = {
                    name: block[array] if i is None else block[array][:, i] for name, (array, i) in places.items()
                }
                yield pa.RecordBatch.from_pydict({name: as_column(vector, name) for name, vector in vectors.items()})


def _open_npz(path: Path) -> ArraySource:
    """Read the header of every array."""
    columns: list[tuple[str, tuple[str, int | None]]] = []
    rows: dict[str, int] = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            name = member.removesuffix(".npy")
            with archive.open(member) as file:
                shape, _, dtype = _header(file)
                there = archive.getinfo(member).file_size - file.tell()
            if 0 in shape:
                raise ValueError(f"{path.name}: array {name!r} is empty, of shape {shape}; a table needs rows.")
            promised = dtype.itemsize * prod(shape)
            if not 0 < promised <= there <= MAX_DEFLATION * path.stat().st_size:
                fact = f"array {name!r} claims {promised} bytes in shape {shape}"
                raise ValueError(f"{path.name}: {fact}, and holds {there}; save it again.")
            if dtype.hasobject or len(shape) not in (1, 2):
                fact = f"array {name!r} has shape {shape} and type {dtype}"
                raise ValueError(f"{path.name}: {fact}; need numbers or texts along 1 or 2 axes.")
            if name in rows:
                raise ValueError(f"{path.name} has two arrays named {name!r}; give each its own name.")
            rows[name] = shape[0]
            columns += [(f"{name}[{i}]", (name, i)) for i in range(*shape[1:])] if shape[1:] else [(name, (name, None))]
    if len(set(rows.values())) != 1:
        found = ", ".join(f"{name} {count}" for name, count in rows.items())
        raise ValueError(f"{path.name}: arrays need the same number of rows, found {found or 'no array'}.")
    remedy = "an array X[0] next to a matrix X is such a pair: give each array its own name"
    distinct_names([name for name, _ in columns], path, remedy)
    return ArraySource(path, dict(columns), next(iter(rows.values())))


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)


def _blocks(file: IO[bytes], batch_rows: int) -> Iterator[NDArray[Any]]:
    """Blocks of rows of a stored array. Column-major arrays cannot be streamed by rows and are read whole."""
    shape, column_major, dtype = _header(file)
    width = shape[1:]
    if column_major and len(shape) == 2:
        whole = np.frombuffer(file.read(dtype.itemsize * prod(shape)), dtype=dtype).reshape(shape[::-1]).T
        yield from (whole[row : row + batch_rows] for row in range(0, shape[0], batch_rows))
        return
    row_bytes = dtype.itemsize * int(np.prod(width, dtype=int))
    for row in range(0, shape[0], batch_rows):
        count = min(batch_rows, shape[0] - row)
        yield np.frombuffer(file.read(count * row_bytes), dtype=dtype).reshape(count, *width)


def as_column(values: NDArray[Any], name: str) -> pa.Array:
    """A column of an array of numbers or texts."""
    if values.dtype.kind not in "biufUSMm" or values.dtype == np.longdouble:
        raise ValueError(f"column {name!r} holds {values.dtype}, need float64 or smaller; convert it, or leave it out.")
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    return plain_column(pa.array(np.asanyarray(native, order="C")), name)  # masked entries are missing


def plain_column(array: pa.Array, name: str) -> pa.Array:
    """A column of booleans, numbers or texts; dictionaries (categories of pandas) are decoded."""
    if pa.types.is_dictionary(array.type):
        return plain_column(array.dictionary, name).take(array.indices)
    if (kind := plain_type(array.type)) is None:
        raise ValueError(
            f"column {name!r} holds {array.type}, need numbers, booleans or texts; convert it, or leave it out."
        )
    return array.cast(kind)


def plain_type(of: pa.DataType) -> pa.DataType | None:
    """The type that columns of a type are read as; None if they are neither booleans, numbers nor texts."""
    if pa.types.is_dictionary(of):
        return plain_type(of.value_type)
    if pa.types.is_decimal(of) or pa.types.is_null(of):  # decimals: exact, as the numbers of a CSV file are
        return pa.string()
    if pa.types.is_float16(of):
        return pa.float32()
    if pa.types.is_string_view(of):  # of polars
        return pa.large_string()
    kinds = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, is_text)
    return of if any(is_kind(of) for is_kind in kinds) else None


def unread_columns(schema: pa.Schema) -> frozenset[str]:
    """Columns of a schema that cannot be read."""
    return frozenset(one.name for one in schema if plain_type(one.type) is None)


def distinct_names(
    names: Sequence[str], path: Path, remedy: str = "give each its own name, in a first row of names"
) -> tuple[str, ...]:
    """The names as they are; a ValueError if two are the same."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice and path.suffix and all(as_number(name) is not None for name in names):
        raise ValueError(f"{path.name} has numbers in its first row instead of names: add a row of names.")
    if twice:
        raise ValueError(f"{path.name} has two columns named {twice[0]!r}; {remedy}.")
    return tuple(names)


def one_line(error: BaseException) -> str:
    """First line of an error's message, or its kind where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

"""Files as streams of record batches: CSV (every column as text), Parquet, NPZ. Memory does not grow with the file."""

from __future__ import annotations

import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from sparsact.datasets.spelling import as_number

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".npz")
CSV_BLOCK_BYTES = 4 << 20
PARQUET_BUFFER_BYTES = 1 << 16  # of a column; without it Arrow holds whole row groups, and a file may be one
MOST_DEFLATED = 1032  # times shorter than what it holds a deflated file can be


class Source(Protocol):
    """A table on disk."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of the file."""

    @property
    def n_rows(self) -> int | None:
        """Rows, where the file says it without being read."""

    @property
    def first_row(self) -> int:
        """Row of the file that comes first: 0, unless this is a piece of it."""

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in the order of the file, the named columns only."""


def open_source(path: str | Path) -> Source:
    """The reader that the file's name calls for."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a table in it.")
    if not path.is_file():
        raise FileNotFoundError(f"no table {str(path)!r}; check the path.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in (".gz", ".bz2", ".zst") else path.suffix.lower()
    with _told(path, kind[1:].upper()):
        if kind in (".csv", ".tsv", ".txt"):
            return CsvSource.open(path, "," if kind == ".csv" else "\t")
        if kind == ".parquet":
            return ParquetSource.open(path)
        if kind == ".npz":
            return ArraySource.open(path)
    raise ValueError(f"{path.name} is not a table that can be read; the name must end in {', '.join(SUFFIXES)}.")


# What readers raise at bytes that are not what they should be; OSError is of PyArrow's decompression too.
DAMAGE = (
    *(ValueError, TypeError, LookupError, ArithmeticError, EOFError, MemoryError, NotImplementedError, RuntimeError),
    *(OSError, SyntaxError, pa.ArrowException, zipfile.BadZipFile, zlib.error),
)


@contextmanager
def _told(path: Path, kind: str) -> Iterator[None]:
    """What a reader says of a damaged file, as a ValueError with the file's name."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 text ({one_line(error)}); save it as UTF-8.") from error
    except DAMAGE as error:
        if path.name in str(error) and isinstance(error, ValueError | OSError):
            raise
        raise ValueError(f"cannot read {path.name} as {kind}: {one_line(error)}; check the file.") from error


@dataclass(frozen=True)
class CsvSource:
    """Text, one row a line. Every column is read as text, so that ``0010`` keeps its zeros."""

    path: Path
    delimiter: str
    names: tuple[str, ...]
    n_rows: None = None
    first_row: int = 0

    @classmethod
    def open(cls, path: Path, delimiter: str) -> CsvSource:
        """Read the header."""
        with path.open("rb") as file:
            if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise ValueError(f"{path.name} is UTF-16 text; save it as UTF-8.")
        with pa.csv.open_csv(path, parse_options=pa.csv.ParseOptions(delimiter=delimiter)) as reader:
            return cls(path, delimiter, distinct_names(reader.schema.names, path))

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in the order of the file."""
        options = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()), include_columns=list(columns), strings_can_be_null=True
        )
        with pa.csv.open_csv(
            self.path,
            read_options=pa.csv.ReadOptions(block_size=CSV_BLOCK_BYTES),
            parse_options=pa.csv.ParseOptions(delimiter=self.delimiter),
            convert_options=options,
        ) as reader:
            for block in reader:
                yield from _slices(block, batch_rows)


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file, or some consecutive row groups of it, read a batch at a time."""

    path: Path
    kinds: dict[str, str]
    n_rows: int
    groups: tuple[int, ...] | None = None  # None: all
    first_row: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Columns, in the order of the file."""
        return tuple(self.kinds)

    @classmethod
    def open(cls, path: Path) -> ParquetSource:
        """Read the footer."""
        with pa.parquet.ParquetFile(path) as file:
            names = distinct_names(file.schema_arrow.names, path)
            kinds = dict(zip(names, map(_kind, file.schema_arrow.types), strict=True))
            return cls(path, kinds, file.metadata.num_rows)

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in the order of the file."""
        with pa.parquet.ParquetFile(self.path, buffer_size=PARQUET_BUFFER_BYTES, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=batch_rows, row_groups=self.groups, columns=list(columns)):
                yield pa.RecordBatch.from_pydict({name: plain_column(batch.column(name), name) for name in columns})


@dataclass(frozen=True)
class ArraySource:
    """An NPZ archive: an array ``y`` of one axis is a column ``y``, a matrix ``X`` is columns ``X[0]``, ``X[1]``..."""

    path: Path
    widths: dict[str, int | None]
    n_rows: int
    first_row: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Columns, array by array."""
        return tuple(name for array, width in self.widths.items() for name in _columns_of(array, width))

    @classmethod
    def open(cls, path: Path) -> ArraySource:
        """Read the header of every array."""
        widths: dict[str, int | None] = {}
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
                if not 0 < promised <= there <= MOST_DEFLATED * path.stat().st_size:
                    fact = f"array {name!r} claims {promised} bytes in shape {shape}"
                    raise ValueError(f"{path.name}: {fact}, and holds {there}; save it again.")
                if dtype.hasobject or len(shape) not in (1, 2):
                    fact = f"array {name!r} has shape {shape} and type {dtype}"
                    raise ValueError(f"{path.name}: {fact}; need numbers or texts along 1 or 2 axes.")
                if name in widths:
                    raise ValueError(f"{path.name} has two arrays named {name!r}; give each its own name.")
                widths[name], rows[name] = (None if len(shape) == 1 else shape[1]), shape[0]
        if len(set(rows.values())) != 1:
            found = ", ".join(f"{name} {count}" for name, count in rows.items())
            raise ValueError(f"{path.name}: arrays need the same number of rows, found {found or 'no array'}.")
        source = cls(path, widths, next(iter(rows.values())))
        remedy = "an array X[0] next to a matrix X is such a pair: give each array its own name"
        distinct_names(source.names, path, remedy)
        return source

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Rows in order; the members are read piece by piece."""
        wanted = set(columns)
        arrays = [name for name, width in self.widths.items() if wanted & set(_columns_of(name, width))]
        with ExitStack() as open_files:
            archive = open_files.enter_context(zipfile.ZipFile(self.path))
            readers = [_pieces(open_files.enter_context(archive.open(f"{name}.npy")), batch_rows) for name in arrays]
            for pieces in zip(*readers, strict=True):
                parts: dict[str, pa.Array] = {}
                for name, piece in zip(arrays, pieces, strict=True):
                    columns_here = _columns_of(name, self.widths[name])
                    vectors = piece[:, None] if piece.ndim == 1 else piece
                    parts |= {c: _vector(vectors[:, i], c) for i, c in enumerate(columns_here) if c in wanted}
                yield pa.RecordBatch.from_pydict({column: parts[column] for column in columns})


def _kind(of: pa.DataType) -> str:
    """What values of a type are to the reader of a table."""
    if pa.types.is_dictionary(of):
        return _kind(of.value_type)
    if _is_text(of):
        return "texts"
    return "numbers" if pa.types.is_integer(of) or pa.types.is_floating(of) else str(of)


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of))


def plain_column(array: pa.Array, name: str) -> pa.Array:
    """A column of booleans, numbers or texts; dictionaries (categories of pandas) are decoded."""
    indices = None
    if pa.types.is_dictionary(array.type):
        indices, array = array.indices, array.dictionary
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    if pa.types.is_string_view(array.type):  # of polars
        array = array.cast(pa.large_string())
    if indices is not None:
        array = array.take(indices)
    kinds = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, _is_text)
    if not any(is_kind(array.type) for is_kind in kinds):
        raise ValueError(
            f"column {name!r} holds {array.type}, need numbers, booleans or texts; leave it out with --ignore."
        )
    return array


def _vector(values: NDArray[Any], name: str) -> pa.Array:
    if values.dtype.kind not in "biufUSMm" or values.dtype == np.longdouble:
        raise ValueError(f"column {name!r} holds {values.dtype}, need float64 or smaller; convert it, or leave it out.")
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    return plain_column(pa.array(np.ascontiguousarray(native)), name)


def _columns_of(array: str, width: int | None) -> tuple[str, ...]:
    return (array,) if width is None else tuple(f"{array}[{i}]" for i in range(width))


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file)


def _pieces(file: IO[bytes], batch_rows: int) -> Iterator[NDArray[Any]]:
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


def _slices(block: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for row in range(0, block.num_rows, batch_rows):
        yield block.slice(row, batch_rows)


def distinct_names(
    names: Sequence[str], path: Path, remedy: str = "give each its own name, in a first row of names"
) -> tuple[str, ...]:
    """The names as they are; a ValueError if two are the same."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice and all(as_number(name) is not None for name in names):
        raise ValueError(f"{path.name} holds numbers in its first row, where names are due: add a row of names.")
    if twice:
        raise ValueError(f"{path.name} has two columns named {twice[0]!r}; {remedy}.")
    return tuple(names)


def one_line(error: BaseException) -> str:
    """First line of an error's message, or its kind where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

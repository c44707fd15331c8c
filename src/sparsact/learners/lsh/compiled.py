"""A fitted LSH model as arrays: the line, the trees and the tables of buckets that predict, in one of two storages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import bucket_values, compact_values
from sparsact.kernels.bucket_values import SOLVED, Combination, Unsolved, packed
from sparsact.kernels.hashing import Hashes, project, spread
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.prediction_limits import Ends
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble

Kernel = Callable[[Array, Array, Array, int], None]  # fills values (m, targets) and weights behind them (m,)
Precision = Literal["float32", "float64"]
LOAD: Final = 4  # buckets a group of the directory: a byte of it for each bucket
MOST_COUNT: Final = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class Slots:
    """Buckets by number, found by open addressing: the storage of a model that learns.

    Attributes
    ----------
    slots : (2**c, 2)
        Key and number of each bucket; see :class:`~sparsact.kernels.bucket_index.BucketIndex`.
    records : (B, D * targets + 1)
        Coefficients, in the units of y, and weights, as :func:`~sparsact.kernels.bucket_values.packed` has them.
    n_targets : int
        Columns of y.
    unsolved : Unsolved
        What kernels solve buckets from when a row first meets them, if updates change the buckets.
    """

    adds_line: ClassVar[bool] = True  # in the kernel of the first table
    slots: NDArray[np.uint64]
    records: Array
    n_targets: int
    unsolved: Unsolved = SOLVED

    @classmethod
    def of(cls, slots: NDArray[np.uint64], coefficients: Array, weights: Array) -> Slots:
        """Storage of solved polynomials (B, D, targets), and the weights (B,) of the buckets."""
        return cls(slots, packed(coefficients, weights), coefficients.shape[2])

    @property
    def keys(self) -> NDArray[np.uint64]:
        """Keys (B,) of the buckets."""
        held = self.slots[self.slots[:, 1] < len(self.records)]
        keys = np.empty(len(self.records), np.uint64)
        keys[held[:, 1]] = held[:, 0]
        return keys

    @property
    def coefficients(self) -> Array:
        """Polynomials (B, D, targets) of the buckets; of a model that learns, only of buckets that rows have met."""
        return self.records[:, :-1].reshape(len(self.records), -1, self.n_targets)

    @property
    def weights(self) -> Array:
        """Weights (B,) of the rows of the buckets; a bucket of weight 0 is empty."""
        return self.records[:, -1]

    def kernel(self, hashes: Hashes, degree: int, combine: Combination, line: Array | None = None) -> Kernel:
        """The function that predicts, with the slopes (d, targets) of a ``line`` about the centre, if any, added."""
        slopes = np.zeros((len(hashes.centre), self.n_targets)) if line is None else line
        kernel: Kernel = bucket_values.predictor(
            hashes, self.slots, degree, self.records, slopes, combine, self.unsolved
        )
        return kernel


@dataclass(frozen=True)
class Directory:
    """Buckets that hold rows, in ascending order of their keys: the storage of a model that ships.

    A bucket takes its coefficients, 2 to 8 bytes of weight, 4 of its key, and 1 to 2 of the directory. An empty bucket
    is taken for one that is there with a probability of about 1e-9.

    Attributes
    ----------
    starts : (2**c + 1,)
        Number of the first bucket whose key begins with each c bits.
    tags : (B,)
        The next 32 bits of each key.
    coefficients : (B, D, targets)
        float32 or float64, in the units of y.
    weights : (B,)
        Weight of the rows of each bucket: uint16 with float32 coefficients where all are such integers, else of the
        type of the coefficients.
    """

    adds_line: ClassVar[bool] = False
    starts: NDArray[np.uint32]
    tags: NDArray[np.uint32]
    coefficients: NDArray[Any]
    weights: NDArray[Any]

    def kernel(self, hashes: Hashes, degree: int, combine: Combination, line: Array | None = None) -> Kernel:
        """The function that predicts; a ``line`` is not in it."""
        parts = (self.starts, self.tags, degree, self.coefficients, self.weights)
        kernel: Kernel = compact_values.predictor(hashes, *parts, combine)
        return kernel


Storage = TypeVar("Storage", bound=Slots | Directory)


class TableChoice(NamedTuple):
    """Number of hash tables to keep, from the first on, and the buckets (B,) that may belong to them."""

    n_tables: int
    buckets: NDArray[np.bool_]


class MadeAgain:
    """Base whose copies and pickles drop cached properties, which point into memory and are computed again."""

    def __getstate__(self) -> dict[str, Any]:
        kind, kept = type(self), vars(self).items()
        return {name: value for name, value in kept if not isinstance(getattr(kind, name, None), cached_property)}


@dataclass(frozen=True)
class CompiledTable(MadeAgain, Generic[Storage]):
    """Polynomials of the buckets of some hash tables.

    Attributes
    ----------
    hashes : Hashes
        The hash function of each table, and the local coordinates of the polynomials.
    degree : int
        Degree of the polynomials.
    storage : Slots or Directory
        The buckets.
    combine : {"average", "first"}
        Tables are averaged by weight, or the first one answers whose bucket is not empty.
    """

    hashes: Hashes
    degree: int
    storage: Storage
    combine: Combination = "average"

    @cached_property
    def kernel(self) -> Kernel:
        """The function that fills in values (m, targets) at rows, and the weight (m,) behind each."""
        return self.storage.kernel(self.hashes, self.degree, self.combine)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every array of hash functions and buckets, by name."""
        own = {field.name: getattr(self.storage, field.name) for field in fields(self.storage)}
        return {name: value for name, value in (own | self.hashes._asdict()).items() if isinstance(value, np.ndarray)}

    def compact(
        self: CompiledTable[Slots], dtype: Precision, chosen: TableChoice | None = None
    ) -> CompiledTable[Directory]:
        """The buckets that hold rows as a directory, or only the hash functions and buckets chosen."""
        weights, slots = self.storage.weights, self.storage.slots
        held = slots[slots[:, 1] < len(weights)]
        held = held[weights[held[:, 1]] > 0]
        if chosen is not None:
            held = held[chosen.buckets[held[:, 1]]]
        keys, ids = held[np.argsort(held[:, 0])].T
        weights = weights[ids]
        counts = dtype == "float32" and (weights == np.floor(weights)).all() and weights.max(initial=0) <= MOST_COUNT
        storage = Directory(
            *_directory(keys),
            np.ascontiguousarray(self.storage.coefficients[ids], dtype=dtype),
            weights.astype(np.uint16 if counts else dtype),
        )
        hashes = self.hashes if chosen is None else first_tables(self.hashes, chosen.n_tables)
        return CompiledTable(hashes, self.degree, storage, self.combine)


@dataclass(frozen=True)
class CompiledModel(MadeAgain, Generic[Storage]):
    r"""A model as a function of the row, up to its :class:`~sparsact.learners.lsh.prediction_limits.Ends`.

    .. math:: f(x) = \ell + (x_C - c)^T W + \mathrm{trees}(x) + \sum_s \mathrm{table}_s(x_C).

    Attributes
    ----------
    level, centre, trend : (targets,), (c,), (c, targets)
        The linear part: level, and slopes about the centre.
    tables : tuple of CompiledTable
        Fixed stages first; updates change the last one. A table whose buckets are empty adds nothing.
    columns : (c,) or None
        Columns of X that tables and trend see; None for all of them.
    trees : TreeEnsemble or None
        They see all columns.
    backup : CompiledTable or None
        Coarse tables, whose value is added where all buckets of the last table are empty.
    nearest : Kernel or None
        The same of the nearest bucket, which only a model with sums can find.
    """

    level: Array
    centre: Array
    trend: Array
    tables: tuple[CompiledTable[Storage], ...]
    columns: NDArray[np.int64] | None = None
    trees: TreeEnsemble | None = None
    backup: CompiledTable[Storage] | None = None
    nearest: Kernel | None = None

    @property
    def n_targets(self) -> int:
        """Columns of Y."""
        return len(self.level)

    @cached_property
    def _kernels(self) -> tuple[Kernel, ...]:
        first, *others = self.tables
        with_line = first.storage.kernel(first.hashes, first.degree, first.combine, self.trend)
        return with_line, *(table.kernel for table in others)

    def named_tables(self, stem: str = "table") -> dict[str, CompiledTable[Storage]]:
        """The tables by name: the stem and a number, or ``backup``."""
        tables = {f"{stem}{place}": table for place, table in enumerate(self.tables)}
        return tables if self.backup is None else tables | {"backup": self.backup}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [*vars(self).values(), *({} if self.trees is None else self.trees.arrays()).values()]
        arrays += [part for table in self.named_tables().values() for part in table.arrays().values()]
        return sum(part.nbytes for part in arrays if isinstance(part, np.ndarray))

    def row(self, ends: Ends, n_columns: int) -> Callable[[Any], float | None] | None:
        """The value at one row as a function of it; see :func:`sparsact.kernels.bucket_values.row_predictor`.

        None where there is no such function: with several targets, trees, or NaN beyond limits.
        """
        if self.n_targets > 1 or self.trees is not None or ends.beyond == "nan":
            return None
        if self.columns is not None:
            return self._of_all(self.columns, n_columns).row(ends, n_columns)
        slopes = (self.centre, self.trend[:, 0])
        line = () if self.tables[0].storage.adds_line else (np.ascontiguousarray(each, np.float64) for each in slopes)
        backup = None if self.backup is None else self.backup.kernel
        row: Callable[[Any], float | None] = bucket_values.row_predictor(
            self._kernels, backup, float(self.level[0]), *ends.of_one, *line
        )
        return row

    def _of_all(self, columns: NDArray[np.int64], n_columns: int) -> CompiledModel[Storage]:
        """The same tables as functions of all columns: projections of columns that they do not use are zero."""

        def of_all(table: CompiledTable[Storage]) -> CompiledTable[Storage]:
            return replace(table, hashes=table.hashes.of_all(columns, n_columns))

        tables, backup = tuple(map(of_all, self.tables)), None if self.backup is None else of_all(self.backup)
        centre, trend = (spread(each, columns, n_columns) for each in (self.centre, self.trend))
        return CompiledModel(self.level, centre, trend, tables, backup=backup)

    def selected(self, X: Array) -> Array:
        """The columns (m, c) that tables and trend see."""
        return X if self.columns is None else np.ascontiguousarray(X[:, self.columns])

    def values(self, X: Array, ends: Ends, n_threads: int = 1) -> Array:
        """Values (m, targets) at rows (m, d), within the ends."""
        rows = self.selected(X)
        values, behind = self.line_and_tables(rows, n_threads)
        if not behind.all():
            missed = np.flatnonzero(behind == 0)
            ends.check_known(missed)
            values[missed] = self._at_missed(np.ascontiguousarray(rows[missed]), values[missed], ends.start, n_threads)
        if self.trees is not None:
            values += self.trees.values(X, n_threads)
        return ends.limited(values)

    def line_and_tables(self, rows: Array, n_threads: int = 1) -> tuple[Array, Array]:
        """Values (m, targets) of line and tables, and the weight (m,) behind the last table: 0 where it has none."""
        behind = np.empty(len(rows))
        if not self.tables[0].storage.adds_line:
            with np.errstate(over="ignore", invalid="ignore"):  # values of far rows may be infinite, as in kernels
                values: Array = self.level + project(rows, self.centre, self.trend, np.zeros(self.n_targets))
            _add(self._kernels, rows, values, behind, n_threads)
            return values, behind
        values = np.empty((len(rows), self.n_targets))
        first, *others = self._kernels
        first(rows, values, behind, n_threads)
        _add(others, rows, values, behind, n_threads)
        values += self.level
        return values, behind

    def _at_missed(self, rows: Array, values: Array, start: Array | None, n_threads: int) -> Array:
        """Values without trees of rows that every bucket of the last table misses, given line's and stages'."""
        kernels: list[Kernel] = []
        if start is not None:
            values, kernels = np.tile(start, (len(rows), 1)), [table.kernel for table in self.tables[:-1]]
        elif self.backup is not None:
            kernels = [self.backup.kernel]
        elif self.nearest is not None:
            kernels = [self.nearest]
        _add(kernels, rows, values, np.empty(len(rows)), n_threads)
        return values

    def compact(
        self: CompiledModel[Slots], dtype: Precision, n_stages: int | None = None, chosen: TableChoice | None = None
    ) -> CompiledModel[Directory]:
        """The first stages in compact storage, all by default; of the last of these only what is chosen."""
        n = len(self.tables) if n_stages is None else n_stages
        tables = [
            table.compact(dtype, chosen if place == n - 1 else None) for place, table in enumerate(self.tables[:n])
        ]
        has_backup = self.backup is not None and n == len(self.tables)  # it stands in for the last stage
        backup = self.backup.compact(dtype) if self.backup is not None and has_backup else None
        return CompiledModel(self.level, self.centre, self.trend, tuple(tables), self.columns, self.trees, backup)


def _add(kernels: Iterable[Kernel], rows: Array, values: Array, behind: Array, n_threads: int) -> None:
    """Add the values of tables to ``values`` (m, targets); ``behind`` (m,) becomes the weight in the last table."""
    own = np.empty_like(values)
    for kernel in kernels:
        kernel(rows, own, behind, n_threads)
        values += own


def first_tables(hashes: Hashes, n_tables: int) -> Hashes:
    """The first hash functions: tables that are averaged are interchangeable."""
    codes = n_tables * (hashes.directions.shape[1] // len(hashes.seeds))
    return hashes._replace(
        directions=np.ascontiguousarray(hashes.directions[:, :codes]),
        offsets=hashes.offsets[:codes],
        seeds=hashes.seeds[:n_tables],
    )


def _directory(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Starts and tags of keys in ascending order; in enough groups that tags differ within each."""
    bits = max(1, (len(keys) // LOAD).bit_length())
    while True:
        groups = keys >> np.uint64(64 - bits)
        tags = (keys << np.uint64(bits) >> np.uint64(32)).astype(np.uint32)
        if not ((groups[1:] == groups[:-1]) & (tags[1:] == tags[:-1])).any():
            starts = np.searchsorted(groups, np.arange(2**bits + 1, dtype=np.uint64)).astype(np.uint32)
            return starts, tags
        bits += 1

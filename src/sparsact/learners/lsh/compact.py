"""Compact storage of a compiled model: coefficients, counts, and 32 bits of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import compact_values
from sparsact.kernels.bucket_values import Combination, row_predictor
from sparsact.kernels.hashing import Hashes, project
from sparsact.learners.lsh.compiled import CompiledModel, CompiledTable
from sparsact.learners.lsh.ends import NO_ENDS, Ends
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.trees import TreeEnsemble

Precision = Literal["float32", "float64"]
LOAD: Final = 4  # buckets a group of the directory: a byte of it for each bucket
MOST_COUNT: Final = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class CompactTable:
    """Polynomials of the buckets that hold rows, in ascending order of their keys.

    A bucket takes its coefficients, 2 to 8 bytes of weight, 4 of its key, and 1 to 2 of the directory. An empty bucket
    is taken for one that is there with a probability of about 1e-9.

    Attributes
    ----------
    hashes : Hashes
        The hash function of each table, and the local coordinates of the polynomials.
    starts : (2**c + 1,)
        Number of the first bucket whose key begins with each c bits.
    tags : (B,)
        The next 32 bits of each key.
    degree : int
        Degree of the polynomials.
    coefficients : (B, D, targets)
        float32 or float64, in the units of y.
    weights : (B,)
        Weight of the rows of each bucket: uint16 with float32 coefficients where all are such integers, else of the
        type of the coefficients.
    combine : {"average", "first"}
        As in :class:`~sparsact.learners.lsh.compiled.CompiledTable`.
    """

    hashes: Hashes
    starts: NDArray[np.uint32]
    tags: NDArray[np.uint32]
    degree: int
    coefficients: NDArray[Any]
    weights: NDArray[Any]
    combine: Combination = "average"

    @classmethod
    def of(cls, table: CompiledTable, dtype: Precision, chosen: TableChoice | None = None) -> CompactTable:
        """Of a compiled table, or of the hash functions and buckets chosen of it."""
        hashes = table.hashes if chosen is None else first_tables(table.hashes, chosen.n_tables)
        held = table.slots[table.slots[:, 1] < len(table.weights)]
        held = held[table.weights[held[:, 1]] > 0]
        if chosen is not None:
            held = held[chosen.buckets[held[:, 1]]]
        keys, ids = held[np.argsort(held[:, 0])].T
        starts, tags = _directory(keys)
        weights = table.weights[ids]
        counts = dtype == "float32" and (weights == np.floor(weights)).all() and weights.max(initial=0) <= MOST_COUNT
        return cls(
            hashes,
            starts,
            tags,
            table.degree,
            np.ascontiguousarray(table.coefficients[ids], dtype=dtype),
            weights.astype(np.uint16 if counts else dtype),
            table.combine,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without the kernel, which points into memory; it is made again when needed."""
        return {name: value for name, value in self.__dict__.items() if name != "kernel"}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        parts = [part for part in self.hashes if isinstance(part, np.ndarray)]
        return sum(part.nbytes for part in (*parts, self.starts, self.tags, self.coefficients, self.weights))

    @cached_property
    def kernel(self) -> Any:
        """Values and the weight behind them; see :func:`sparsact.kernels.compact_values.predictor`."""
        return compact_values.predictor(
            self.hashes, self.starts, self.tags, self.degree, self.coefficients, self.weights, self.combine
        )


class TableChoice(NamedTuple):
    """How many of the first hash tables are kept, and which buckets (B,) may belong to them."""

    n_tables: int
    buckets: NDArray[np.bool_]


@dataclass(frozen=True)
class CompactModel:
    """:class:`~sparsact.learners.lsh.compiled.CompiledModel` of compact tables; the attributes are the same."""

    level: Array
    centre: Array
    trend: Array
    tables: tuple[CompactTable, ...]
    columns: NDArray[np.int64] | None = None
    trees: TreeEnsemble | None = None
    backup: CompactTable | None = None
    ends: Ends = NO_ENDS

    @classmethod
    def of(
        cls, compiled: CompiledModel, ends: Ends, dtype: Precision, chosen: TableChoice | None = None
    ) -> CompactModel:
        """The same function, with its ends; of the last table only what is chosen."""
        *fixed, last = compiled.tables
        parts = {field.name: getattr(compiled, field.name) for field in fields(compiled)} | {"ends": ends}
        parts["tables"] = (*(CompactTable.of(each, dtype) for each in fixed), CompactTable.of(last, dtype, chosen))
        if compiled.backup is not None:
            parts["backup"] = CompactTable.of(compiled.backup, dtype)
        return cls(**parts)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        tables = (*self.tables, *([] if self.backup is None else [self.backup]))
        trees = {} if self.trees is None else self.trees.arrays()
        parts = (*vars(self).values(), *vars(self.ends).values(), *trees.values())
        own = (part for part in parts if isinstance(part, np.ndarray))
        return sum(part.nbytes for part in own) + sum(table.nbytes for table in tables)

    def __getstate__(self) -> dict[str, Any]:
        """As :class:`CompactTable` has it."""
        return {name: value for name, value in self.__dict__.items() if name != "row"}

    @cached_property
    def row(self) -> Any:
        """The value at one row as a function of it; None with several targets, trees, or a choice of columns.

        See :func:`sparsact.kernels.bucket_values.row_predictor`.
        """
        if len(self.level) > 1 or self.trees is not None or self.columns is not None or self.ends.beyond == "nan":
            return None
        return row_predictor(
            [table.kernel for table in self.tables],
            None if self.backup is None else self.backup.kernel,
            float(self.level[0]),
            *self.ends.of_one,
            np.ascontiguousarray(self.centre, dtype=np.float64),
            np.ascontiguousarray(self.trend[:, 0], dtype=np.float64),
        )

    def values(self, X: Array, n_threads: int = 1) -> Array:
        """Values (m, targets) at rows (m, d)."""
        rows = X if self.columns is None else np.ascontiguousarray(X[:, self.columns])
        with np.errstate(over="ignore", invalid="ignore"):  # values of far rows may be infinite: native does not warn
            values: Array = self.level + project(rows, self.centre, self.trend, np.zeros(len(self.level)))
        behind = _add(self.tables, rows, values, n_threads)
        missed = np.flatnonzero(behind == 0)
        self.ends.check_known(missed)
        if len(missed):
            rows = np.ascontiguousarray(rows[missed])
            start = values[missed] if self.ends.start is None else np.tile(self.ends.start, (len(missed), 1))
            again = () if self.ends.start is None else self.tables[:-1]
            _add(again if self.backup is None else (*again, self.backup), rows, start, n_threads)
            values[missed] = start
        if self.trees is not None:
            values += self.trees.values(X, n_threads)
        return self.ends.limited(values)


def _add(tables: Sequence[CompactTable], rows: Array, values: Array, n_threads: int) -> Array:
    """Add the values of tables to ``values`` (m, targets); the weight (m,) behind the values of the last table."""
    own, behind = np.empty(values.shape), np.empty(len(rows))
    for table in tables:
        table.kernel(rows, own, behind, n_threads)
        values += own
    return behind


def first_tables(hashes: Hashes, n_tables: int) -> Hashes:
    """The first hash functions: tables that are averaged are as good as each other."""
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

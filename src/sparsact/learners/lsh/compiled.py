"""A fitted LSH model as arrays alone: to be exported, cast to float32, or measured in bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import bucket_values
from sparsact.kernels.bucket_values import SOLVED, Combination, Unsolved, packed
from sparsact.kernels.hashing import Hashes
from sparsact.learners.lsh.ends import Ends
from sparsact.learners.lsh.layout import Array


class Trees(Protocol):
    """A fixed ensemble of trees, in the units of y."""

    def values(self, X: Array, n_threads: int) -> Array:
        """Values (m, targets) at rows (m, d)."""


class LiveBuckets(NamedTuple):
    """Buckets of a table that is updated: records that kernels fill in, and what they solve them from."""

    records: Array
    unsolved: Unsolved


@dataclass(frozen=True)
class CompiledTable:
    """Polynomials of the buckets of some hash tables.

    Attributes
    ----------
    hashes : Hashes
        The hash function of each table, and the local coordinates of the polynomials.
    slots : (2**c, 2)
        Key and number of each bucket, by open addressing; see :class:`~sparsact.kernels.bucket_index.BucketIndex`.
    degree : int
        Degree of the polynomials.
    coefficients : (B, D, targets)
        In the units of y.
    weights : (B,)
        Weight of the rows of each bucket; a bucket of weight 0 is empty.
    combine : {"average", "first"}
        Tables are averaged by weight, or the first one answers whose bucket is not empty.
    live : LiveBuckets or None
        Of the table of a model that is updated: its buckets are solved when rows meet them, and ``coefficients`` and
        ``weights`` hold only those. None in what :meth:`TablePredictor.compiled` of a ``model.predictor()`` holds.
    """

    hashes: Hashes
    slots: NDArray[np.uint64]
    degree: int
    coefficients: Array
    weights: Array
    combine: Combination = "average"
    live: LiveBuckets | None = None

    @cached_property
    def _records(self) -> Array:
        return packed(self.coefficients, self.weights)

    def kernel(self, trend: Array) -> Any:
        """What fills in values and weights behind them; see :func:`sparsact.kernels.bucket_values.predictor`."""
        records, unsolved = self.live or (self._records, SOLVED)
        return bucket_values.predictor(self.hashes, self.slots, self.degree, records, trend, self.combine, unsolved)


@dataclass(frozen=True)
class CompiledModel:
    r"""A model as a fixed function of the row, before :class:`~sparsact.learners.lsh.ends.Ends` apply.

    .. math:: f(x) = \ell + (x_C - c)^T W + \mathrm{trees}(x) + \sum_s \mathrm{table}_s(x_C).

    Attributes
    ----------
    level, centre, trend : (targets,), (c,), (c, targets)
        The linear part: level, and slopes about the centre.
    tables : tuple of CompiledTable
        Fixed stages first; the last one is the table that updates change. Where all buckets of one are empty it adds
        nothing.
    columns : (c,) or None
        Columns of X that tables and trend see; None for all of them.
    trees : Trees or None
        They see all columns.
    backup : CompiledTable or None
        Coarse tables, asked where all buckets of the last table are empty.
    """

    level: Array
    centre: Array
    trend: Array
    tables: tuple[CompiledTable, ...]
    columns: NDArray[np.int64] | None = None
    trees: Trees | None = None
    backup: CompiledTable | None = None

    @property
    def n_targets(self) -> int:
        """Columns of Y."""
        return len(self.level)

    @cached_property
    def _kernels(self) -> tuple[Any, ...]:
        none = np.zeros_like(self.trend)
        return tuple(table.kernel(none if place else self.trend) for place, table in enumerate(self.tables))

    @cached_property
    def _backup_kernel(self) -> Any:
        return None if self.backup is None else self.backup.kernel(np.zeros_like(self.trend))

    def row(self, ends: Ends) -> Any:
        """The value at one row as a function of it; see :func:`sparsact.kernels.bucket_values.row_predictor`.

        None where there is no such function: with several targets, trees, a choice of columns, or NaN beyond limits.
        """
        if self.n_targets > 1 or self.trees is not None or self.columns is not None or ends.beyond == "nan":
            return None
        return bucket_values.row_predictor(self._kernels, self._backup_kernel, float(self.level[0]), *ends.of_one)

    def __getstate__(self) -> dict[str, Any]:
        """Without the kernels, which point into memory; they are made again when needed."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_kernels", "_backup_kernel")}

    def values(self, X: Array, n_threads: int = 1) -> tuple[Array, Array]:
        """Values (m, targets) at rows (m, d), and the weight (m,) behind the last table: 0 where it has none."""
        rows = X if self.columns is None else np.ascontiguousarray(X[:, self.columns])
        values, behind = np.empty((len(X), self.n_targets)), np.empty(len(X))
        first, *others = self._kernels
        first(rows, values, behind, n_threads)
        for kernel in others:
            own = np.empty_like(values)
            kernel(rows, own, behind, n_threads)
            values += own
        values += self.level
        if self.trees is not None:
            values += self.trees.values(X, n_threads)
        if self.backup is not None and not behind.all():
            missed = np.flatnonzero(behind == 0)
            own = np.empty((len(missed), self.n_targets))
            self._backup_kernel(rows[missed], own, np.empty(len(missed)), n_threads)
            values[missed] += own
        return values, behind

    def without_last(self, X: Array) -> Array:
        """All but the last table, (m, targets): level, trend, frozen stages and trees."""
        rows = X if self.columns is None else np.ascontiguousarray(X[:, self.columns])
        own, behind = np.empty((len(X), self.n_targets)), np.empty(len(X))
        values: Array = self.level + (rows - self.centre) @ self.trend
        for table in self.tables[:-1]:
            table.kernel(np.zeros_like(self.trend))(rows, own, behind, 1)
            values += own
        return values if self.trees is None else values + self.trees.values(X, 1)

"""What a fitted LSH model predicts by, in arrays alone: what is exported, cast to float32, or measured in bytes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import bucket_values
from sparsact.kernels.hashing import Hashes
from sparsact.learners.lsh.layout import Array

Combination = Literal["average", "sum", "first"]


class Trees(Protocol):
    """A frozen ensemble of trees, in the units of y."""

    def values(self, X: Array, n_threads: int) -> Array:
        """Values (m, targets) at rows (m, d)."""


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
    combine : {"average", "sum", "first"}
        Tables are averaged by weight, or added, or the first one answers whose bucket is not empty.
    """

    hashes: Hashes
    slots: NDArray[np.uint64]
    degree: int
    coefficients: Array
    weights: Array
    combine: Combination = "average"


@dataclass(frozen=True)
class CompiledModel:
    r"""A model as a frozen function of the row.

    .. math:: f(x) = \mathrm{clip}\Big(\ell + (x_C - c)^T W + \mathrm{trees}(x) + \sum_s \mathrm{table}_s(x_C)\Big).

    Attributes
    ----------
    level, centre, trend : (targets,), (c,), (c, targets)
        The linear part: level, and slopes about the centre.
    tables : tuple of CompiledTable
        Frozen stages first; the last one is the table that updates change. Where all buckets of one are empty it adds
        nothing.
    columns : (c,) or None
        Columns of X that tables and trend see; None for all of them.
    trees : Trees or None
        They see all columns.
    backup : CompiledTable or None
        Coarse tables, asked where all buckets of the last table are empty.
    low, high : (targets,) or None
        Least and largest target, to which values are clipped; None where they are not.
    """

    level: Array
    centre: Array
    trend: Array
    tables: tuple[CompiledTable, ...]
    columns: NDArray[np.int64] | None = None
    trees: Trees | None = None
    backup: CompiledTable | None = None
    low: Array | None = None
    high: Array | None = None

    @property
    def n_targets(self) -> int:
        """Columns of Y."""
        return len(self.level)

    @cached_property
    def _kernels(self) -> tuple[Any, ...]:
        return tuple(
            bucket_values.predictor(
                table.hashes,
                table.slots,
                table.degree,
                table.coefficients,
                table.weights,
                self.trend if place == 0 else np.zeros_like(self.trend),
                average=table.combine == "average",
            )
            for place, table in enumerate(self.tables)
        )

    def __getstate__(self) -> dict[str, Any]:
        """Without the kernels, which point into memory; they are made again when needed."""
        return {name: value for name, value in self.__dict__.items() if name != "_kernels"}

    def values(self, X: Array, n_threads: int = 1) -> tuple[Array, Array]:
        """Values (m, targets) at rows (m, d), and the weight (m,) behind the last table: 0 where it has none."""
        rows = X if self.columns is None else np.ascontiguousarray(X[:, self.columns])
        values, behind = np.empty((len(X), self.n_targets)), np.empty(len(X))
        total = None
        for kernel in self._kernels:
            kernel(rows, values, behind, n_threads)
            if len(self._kernels) > 1:
                total = values.copy() if total is None else total + values
        values = values if total is None else total
        values += self.level
        if self.trees is not None:
            values += self.trees.values(X, n_threads)
        return values, behind

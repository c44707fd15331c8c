"""The part of a model that updates leave unchanged: columns, boosted trees, stages, and the rows they saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.bucket_index import BucketIndex
from sparsact.learners.lsh.compiled import CompiledTable, Slots
from sparsact.learners.lsh.layout import Array, Layout
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble
from sparsact.learners.lsh.updates import Keys, RowNames, row_keys
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays
from sparsact.statistics.statistic import Batch

_STAGE: Final = {
    "keys": ArrayField("B", np.uint64),
    "coefficients": ArrayField("B D T", finite=True),
    "weights": ArrayField("B", finite=True, nonnegative=True),
    "error": ArrayField("1"),
}
_LEARNED_ROWS: Final = {"keys": ArrayField("m", np.uint64), "values": ArrayField("m T", finite=True)}


@dataclass(frozen=True)
class FixedStage:
    """Tables whose rows are gone, in their layout, and the error of the stages up to this one at rows left out.

    The error is in standard deviations of the target.
    """

    layout: Layout
    table: CompiledTable[Slots]
    error: float = np.nan

    def values(self, X: Array, n_threads: int = 1) -> Array:
        """Values (m, targets) at rows; 0 where every bucket is empty."""
        values = np.empty((len(X), self.layout.n_targets))
        self.table.kernel(X, values, np.empty(len(X)), n_threads)
        return values

    def arrays(self) -> Arrays:
        """Every part as an array."""
        buckets = self.table.storage
        own = {"keys": buckets.keys, "coefficients": buckets.coefficients, "weights": buckets.weights}
        own = {name: np.ascontiguousarray(part) for name, part in own.items()} | {"error": np.array([self.error])}
        return schema.add_prefix("layout", self.layout.arrays()) | own

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> FixedStage:
        """The stage that :meth:`arrays` took apart."""
        layout = Layout.from_arrays(schema.strip_prefix("layout", arrays))
        read = schema.read_arrays(_STAGE, arrays, D=layout.n_features, T=layout.n_targets)
        if len(np.unique(read["keys"])) != len(read["keys"]):
            raise ValueError("two buckets have the same key")
        storage = Slots.of(BucketIndex(read["keys"]).slots, read["coefficients"], read["weights"])
        return cls(layout, CompiledTable(layout.hashes, layout.degree, storage), float(read["error"][0]))


@dataclass(frozen=True)
class FixedPart:
    """The part of a model that updates leave alone.

    Attributes
    ----------
    columns : (c,) or None
        Columns that tables see; None for all.
    stages : tuple of FixedStage
        Added to the table that is updated.
    trees : TreeEnsemble or None
        Added as well; they see all columns.
    n_columns : int
        Columns of X.
    learned : LearnedRows or None
        Rows that stages and trees were learned from; None where there are neither, or no row can be removed.
    """

    columns: NDArray[np.int64] | None = None
    stages: tuple[FixedStage, ...] = ()
    trees: TreeEnsemble | None = None
    n_columns: int = 0
    learned: LearnedRows | None = None

    @property
    def adds(self) -> bool:
        """Whether it adds anything to the table."""
        return bool(self.stages) or self.trees is not None

    def selected(self, X: Array) -> Array:
        """The columns (m, c) that tables see."""
        return X if self.columns is None else np.ascontiguousarray(X[:, self.columns])

    def values(self, X: Array, n_threads: int = 1) -> Array:
        """Values (m, targets) of trees and stages at rows (m, d), if there are any."""
        parts = [stage.values(self.selected(X), n_threads) for stage in self.stages]
        parts += [] if self.trees is None else [self.trees.values(X, n_threads)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def arrays(self) -> Arrays:
        """Every part as an array."""
        arrays: Arrays = {} if self.columns is None else {"columns": self.columns}
        for number, stage in enumerate(self.stages):
            arrays |= schema.add_prefix(f"stage{number}", stage.arrays())
        return arrays if self.trees is None else arrays | schema.add_prefix("trees", self.trees.arrays())

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_columns: int, n_targets: int) -> FixedPart:
        """The part that :meth:`arrays` took apart, of a model with these numbers of columns and targets."""
        columns, n_seen = None, n_columns
        if "columns" in arrays:
            columns = schema.check_array(arrays, "columns", np.int64, (None,))
            n_seen = len(columns)
            if not n_seen or columns[0] < 0 or columns[-1] >= n_columns or (np.diff(columns) <= 0).any():
                raise ValueError("the columns of the tables are not columns in ascending order")
        stages: list[FixedStage] = []
        while parts := schema.strip_prefix(f"stage{len(stages)}", arrays):
            stage = FixedStage.from_arrays(parts)
            if stage.layout.n_columns != n_seen or stage.layout.n_targets != n_targets:
                raise ValueError("a stage has other columns or targets")
            stages.append(stage)
        trees = schema.strip_prefix("trees", arrays)
        ensemble = TreeEnsemble.from_arrays(trees, n_columns, n_targets) if trees else None
        return cls(columns, tuple(stages), ensemble, n_columns)


class LearnedRows:
    """Values of the fixed part at the rows it was learned from, as if it had never seen them.

    Rows are known by the :func:`~sparsact.learners.lsh.updates.row_keys` of X and Y; ``values`` are (m, targets).
    """

    def __init__(self, keys: Keys, values: Array) -> None:
        self.index, self._values = BucketIndex(keys), values

    def values(self, X: Array, Y: Array, otherwise: Callable[[Array], Array]) -> Array:
        """Values (m, targets) at rows; ``otherwise`` of the rows that it does not know."""
        at = self.index.find(row_keys(X, Y))
        values, unknown = self._values[at], at < 0
        if unknown.any():
            values[unknown] = otherwise(X[unknown])
        return values

    def arrays(self) -> Arrays:
        """Both parts."""
        return {"keys": self.index.keys, "values": self._values}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_targets: int) -> LearnedRows:
        """The rows that :meth:`arrays` took apart."""
        read = schema.read_arrays(_LEARNED_ROWS, arrays, T=n_targets)
        return cls(read["keys"], read["values"])


def seen_by_table(batch: Batch, fixed: FixedPart) -> tuple[Batch, RowNames | None]:
    """Rows as the table sees them, their targets less the fixed part, and the keys it knows them by.

    A row that the fixed part was learned from counts out of sample whenever it comes or goes, so that rows in any
    order, in parts or removed and added again, give the same table.
    """
    X, Y, weights = batch.X, batch.y, batch.row_weights()
    if not fixed.adds and fixed.columns is None:
        return Batch(X, Y, weights), None
    names, targets = RowNames(row_keys(X, Y, weights[:, None]), Y), Y
    if fixed.adds:
        targets = Y - (fixed.values(X) if fixed.learned is None else fixed.learned.values(X, Y, fixed.values))
    return Batch(fixed.selected(X), targets, weights), names

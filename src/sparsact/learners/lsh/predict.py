"""Predict by a compiled LSH model: values within its limits, and deviations of new targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsact.kernels import dispatch
from sparsact.kernels.bucket_values import Combination
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.compiled import CompiledModel, CompiledTable, Directory, Kernel, MadeAgain, Slots
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.nearest import NearestBuckets
from sparsact.learners.lsh.prediction_limits import Ends, Policy

RowUpdate = Callable[["list[TablePredictor]", BucketTable, Any, Any, int], bool]


class CompiledPredictor(MadeAgain, ABC):
    """Values of a compiled model at single points or at rows."""

    model: CompiledModel[Slots] | CompiledModel[Directory]
    inputs: InputRules
    _single: bool

    @property
    @abstractmethod
    def ends(self) -> Ends:
        """Values where the model knows little."""

    def __call__(self, x: ArrayLike) -> Any:
        """Value at a point (d,), a float or (targets,); or at rows (m, d), an array of (m,) or (m, targets).

        Missing values and categories may be in them as in rows of ``predict``.
        """
        if self._row is not None and type(x) is np.ndarray and (value := self._row(x)) is not None:
            return value if x.ndim == 1 else np.array([value])
        rows = self.inputs.numbers(x)
        values = self.ends.checked(self.values(self.inputs.encode(np.atleast_2d(rows))))
        values = values[:, 0] if self._single else values
        return values[0] if rows.ndim == 1 else values

    def values(self, X: Array, n_threads: int = 1) -> Array:
        """Values (m, targets) at encoded rows."""
        return self.model.values(X, self.ends, n_threads)

    @cached_property
    def _row(self) -> Callable[[Any], float | None] | None:
        """Value at one row or None, in microseconds; None if a single call cannot tell it."""
        return self.model.row(self.ends, self.inputs.n_columns) if self.takes_plain_rows else None

    @property
    def takes_plain_rows(self) -> bool:
        """Whether a row of numbers needs no encoding, and has one target."""
        return self.inputs.is_plain and self._single


class TablePredictor(CompiledPredictor):
    """Values of a fitted LSH model at single points or at rows, as fast as the table allows.

    Made by ``model.predictor()``; later updates of the model leave it as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsact import LSHRegressor
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> predict = LSHRegressor(random_state=0).fit(X, np.abs(X[:, 0])).predictor()
    >>> bool(abs(predict([0.5]) - 0.5) < 1e-3)
    True
    """

    model: CompiledModel[Slots]

    def __init__(
        self,
        table: BucketTable,
        alpha: float,
        policy: Policy,
        single: bool,
        fixed: FixedPart,
        inputs: InputRules,
        *,
        is_live: bool,
    ) -> None:
        self.table, self.alpha, self.policy = table, alpha, policy
        self.fixed, self.inputs, self._single = fixed, inputs, single
        self.model = _compiled(table, alpha, policy, fixed, is_live=is_live)

    @property
    def ends(self) -> Ends:
        """Values where the model knows little, as the table is now."""
        fallback, table = self.policy.fallback, self.table
        start = np.full(len(table.low), np.nan) if fallback == "nan" else None
        if fallback == "mean":  # of all rows
            start = table.layout.level + table.layout.unit * (table.totals[1:] / table.totals[0])
        return Ends.of(self.policy, table.low, table.high, start)

    def shipped_ends(self) -> Ends:
        """The same for a predictor without sums; a ValueError if it would need them."""
        if self.model.nearest is not None:
            raise ValueError(
                f"fallback={self.policy.fallback!r} needs sums, which a compact predictor lacks: call "
                'set_params(fallback="mean") first, or predictor() without `dtype` and limits.'
            )
        return self.ends

    def value(self, x: ArrayLike) -> float | None:
        """Value at an array (d,) or (1, d) of float64, in microseconds; None where only :meth:`values` tells."""
        return None if self._row is None else self._row(x)

    def deviations(self, X: Array, n_threads: int = 1) -> Array:
        """Roots (m, targets) of the mean variances of targets about the polynomials of buckets.

        Where every table misses, the variance is that of the first coarse bucket that holds rows, or of all rows.
        """
        kernel, backup, pooled = self._spread
        X = self.fixed.selected(X)
        variances, behind = np.empty((len(X), self.table.layout.n_targets)), np.empty(len(X))
        kernel(X, variances, behind, n_threads)
        if not behind.all():
            missed = np.flatnonzero(behind == 0)
            found, coarse = np.empty((len(missed), variances.shape[1])), np.zeros(len(missed))
            if backup is not None:
                backup(np.ascontiguousarray(X[missed]), found, coarse, n_threads)
            variances[missed] = np.where(coarse[:, None] > 0, found, pooled)
        deviations: Array = np.sqrt(variances) * self.table.layout.unit
        return deviations

    @cached_property
    def _spread(self) -> tuple[Kernel, Kernel | None, Array]:
        """Variances as tables of constants, of the backup too, and the variance of all rows."""
        solution = self.table.solved(self.alpha, self.policy.min_count)
        variances, weights = solution.variances, solution.weights
        kernel = _constants(self.table, variances, weights, "average")
        total = max(float(weights.sum()), 1e-300)
        pooled = weights @ variances / total if weights.any() else variances.mean(axis=0)
        if self.table.backup is None:
            return kernel, None, pooled
        coarse = self.table.backup.solved(0.0, 1)
        return kernel, _constants(self.table.backup, coarse.variances, coarse.weights, "first"), pooled

    @cached_property
    def update(self) -> RowUpdate | None:
        """The function that adds one row to the table, or takes it away; None where no single call can.

        It is called with ``(readers, table, X, y, sign)``, X (1, d) and y of one number, both float64. It returns True,
        or False and has changed nothing: if a bucket would be new or empty, or the row or the range of targets is; if
        the row is not finite, or was not added; or if the predictor, the one entry of the list ``readers``, is in use.
        """
        table, fixed, layout, rows = self.table, self.fixed, self.table.layout, self.table.rows
        is_plain = self.inputs.is_plain and fixed.trees is None and layout.n_targets == 1
        is_kept = table.keeps_rows and rows.targets is not None
        is_native = dispatch.chosen is not dispatch.reference
        if not (is_plain and is_kept and is_native and self.model.nearest is None):  # its index would keep the old sums
            return None
        update: RowUpdate = dispatch.native._RowUpdater(
            _sums(table),
            None if table.backup is None else _sums(table.backup),
            [stage.table.kernel for stage in fixed.stages],
            np.zeros(0, np.int64) if fixed.columns is None else fixed.columns,
            self.inputs.n_columns,
            float(layout.level[0]),
            float(layout.unit[0]),
            layout.hashes.centre,
            np.ascontiguousarray(layout.trend[:, 0]),
            table.finest,
            float(table.low[0]),
            float(table.high[0]),
            rows,
            fixed.learned,
            table.totals,
        )
        return update


def _sums(table: BucketTable) -> Any:
    """The arrays of a table that a row changes."""
    stale = np.zeros(0, np.uint8) if table._solution is None else table._solution.stale
    return dispatch.native._TableSums(
        *table.layout.hashes, table.index.slots, table.layout.degree, table._counts, table._sums, stale
    )


def _constants(table: BucketTable, values: Array, weights: Array, combine: Combination) -> Kernel:
    """Kernel of a table with a constant in each bucket."""
    storage = Slots.of(table.index.slots, values[:, None, :], weights)
    return CompiledTable(table.layout.hashes, 0, storage, combine).kernel


def _compiled(
    table: BucketTable, alpha: float, policy: Policy, fixed: FixedPart, *, is_live: bool
) -> CompiledModel[Slots]:
    """A table on top of the fixed part as a function of the row."""
    layout, own = table.layout, table.layout.hashes.centre
    centre = fixed.stages[0].layout.hashes.centre if fixed.stages else own  # of the kernel that adds the line
    backup = nearest = None
    if policy.fallback == "coarse" and table.backup is not None:
        backup = table.backup.compiled(0.0, 1, "first", is_live=is_live)
    elif policy.fallback in ("coarse", "nearest"):
        nearest = NearestBuckets(table, policy.min_count)
    return CompiledModel(
        layout.level + (centre - own) @ layout.trend,
        centre,
        layout.trend,
        (*(stage.table for stage in fixed.stages), table.compiled(alpha, policy.min_count, is_live=is_live)),
        fixed.columns,
        fixed.trees,
        backup,
        nearest,
    )

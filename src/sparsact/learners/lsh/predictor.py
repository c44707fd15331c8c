"""Predictions of an LSH model: the polynomials of the buckets, and the nearest bucket where all are empty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.kernels import bucket_statistics
from sparsact.kernels.bucket_values import Combination
from sparsact.learners.lsh.bucket_solution import LiveSolution
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.compiled import CompiledModel, CompiledTable, LiveBuckets
from sparsact.learners.lsh.ends import Ends, Policy
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Array
from sparsact.learners.lsh.nearest import NearestBuckets


@dataclass(frozen=True)
class BucketSolution:
    """What prediction needs: a polynomial in each bucket, with values in the units of y."""

    coefficients: Array  # (B, D, targets)
    weights: Array  # (B,), 0 for a bucket that counts as empty
    variances: Array  # (B, targets), of a target about its polynomial, in squares of the layout's units


def separate_solution(table: BucketTable, alpha: float, min_count: int) -> BucketSolution:
    """Ridge polynomials of the buckets; those of fewer than ``min_count`` rows count as empty."""
    layout, counts, weight = table.layout, table.counts, table.sums[:, table.layout.n_local]
    coefficients, residual = bucket_statistics.solve(table.sums, layout.n_local, layout.degree, layout.n_targets, alpha)
    weights = np.where(counts >= min_count, weight, 0.0)
    return BucketSolution(coefficients * layout.unit, weights, _variances(counts, weight, layout.n_features, residual))


def _variances(counts: NDArray[np.int64], weight: Array, D: int, residual: Array) -> Array:
    """Variance about the polynomial in each bucket, shrunk to that of all rows, which count as D rows."""
    enough, row_weight = counts > D, weight / np.maximum(counts, 1)
    free = np.maximum(counts - D, 0) * np.where(counts > 0, row_weight, 0.0)
    # Where no bucket has more rows than coefficients, the variance about the trend has to do.
    pooled = residual[enough].sum(axis=0) / free.sum() if free.any() else np.ones(residual.shape[1])
    prior = D * np.where(counts > 0, row_weight, 1.0)
    variances: Array = (np.where(enough[:, None], residual, 0.0) + prior[:, None] * pooled) / (free + prior)[:, None]
    return variances


class TablePredictor:
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

    update: Any  # of the model that it predicts for; see :func:`sparsact.learners.lsh.single_row.row_updater`

    def __init__(
        self,
        table: BucketTable,
        solution: BucketSolution | LiveSolution,
        policy: Policy,
        single: bool,
        fixed: FixedPart,
        inputs: InputRules,
    ) -> None:
        self.table, self.solution = table, solution
        self.policy, self._single = policy, single
        self.fixed, self.inputs = fixed, inputs
        self.compiled = compiled_model(table, solution, policy, self.fixed)
        self._nearest: NearestBuckets | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the index, which points into memory; it is made again when needed."""
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_spread", "_row", "update")}
        return {**kept, "_nearest": None}

    def __call__(self, x: ArrayLike) -> Any:
        """Value at a point (d,), a float or (targets,); or at rows (m, d), an array of (m,) or (m, targets).

        Missing values and categories may be in them as in rows of ``predict``.
        """
        if self._row is not None and type(x) is np.ndarray and (value := self._row(x)) is not None:
            return value if x.ndim == 1 else np.array([value])
        rows = self.inputs.numbers(x)
        single = rows.ndim == 1
        values = self.ends.checked(self.values(self.inputs.encode(np.atleast_2d(rows))))
        if single:
            return values[0, 0] if self._single else values[0]
        return values[:, 0] if self._single else values

    def value(self, x: Any) -> float | None:
        """Value at an array (d,) or (1, d) of float64, in microseconds; None where only :meth:`values` tells."""
        value: float | None = None if self._row is None else self._row(x)
        return value

    @cached_property
    def _row(self) -> Any:
        return self.compiled.row(self.ends) if self.inputs.is_plain and self._single else None

    @property
    def ends(self) -> Ends:
        """Values where the model knows little, as the table is now."""
        return Ends.of(self.policy, self.table)

    def shipped_ends(self) -> Ends:
        """The same for a predictor without sums; a ValueError if it would need them."""
        if self.policy.fallback == "nearest" or (self.policy.fallback == "coarse" and self.compiled.backup is None):
            raise ValueError(
                f"fallback={self.policy.fallback!r} looks for the nearest bucket by sums that a predictor of "
                'coefficients does not hold; call set_params(fallback="mean") first, or take predictor() without '
                "`dtype` and limits."
            )
        return self.ends

    def values(self, X: Array, n_threads: int = 1) -> Array:
        """Values (m, targets) at rows."""
        values, behind = self.compiled.values(X, n_threads)
        ends = self.ends
        if self.compiled.backup is None and not behind.all():
            missed = np.flatnonzero(behind == 0)
            ends.check_known(missed)
            values[missed] = self._of_missed(X[missed], ends.start)
        return ends.limited(values)

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
    def _spread(self) -> tuple[Any, Any, Array]:
        """Variances as tables of constants, of the backup too, and the variance of all rows."""
        table, (variances, weights) = self.table, spread(self.table, self.solution)
        kernel = _constants(table, variances, weights, "average")
        total = max(float(weights.sum()), 1e-300)
        pooled = weights @ variances / total if weights.any() else variances.mean(axis=0)
        if table.backup is None:
            return kernel, None, pooled
        coarse = separate_solution(table.backup, 0.0, 1)
        return kernel, _constants(table.backup, coarse.variances, coarse.weights, "first"), pooled

    def behind(self, X: Array) -> Array:
        """Weight of the rows (m,) that stand behind each value, over all tables; 0 where every table misses."""
        return self.compiled.values(X)[1]

    def _of_missed(self, X: Array, start: Array | None) -> Array:
        """Values of rows whose buckets are all empty."""
        if start is not None:
            values = np.tile(start, (len(X), 1))
            return values + self.fixed.values(X) if self.fixed.adds else values
        present = self.table.counts >= self.policy.min_count
        if not present.any():
            raise ValueError(
                f'no bucket holds {self.policy.min_count} rows; lower `min_count`, or pass fallback="mean".'
            )
        if self._nearest is None:
            self._nearest = NearestBuckets(self.table, present)
        return self._nearest.means_at(self.fixed.selected(X)) + self.compiled.without_last(X)


def spread(table: BucketTable, solution: BucketSolution | LiveSolution) -> tuple[Array, Array]:
    """Variances (B, targets) about the polynomials of buckets, and their weights (B,)."""
    if isinstance(solution, LiveSolution):
        solution = separate_solution(table, solution.alpha, solution.least)
    return solution.variances, solution.weights


def _constants(table: BucketTable, values: Array, weights: Array, combine: Combination) -> Any:
    """Kernel of a table with a constant in each bucket."""
    layout = table.layout
    constants = CompiledTable(layout.hashes, table.index.slots, 0, values[:, None, :], weights, combine)
    return constants.kernel(np.zeros_like(layout.trend))


def compiled_model(
    table: BucketTable, solution: BucketSolution | LiveSolution, policy: Policy, fixed: FixedPart
) -> CompiledModel:
    """The function of the row that a table, its solution and the fixed part stand for."""
    layout = table.layout
    backup = None
    if policy.fallback == "coarse" and table.backup is not None:
        live = isinstance(solution, LiveSolution)
        coarse = table.backup.solution(0.0, 1) if live else separate_solution(table.backup, 0.0, 1)
        backup = _compiled_table(table.backup, coarse, "first")
    last = _compiled_table(table, solution, "average")
    line = layout.level, layout.hashes.centre, layout.trend
    return fixed.beneath(CompiledModel(*line, (last,), backup=backup))


def _compiled_table(table: BucketTable, solution: BucketSolution | LiveSolution, combine: Combination) -> CompiledTable:
    layout, slots = table.layout, table.index.slots
    if isinstance(solution, BucketSolution):
        return CompiledTable(layout.hashes, slots, layout.degree, solution.coefficients, solution.weights, combine)
    n = len(table.index)
    live = LiveBuckets(solution.records[:n], solution.unsolved(table.counts, table.sums))
    coefficients = live.records[:, :-1].reshape(n, layout.n_features, layout.n_targets)
    return CompiledTable(layout.hashes, slots, layout.degree, coefficients, live.records[:, -1], combine, live)

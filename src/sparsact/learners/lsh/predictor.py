"""What an LSH model predicts by: the polynomials of the buckets, and the nearest bucket where all are empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import lsmr
from scipy.spatial import cKDTree

from sparsact.kernels import bucket_statistics, bucket_values, hashing
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.compiled import Combination, CompiledModel, CompiledTable
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Array, Layout
from sparsact.statistics.statistic import Batch

MIN_PENALTY = 1e-8  # two tables alone leave constants to choose
TOLERANCE = 1e-10
MAX_PASSES = 2000
HIGH_DIMENSION = 16  # beyond it a kd-tree looks at most of its points
FARTHEST = 1e100  # local coordinates beyond it are as far as any: squares of distances stay floats
NearestIndex = Callable[[Array], NDArray[np.int64]]


@dataclass(frozen=True)
class BucketSolution:
    """What prediction needs: a polynomial in each bucket, with values in the units of y."""

    coefficients: Array  # (B, D, targets)
    weights: Array  # (B,), 0 for a bucket that counts as empty
    variances: Array  # (B, targets), of a target about its polynomial, in squares of the layout's units
    average: bool = True


def separate_solution(table: BucketTable, alpha: float, min_count: int) -> BucketSolution:
    """Ridge polynomials of the buckets; those of fewer than ``min_count`` rows count as empty."""
    layout, counts, weight = table.layout, table.counts, table.sums[:, table.layout.n_local]
    coefficients, residual = bucket_statistics.solve(table.sums, layout.n_local, layout.degree, layout.n_targets, alpha)
    weights = np.where(counts >= min_count, weight, 0.0)
    return BucketSolution(coefficients * layout.unit, weights, _variances(counts, weight, layout.n_features, residual))


def _variances(counts: NDArray[np.int64], weight: Array, D: int, residual: Array) -> Array:
    """Variance about the polynomial in each bucket, drawn towards that of all by as many rows as coefficients."""
    enough, row_weight = counts > D, weight / np.maximum(counts, 1)
    free = np.maximum(counts - D, 0) * np.where(counts > 0, row_weight, 0.0)
    # Where no bucket has more rows than coefficients, the variance about the trend has to do.
    pooled = residual[enough].sum(axis=0) / free.sum() if free.any() else np.ones(residual.shape[1])
    prior = D * np.where(counts > 0, row_weight, 1.0)
    variances: Array = (np.where(enough[:, None], residual, 0.0) + prior[:, None] * pooled) / (free + prior)[:, None]
    return variances


def joint_solution(table: BucketTable, rows: Batch, alpha: float, min_count: int) -> BucketSolution:
    r"""Coefficients that minimise the squared error of the *sum* over tables, with a ridge penalty on all of them.

    .. math:: \min_c \sum_i w_i \Big(y_i - \sum_t \langle c_{t, b_t(x_i)}, \phi_t(x_i) \rangle\Big)^2
              + \alpha T \sum_{t, b} \|c_{t,b}\|^2

    With degree 0 and grids this is ridge regression on random binning features [1]_. Found by LSMR on the sparse matrix
    of features, (rows, buckets * D): a pass over its ``rows * T * D`` entries for each iteration.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random Features for Large-Scale Kernel Machines", 2007, Section 4.
    """
    X, Y, weights = rows.X, rows.y, rows.row_weights()
    layout = table.layout
    design = _design(X, table, layout)
    own = separate_solution(table, alpha, min_count)
    present = np.repeat(own.weights > 0, layout.n_features)
    root = np.sqrt(weights)
    scaled = sp.csr_array(design.multiply(root[:, None]))[:, np.flatnonzero(present)]
    residual = layout.residual(X, Y) * root[:, None]
    damp = float(np.sqrt(max(alpha, MIN_PENALTY) * layout.n_tables))
    coefficients = np.zeros((design.shape[1], layout.n_targets))
    for target in range(layout.n_targets):
        found = lsmr(
            scaled, residual[:, target], damp=damp, atol=TOLERANCE, btol=TOLERANCE, conlim=0, maxiter=MAX_PASSES
        )
        coefficients[present, target] = found[0]
    shaped = coefficients.reshape(len(table.index), layout.n_features, layout.n_targets) * layout.unit
    return BucketSolution(
        np.ascontiguousarray(shaped), np.where(own.weights > 0, 1.0, 0.0), own.variances, average=False
    )


def _design(X: Array, table: BucketTable, layout: Layout) -> sp.csr_array:
    """Features of each row in the columns of its buckets, (m, B * D)."""
    found = hashing.places(X, layout.hashes)
    ids = table.index.find(found.keys).astype(np.int64)
    D = layout.n_features
    columns = (ids[:, :, None] * D + np.arange(D)).reshape(len(X), -1)
    entries = np.broadcast_to(bucket_statistics.features(found.V, layout.degree), (len(X), layout.n_tables, D)).reshape(
        len(X), -1
    )
    starts = np.arange(len(X) + 1) * columns.shape[1]
    return sp.csr_array((entries.ravel(), columns.ravel(), starts), shape=(len(X), len(table.index) * D))


def nearest_index(points: Array) -> NearestIndex:
    """A function that gives the place (m,) of the nearest of points (N, p) to each row of Z.

    By a kd-tree, or in high dimension by faiss or usearch where one is installed: both compare all points, in float32,
    as a kd-tree of that many coordinates nearly does, but vectorised.
    """
    if points.shape[1] > HIGH_DIMENSION:
        for module, make in (("faiss", _faiss_index), ("usearch", _usearch_index)):
            if find_spec(module) is not None:
                return make(points.astype(np.float32))
    tree = cKDTree(points)
    return lambda Z: np.asarray(tree.query(Z)[1], dtype=np.int64)


def _faiss_index(points: NDArray[np.float32]) -> NearestIndex:
    index: Any = import_module("faiss").IndexFlatL2(points.shape[1])
    index.add(points)
    return lambda Z: np.asarray(index.search(Z.astype(np.float32), 1)[1][:, 0])


def _usearch_index(points: NDArray[np.float32]) -> NearestIndex:
    usearch: Any = import_module("usearch.index")
    metric = usearch.MetricKind.L2sq
    return lambda Z: np.asarray(
        usearch.search(points, Z.astype(np.float32), 1, metric, exact=True).keys, dtype=np.int64
    ).reshape(len(Z))


def compiled_model(table: BucketTable, solution: BucketSolution) -> CompiledModel:
    """The function of the row that a table and its solution stand for."""
    layout = table.layout
    combine: Combination = "average" if solution.average else "sum"
    last = CompiledTable(
        layout.hashes, table.index.slots, layout.degree, solution.coefficients, solution.weights, combine
    )
    return CompiledModel(layout.level, layout.hashes.centre, layout.trend, (last,))


class MissingValueError(ValueError):
    """A row that has to be encoded first."""


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

    def __init__(
        self, table: BucketTable, solution: BucketSolution, fallback: str, single: bool, inputs: InputRules
    ) -> None:
        self.table, self.solution, self.inputs = table, solution, inputs
        self.fallback, self._single = fallback, single
        self._layout = table.layout
        self.compiled = compiled_model(table, solution)
        self._index: NearestIndex | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the index, which points into memory; it is made again when needed."""
        return {**self.__dict__, "_index": None}

    def __call__(self, x: ArrayLike) -> Any:
        """Value at a point (d,), a float or (targets,); or at rows (m, d), an array of (m,) or (m, targets)."""
        rows = np.ascontiguousarray(x, dtype=np.float64)
        d = self.inputs.n_columns
        if rows.shape[-1:] != (d,) or rows.ndim > 2:
            raise ValueError(f"a query has {d} numbers, or is an array of such rows; got shape {rows.shape}.")
        single = rows.ndim == 1
        if not self.inputs.is_plain:
            rows = self._encoded(rows)
        try:
            values = self.values(rows[None] if single else rows)
            # A row that is not finite has no finite value: the linear trend multiplies each of its numbers.
            if not (isfinite(values[0, 0]) if single else np.isfinite(values[:, 0]).all()):
                _check_finite(rows)
        except MissingValueError:
            rows = self._encoded(rows)
            values = self.values(rows[None] if single else rows)
        if single:
            return values[0, 0] if self._single else values[0]
        return values[:, 0] if self._single else values

    def _encoded(self, rows: Array) -> Array:
        """Rows, or one, without missing values."""
        if np.isinf(rows).any():
            raise ValueError("a query must be finite, but for NaN, a missing value; it holds an infinity.")
        encoded = self.inputs.encode(np.atleast_2d(rows))
        return encoded[0] if rows.ndim == 1 else encoded

    def values(self, X: Array, n_threads: int = 1) -> Array:
        """Values (m, targets) at rows that have been checked."""
        values, behind = self.compiled.values(X, n_threads)
        if behind[0] == 0 if len(behind) == 1 else not behind.all():
            missed = np.flatnonzero(behind == 0)
            values[missed] = self._of_missed(X[missed], missed, values[missed])
        return values

    def deviations(self, X: Array, n_threads: int = 1) -> Array:
        """Roots (m, targets) of the mean variances about the polynomials of buckets; NaN where every table misses."""
        layout = self._layout
        variances = np.ascontiguousarray(self.solution.variances[:, None, :])
        none = np.zeros((layout.n_columns, layout.n_targets))
        values, behind = bucket_values.bucket_values(
            X, layout.hashes, self.table.index.slots, 0, variances, self.solution.weights, none, n_threads=n_threads
        )
        values[behind == 0] = np.nan
        deviations: Array = np.sqrt(values) * layout.unit
        return deviations

    def behind(self, X: Array) -> Array:
        """Weight of the rows (m,) that stand behind each value, over all tables; 0 where every table misses."""
        return self.compiled.values(X)[1]

    def _of_missed(self, X: Array, rows: NDArray[np.int64], lines: Array) -> Array:
        """Values of rows whose buckets are all empty; ``lines`` are those of level and trend."""
        _check_finite(X)
        layout, present = self._layout, self.solution.weights > 0
        if self.fallback == "nan":
            return np.full((len(X), layout.n_targets), np.nan)
        if self.fallback == "mean":
            return np.tile(self.table.mean(), (len(X), 1))
        if self.fallback == "raise" or not present.any():
            remedy = 'pass fallback="nearest" or "mean"' if present.any() else "lower `min_count`, or fallback='mean'"
            raise ValueError(
                f"row {int(rows[0])} and {len(rows) - 1} others fall into empty buckets; learn rows like them, or "
                f"{remedy}."
            )
        if self._index is None:
            self._index = nearest_index(self.table.positions()[present])
            self._means = self.table.means()[present]
        found = hashing.places(X, layout.hashes)
        at = self._index(np.clip(found.Z, -FARTHEST, FARTHEST))
        values: Array = self._means[at] + lines
        return values


def _check_finite(rows: Array) -> None:
    if not np.isfinite(rows).all():
        raise MissingValueError("a query must be finite here; it holds NaN or an infinity.")

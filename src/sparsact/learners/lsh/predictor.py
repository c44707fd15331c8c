"""A compiled LSH model: what one query needs, and the nearest bucket where all of its buckets are empty."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from sparsact.kernels import bucket_values, hashing
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.solution import BucketSolution

Array = NDArray[np.float64]

HIGH_DIMENSION = 16  # beyond it a kd-tree looks at most of its points


class NearestIndex(Protocol):
    """Finds the nearest of some points."""

    def nearest(self, Z: Array) -> NDArray[np.int64]:
        """Place (m,) of the nearest point to each row of Z."""


class _Tree:
    def __init__(self, points: Array) -> None:
        self._tree = cKDTree(points)

    def nearest(self, Z: Array) -> NDArray[np.int64]:
        return np.asarray(self._tree.query(Z)[1], dtype=np.int64)


class _Faiss:
    def __init__(self, points: Array) -> None:
        faiss: Any = import_module("faiss")
        self._index = faiss.IndexFlatL2(points.shape[1])
        self._index.add(points.astype(np.float32))

    def nearest(self, Z: Array) -> NDArray[np.int64]:
        places: NDArray[np.int64] = self._index.search(Z.astype(np.float32), 1)[1][:, 0]
        return places


class _Usearch:
    def __init__(self, points: Array) -> None:
        self._points = points.astype(np.float32)

    def nearest(self, Z: Array) -> NDArray[np.int64]:
        usearch: Any = import_module("usearch.index")
        matches = usearch.search(self._points, Z.astype(np.float32), 1, usearch.MetricKind.L2sq, exact=True)
        return np.asarray(matches.keys, dtype=np.int64).reshape(len(Z))


def nearest_index(points: Array) -> NearestIndex:
    """An index of points (N, p): a kd-tree, or in high dimension faiss or usearch where one is installed.

    Both compare all points, in float32, as a kd-tree of that many coordinates nearly does, but vectorised.
    """
    if points.shape[1] > HIGH_DIMENSION:
        for module, kind in (("faiss", _Faiss), ("usearch", _Usearch)):
            if find_spec(module) is not None:
                return kind(points)
    return _Tree(points)


FARTHEST = 1e100  # local coordinates beyond it are as far as any: squares of distances stay floats


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

    def __init__(self, table: BucketTable, solution: BucketSolution, fallback: str, single: bool) -> None:
        self.table, self.solution = table, solution
        self.fallback, self._single = fallback, single
        self._layout = table.layout
        self._index: NearestIndex | None = None
        self._kernel: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the compiled kernel, which points into memory; it is made again when it is needed."""
        return {**self.__dict__, "_kernel": None}

    def __call__(self, x: ArrayLike) -> Any:
        """Value at a point (d,), a float or (targets,); or at rows (m, d), an array of (m,) or (m, targets)."""
        rows = np.ascontiguousarray(x, dtype=np.float64)
        d = self._layout.n_columns
        if rows.shape[-1:] != (d,) or rows.ndim > 2:
            raise ValueError(f"a query has {d} numbers, or is an array of such rows; got shape {rows.shape}.")
        single = rows.ndim == 1
        values = self.values(rows[None] if single else rows)
        # A row that is not finite has no finite value: the linear trend multiplies each of its numbers.
        if not (isfinite(values[0, 0]) if single else np.isfinite(values[:, 0]).all()):
            _check_finite(rows)
        if single:
            return values[0, 0] if self._single else values[0]
        return values[:, 0] if self._single else values

    def values(self, X: Array, n_threads: int = 1) -> Array:
        """Values (m, targets) at rows that have been checked."""
        values, behind = self._values_and_weights(X, n_threads)
        values += self._layout.level
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
        return self._values_and_weights(X, 1)[1]

    def _values_and_weights(self, X: Array, n_threads: int) -> tuple[Array, Array]:
        """Values without the level, and the weight behind each."""
        if self._kernel is None:
            layout, solution = self._layout, self.solution
            self._kernel = bucket_values.predictor(
                layout.hashes,
                self.table.index.slots,
                layout.degree,
                solution.coefficients,
                solution.weights,
                layout.trend,
                average=solution.average,
            )
        values, behind = np.empty((len(X), self._layout.n_targets)), np.empty(len(X))
        self._kernel(X, values, behind, n_threads)
        return values, behind

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
        at = self._index.nearest(np.clip(found.Z, -FARTHEST, FARTHEST))
        values: Array = self._means[at] + lines
        return values


def _check_finite(rows: Array) -> None:
    if not np.isfinite(rows).all():
        raise ValueError("a query must be finite; it holds NaN or an infinity.")

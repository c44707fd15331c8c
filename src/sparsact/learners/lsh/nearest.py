"""The nearest bucket to a row whose own are all empty, by the mean position of the bucket's rows."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sparsact.kernels import hashing
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.layout import Array

HIGH_DIMENSION: Final = 16  # beyond it a kd-tree looks at most of its points
FARTHEST: Final = 1e100  # local coordinates beyond it are as far as any: squares of distances stay floats
NearestIndex = Callable[[Array], NDArray[np.int64]]


class NearestBuckets:
    """Mean positions (B, p) of the rows of some buckets of a table, in an index, and their mean targets."""

    def __init__(self, table: BucketTable, present: NDArray[np.bool_]) -> None:
        layout, sums = table.layout, table.sums[present]
        self._hashes, p = layout.hashes, layout.n_local
        total = sums[:, p]
        over = 1.0 / np.where(total > 0, total, 1.0)[:, None]
        start = layout.n_sums - 2 * layout.n_target_sums  # of the constant feature times targets
        self._means = sums[:, start : start + layout.n_targets] * over * layout.unit
        self._index = nearest_index(mean_positions(sums, p))

    def means_at(self, X: Array) -> Array:
        """Mean target of the bucket nearest to each row, (m, targets), in the units of y, without level and trend."""
        places = hashing.places(X, self._hashes).Z
        means: Array = self._means[self._index(np.clip(places, -FARTHEST, FARTHEST))]
        return means


def mean_positions(sums: Array, p: int) -> Array:
    """Mean local coordinates (B, p) of the rows of buckets, from their sums."""
    total = sums[:, p]
    positions: Array = sums[:, :p] / np.where(total > 0, total, 1.0)[:, None]
    return positions


def nearest_index(points: Array) -> NearestIndex:
    """A function that gives the place (m,) of the nearest of points (N, p) to each row of Z.

    By a kd-tree, or in high dimension by usearch where it is installed: it compares all points, in float32, as a
    kd-tree of that many coordinates nearly does, but vectorised.
    """
    if points.shape[1] > HIGH_DIMENSION and find_spec("usearch") is not None:
        return _usearch_index(points.astype(np.float32))
    tree = cKDTree(points)
    return lambda Z: np.asarray(tree.query(Z)[1], dtype=np.int64)


def _usearch_index(points: NDArray[np.float32]) -> NearestIndex:
    usearch: Any = import_module("usearch.index")
    metric = usearch.MetricKind.L2sq
    return lambda Z: np.asarray(
        usearch.search(points, Z.astype(np.float32), 1, metric, exact=True).keys, dtype=np.int64
    ).reshape(len(Z))

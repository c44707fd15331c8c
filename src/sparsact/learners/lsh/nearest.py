"""Find the nearest bucket to a row whose own buckets are all empty, by the mean position of its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sparsact.kernels import hashing
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.compiled import MadeAgain
from sparsact.learners.lsh.layout import Array

HIGH_DIMENSION: Final = 16  # beyond it a kd-tree looks at most of its points, and a product is quicker (record 0133)
MOST_PRODUCTS: Final = 1 << 22  # distances in memory at once
FARTHEST: Final = 1e100  # local coordinates beyond it are as far as any: squares of distances stay floats
NearestIndex = Callable[[Array], NDArray[np.int64]]


class NearestBuckets(MadeAgain):
    """Mean targets of the buckets nearest to rows, by the mean positions (B, p) of the buckets' rows.

    Buckets of fewer than ``least`` rows do not count. The index of the others is made when it is first asked.
    """

    def __init__(self, table: BucketTable, least: int) -> None:
        self._table, self._least = table, least

    def __call__(self, X: Array, values: Array, behind: Array, n_threads: int) -> None:
        """Fill in the mean target (m, targets) of the bucket nearest to each row, in the units of y."""
        places = hashing.places(X, self._table.layout.hashes).Z
        means, index = self._means_and_index
        values[:] = means[index(np.clip(places, -FARTHEST, FARTHEST))]

    @cached_property
    def _means_and_index(self) -> tuple[Array, NearestIndex]:
        present = self._table.counts >= self._least
        if not present.any():
            raise ValueError(f'no bucket holds {self._least} rows or more; lower `min_count`, or pass fallback="mean".')
        layout, sums = self._table.layout, self._table.sums[present]
        total = sums[:, layout.n_local]
        over = 1.0 / np.where(total > 0, total, 1.0)[:, None]
        start = layout.n_sums - 2 * layout.n_target_sums  # of the constant feature times targets
        means = sums[:, start : start + layout.n_targets] * over * layout.unit
        return means, nearest_index(mean_positions(sums, layout.n_local))


def mean_positions(sums: Array, p: int) -> Array:
    """Mean local coordinates (B, p) of the rows of buckets, from their sums."""
    total = sums[:, p]
    positions: Array = sums[:, :p] / np.where(total > 0, total, 1.0)[:, None]
    return positions


def nearest_index(points: Array, most_products: int = MOST_PRODUCTS) -> NearestIndex:
    """A function that gives the place (m,) of the nearest of points (N, p) to each row of Z.

    By a kd-tree, or in high dimension by products with all points, which a kd-tree of that many coordinates nearly
    all compares too, one by one; about ``most_products`` at a time.
    """
    if points.shape[1] <= HIGH_DIMENSION:
        tree = cKDTree(points)
        return lambda Z: np.asarray(tree.query(Z)[1], dtype=np.int64)
    centre = points.mean(axis=0)  # far from it, differences of squares would lose the distances
    points = points - centre
    squares, step = (points**2).sum(axis=1), 1 + most_products // len(points)

    def nearest(Z: Array) -> NDArray[np.int64]:
        found = np.empty(len(Z), dtype=np.int64)
        for start in range(0, len(Z), step):
            rows = slice(start, start + step)
            found[rows] = (squares - 2 * (Z[rows] - centre) @ points.T).argmin(axis=1)
        return found

    return nearest

"""What answers for a row whose own buckets are all empty: coarse tables, or the nearest bucket by its mean position."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sparsact.kernels import hashing
from sparsact.kernels.hashing import STEP, Hashes
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.layout import MAX_LOCAL, Array, Layout

HIGH_DIMENSION = 16  # beyond it a kd-tree looks at most of its points
FARTHEST = 1e100  # local coordinates beyond it are as far as any: squares of distances stay floats
NearestIndex = Callable[[Array], NDArray[np.int64]]


class NearestBuckets:
    """Mean positions (B, p) of the rows of some buckets of a table, in an index, and their mean targets."""

    def __init__(self, table: BucketTable, present: NDArray[np.bool_]) -> None:
        layout, sums = table.layout, table.sums[present]
        self._hashes, p = layout.hashes, layout.n_local
        total = sums[:, p]
        over = 1.0 / np.where(total > 0, total, 1.0)[:, None]
        start = layout.n_sums - (layout.n_features + 1) * layout.n_targets  # of the constant feature times targets
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


REACH = 16.0  # deviations along the leading direction: a cell of this width holds nearly all rows
MOST_LEVELS = 10
RATIO = 2.0  # between the widths of two levels, at least


def backup_layout(layout: Layout) -> Layout:
    """Grids of 2, 4, 8, ... times the width of a layout's first one, with a constant in each cell.

    They stand in its leading local coordinates, and are a function of the layout: tables of one
    layout have one backup.
    """
    hashes = layout.hashes
    p = min(layout.n_local, MAX_LOCAL)
    if hashes.grid:
        first, offsets = hashes.directions[:, : layout.n_hashes], hashes.offsets[: layout.n_hashes]
        width = 1.0 / max(float(np.hypot.reduce(first[:, 0])), 1e-300)
        n_levels = int(np.clip(ceil(log2(REACH) - log2(width)), 1, MOST_LEVELS))
    else:
        first, offsets, width, n_levels = np.eye(p), np.full(p, 0.5), 1.0, MOST_LEVELS
    ratio = max(RATIO, (REACH / width) ** (1.0 / n_levels))
    scales = ratio ** -np.arange(1.0, n_levels + 1)
    coarse = Hashes(
        hashes.centre,
        np.ascontiguousarray(hashes.local[:, : first.shape[0]]),
        np.ascontiguousarray(np.concatenate([first * scale for scale in scales], axis=1)),
        np.tile(offsets, n_levels),
        hashes.seeds[0] + STEP * np.arange(1, n_levels + 1, dtype=np.uint64),
        True,
        False,
    )
    return Layout(coarse, 0, layout.trend, layout.level, layout.unit)

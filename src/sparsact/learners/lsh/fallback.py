"""What an input gets whose buckets are all empty."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sparsact.learners.lsh.layout import Array

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

    Both compare all points, in float32, as a kd-tree of so many coordinates nearly does, but with vector instructions.
    """
    if points.shape[1] > HIGH_DIMENSION:
        for module, kind in (("faiss", _Faiss), ("usearch", _Usearch)):
            if find_spec(module) is not None:
                return kind(points)
    return _Tree(points)

"""Values of an ensemble of regression trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch

Array = NDArray[np.float64]
Ids = NDArray[np.int32]


def add_tree_values(
    X: Array,
    columns: Ids,
    thresholds: Array,
    left: Ids,
    right: Ids,
    leaves: Array,
    roots: Ids,
    targets: Ids,
    values: Array,
    *,
    n_threads: int = 1,
) -> None:
    """Add the leaf of each tree at rows X (m, d) to ``values`` (m, n_targets), tree by tree.

    A row goes left where ``x[columns[i]] <= thresholds[i]``. Children and roots are nodes or, below 0, ``-1 - leaf``;
    tree t adds to the target ``targets[t]``. The caller answers for places that exist and paths that end.
    """
    dispatch.chosen.tree_values(X, columns, thresholds, left, right, leaves, roots, targets, values, n_threads)


@dispatch.kernel
def _tree_values(X: Array, *nodes: Any) -> None:
    columns, thresholds, left, right, leaves, roots, targets, values, _ = nodes
    rows = np.arange(len(X))
    for root, target in zip(roots, targets, strict=True):
        at = np.full(len(X), root)
        inside = rows[at >= 0]
        while len(inside):
            node = at[inside]
            below = X[inside, columns[node]] <= thresholds[node]
            at[inside] = np.where(below, left[node], right[node])
            inside = inside[at[inside] >= 0]
        values[:, target] += leaves[-1 - at]

"""Sums of regression trees, kept and evaluated as plain arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.tree_values import add_tree_values
from sparsact.learners.lsh.layout import Array
from sparsact.saving.schema import ArrayField, Arrays, read_arrays

_ARRAYS: Final = {
    "columns": ArrayField("n", np.int32, nonnegative=True),
    "thresholds": ArrayField("n", finite=True),
    "left": ArrayField("n", np.int32),
    "right": ArrayField("n", np.int32),
    "leaves": ArrayField("l", finite=True),
    "roots": ArrayField("t", np.int32),
    "targets": ArrayField("t", np.int32, nonnegative=True),
    "base": ArrayField("T", finite=True),
}


class TreeNodes(NamedTuple):
    """One tree, numbered by itself: node 0 is the root; a child below 0 is ``-1 - leaf``."""

    columns: NDArray[Any]
    thresholds: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    leaves: NDArray[Any]

    @classmethod
    def of(cls, *nodes: NDArray[Any]) -> TreeNodes:
        """A tree of scikit-learn's arrays, in which leaves are nodes: is it a leaf, then the fields of this class."""
        leaf, columns, thresholds, *children, values = nodes
        leaf = leaf.astype(bool)
        place = np.where(leaf, -np.cumsum(leaf), np.cumsum(~leaf) - 1)
        left, right = (place[child[~leaf].astype(np.int64)] for child in children)
        return cls(columns[~leaf].astype(np.int64), thresholds[~leaf], left, right, values[leaf])


@dataclass(frozen=True)
class TreeEnsemble:
    """A sum of regression trees, for each target, in arrays.

    Attributes
    ----------
    columns, thresholds, left, right : (n,)
        A row goes to the left child of node i where ``x[columns[i]] <= thresholds[i]``. Children come after their
        node; below 0, a child is ``-1 - leaf``.
    leaves : (l,)
        Values of the leaves, in the units of y.
    roots, targets : (n_trees,)
        First node of each tree, or ``-1 - leaf``, and the target that it adds to.
    base : (n_targets,)
        What the trees are added to.
    """

    columns: NDArray[np.int32]
    thresholds: Array
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaves: Array
    roots: NDArray[np.int32]
    targets: NDArray[np.int32]
    base: Array

    def values(self, X: Array, n_threads: int = 1) -> Array:
        """Values (m, targets) at rows (m, d)."""
        values = np.tile(self.base, (len(X), 1))
        nodes = (self.columns, self.thresholds, self.left, self.right, self.leaves, self.roots, self.targets)
        add_tree_values(X, *nodes, values, n_threads=n_threads)
        return values

    def leaf_targets(self) -> NDArray[np.int32]:
        """The target (l,) that each leaf adds to."""
        found = np.zeros(len(self.leaves), dtype=np.int32)
        places, targets = self.roots, self.targets
        while len(places):
            found[-1 - places[places < 0]] = targets[places < 0]
            inner, targets = places[places >= 0], np.tile(targets[places >= 0], 2)
            places = np.concatenate([self.left[inner], self.right[inner]])
        return found

    def arrays(self) -> Arrays:
        """Every part as an array, for files."""
        return dict(vars(self))

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_columns: int, n_targets: int) -> TreeEnsemble:
        """The ensemble that :meth:`arrays` took apart; a ValueError if a path leads out of it or never ends."""
        read = read_arrays(_ARRAYS, arrays, T=n_targets)
        n, leaves = len(read["columns"]), len(read["leaves"])
        children = np.concatenate([read["left"], read["right"]])
        inside = ((children < n) & (children >= -leaves)).all()
        inside &= ((read["roots"] < n) & (read["roots"] >= -leaves)).all()
        onward = ((children < 0) | (children > np.tile(np.arange(n), 2))).all()
        known = (read["columns"] < n_columns).all() and (read["targets"] < n_targets).all()
        if not (inside and onward and known):
            raise ValueError("the nodes of the trees do not fit together")
        return cls(**read)

    @classmethod
    def joined(cls, by_target: Sequence[tuple[float, Iterable[TreeNodes]]]) -> TreeEnsemble:
        """The base value and trees of each target as one ensemble."""
        nodes: list[list[NDArray[Any]]] = [[] for _ in TreeNodes._fields]
        roots, targets, n_nodes, n_leaves = [], [], 0, 0
        for target, (_, trees) in enumerate(by_target):
            for tree in trees:
                shifted = (np.where(c < 0, c - n_leaves, c + n_nodes) for c in (tree.left, tree.right))
                for part, values in zip(nodes, (tree.columns, tree.thresholds, *shifted, tree.leaves), strict=True):
                    part.append(values)
                roots.append(n_nodes if len(tree.columns) else -1 - n_leaves)
                targets.append(target)
                n_nodes, n_leaves = n_nodes + len(tree.columns), n_leaves + len(tree.leaves)
        types = (np.int32, np.float64, np.int32, np.int32, np.float64)
        arrays = (np.concatenate([np.zeros(0), *part]).astype(dtype) for part, dtype in zip(nodes, types, strict=True))
        base = np.array([base for base, _ in by_target], dtype=np.float64)
        columns, thresholds, left, right, leaves = arrays
        ends = np.array(roots, dtype=np.int32), np.array(targets, dtype=np.int32)
        return cls(columns, thresholds, left, right, leaves, *ends, base)

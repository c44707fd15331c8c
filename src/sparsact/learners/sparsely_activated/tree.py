"""Trees that split columns of two values, with an affine function or a ReLU at each leaf.

The leaves are disjoint regions, so such a tree is a 1-sparse network; :mod:`.gates` writes it as one. The column to
split on shows at once in planted networks: where column i is a gate, the residuals of the affine fit correlate with
products :math:`x_i x_j`. So each column is scored by these correlations, and the best few are fitted on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.sparsely_activated.leaf_models import (
    EXACT,
    Array,
    Piece,
    TrainingSample,
    affine_piece,
    best_piece,
    risk,
)

FITTED_COLUMNS = 4  # this many of the best scored columns are fitted on both sides


@dataclass(eq=False)
class Node:
    """A region: the rows in it, the literals (column, sign) that define it, and the function fitted there.

    ``split`` and ``children`` (first the side of sign 1) are those of a node that is no leaf.
    """

    rows: NDArray[np.intp]
    gates: tuple[tuple[int, int], ...]
    affine: Piece
    piece: Piece
    split: int | None = None
    children: list[Node] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        """The node and all below, parents first."""
        return [self, *(node for child in self.children for node in child.nodes())]

    def leaves(self) -> list[Node]:
        """The leaves below, or the node itself."""
        return [node for node in self.nodes() if not node.children]

    def values(self, sample: TrainingSample) -> Array:
        """Values of the tree at the rows of the sample, (m,)."""
        values = np.zeros(len(sample))
        for leaf in self.leaves():
            values[leaf.rows] = leaf.piece(sample.design[leaf.rows])
        return values


def grow(sample: TrainingSample, n_leaves: int, first: int | None = None, *, bent: bool = False) -> Node:
    """The tree that splits, leaf after leaf, where the squared error falls most.

    Parameters
    ----------
    sample : TrainingSample
        The rows.
    n_leaves : int
        The most leaves.
    first : int, optional
        Column of the first split, in place of the best one: of a parity no single split shows anything.
    bent : bool, default=False
        Compare splits by the functions that the sides would hold, affine or ReLU, not by affine ones. Behind like
        ReLUs that is needed to see a gate; on few rows ReLUs fit too much to compare.

    Notes
    -----
    ``m n**2`` multiplications a level of the tree for the scores, as much for each column fitted.
    """
    enough = sample.negligible(EXACT)
    root = _node(sample, np.arange(len(sample)), ())
    waiting: list[tuple[float, int, Node, _Split]] = []
    order = count()  # settles ties by age

    def wait(node: Node, column: int | None = None) -> None:
        if node.piece.squared_error > enough:
            split = _best_split(sample, node, column, bent=bent)
            if split is not None:
                heappush(waiting, (split.squared_error - node.piece.squared_error, next(order), node, split))

    wait(root, first)
    for _ in range(n_leaves - 1):
        if not waiting:
            break
        _, _, node, split = heappop(waiting)
        node.split, node.children = split.column, split.children
        for child in node.children:
            wait(child)
    return root


@dataclass(frozen=True, eq=False)
class _Split:
    """The two sides of a column."""

    column: int
    children: list[Node]

    @property
    def squared_error(self) -> float:
        return sum(child.piece.squared_error for child in self.children)

    def risk(self, total: float, enough: float, *, bent: bool) -> float:
        """What the split promises for new rows, given the weight of the node; see :func:`grow` for ``bent``."""
        if not bent:
            return sum(child.affine.squared_error for child in self.children)
        return risk(max(self.squared_error, enough), sum(child.piece.parameters for child in self.children), total)


def _node(
    sample: TrainingSample, rows: NDArray[np.intp], gates: tuple[tuple[int, int], ...], *, bent: bool = True
) -> Node:
    """A region with its affine function and, if ``bent``, its best."""
    affine = affine_piece(sample, rows)
    return Node(rows, gates, affine, best_piece(sample, rows, affine) if bent else affine)


def _best_split(sample: TrainingSample, node: Node, column: int | None, *, bent: bool) -> _Split | None:
    """The split of least risk among the best scored columns, or at ``column``, if it can be made."""
    design = sample.design[node.rows]
    varying = sample.splittable & (design[:, :-1] != design[0, :-1]).any(axis=0)
    if column is not None:
        varying &= np.arange(sample.n) == column
    columns = np.flatnonzero(varying)
    if not len(columns):
        return None
    residuals = sample.targets[node.rows] - node.affine(design)
    scores = _scores(design, sample.weights[node.rows], residuals, columns)
    splits = [_split(sample, node, int(i), bent=bent) for i in columns[_ascending(-scores)[:FITTED_COLUMNS]]]
    total, enough = float(sample.weights[node.rows].sum()), sample.negligible(EXACT)
    best = splits[int(_ascending(np.array([split.risk(total, enough, bent=bent) for split in splits]))[0])]
    if not bent:  # ReLUs are dear, and only now are they needed
        for child in best.children:
            child.piece = best_piece(sample, child.rows, child.affine)
    return best


def _split(sample: TrainingSample, node: Node, column: int, *, bent: bool) -> _Split:
    above = sample.design[node.rows, column] > 0
    sides = ((node.rows[above], 1), (node.rows[~above], -1))
    return _Split(column, [_node(sample, rows, (*node.gates, (column, sign)), bent=bent) for rows, sign in sides])


def _ascending(values: Array) -> NDArray[np.intp]:
    """Places by value; those that differ by rounding alone stay in order, so that it does not matter how rows lie."""
    return np.argsort(np.round(values / max(np.abs(values).max(), np.finfo(float).tiny), 9), kind="stable")


def _scores(design: Array, weights: Array, residuals: Array, columns: NDArray[np.intp]) -> Array:
    r""":math:`\sum_j \langle r, x_i x_j \rangle^2 / |x_j|^2` of each column i: its gain, if products are orthogonal."""
    weighted = weights[:, None] * design
    correlations = design[:, columns].T @ (residuals[:, None] * weighted)
    sizes = np.einsum("mj,mj->j", weighted, design)
    return np.asarray(np.divide(correlations**2, sizes, where=sizes > 0, out=np.zeros_like(correlations)).sum(axis=1))

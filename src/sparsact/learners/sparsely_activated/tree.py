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

from sparsact.learners.sparsely_activated.pieces import (
    EIGENVALUE_FLOOR,
    Piece,
    affine_piece,
    best_piece,
)
from sparsact.learners.sparsely_activated.sample import Array, Sample

FITTED_COLUMNS = 5  # so many of the best scored columns are fitted on both sides
EXACT = 1e-12  # of the variation of the targets: what remains is rounding


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

    def values(self, sample: Sample) -> Array:
        """Values of the tree at the rows of the sample, (m,)."""
        values = np.zeros(len(sample))
        for leaf in self.leaves():
            values[leaf.rows] = leaf.piece(sample.design[leaf.rows])
        return values


def grow(sample: Sample, n_leaves: int, first: int | None = None) -> Node:
    """The tree that splits, leaf after leaf, where the squared error falls most.

    Parameters
    ----------
    sample : Sample
        The rows.
    n_leaves : int
        The most leaves.
    first : int, optional
        Column of the first split, in place of the best one: of a parity no single split shows anything.

    Notes
    -----
    ``m n**2`` multiplications a level of the tree for the scores, as much for each column fitted.
    """
    enough = sample.negligible(EXACT)
    root = _node(sample, np.arange(len(sample)), ())
    waiting: list[tuple[float, int, Node, int]] = []
    order = count()  # settles ties by age

    def wait(node: Node, column: int | None = None) -> None:
        if node.piece.squared_error > enough:
            error, best = _best_split(sample, node, column)
            if best is not None:
                heappush(waiting, (error - node.piece.squared_error, next(order), node, best))

    wait(root, first)
    for _ in range(n_leaves - 1):
        if not waiting:
            break
        _, _, node, column = heappop(waiting)
        node.split, above = column, sample.design[node.rows, column] > 0
        for side, sign in ((above, 1), (~above, -1)):
            node.children.append(_node(sample, node.rows[side], (*node.gates, (column, sign))))
            wait(node.children[-1])
    return root


def _node(sample: Sample, rows: NDArray[np.intp], gates: tuple[tuple[int, int], ...]) -> Node:
    affine = affine_piece(sample, rows)
    return Node(rows, gates, affine, best_piece(sample, rows, affine))


def _best_split(sample: Sample, node: Node, column: int | None) -> tuple[float, int | None]:
    """Squared error of affine functions on both sides of the best column, and that column if there is one."""
    design, weights = sample.design[node.rows], sample.weights[node.rows]
    splits = sample.splittable & (design[:, :-1] != design[0, :-1]).any(axis=0)
    if column is not None:
        splits &= np.arange(sample.n) == column
    columns = np.flatnonzero(splits)
    if not len(columns):
        return np.inf, None
    scores = _scores(design, weights, sample.targets[node.rows] - node.affine(design), columns)
    # Scores that differ by rounding alone are taken in the order of the columns.
    rank = np.argsort(-np.round(scores / max(scores.max(), np.finfo(float).tiny), 9), kind="stable")
    columns = columns[rank[:FITTED_COLUMNS]]
    errors = _errors_of_splits(design, weights, sample.targets[node.rows], columns)
    best = int(np.argmin(np.round(errors / max(errors.max(), np.finfo(float).tiny), 9)))
    return float(errors[best]), int(columns[best])


def _scores(design: Array, weights: Array, residuals: Array, columns: NDArray[np.intp]) -> Array:
    r""":math:`\sum_j \langle r, x_i x_j \rangle^2 / |x_j|^2` of each column i: its gain, if products are orthogonal."""
    weighted = weights[:, None] * design
    correlations = design[:, columns].T @ (residuals[:, None] * weighted)
    sizes = np.einsum("mj,mj->j", weighted, design)
    return np.asarray(np.divide(correlations**2, sizes, where=sizes > 0, out=np.zeros_like(correlations)).sum(axis=1))


def _errors_of_splits(design: Array, weights: Array, targets: Array, columns: NDArray[np.intp]) -> Array:
    """Squared error of affine functions fitted on both sides of each column."""
    rows = np.column_stack([design, targets])
    weighted = weights[:, None] * rows
    whole = rows.T @ weighted
    errors = np.empty(len(columns))
    for place, column in enumerate(columns):
        above = rows[:, column] > 0
        one_side = rows[above].T @ weighted[above]
        errors[place] = _remaining(one_side) + _remaining(whole - one_side)
    return errors


def _remaining(gram: Array) -> float:
    """Squared error of least squares, from the inner products of the columns and, last, the targets."""
    values, vectors = np.linalg.eigh(gram[:-1, :-1])
    kept = values > EIGENVALUE_FLOOR * values[-1]
    explained = (gram[-1, :-1] @ vectors[:, kept]) ** 2 / values[kept]
    return max(float(gram[-1, -1] - explained.sum()), 0.0)

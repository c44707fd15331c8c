r"""Pruning a tree, weakest link first, to the size that generalised cross-validation prefers.

.. math:: \mathrm{GCV} = \frac{\text{squared error}}{(1 - p / m)^2}

with p parameters, of which each split counts three beside those of its leaves, and m rows. The tree keeps, of all its
pruned forms within the units allowed, the one of least score.

References
----------
.. [1] L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and Regression Trees", 1984, Section 3.3.
.. [2] J. Friedman, "Multivariate adaptive regression splines", Ann. Statist. 19, 1991, Section 3.6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsact.learners.sparsely_activated.pieces import Piece, constant_piece
from sparsact.learners.sparsely_activated.sample import EXACT, TrainingSample
from sparsact.learners.sparsely_activated.tree import Node

PER_SPLIT = 3


@dataclass
class PruningTotals:
    """What a subtree leaves and takes."""

    squared_error: float
    parameters: float
    n_units: int

    @classmethod
    def of(cls, piece: Piece) -> PruningTotals:
        """Of a leaf."""
        return cls(piece.squared_error, piece.parameters, piece.n_units)

    def add(self, other: PruningTotals, sign: int = 1) -> None:
        """Add (or take away) the leaves of another."""
        self.squared_error += sign * other.squared_error
        self.parameters += sign * other.parameters
        self.n_units += sign * other.n_units


def score(sample: TrainingSample, squared_error: float, parameters: float, floor: float = EXACT) -> float:
    """Generalised cross-validation; infinite when no freedom is left.

    Errors below ``floor`` times the variation of the targets count alike: then the fewer parameters decide.
    """
    freedom = 1 - parameters / sample.total
    return max(squared_error, sample.negligible(floor)) / freedom**2 if freedom > 0 else np.inf


def prune(sample: TrainingSample, root: Node, n_units: int, beside: float = 0.0) -> float:
    """Cut the tree back to its best size, in place, and give that size's score.

    Parameters
    ----------
    sample : TrainingSample
        The rows that it was grown on.
    root : Node
        The tree.
    n_units : int
        The most units that it may take; where even a constant takes more, the tree is left a constant.
    beside : float
        Parameters of other parts of the model.
    """
    totals, above = _totals(root)
    links = {node: _simpler(sample, node) for node in root.nodes() if node.children or node.piece.parameters > 1}
    cuts: list[tuple[Node, Piece]] = []
    kept, best = 0, np.inf
    while True:
        whole = totals[root]
        value = score(sample, whole.squared_error, whole.parameters + beside)
        if whole.n_units <= n_units and value <= best:
            kept, best = len(cuts), value
        if not links:
            break
        node = min(links, key=lambda node: _rate(totals[node], links[node]))
        piece = links.pop(node)
        cuts.append((node, piece))
        for lower in node.nodes()[1:]:
            links.pop(lower, None)
        if piece.parameters > 1:
            links[node] = constant_piece(sample, node.rows)
        change = PruningTotals.of(piece)
        change.add(totals[node], -1)
        for ancestor in above[node]:
            totals[ancestor].add(change)
    for node, piece in cuts if np.isinf(best) else cuts[:kept]:
        node.children, node.split, node.piece = [], None, piece
    return best


def _simpler(sample: TrainingSample, node: Node) -> Piece:
    """What may stand in place of a node: its own piece for a subtree, a constant for a leaf."""
    return node.piece if node.children else constant_piece(sample, node.rows)


def _rate(subtree: PruningTotals, piece: Piece) -> float:
    """Squared error gained for each parameter lost."""
    lost = subtree.parameters - piece.parameters
    return (piece.squared_error - subtree.squared_error) / lost if lost > 0 else np.inf


def _totals(root: Node) -> tuple[dict[Node, PruningTotals], dict[Node, list[Node]]]:
    """Totals of every subtree, and the node itself and its ancestors, of each node."""
    above: dict[Node, list[Node]] = {root: [root]}
    for node in root.nodes():
        above |= {child: [child, *above[node]] for child in node.children}
    totals = {node: PruningTotals(0.0, PER_SPLIT * (len(node.leaves()) - 1), 0) for node in root.nodes()}
    for leaf in root.leaves():
        for node in above[leaf]:
            totals[node].add(PruningTotals.of(leaf.piece))
    return totals, above


def n_parameters(tree: Node) -> float:
    """Parameters of a tree as its score counts them."""
    leaves = tree.leaves()
    return sum(leaf.piece.parameters for leaf in leaves) + PER_SPLIT * (len(leaves) - 1)

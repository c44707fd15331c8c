r"""Pruning a tree to the size that generalised cross-validation prefers, and thresholding its weights.

.. math:: \mathrm{GCV} = \frac{\text{squared error}}{(1 - p / m)^2}

with p parameters, of which each split counts three in addition to those of its leaves, and m rows. The tree keeps, of
all its pruned forms within the units allowed, the one of least score.

A coefficient stays if its square exceeds :math:`2 \ln(n + 1)` times its variance, the universal threshold of [3]_: of n
columns that do not matter, one at most passes in the mean. The noise is what the whole tree leaves unexplained, so
without noise only rounding errors go. If what went explained more, taken together, than as many columns of noise would,
nothing is trimmed at that leaf: small coefficients may matter in numbers.

References
----------
.. [1] L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and Regression Trees", 1984, Section 3.3.
.. [2] J. Friedman, "Multivariate adaptive regression splines", Ann. Statist. 19, 1991, Section 3.6.
.. [3] D. Donoho, I. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81, 1994.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsact.learners.sparsely_activated.leaf_models import (
    EXACT,
    Array,
    Piece,
    TrainingSample,
    affine_piece_of,
    constant_piece,
    relu_pieces,
)
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


def prune(sample: TrainingSample, root: Node, n_units: int, n_others: float = 0.0) -> float:
    """Cut the tree back to its best size, in place, and give that size's score.

    Parameters
    ----------
    sample : TrainingSample
        The rows that it was grown on.
    root : Node
        The tree.
    n_units : int
        The most units that it may take; where even a constant takes more, the tree is left a constant.
    n_others : float
        Parameters of other parts of the model.
    """
    totals, above = _totals(root)
    links = {node: _simpler(sample, node) for node in root.nodes() if node.children or node.piece.parameters > 1}
    cuts: list[tuple[Node, Piece]] = []
    kept, best = 0, np.inf
    while True:
        whole = totals[root]
        value = score(sample, whole.squared_error, whole.parameters + n_others)
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


DEVIATIONS = 2.0  # standard deviations of chi squared by which the dropped coefficients may exceed noise
ROUNDING = 1e-26  # least variance of a residual of size 1, so that exact fits are rid of rounding errors


def trim(sample: TrainingSample, root: Node, n_others: float = 0.0) -> None:
    """Trim the leaves of a tree, in place; ``n_others`` counts parameters of other parts of the model."""
    leaves = root.leaves()
    freedom = sample.total - n_parameters(root) - n_others
    if freedom > 0:
        noise = max(sum(leaf.piece.squared_error for leaf in leaves) / freedom, ROUNDING)
        for leaf in leaves:
            leaf.piece = _trimmed(sample, leaf, noise)


def _trimmed(sample: TrainingSample, leaf: Node, noise: float) -> Piece:
    """The piece of a leaf fitted again on the columns whose coefficients stand out, or itself."""
    piece, rows = leaf.piece, leaf.rows
    design, targets, weights = sample.design[rows], sample.targets[rows], sample.weights[rows]
    on = np.ones(len(rows), dtype=bool) if piece.kind == "affine" else design @ piece.theta > 0
    if not on.any():
        return piece
    used = np.append((design[on, :-1] != design[on][0, :-1]).any(axis=0), True)
    variances = _variances(design[on][:, used], weights[on])
    if variances is None:
        return piece
    kept = np.zeros(len(used), dtype=bool)
    kept[used] = piece.theta[used] ** 2 > 2 * np.log(len(used)) * noise * variances
    kept[-1] = True
    n_dropped = np.count_nonzero(used & ~kept)
    if not n_dropped:
        return piece
    design = design * kept
    if piece.kind == "affine":
        trimmed = affine_piece_of(design, targets, weights)
    else:
        turns = relu_pieces(design, targets, weights, piece.sign, on)
        trimmed = min(turns, key=lambda each: each.squared_error)
    lost = trimmed.squared_error - piece.squared_error
    likely = lost <= noise * (n_dropped + DEVIATIONS * np.sqrt(2 * n_dropped))
    return trimmed if likely and trimmed.n_units <= piece.n_units else piece


def _variances(design: Array, weights: Array) -> Array | None:
    """Variances of least squares coefficients under noise of variance 1, None if the rows do not determine them."""
    values, vectors = np.linalg.eigh(design.T @ (weights[:, None] * design))
    if weights.sum() <= len(values) + 1 or values[0] <= 1e-9 * values[-1]:
        return None
    return np.asarray((vectors**2 / values).sum(axis=1))

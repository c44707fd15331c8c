r"""Trees that split columns of two values, with an affine function or a ReLU at each leaf, and how they are cut back.

The leaves are disjoint regions, so such a tree is a 1-sparse network; :mod:`.to_network` writes it as one. The column
to split on shows at once in planted networks: where column i is a gate, the residuals of the affine fit correlate with
products :math:`x_i x_j`. So each column is scored by these correlations, and the best few are fitted on both sides.

Of all its pruned forms within the units allowed, the tree keeps the one of least generalised cross-validation,

.. math:: \mathrm{GCV} = \frac{\text{squared error}}{(1 - p / m)^2}

with p parameters and m rows [1]_; each split counts three parameters in addition to its leaves' own [2]_.

A coefficient stays if its square exceeds :math:`2 \ln(n + 1)` times its variance, the universal threshold of [3]_: of n
columns that do not matter, at most one passes on average. The noise is what the whole tree leaves unexplained, so
without noise only rounding errors go. If what went explained more, taken together, than as many columns of noise would,
nothing is trimmed at that leaf, and nothing at any leaf if that holds for all leaves together: small coefficients may
matter in numbers.

References
----------
.. [1] L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and Regression Trees", 1984, Section 3.3.
.. [2] J. Friedman, "Multivariate adaptive regression splines", Ann. Statist. 19, 1991, Section 3.6.
.. [3] D. Donoho, I. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81, 1994.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.sparsely_activated.leaf_models import (
    EXACT,
    Array,
    Piece,
    TrainingSample,
    affine_piece,
    affine_piece_of,
    best_piece,
    constant_piece,
    relu_pieces,
    risk,
)

FITTED_COLUMNS: Final = 4  # this many of the best scored columns are fitted on both sides
PER_SPLIT: Final = 3
DEVIATIONS: Final = 2.0  # standard deviations of chi squared by which the dropped coefficients may exceed noise
ROUNDING: Final = 1e-26  # least variance of a residual of size 1, so that exact fits are rid of rounding errors


@dataclass(eq=False)
class Node:
    """A region: the rows in it, the literals (column, sign) that define it, and the function fitted there.

    ``split`` and ``children`` (first the side of sign 1) are set for inner nodes only.
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

    ``m n**2`` multiplications a level of the tree for the scores, as much for each column fitted.

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
    if not bent:  # ReLUs are costly, and needed only now
        for child in best.children:
            child.piece = best_piece(sample, child.rows, child.affine)
    return best


def _split(sample: TrainingSample, node: Node, column: int, *, bent: bool) -> _Split:
    above = sample.design[node.rows, column] > 0
    sides = ((node.rows[above], 1), (node.rows[~above], -1))
    return _Split(column, [_node(sample, rows, (*node.gates, (column, sign)), bent=bent) for rows, sign in sides])


def _ascending(values: Array) -> NDArray[np.intp]:
    """Order by value; values that differ by rounding alone keep their order, whatever the order of rows."""
    return np.argsort(np.round(values / max(np.abs(values).max(), np.finfo(float).tiny), 9), kind="stable")


def _scores(design: Array, weights: Array, residuals: Array, columns: NDArray[np.intp]) -> Array:
    r""":math:`\sum_j \langle r, x_i x_j \rangle^2 / |x_j|^2` of each column i: its gain, if products are orthogonal."""
    weighted = weights[:, None] * design
    correlations = design[:, columns].T @ (residuals[:, None] * weighted)
    sizes = np.einsum("mj,mj->j", weighted, design)
    return np.asarray(np.divide(correlations**2, sizes, where=sizes > 0, out=np.zeros_like(correlations)).sum(axis=1))


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
    links = {  # what may stand in place of a node: its own piece for a subtree, a constant for a leaf
        node: node.piece if node.children else constant_piece(sample, node.rows)
        for node in root.nodes()
        if node.children or node.piece.parameters > 1
    }
    cuts: list[tuple[Node, Piece]] = []
    kept, best = 0, np.inf
    while True:
        error, parameters, units = totals[root].tolist()
        value = score(sample, error, parameters + n_others)
        if units <= n_units and value <= best:
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
        change = _of_piece(piece) - totals[node]
        for ancestor in above[node]:
            totals[ancestor] += change
    for node, piece in cuts if np.isinf(best) else cuts[:kept]:
        node.children, node.split, node.piece = [], None, piece
    return best


def _rate(subtree: Array, piece: Piece) -> float:
    """Squared error gained for each parameter lost."""
    error, parameters, _ = subtree.tolist()
    lost = parameters - piece.parameters
    return float((piece.squared_error - error) / lost) if lost > 0 else np.inf


def _of_piece(piece: Piece) -> Array:
    return np.array([piece.squared_error, piece.parameters, piece.n_units], dtype=np.float64)


def _totals(root: Node) -> tuple[dict[Node, Array], dict[Node, list[Node]]]:
    """Squared error, parameters and units of every subtree; the node itself and its ancestors, of each node."""
    above: dict[Node, list[Node]] = {root: [root]}
    for node in root.nodes():
        above |= {child: [child, *above[node]] for child in node.children}
    totals = {node: np.array([0.0, PER_SPLIT * (len(node.leaves()) - 1), 0.0]) for node in root.nodes()}
    for leaf in root.leaves():
        for node in above[leaf]:
            totals[node] += _of_piece(leaf.piece)
    return totals, above


def n_parameters(tree: Node) -> float:
    """Parameters of a tree as its score counts them."""
    leaves = tree.leaves()
    return sum(leaf.piece.parameters for leaf in leaves) + PER_SPLIT * (len(leaves) - 1)


def trim(sample: TrainingSample, root: Node, n_others: float = 0.0) -> None:
    """Trim the leaves of a tree, in place; ``n_others`` counts parameters of other parts of the model."""
    leaves = root.leaves()
    freedom = sample.total - n_parameters(root) - n_others
    if freedom <= 0:
        return
    noise = max(sum(leaf.piece.squared_error for leaf in leaves) / freedom, ROUNDING)
    shorter = [(leaf, *_trimmed(sample, leaf, noise)) for leaf in leaves]
    lost = sum(piece.squared_error - leaf.piece.squared_error for leaf, piece, _ in shorter)
    if _likely(lost / noise, sum(n_dropped for _, _, n_dropped in shorter)):
        for leaf, piece, _ in shorter:
            leaf.piece = piece


def _likely(lost: float, n_dropped: int) -> bool:
    """Whether coefficients of noise alone would lose as much, in variances of the noise: its law is chi squared."""
    return lost <= n_dropped + DEVIATIONS * float(np.sqrt(2 * n_dropped))


def _trimmed(sample: TrainingSample, leaf: Node, noise: float) -> tuple[Piece, int]:
    """The piece of a leaf fitted again on the columns whose coefficients stand out, or itself; how many went."""
    piece, rows = leaf.piece, leaf.rows
    design, targets, weights = sample.design[rows], sample.targets[rows], sample.weights[rows]
    on = np.ones(len(rows), dtype=bool) if piece.kind == "affine" else design @ piece.theta > 0
    if not on.any():
        return piece, 0
    used = np.append((design[on, :-1] != design[on][0, :-1]).any(axis=0), True)
    variances = _variances(design[on][:, used], weights[on])
    if variances is None:
        return piece, 0
    kept = np.zeros(len(used), dtype=bool)
    kept[used] = piece.theta[used] ** 2 > 2 * np.log(len(used)) * noise * variances
    kept[-1] = True
    n_dropped = int(np.count_nonzero(used & ~kept))
    if not n_dropped:
        return piece, 0
    design = design * kept
    if piece.kind == "affine":
        trimmed = affine_piece_of(design, targets, weights)
    else:
        turns = relu_pieces(design, targets, weights, piece.sign, on)
        trimmed = min(turns, key=lambda each: each.squared_error)
    likely = _likely((trimmed.squared_error - piece.squared_error) / noise, n_dropped)
    return (trimmed, n_dropped) if likely and trimmed.n_units <= piece.n_units else (piece, 0)


def _variances(design: Array, weights: Array) -> Array | None:
    """Variances of least squares coefficients under noise of variance 1, None if the rows do not determine them."""
    values, vectors = np.linalg.eigh(design.T @ (weights[:, None] * design))
    if weights.sum() <= len(values) + 1 or values[0] <= 1e-9 * values[-1]:
        return None
    return np.asarray((vectors**2 / values).sum(axis=1))

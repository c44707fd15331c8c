"""Sums of trees: k trees, one on top of another, are a k-sparse network.

The trees are grown by turns, each to what the others leave, and from small to large, so that the first does not spend
its leaves on what belongs to another.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsact.learners.sparsely_activated.pruning import PER_SPLIT, prune, score
from sparsact.learners.sparsely_activated.sample import Sample
from sparsact.learners.sparsely_activated.tree import EXACT, Node, grow

SURPLUS = 2  # leaves grown for each that may stay
SMALLEST, LARGER = 4, 2  # leaves of the first round, and the growth from round to round
ROUNDS_AT_FULL_SIZE = 3


def forest(sample: Sample, n_layers: int, n_units: int, first: int | None = None) -> list[Node]:
    """Up to ``n_layers`` trees whose sum fits the targets, of ``n_units // n_layers`` units each.

    Parameters
    ----------
    sample : Sample
        The rows.
    n_layers, n_units : int
        The most trees; units for all of them.
    first : int, optional
        Column of the first split of the first tree, see :func:`.tree.grow`.
    """
    if n_layers == 1:
        tree = grow(sample, SURPLUS * n_units, first)
        prune(sample, tree, n_units)
        return [tree]
    each = n_units // n_layers
    trees: list[Node | None] = [None] * n_layers
    values = np.zeros((n_layers, len(sample)))
    best: tuple[float, list[Node]] = (np.inf, [])
    for n_leaves in _sizes(each):
        for layer in range(n_layers):
            rest = replace(sample, targets=sample.targets - values.sum(axis=0) + values[layer])
            tree = grow(rest, n_leaves, first if layer == 0 else None)
            others = sum(n_parameters(other) for place, other in enumerate(trees) if other and place != layer)
            prune(rest, tree, each, others)
            trees[layer], values[layer] = tree, tree.values(sample)
        grown = [tree for tree in trees if tree is not None]
        error = sample.squared_error(values.sum(axis=0))
        value = score(sample, error, sum(map(n_parameters, grown)))
        if value <= best[0]:
            best = value, grown
        if error <= sample.negligible(EXACT):
            break
    return best[1]


def _sizes(n_units: int) -> list[int]:
    """Leaves of the trees, round after round."""
    sizes = [SMALLEST]
    while sizes[-1] < SURPLUS * n_units:
        sizes.append(min(LARGER * sizes[-1], SURPLUS * n_units))
    return sizes + sizes[-1:] * ROUNDS_AT_FULL_SIZE


def n_parameters(tree: Node) -> float:
    """Parameters of a tree as its score counts them."""
    leaves = tree.leaves()
    return sum(leaf.piece.parameters for leaf in leaves) + PER_SPLIT * (len(leaves) - 1)

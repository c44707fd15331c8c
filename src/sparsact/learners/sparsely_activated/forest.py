"""Sums of trees that fit the targets together: each is grown to what the others leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from sparsact.learners.sparsely_activated.leaf_models import EXACT, Piece, TrainingSample
from sparsact.learners.sparsely_activated.tree import Node, grow, n_parameters, prune, score, trim

SURPLUS: Final = 2  # leaves grown for each that may stay
SMALLEST, LARGER = 4, 2  # leaves of the first round, and the growth from round to round
ROUNDS_AT_FULL_SIZE: Final = 3  # at most, while they gain


def forest(
    sample: TrainingSample, n_layers: int, n_units: int, first: int | None = None, *, bent: bool = False
) -> list[Node]:
    """Trees whose sum fits the targets, of ``n_units // n_layers`` units each.

    Parameters
    ----------
    sample : TrainingSample
        The rows.
    n_layers, n_units : int
        Number of trees; the most units of all of them.
    first, bent
        Column of the first split of the first tree, and how splits are compared: see :func:`.tree.grow`.
    """
    each = n_units // n_layers
    trees, best, least = [_blank(sample)] * n_layers, [_blank(sample)] * n_layers, np.inf
    sizes = _sizes(each) if n_layers > 1 else [SURPLUS * each]
    for n_leaves in sizes:
        trees = list(trees)
        for layer in range(n_layers):
            rest, others = _left_to(layer, trees, sample)
            trees[layer] = grow(rest, n_leaves, None if layer else first, bent=bent)
            prune(rest, trees[layer], each, others)
        error = sample.squared_error(np.sum([tree.values(sample) for tree in trees], axis=0))
        value = score(sample, error, sum(map(n_parameters, trees)))
        settled = n_leaves == sizes[-1] and value >= least
        if value <= least:
            best, least = trees, value
        if settled or error <= sample.negligible(EXACT):
            break
    for layer, tree in enumerate(best):
        rest, others = _left_to(layer, best, sample)
        trim(rest, tree, others)
    return best


def _blank(sample: TrainingSample) -> Node:
    """The tree that is zero, and counts nothing."""
    zero = Piece("affine", 1, np.zeros(sample.n + 1), sample.squared_error(np.zeros(len(sample))), 0, 0)
    return Node(np.arange(len(sample)), (), zero, zero)


def _left_to(layer: int, trees: list[Node], sample: TrainingSample) -> tuple[TrainingSample, float]:
    """What the other trees leave of the targets, and their parameters."""
    others = [tree for place, tree in enumerate(trees) if place != layer]
    values = sum((tree.values(sample) for tree in others), np.zeros(len(sample)))
    return replace(sample, targets=sample.targets - values), sum(map(n_parameters, others))


def _sizes(n_units: int) -> list[int]:
    """Leaves of the trees, round after round."""
    sizes = [SMALLEST]
    while sizes[-1] < SURPLUS * n_units:
        sizes.append(min(LARGER * sizes[-1], SURPLUS * n_units))
    return sizes + sizes[-1:] * ROUNDS_AT_FULL_SIZE

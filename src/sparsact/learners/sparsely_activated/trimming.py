r"""Weights that cannot be told from noise, set to zero: the functions at the leaves of a tree become sparse.

A coefficient stays if its square exceeds :math:`2 \ln(n + 1)` times its variance, the universal threshold of [1]_: of n
columns that do not matter, one at most passes in the mean. The noise is what the whole tree leaves unexplained, so
without noise only rounding errors go. If what went explained more, taken together, than as many columns of noise would,
nothing is trimmed at that leaf: small coefficients may matter in numbers.

References
----------
.. [1] D. Donoho, I. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81, 1994.
"""

from __future__ import annotations

import numpy as np

from sparsact.learners.sparsely_activated.pieces import Piece, affine_piece_of, relu_pieces
from sparsact.learners.sparsely_activated.pruning import n_parameters
from sparsact.learners.sparsely_activated.sample import Array, TrainingSample
from sparsact.learners.sparsely_activated.tree import Node

DEVIATIONS = 2.0  # standard deviations of chi squared by which the dropped coefficients may exceed noise
ROUNDING = 1e-26  # least variance of a residual of size 1, so that exact fits are rid of rounding errors


def trim(sample: TrainingSample, root: Node, beside: float = 0.0) -> None:
    """Trim the leaves of a tree, in place; ``beside`` counts parameters of other parts of the model."""
    leaves = root.leaves()
    freedom = sample.total - n_parameters(root) - beside
    if freedom > 0:
        noise = max(sum(leaf.piece.squared_error for leaf in leaves) / freedom, ROUNDING)
        for leaf in leaves:
            leaf.piece = _trimmed(sample, leaf, noise)


def _trimmed(sample: TrainingSample, leaf: Node, noise: float) -> Piece:
    """The piece of a leaf fitted anew on the columns whose coefficients stand out; itself if the rows do not tell."""
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

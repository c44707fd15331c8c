"""From rows to sums or to a trained top layer: masked features are made a block at a time, or kept if they fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.dsm.layer import SparseLayer
from sparsact.learners.dsm.rmsprop import RMSProp, TopLayer
from sparsact.learners.dsm.seeds import stream
from sparsact.learners.dsm.statistic import RidgeStatistic

Array = NDArray[np.float64]
ADDED_AT_ONCE = 2**22  # values of a block of the closed form: 32 MB; its products of matrices want tall blocks
KEPT = 2**26  # values that training keeps from epoch to epoch: half a gigabyte


def add_rows(statistic: RidgeStatistic, layer: SparseLayer, X: Array, targets: Array, weights: Array) -> None:
    """Add rows (m, d), targets (m, T) and positive weights (m,) to the sums."""
    rows = max(256, ADDED_AT_ONCE // layer.bottom.t)
    for start in range(0, len(X), rows):
        block = slice(start, start + rows)
        statistic.add(layer.features(X[block]), targets[block], weights[block])


def train(
    top: TopLayer,
    layer: SparseLayer,
    sample: tuple[Array, Array, Array],
    optimiser: RMSProp,
    *,
    epochs: int,
    batch_size: int,
    fit_intercept: bool,
    seed: tuple[int, ...],
) -> None:
    """Train for some epochs on rows (m, d), targets (m, T), weights (m,).

    The order of an epoch follows from the seed and the number of epochs before it, so that training goes on after a
    pause as it would have without.
    """
    X, targets, weights = sample
    kept = _all_features(layer, X) if epochs > 1 and len(X) * layer.bottom.t <= KEPT else None
    for _ in range(epochs):
        top.epoch(
            (lambda batch: layer.features(X[batch])) if kept is None else kept.__getitem__,
            targets,
            weights,
            optimiser,
            batch_size=batch_size,
            fit_intercept=fit_intercept,
            rng=stream(seed, "order", len(top.losses)),
        )


def _all_features(layer: SparseLayer, X: Array) -> Array:
    features = np.empty((len(X), layer.bottom.t))
    for block in layer.blocks(len(X)):
        features[block] = layer.features(X[block])
    return features

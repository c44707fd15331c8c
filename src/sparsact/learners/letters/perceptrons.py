"""An ensemble of multilayer perceptrons on letters, trained side by side, each without a fold, on which it stops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.gp.kernel import Array, Codes
from sparsact.learners.gp.search import Adam

Weights = list[NDArray[np.float32]]

UNITS: Final = 128  # of each of two hidden layers
DROPOUT: Final = 0.1
RATE: Final = 2e-3
DECAY: Final = 1e-3  # of weights, at each step, times the rate
MOMENTS: Final = (0.9, 0.999)  # of Adam
FEATURE_SCALE: Final = 0.5  # of features next to indicators of letters
UPDATES: Final = 4_000  # steps, about, in no fewer than 12 epochs and no more than 400
EPOCHS: Final = (12, 400)
PATIENCE: Final = 80  # epochs without a better fold before all stop
AT_ONCE: Final = 4_096  # rows of a prediction


@dataclass(frozen=True, eq=False)
class Perceptrons:
    """Networks of two hidden ReLU layers: weights (k, D, H), (k, H, H), (k, H, 1) and biases (k, 1, .) of k networks.

    They take indicators and features of the letters of every site.
    """

    features: tuple[Array, ...]
    weights: Weights

    def all_values(self, codes: Codes) -> Array:
        """Values (k, m) of each network."""
        pieces = [
            forward(self.weights, inputs(codes[start : start + AT_ONCE], self.features))[-1]
            for start in range(0, len(codes), AT_ONCE)
        ]
        empty = np.empty((len(self.weights[0]), 0), np.float32)
        return np.concatenate([empty, *pieces], axis=1).astype(np.float64)

    def values(self, codes: Codes) -> Array:
        """Means (m,) of the networks' values."""
        return np.asarray(self.all_values(codes).mean(axis=0))


def inputs(codes: Codes, features: Sequence[Array]) -> NDArray[np.float32]:
    """Inputs (m, D) of the networks: an indicator of every letter of each site, and features that differ from them."""
    pieces = []
    for letters, of_site in zip(codes.T, features, strict=True):
        table = np.eye(len(of_site))
        if of_site.shape[1] < len(of_site):
            table = np.column_stack([table, FEATURE_SCALE * of_site])
        pieces.append(table.astype(np.float32)[letters])
    return np.concatenate(pieces, axis=1)


def forward(
    weights: Weights, points: NDArray[np.float32], masks: Sequence[NDArray[np.float32]] = ()
) -> tuple[NDArray[np.float32], ...]:
    """Both hidden layers (k, m, H), after dropout by masks, and the values (k, m)."""
    first, second, last, *biases = weights
    layers = []
    below = points
    for place, (matrix, bias) in enumerate(zip((first, second), biases, strict=False)):
        below = np.matmul(below, matrix)
        below += bias
        np.maximum(below, 0.0, out=below)
        if masks:
            below *= masks[place]
        layers.append(below)
    return (*layers, (np.matmul(below, last) + biases[2])[..., 0])


def gradients(
    weights: Weights,
    points: NDArray[np.float32],
    layers: Sequence[NDArray[np.float32]],
    slopes: NDArray[np.float32],
    masks: Sequence[NDArray[np.float32]],
) -> Weights:
    """Derivatives by all weights and biases, given the derivatives (k, m) by the networks' values."""
    _, second, last, *_ = weights
    below, above = layers
    by_value = slopes[..., None]
    by_above = by_value * last.transpose(0, 2, 1)
    by_above *= (above > 0) * masks[1]
    by_below = np.matmul(by_above, second.transpose(0, 2, 1))
    by_below *= (below > 0) * masks[0]
    products = [
        np.matmul(points.transpose(0, 2, 1), by_below),
        np.matmul(below.transpose(0, 2, 1), by_above),
        np.matmul(above.transpose(0, 2, 1), by_value),
    ]
    return products + [by.sum(axis=1, keepdims=True) for by in (by_below, by_above, by_value)]


def fitted_perceptrons(
    features: Sequence[Array], codes: Codes, z: Array, weights: Array, folds: NDArray[np.intp], rng: np.random.Generator
) -> tuple[tuple[Perceptrons], Array]:
    """Networks of standardized targets, each without a fold, and their values (m,) for its rows.

    The rate falls along a cosine; each network keeps the weights of the epoch that predicts its fold best.
    """
    points, z = inputs(codes, features), z.astype(np.float32)
    shares = (weights / weights.mean()).astype(np.float32)
    k = int(folds.max()) + 1
    others = [np.flatnonzero(folds != fold) for fold in range(k)]
    left_out = [np.flatnonzero(folds == fold) for fold in range(k)]
    current = _start(k, points.shape[1], codes.shape[1], rng)
    current[0] *= np.atleast_1d(points.any(axis=0))[:, None]  # nothing comes from letters that no row has
    best, least, since = [one.copy() for one in current], np.full(k, np.inf), np.zeros(k)
    optimizer = Adam(current, MOMENTS, [DECAY] * 3 + [0.0] * 3)
    size = batch_size(len(z))
    a_pass = max(1, min(map(len, others)) // size)
    n_epochs = int(np.clip(UPDATES // a_pass, *EPOCHS))
    for epoch in range(n_epochs):
        for step, chosen in enumerate(_batches(others, size, rng)):
            rate = RATE * (0.5 + 0.5 * np.cos(np.pi * (epoch + step / a_pass) / n_epochs) + 0.02)
            shape = (k, chosen.shape[1], UNITS)
            masks = [np.float32(1 / (1 - DROPOUT)) * (rng.random(shape, np.float32) >= DROPOUT) for _ in range(2)]
            seen = points[chosen]
            *layers, found = forward(current, seen, masks)
            slopes = 2 * shares[chosen] * (found - z[chosen]) / np.float32(chosen.shape[1])
            optimizer.step(gradients(current, seen, layers, slopes, masks), rate)
        for fold, rows in enumerate(left_out):
            found = forward([one[fold : fold + 1] for one in current], points[rows])[-1][0]
            error = float(np.average((found - z[rows]) ** 2, weights=weights[rows]))
            since[fold] += 1
            if error < least[fold]:
                least[fold], since[fold] = error, 0
                for kept, one in zip(best, current, strict=True):
                    kept[fold] = one[fold]
        if since.min() > PATIENCE:
            break
    networks = Perceptrons(tuple(features), best)
    return (networks,), networks.all_values(codes)[folds, np.arange(len(z))]


def batch_size(n_rows: int) -> int:
    """Rows of a step."""
    return min(64 if n_rows < 3_000 else 128 if n_rows < 10_000 else 256, max(1, n_rows // 2))


def _batches(others: Sequence[NDArray[np.intp]], size: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Rows (k, size) of each network for every step of an epoch."""
    shortest = min(map(len, others))
    orders = np.stack([rng.permutation(rows)[:shortest] for rows in others])
    for start in range(0, max(1, shortest - size + 1), size):
        yield orders[:, start : start + size]


def _start(k: int, n_inputs: int, n_sites: int, rng: np.random.Generator) -> Weights:
    """Normal weights: in the first layer two numbers a site are about 1, the others 0."""
    shapes = (
        (n_inputs, UNITS, 0.5 / np.sqrt(n_sites)),
        (UNITS, UNITS, np.sqrt(2 / UNITS)),
        (UNITS, 1, 0.3 * np.sqrt(2 / UNITS)),
    )
    matrices = [(scale * rng.standard_normal((k, a, b), np.float32)).astype(np.float32) for a, b, scale in shapes]
    return matrices + [np.zeros((k, 1, b), np.float32) for _, b, _ in shapes]

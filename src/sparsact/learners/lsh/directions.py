"""Local coordinates that suit the data: principal directions of the rows, or of the gradients of the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sparsact.learners.lsh.layout import Array

RANK = 1e-10  # of the largest variance: below it, a direction is rounding
NEGLIGIBLE = 0.01  # of the variance: what principal directions may leave out
SHRINKAGE = 1e-3  # of the mean variance, in the linear trend
ANCHORS, ROUNDS = 1500, 2
LEAST_GRADIENT = 1e-3  # of the largest: directions along which the target hardly moves keep this share


@dataclass(frozen=True)
class Moments:
    """Centre, principal directions (d, r) and their variances (r,), r the rank."""

    centre: Array
    components: Array
    variances: Array

    @classmethod
    def of(cls, X: Array, weights: Array) -> Moments:
        """Weighted moments of rows."""
        share = weights / weights.sum()
        centre = share @ X
        scale = max(float(np.abs(X - centre).max(initial=0.0)), 1e-300)
        spread = (X - centre) / scale
        variances, components = np.linalg.eigh((spread * share[:, None]).T @ spread)
        real = variances[::-1] > max(RANK * variances[-1], 1e-300)
        order = np.flatnonzero(real) if real.any() else np.array([0])
        return cls(centre, components[:, ::-1][:, order], np.maximum(variances[::-1][order], 0.0) * scale**2)

    @property
    def scale(self) -> float:
        """Standard deviation along the first principal direction; 1 where the rows are all alike."""
        return float(np.sqrt(self.variances[0])) or 1.0

    def leading(self, p: int) -> Array:
        """The first p principal directions in units of :attr:`scale`, (d, p)."""
        leading: Array = self.components[:, :p] / self.scale
        return leading

    def enough(self, most: int) -> int:
        """Directions that leave at most ``NEGLIGIBLE`` of the variance, at most ``most``."""
        left = 1.0 - np.cumsum(self.variances) / max(float(self.variances.sum()), 1e-300)
        return min(most, len(self.variances), 1 + int(np.count_nonzero(left > NEGLIGIBLE)))


def linear_trend(X: Array, Y: Array, weights: Array, moments: Moments) -> tuple[Array, Array]:
    """Level (targets,) and slopes (d, targets) of a lightly penalised linear fit."""
    share = weights / weights.sum()
    level = share @ Y
    scores = (X - moments.centre) @ moments.components
    penalty = SHRINKAGE * moments.variances.mean() + 1e-300
    slopes = (scores * share[:, None]).T @ (Y - level) / (moments.variances + penalty)[:, None]
    return level, moments.components @ slopes


def gradient_directions(
    X: Array, residual: Array, weights: Array, moments: Moments, p: int, rng: np.random.Generator
) -> Array:
    r"""Directions (d, p) along which the target moves most, each in proportion to how much.

    The leading eigenvectors of :math:`\mathbb{E}[\nabla f\, \nabla f^T]`, times the square roots of their eigenvalues.
    Gradients are slopes of ridge regressions on the nearest rows of some anchors; near is measured first along standard
    columns and then along the directions found [1]_.

    References
    ----------
    .. [1] M. Hristache, A. Juditsky, J. Polzehl, V. Spokoiny, "Structure adaptive approach for dimension reduction",
       Annals of Statistics 29(6), 2001.
    """
    deviation = np.sqrt((weights / weights.sum()) @ (X - moments.centre) ** 2)
    standard = np.where(deviation > np.sqrt(RANK) * deviation.max(), 1.0 / np.where(deviation > 0, deviation, 1.0), 0.0)
    rows = (X - moments.centre) * standard
    d = rows.shape[1]
    metric = np.eye(d)
    anchors = rng.choice(len(rows), min(ANCHORS, len(rows)), replace=False)
    for _ in range(ROUNDS):
        products = _gradient_products(rows, residual, metric, anchors)
        values, vectors = np.linalg.eigh(products)
        top = max(float(values[-1]), 1e-300)
        metric = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0) / top + LEAST_GRADIENT)
    directions: Array = standard[:, None] * metric[:, :p]
    unit = float(np.sqrt((weights / weights.sum()) @ ((X - moments.centre) @ directions[:, 0]) ** 2))
    return directions / (unit if unit > 0 else 1.0)


def _gradient_products(rows: Array, residual: Array, metric: Array, anchors: NDArray[np.int64]) -> Array:
    """Mean outer product (d, d) of local gradients, over anchors and targets."""
    d = rows.shape[1]
    places = rows @ metric
    n_near = min(len(rows), max(4 * d, 40))
    _, near = cKDTree(places).query(places[anchors], n_near)
    total = np.zeros((d, d))
    for neighbours in near.reshape(len(anchors), n_near):
        local = rows[neighbours] - rows[neighbours].mean(axis=0)
        values = residual[neighbours] - residual[neighbours].mean(axis=0)
        slopes = np.linalg.solve(local.T @ local + 0.01 * n_near * np.eye(d), local.T @ values)
        total += slopes @ slopes.T
    return total / len(anchors)

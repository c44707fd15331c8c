"""Local coordinates that suit the data: principal directions of the rows, or of the gradients of the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from sparsact.learners.lsh.layout import Array

RANK = 1e-10  # of the largest variance: below it, a direction is rounding
NEGLIGIBLE = 0.01  # of the variance: what principal directions may leave out
SHRINKAGES = 10.0 ** np.arange(-3, 3)  # of the mean variance, in the linear trend
ANCHORS, ROUNDS = 1500, 2
MAX_COLUMNS = 100  # principal ones, in which gradients are looked for: a slope costs their number cubed
ROUNDING = 1e-12  # of the largest entry of a column: what a constant's deviation may be
SMALLEST = 1e-305  # spread that still counts as one: its inverse must be a float
LEAST_GRADIENT = 1e-3  # of the largest: directions along which the target hardly moves keep this share


@dataclass(frozen=True)
class PrincipalMoments:
    """Centre, principal directions (d, r) and the standard deviations (r,) along them, r the rank.

    Of columns in other units, directions are still those of ``x - centre``: the units are in them.
    """

    centre: Array
    components: Array
    deviations: Array

    @classmethod
    def of(cls, X: Array, weights: Array, units: Array | None = None) -> PrincipalMoments:
        """Weighted moments of rows, with columns multiplied by ``units`` (d,)."""
        share = weights / weights.sum()
        centre = share @ X
        units = np.ones(X.shape[1]) if units is None else units
        spread = (X - centre) * units
        scale = max(float(np.abs(spread).max(initial=0.0)), SMALLEST)
        spread /= scale
        variances, components = np.linalg.eigh((spread * share[:, None]).T @ spread)
        real = variances[::-1] > max(RANK * variances[-1], 1e-300)
        order = np.flatnonzero(real) if real.any() else np.array([0])
        directions = units[:, None] * components[:, ::-1][:, order]
        return cls(centre, directions, np.sqrt(np.maximum(variances[::-1][order], 0.0)) * scale)

    @property
    def scale(self) -> float:
        """Standard deviation along the first principal direction; 1 where the rows are all alike."""
        largest = float(self.deviations[0])
        return largest if largest >= SMALLEST else 1.0

    def leading(self, p: int) -> Array:
        """The first p principal directions in units of :attr:`scale`, (d, p)."""
        leading: Array = self.components[:, :p] / self.scale
        return leading

    def enough(self, most: int) -> int:
        """Directions that leave at most ``NEGLIGIBLE`` of the variance, at most ``most``."""
        variances = (self.deviations / self.scale) ** 2
        left = 1.0 - np.cumsum(variances) / max(float(variances.sum()), 1e-300)
        return min(most, len(variances), 1 + int(np.count_nonzero(left > NEGLIGIBLE)))


def standard_units(X: Array, weights: Array) -> Array:
    """What gives each column (d,) standard deviation 1; 0 for a column that is constant up to rounding."""
    deviations = root_mean_square(X - (weights / weights.sum()) @ X, weights)
    moves = deviations > ROUNDING * np.abs(X).max(axis=0, initial=0.0)
    units: Array = np.where(moves, 1.0 / np.where(moves, deviations, 1.0), 0.0)
    return units


def column_shares(local: Array, units: Array) -> Array:
    """How much each column (d,) takes part in local directions, each in its own standard deviation; they sum to 1."""
    deviations = np.where(units > 0, 1.0 / np.where(units > 0, units, 1.0), 0.0)
    steps = local * deviations[:, None]
    squares = (steps / (np.abs(steps).max() or 1.0)) ** 2
    shares: Array = squares.sum(axis=1) / (squares.sum() or 1.0)
    return shares


def linear_trend(X: Array, Y: Array, weights: Array, moments: PrincipalMoments) -> tuple[Array, Array]:
    """Level (targets,) and slopes (d, targets) of a ridge regression, its penalty by generalised cross-validation.

    The widest penalty is no slope at all: with as many columns as rows, any other line may be noise.
    """
    share = weights / weights.sum()
    level = share @ Y
    largest = np.abs(Y - level).max(axis=0)
    unit = np.where(largest > SMALLEST, largest, 1.0)
    centred = (Y - level) / unit
    units, variances = moments.components / moments.scale, (moments.deviations / moments.scale) ** 2
    products = ((X - moments.centre) @ units * share[:, None]).T @ centred
    n_rows, total = 1.0 / (share @ share), share @ centred**2
    best, slopes = np.full(len(level), np.inf), np.zeros(products.shape)
    for penalty in (np.inf, *(SHRINKAGES * variances.mean() + 1e-300)):
        shrunk = products / (variances + penalty)[:, None]
        left = total - (shrunk * (2 * products - variances[:, None] * shrunk)).sum(axis=0)
        free = 1.0 - (1.0 + (variances / (variances + penalty)).sum()) / n_rows
        score = left / free**2 if free > 0 else np.full(len(level), np.inf)
        better = score < best
        best, slopes = np.where(better, score, best), np.where(better, shrunk, slopes)
    with np.errstate(over="ignore", invalid="ignore"):  # slopes too steep for a float are left to the buckets
        slopes = units @ slopes * unit
    return level, np.where(np.isfinite(slopes).all(axis=0), slopes, 0.0)


def root_mean_square(values: Array, weights: Array) -> Array:
    """Of each column, without overflow; SMALLEST or less counts as 0."""
    largest = np.abs(values).max(axis=0)
    largest = np.where(largest > SMALLEST, largest, np.inf)
    root: Array = np.sqrt((weights / weights.sum()) @ (values / largest) ** 2)
    return root * np.where(np.isfinite(largest), largest, 0.0)


def gradient_directions(
    X: Array, residual: Array, weights: Array, moments: PrincipalMoments, p: int, rng: np.random.Generator
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
    standard = standard_units(X, weights)
    rows = (X - moments.centre) * standard
    variances, basis = np.linalg.eigh(rows.T @ rows)
    basis = basis[:, variances >= RANK * variances[-1]][:, -MAX_COLUMNS:]  # gradients are looked for where rows lie
    rows = rows @ basis
    metric = np.eye(rows.shape[1])
    anchors = rng.choice(len(rows), min(ANCHORS, len(rows)), replace=False)
    for _ in range(ROUNDS):
        products = _gradient_products(rows, residual, metric, anchors)
        values, vectors = np.linalg.eigh(products)
        top = max(float(values[-1]), 1e-300)
        metric = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0) / top + LEAST_GRADIENT)
    directions: Array = standard[:, None] * (basis @ metric[:, :p])
    unit = float(root_mean_square((X - moments.centre) @ directions[:, :1], weights)[0])
    return directions / (unit or 1.0)


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

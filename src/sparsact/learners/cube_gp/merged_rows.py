"""Rows of a table merged into distinct points of the cube, without loss for a Gaussian likelihood."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.gp.cholesky import LOG_2PI
from sparsact.learners.gp.kernel import Array
from sparsact.learners.points import pack
from sparsact.validation.estimators import are_counts

_LEAST_NOISE: Final = 1e-10  # of the function's variance: with less, factors of matrices are not positive


@dataclass(frozen=True, eq=False)
class DistinctRows:
    r"""Distinct points with the means of their targets; a weight counts as that many rows.

    Rows of one point, with weights :math:`w_r` and noise variance :math:`\sigma^2`, say as much about the function as
    their mean with noise variance :math:`\sigma^2 / \sum_r w_r`. Their squared distances from it estimate
    :math:`\sigma^2`, with a certainty that depends on the number of measurements. Whole weights are repeated rows: w
    equal targets are w measurements that agree. Where one is not whole, or their sum is above 1e9, weights are
    precisions: each row is one measurement of variance :math:`\sigma^2 / w_r`.

    Attributes
    ----------
    bits : ndarray of shape (m, n)
        Points, as float64.
    y, weights : ndarray of shape (m,)
        Mean target of each point, and the sum of its weights, all positive.
    scatter : ndarray of shape (m,)
        Weighted squared distances of targets from their mean.
    counts : ndarray of shape (m,)
        Numbers of measurements: the sums of whole weights, else the numbers of rows.
    log_weights : ndarray of shape (m,)
        Sums over these measurements of the logarithms of their weights; zero where weights are numbers of rows.
    """

    bits: Array
    y: Array
    weights: Array
    scatter: Array
    counts: Array
    log_weights: Array

    @classmethod
    def of(cls, bits: Array, y: Array, weights: Array) -> Self:
        """The distinct points of bits (m, n), in the order of their numbers; all weights are positive."""
        distinct, place = distinct_points(bits)
        total = np.bincount(place, weights).astype(np.float64)
        mean = np.bincount(place, weights * y) / total
        scatter = np.bincount(place, weights * (y - mean[place]) ** 2).astype(np.float64)
        nothing = np.zeros(len(weights))
        each, logs = (weights, nothing) if are_counts(weights) else (nothing + 1, np.log(weights))
        counts, log_weights = (np.bincount(place, values).astype(np.float64) for values in (each, logs))
        return cls(distinct, mean, total, scatter, counts, log_weights)

    def __len__(self) -> int:
        return len(self.y)

    def take(self, places: NDArray[np.intp]) -> DistinctRows:
        """Some of the points."""
        return DistinctRows(*(getattr(self, each.name)[places] for each in fields(self)))

    def noise(self, variance: float, of_function: float) -> Array:
        """Noise variances (m,) of the means, from that of a row of weight 1; at least what factors of matrices need."""
        return np.asarray(np.maximum(variance / self.weights, _LEAST_NOISE * of_function))

    def noise_slopes(self, variance: float, of_function: float) -> tuple[Array, Array]:
        """Derivatives (m,) of :meth:`noise` by the variance, and by that of the function."""
        enough = variance / self.weights > _LEAST_NOISE * of_function
        return enough / self.weights, np.where(enough, 0.0, _LEAST_NOISE)

    def repeats_log_likelihood(self, variance: float) -> tuple[float, float]:
        """What repeats add to the log-likelihood of their means, and its derivative by the noise variance."""
        total, scatter = float(self.counts.sum()), float(self.scatter.sum())
        value = 0.5 * (
            float(self.log_weights.sum())
            - total * (LOG_2PI + np.log(variance))
            + float((LOG_2PI + np.log(variance / self.weights)).sum())
            - scatter / variance
        )
        return value, 0.5 * (len(self) - total + scatter / variance) / variance

    @property
    def typical_weight(self) -> float:
        """Geometric mean of the weights of the measurements; 1 where weights are numbers of rows."""
        return float(np.exp(self.log_weights.sum() / self.counts.sum()))

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithms of the weights of the measurements."""
        logs = self.log_weights / self.counts - np.log(self.typical_weight)
        return float(np.sqrt(np.average(logs**2, weights=self.counts)))

    @property
    def shares(self) -> Array:
        """Weights (m,) of the points in sums over them: no measurement weighs more than a typical one.

        Else a few precise rows would stand for the whole table.
        """
        return np.minimum(self.weights, self.counts * self.typical_weight)

    @property
    def mean(self) -> float:
        """Weighted mean of the targets."""
        return float(np.average(self.y, weights=self.weights))

    @property
    def variance(self) -> float:
        """Variance of the targets around their mean, weighted by :attr:`shares`."""
        shares = self.shares
        return float(((self.y - self.mean) ** 2 + self.scatter / self.weights) @ (shares / shares.sum()))

    def standardized(self, mean: float, scale: float) -> DistinctRows:
        """The same with targets ``(y - mean) / scale``."""
        return replace(self, y=(self.y - mean) / scale, scatter=self.scatter / scale**2)


def distinct_points(bits: Array) -> tuple[Array, NDArray[np.intp]]:
    """The distinct ones of points of bits (m, n), in the order of their numbers, and the place of each point."""
    _, first, place = np.unique(pack(bits, "bits").codes()[:, ::-1], axis=0, return_index=True, return_inverse=True)
    return bits[first], place.ravel()  # NumPy 2.0 kept an axis

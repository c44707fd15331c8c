"""Rows of a table merged into distinct points of the cube, without loss for a Gaussian likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.cube_gp.component import Array
from sparsact.learners.cube_gp.kernel import codes_of
from sparsact.learners.points import pack


@dataclass(frozen=True, eq=False)
class DistinctRows:
    r"""Distinct points with the means of their targets; a weight counts as that many rows.

    Rows of one point, of weights :math:`w_r` and noise variance :math:`\sigma^2`, tell of the function what their mean
    of noise variance :math:`\sigma^2 / \sum_r w_r` tells; their squared distances from it tell of :math:`\sigma^2`.

    Attributes
    ----------
    bits : ndarray of shape (m, n)
        Points, as float64.
    y, weights : ndarray of shape (m,)
        Mean target of each point, and the sum of its weights, all positive.
    scatter : ndarray of shape (m,)
        Weighted squared distances of targets from their mean.
    """

    bits: Array
    y: Array
    weights: Array
    scatter: Array

    @classmethod
    def of(cls, bits: Array, y: Array, weights: Array) -> Self:
        """The distinct points of bits (m, n), in the order of their numbers; all weights are positive."""
        distinct, place = distinct_points(bits)
        total = np.bincount(place, weights).astype(np.float64)
        mean = np.bincount(place, weights * y) / total
        scatter = np.bincount(place, weights * (y - mean[place]) ** 2).astype(np.float64)
        return cls(distinct, mean, total, scatter)

    def __len__(self) -> int:
        return len(self.y)

    def take(self, places: NDArray[np.intp]) -> DistinctRows:
        """Some of the points."""
        return DistinctRows(self.bits[places], self.y[places], self.weights[places], self.scatter[places])

    @property
    def mean(self) -> float:
        """Weighted mean of the targets."""
        return float(np.average(self.y, weights=self.weights))

    @property
    def variance(self) -> float:
        """Weighted variance of the targets."""
        between = np.average((self.y - self.mean) ** 2, weights=self.weights)
        return float(between + self.scatter.sum() / self.weights.sum())

    def standardized(self, mean: float, scale: float) -> DistinctRows:
        """The same with targets ``(y - mean) / scale``."""
        return DistinctRows(self.bits, (self.y - mean) / scale, self.weights, self.scatter / scale**2)

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """Numbers of the points in table order, (m,); n up to 20."""
        return codes_of(self.bits)


def distinct_points(bits: Array) -> tuple[Array, NDArray[np.intp]]:
    """The distinct ones of points of bits (m, n), in the order of their numbers, and the place of each point."""
    _, first, place = np.unique(pack(bits, "bits").codes()[:, ::-1], axis=0, return_index=True, return_inverse=True)
    return bits[first], place.ravel()  # NumPy 2.0 kept an axis

r"""Sums of products about weighted means, joined without cancellation.

.. math:: G = \sum_i w_i (\varphi_i - \bar\varphi)(\varphi_i - \bar\varphi)^\top, \qquad
          R = \sum_i w_i (\varphi_i - \bar\varphi)(y_i - \bar y)^\top

Two such sums join by the update of [1]_, with nothing large to cancel, so rows may come in any pieces: the same up to
rounding.

References
----------
.. [1] T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
   1979.
"""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.dispatch import blas_threads

Array = NDArray[np.float64]


class CentredSums:
    """What least squares of T targets on D features needs; methods make new arrays, as shallow copies share the old.

    Attributes
    ----------
    n_rows, weight : int, float
        Rows of non-zero weight, and the sum of their weights.
    feature_mean, target_mean : ndarray of shape (D,), (T,)
        Weighted means.
    gram, rhs, target_squares : ndarray of shape (D, D), (D, T), (T,)
        Centred inner products.
    """

    def __init__(self, n_features: int, n_targets: int) -> None:
        self.n_rows, self.weight = 0, 0.0
        self.feature_mean, self.target_mean = np.zeros(n_features), np.zeros(n_targets)
        self.gram, self.rhs = np.zeros((n_features, n_features)), np.zeros((n_features, n_targets))
        self.target_squares = np.zeros(n_targets)

    def replace(self, features: Array, targets: Array, weights: Array) -> None:
        """Become the sums of rows: features (m, D), which are overwritten, targets (m, T), weights (m,), not all 0."""
        self.n_rows, self.weight = int(np.count_nonzero(weights)), float(weights.sum())
        self.feature_mean, features = about_mean(features, weights, self.weight, out=features)
        self.target_mean, targets = about_mean(targets, weights, self.weight)
        weighted = weights[:, None] * targets
        self.target_squares = np.einsum("mt,mt->t", weighted, targets)
        with blas_threads(features.size * features.shape[1]):
            self.rhs = features.T @ weighted
            features *= np.sqrt(weights)[:, None]
            self.gram = features.T @ features  # one triangle is computed and copied: BLAS syrk

    def join(self, other: CentredSums, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another."""
        weight = self.weight + sign * other.weight
        share = sign * other.weight / weight if weight else 0.0
        features, targets = other.feature_mean - self.feature_mean, other.target_mean - self.target_mean
        between = share * self.weight
        gram = np.outer(features, features)
        gram *= between
        (np.add if sign > 0 else np.subtract)(gram, other.gram, out=gram)
        gram += self.gram
        self.rhs = self.rhs + sign * other.rhs + between * np.outer(features, targets)
        self.target_squares = self.target_squares + sign * other.target_squares + between * targets**2
        self.feature_mean, self.target_mean = self.feature_mean + share * features, self.target_mean + share * targets
        self.gram, self.weight, self.n_rows = gram, weight, self.n_rows + sign * other.n_rows

    def about(self, *, mean: bool) -> Self:
        """The sums about the mean, or about zero; to read from, as it shares arrays."""
        view = copy(self)
        if not mean:
            view.gram = self.gram + self.weight * np.outer(self.feature_mean, self.feature_mean)
            view.rhs = self.rhs + self.weight * np.outer(self.feature_mean, self.target_mean)
            view.target_squares = self.target_squares + self.weight * self.target_mean**2
            view.feature_mean, view.target_mean = np.zeros_like(self.feature_mean), np.zeros_like(self.target_mean)
        return view


def about_mean(values: Array, weights: Array, weight: float, out: Array | None = None) -> tuple[Array, Array]:
    """Weighted means, and the values minus them; twice, as the rounding of the first may exceed what is left."""
    mean = weights @ values / weight
    values = np.subtract(values, mean, out=out)
    rest = weights @ values / weight
    values -= rest
    return mean + rest, values

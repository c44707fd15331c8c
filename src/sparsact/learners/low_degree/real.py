"""Real columns: the same multilinear monomials by plain matrix products, for tables that are not on the cube."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import sizes
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.normal_equations import NormalEquations

_VALUES_AT_ONCE = 1 << 22


class RealStatistic:
    """Centred inner products of monomials of real columns, joined by Chan's formula; additive within rounding.

    Attributes
    ----------
    family : Family
        The monomials, D of them.
    weight, n_rows : float, int
        Total weight; rows of non-zero weight.
    feature_mean, target_mean : ndarray of shape (D,), (T,)
        Weighted means.
    gram, rhs, target_squares : ndarray of shape (D, D), (D, T), (T,)
        Centred inner products.
    """

    def __init__(self, family: Family, n_targets: int) -> None:
        self.family = family
        self.n_targets = n_targets
        self.weight, self.n_rows = 0.0, 0
        self.feature_mean, self.target_mean = np.zeros(len(family)), np.zeros(n_targets)
        self.gram = np.zeros((len(family), len(family)))
        self.rhs = np.zeros((len(family), n_targets))
        self.target_squares = np.zeros(n_targets)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.gram.nbytes + self.rhs.nbytes

    def update(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        """Add rows: X (m, n), targets (m, T), weights (m,) or None for ones; blocks of rows bound the memory."""
        weights = np.ones(len(y)) if weights is None else weights
        step = max(1, _VALUES_AT_ONCE // max(1, len(self.family)))
        for start in range(0, len(y), step):
            rows = slice(start, start + step)
            self._join(self._block(X[rows], y[rows], weights[rows]), 1)

    def forget(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        """Take rows away that were added before, within rounding."""
        if self.n_rows < len(y):
            raise ValueError(f"cannot forget {len(y)} rows of {self.n_rows}; forget only rows that were fitted.")
        gone = RealStatistic(self.family, self.n_targets)
        gone.update(X, y, weights)
        self._join(gone, -1)

    def merge(self, other: RealStatistic, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same family."""
        if len(self.family) != len(other.family):
            self.family.leading(other.family)
            other.family.leading(self.family)
        self._join(other, sign)

    def copy(self) -> RealStatistic:
        """An independent copy."""
        twin = RealStatistic(self.family, self.n_targets)
        twin.merge(self)
        return twin

    def _block(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> RealStatistic:
        block = RealStatistic(self.family, self.n_targets)
        block.n_rows, block.weight = len(y), float(weights.sum())
        features = monomials(X, self.family)
        block.feature_mean, block.target_mean = weights @ features / block.weight, weights @ y / block.weight
        features -= block.feature_mean
        targets = y - block.target_mean
        weighted = weights[:, None] * targets
        block.rhs, block.target_squares = features.T @ weighted, np.einsum("mt,mt->t", weighted, targets)
        features *= np.sqrt(weights)[:, None]
        block.gram = features.T @ features
        return block

    def _join(self, other: RealStatistic, sign: int) -> None:
        weight = self.weight + sign * other.weight
        share = sign * other.weight / weight if weight else 0.0
        features, targets = other.feature_mean - self.feature_mean, other.target_mean - self.target_mean
        between = share * self.weight
        self.gram += sign * other.gram + between * np.outer(features, features)
        self.rhs += sign * other.rhs + between * np.outer(features, targets)
        self.target_squares += sign * other.target_squares + between * targets**2
        self.feature_mean = self.feature_mean + share * features
        self.target_mean = self.target_mean + share * targets
        self.weight, self.n_rows = weight, self.n_rows + sign * other.n_rows

    def normal_equations(self, *, fit_intercept: bool) -> NormalEquations:
        """The equations of the family."""
        if fit_intercept:
            return NormalEquations(
                self.gram,
                self.rhs,
                self.feature_mean,
                self.target_mean,
                self.target_squares,
                self.weight,
                self.n_rows,
            )
        gram = self.gram + self.weight * np.outer(self.feature_mean, self.feature_mean)
        rhs = self.rhs + self.weight * np.outer(self.feature_mean, self.target_mean)
        squares = self.target_squares + self.weight * self.target_mean**2
        no_features, no_targets = np.zeros(len(self.family)), np.zeros(self.n_targets)
        return NormalEquations(gram, rhs, no_features, no_targets, squares, self.weight, self.n_rows)


def monomials(X: NDArray[np.float64], family: Family) -> NDArray[np.float64]:
    """Products of the columns in each subset, (m, D)."""
    return np.concatenate([np.ones((len(X), 0)), *_by_size(X, family)], axis=1)


def _by_size(X: NDArray[np.float64], family: Family) -> Iterator[NDArray[np.float64]]:
    size_of = sizes(family.masks)
    for size in np.unique(size_of):
        members = np.array([family.subsets[i] for i in np.flatnonzero(size_of == size)], dtype=np.intp)
        product = X[:, members[:, 0]]
        for column in members.T[1:]:
            product = product * X[:, column]
        yield product

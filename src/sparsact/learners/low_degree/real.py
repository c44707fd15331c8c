"""Real columns: the same multilinear monomials by plain matrix products, for tables that are not on the cube."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import sizes
from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.exact_sum import LIMB_BITS
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.normal_equations import NormalEquations
from sparsact.learners.low_degree.totals import MOST_PLACE, check_alike

_VALUES_AT_ONCE = 1 << 22
_EPS = float(np.finfo(float).eps)
NO_TARGET = -(1 << 20)
MOST_PRODUCT = 1e100


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
    exponents : ndarray of shape (T,), int64
        Of the largest number among the targets seen, by ``frexp``; ``NO_TARGET`` if all were 0. What depends on targets
        is kept over ``2**(32 * place())``, so that squares neither overflow nor vanish.
    """

    def __init__(self, family: Family, n_targets: int) -> None:
        self.family = family
        self.n_targets = n_targets
        self.weight, self.n_rows = 0.0, 0
        self.feature_mean, self.target_mean = np.zeros(len(family)), np.zeros(n_targets)
        self.gram = np.zeros((len(family), len(family)))
        self.rhs = np.zeros((len(family), n_targets))
        self.target_squares = np.zeros(n_targets)
        self.exponents = np.full(n_targets, NO_TARGET, dtype=np.int64)
        self._read_over = 0  # place of the unit that a view gives targets in

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
        twin._read_over = self._read_over
        twin.merge(self)
        return twin

    def fork(self) -> RealStatistic:
        """A copy that shares arrays with this one; changes make new arrays."""
        return copy(self)

    def place(self) -> int:
        """Place on the grid of limbs of the unit of the targets: near the largest of them.

        Raises
        ------
        ValueError
            If targets differ so much in size that no unit serves all.
        """
        return place_of(self.exponents) - self._read_over

    def mean(self, place: int) -> NDArray[np.float64]:
        """Zeros: what depends on targets is kept about their mean."""
        return np.zeros(self.n_targets)

    def in_unit(self, place: int, origin: NDArray[np.float64]) -> RealStatistic:
        """The same rows with targets over ``2**(32 * place)``; to read from, as it shares the sums."""
        view = copy(self)
        view._read_over = self._read_over + place
        return view

    def _block(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> RealStatistic:
        block = RealStatistic(self.family, self.n_targets)
        block.n_rows, block.weight = len(y), float(weights.sum())
        features = monomials(X, self.family)
        check_products(features, self.family)
        block.exponents = np.frexp(np.abs(y).max(axis=0))[1].astype(np.int64)
        block.exponents[~y.any(axis=0)] = NO_TARGET
        y = np.ldexp(y, -LIMB_BITS * block.place())
        block.feature_mean, features = _about_mean(features, weights, block.weight)
        block.target_mean, targets = _about_mean(y, weights, block.weight)
        weighted = weights[:, None] * targets
        block.rhs, block.target_squares = features.T @ weighted, np.einsum("mt,mt->t", weighted, targets)
        features *= np.sqrt(weights)[:, None]
        with blas_threads(features.size * features.shape[1]):
            block.gram = features.T @ features
        return block

    def _join(self, other: RealStatistic, sign: int) -> None:
        exponents = np.maximum(self.exponents, other.exponents)
        place = place_of(exponents) - self._read_over
        mine, theirs = _over(self, place), _over(other, place)
        weight = self.weight + sign * other.weight
        share = sign * other.weight / weight if weight else 0.0
        features, targets = other.feature_mean - self.feature_mean, theirs.target_mean - mine.target_mean
        between = share * self.weight
        gram = sign * other.gram + between * np.outer(features, features)
        gram += self.gram  # a new array: a fork shares the old one
        rhs = mine.rhs + sign * theirs.rhs + between * np.outer(features, targets)
        squares = mine.target_squares + sign * theirs.target_squares + between * targets**2
        self.feature_mean, self.target_mean = self.feature_mean + share * features, mine.target_mean + share * targets
        self.gram, self.rhs, self.target_squares, self.exponents = gram, rhs, squares, exponents
        self.weight, self.n_rows = weight, self.n_rows + sign * other.n_rows

    def normal_equations(self, *, fit_intercept: bool) -> NormalEquations:
        """The equations of the family."""
        its = _over(self, 0)
        if fit_intercept:
            gram, rhs, squares = self.gram, its.rhs, its.target_squares
            feature_mean, target_mean = self.feature_mean, its.target_mean
        else:
            gram = self.gram + self.weight * np.outer(self.feature_mean, self.feature_mean)
            rhs = its.rhs + self.weight * np.outer(self.feature_mean, its.target_mean)
            squares = its.target_squares + self.weight * its.target_mean**2
            feature_mean, target_mean = np.zeros(len(self.family)), np.zeros(self.n_targets)
        return NormalEquations(
            gram, rhs, feature_mean, target_mean, squares, self.weight, self.n_rows, noise=self._noise(gram)
        )

    def _noise(self, gram: NDArray[np.float64]) -> float:
        """What rounding may have done to eigenvalues of the Gram matrix: a generous multiple of what is expected.

        Sums of m products are off by about ``sqrt(m) * eps`` of their size, and features less their mean by ``eps`` of
        the mean.
        """
        own = (len(self.family) + self.n_rows**0.5) * float(gram.trace())
        of_means = self.weight * float(self.feature_mean @ self.feature_mean)
        return float(8 * _EPS * (own + 2 * np.sqrt(own * of_means)) + self.weight * _EPS**2 * of_means)


class _Targets(NamedTuple):
    """What of a statistic depends on the targets."""

    target_mean: NDArray[np.float64]
    rhs: NDArray[np.float64]
    target_squares: NDArray[np.float64]


def _over(statistic: RealStatistic, place: int) -> _Targets:
    """Means and products of targets over the unit of a place."""
    shift = LIMB_BITS * (statistic.place() - place)
    means, rhs, squares = statistic.target_mean, statistic.rhs, statistic.target_squares
    if not shift:
        return _Targets(means, rhs, squares)
    return _Targets(np.ldexp(means, shift), np.ldexp(rhs, shift), np.ldexp(squares, 2 * shift))


def _about_mean(
    values: NDArray[np.float64], weights: NDArray[np.float64], weight: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted means, and the values less them; twice, as the rounding of the first may exceed what is left."""
    mean = weights @ values / weight
    values = values - mean
    rest = weights @ values / weight
    values -= rest
    return mean + rest, values


def place_of(exponents: NDArray[np.int64]) -> int:
    """Place on the grid of limbs of a unit for targets of these exponents."""
    there = np.flatnonzero(exponents != NO_TARGET)
    if not len(there):
        return 0
    small, large = (int(there[choose(exponents[there])]) for choose in (np.argmin, np.argmax))
    check_alike(int(exponents[large] - exponents[small]), small, large)
    return min(int(exponents[large] + LIMB_BITS // 2) // LIMB_BITS, MOST_PLACE)


def check_products(features: NDArray[np.float64], family: Family) -> None:
    """Refuse rows whose products of columns are so large that sums of their squares overflow."""
    largest = np.abs(features).max(axis=0, initial=0.0)
    if not (largest < MOST_PRODUCT).all():
        column = int(np.argmin(largest < MOST_PRODUCT))
        raise ValueError(
            f"columns {family.subsets[column]} of `X` have a product of {largest[column]:.0e} in some row, and squares "
            f"of products beyond {MOST_PRODUCT:.0e} overflow; scale the columns."
        )


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

"""Real columns: the same multilinear monomials by plain matrix products, for tables that are not on the cube."""

from __future__ import annotations

from copy import copy
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import Subset, sizes
from sparsact.learners.low_degree.exact_statistic import MAX_UNIT, check_alike
from sparsact.learners.low_degree.normal_equations import NormalEquations
from sparsact.learners.low_degree.polynomial import Family
from sparsact.saving.schema import ArrayField, Arrays, State, as_n_rows, as_nonnegative, read_arrays
from sparsact.statistics.centred import CentredSums
from sparsact.statistics.exact_sum import LIMB_BITS, MAX_LIMBS
from sparsact.statistics.statistic import Batch

_VALUES_AT_ONCE: Final = 1 << 22
_SAME: Final = 1e-12  # of the mean square: real columns are summed in floating point
_EPS: Final = float(np.finfo(float).eps)
NO_TARGET: Final = -(1 << 20)
MAX_PRODUCT: Final = 1e100
_MAX_EXPONENT: Final = LIMB_BITS * MAX_LIMBS
_SUMS: Final = {
    "feature_mean": ArrayField("D"),
    "target_mean": ArrayField("T"),
    "gram": ArrayField("D D"),
    "rhs": ArrayField("D T"),
    "target_squares": ArrayField("T"),
    "exponents": ArrayField("T", np.int64),
}


class CentredMoments(CentredSums):
    """Centred inner products of monomials of real columns; additive within rounding.

    Attributes
    ----------
    family : Family
        The monomials, D of them.
    exponents : ndarray of shape (T,), int64
        Exponent of the largest target seen, by ``frexp``; ``NO_TARGET`` if all were 0. What depends on targets
        is kept over ``2**(32 * target_exponent())``, so that squares neither overflow nor vanish.
    """

    kind = "real"

    def __init__(self, family: Family, n_targets: int) -> None:
        super().__init__(len(family), n_targets)
        self.n, self.family, self.n_targets = family.n, family, n_targets
        self.exponents = np.full(n_targets, NO_TARGET, dtype=np.int64)
        self._read_over = 0  # place of the unit that a view gives targets in
        self._n_summed = 0  # rows ever added or taken away
        self._largest = np.zeros((2, len(family)))  # `_sizes` of sums that rows were taken from: their rounding remains

    def add(self, batch: Batch, sign: int = 1) -> None:
        """Add rows of real columns or, with sign -1, take away rows that were added before, within rounding."""
        if sign < 0:
            gone = self.empty()
            gone.add(batch)
            self.join(gone, -1)
            return
        for block in batch.blocks(max(1, _VALUES_AT_ONCE // max(1, len(self.family)))):  # they bound the memory
            X = block.X.toarray() if hasattr(block.X, "tocsr") else block.X
            self.join(self._block(X, block.y, block.row_weights()))

    def merge(self, other: CentredMoments, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same family."""
        if len(self.family) != len(other.family):
            self.family.leading(other.family)
            other.family.leading(self.family)
        self.join(other, sign)

    def empty(self) -> CentredMoments:
        """The same layout without rows."""
        return CentredMoments(self.family, self.n_targets)

    def copy(self) -> CentredMoments:
        """An independent copy."""
        twin = self.empty()
        twin._read_over = self._read_over
        twin.merge(self)
        return twin

    def restricted(self, family: Family) -> CentredMoments:
        """The sums that a leading part of the family needs; shares arrays with this one."""
        size, twin = len(self.family.leading(family)), copy(self)
        twin.family, twin.feature_mean = family, self.feature_mean[:size]
        twin.gram, twin.rhs, twin._largest = self.gram[:size, :size], self.rhs[:size], self._largest[:, :size]
        return twin

    def fork(self) -> CentredMoments:
        """A copy that shares arrays with this one; changes make new arrays."""
        return copy(self)

    def state(self) -> tuple[State, Arrays]:
        """The sums as JSON and arrays."""
        arrays = {part: getattr(self, part) for part in _SUMS} | {"masks": self.family.masks}
        return {"kind": self.kind, "weight": self.weight, "n_rows": self.n_rows}, arrays

    def restore(self, state: State, arrays: Arrays) -> None:
        """Become the sums that :meth:`state` wrote."""
        self.family = Family.of_file(self.family.n, None, arrays)
        vars(self).update(read_arrays(_SUMS, arrays, D=len(self.family), T=self.n_targets))
        self._largest = np.zeros((2, len(self.family)))
        outside = (self.exponents > _MAX_EXPONENT) | (self.exponents < -_MAX_EXPONENT)
        if (outside & (self.exponents != NO_TARGET)).any():
            raise ValueError("targets beyond any double")
        self.weight, self.n_rows = as_nonnegative(state["weight"], "weight"), as_n_rows(state["n_rows"], "n_rows")

    def target_exponent(self) -> int:
        """Exponent on the grid of limbs of the unit of the targets: near the largest of them.

        A ValueError is raised if targets differ too much in size for one unit.
        """
        return exponent_of(self.exponents) - self._read_over

    def origin(self, exponent: int) -> NDArray[np.float64]:
        """Zeros: what depends on targets is kept about their mean."""
        return np.zeros(self.n_targets)

    def rescaled(self, exponent: int, origin: NDArray[np.float64]) -> CentredMoments:
        """The same rows with targets over ``2**(32 * exponent)``; to read from, as it shares the sums."""
        view = copy(self)
        view._read_over = self._read_over + exponent
        return view

    def _block(self, X: NDArray[np.float64], y: NDArray[np.float64], weights: NDArray[np.float64]) -> CentredMoments:
        block = CentredMoments(self.family, self.n_targets)
        features = monomials(X, self.family)
        check_products(features, self.family)
        block.exponents = np.frexp(np.abs(y).max(axis=0))[1].astype(np.int64)
        block.exponents[~y.any(axis=0)] = NO_TARGET
        y = np.ldexp(y, -LIMB_BITS * block.target_exponent())
        block.replace(features, y, weights)
        block._n_summed = block.n_rows
        return block

    def join(self, other: CentredMoments, sign: int = 1) -> None:  # type: ignore[override] # of the same kind
        """Add (or, with sign -1, take away) the rows of another, by one assignment."""
        exponents = np.maximum(self.exponents, other.exponents)
        place = exponent_of(exponents) - self._read_over
        both = self._over(place)
        super(CentredMoments, both).join(other._over(place), sign)
        both._largest = np.maximum(*((one._largest if sign > 0 else one._sizes()) for one in (self, other)))
        both.exponents, both._n_summed = exponents, self._n_summed + other._n_summed
        vars(self).update(vars(both))

    def _over(self, place: int) -> CentredMoments:
        """A view with means and products of targets over the unit of a place."""
        view, shift = copy(self), LIMB_BITS * (self.target_exponent() - place)
        if shift:
            view.target_mean, view.rhs = np.ldexp(self.target_mean, shift), np.ldexp(self.rhs, shift)
            view.target_squares = np.ldexp(self.target_squares, 2 * shift)
        return view

    def variances(self) -> NDArray[np.float64]:
        """Weighted variance of each target, (T,)."""
        return self._over(0).target_squares / self.weight

    def normal_equations(self, family: Family, *, fit_intercept: bool = True, n_threads: int = 1) -> NormalEquations:
        """The equations of the family, or of a leading part of it."""
        its, noise = self._over(0).about(mean=fit_intercept), self._noise(fit_intercept)
        sums = its.gram, its.rhs, its.feature_mean, its.target_mean, its.target_squares
        equations = NormalEquations(*sums, self.weight, self.n_rows, fit_intercept, noise=noise)
        return equations if family is self.family else equations.leading(len(self.family.leading(family)))

    def aliases(self, family: Family, place: int) -> NDArray[np.bool_]:
        """Whether each monomial of ``[(), *family]`` equals, up to sign, that of ``place`` on all rows.

        Where the mean square of the difference, or of the sum, of the two vanishes; from their means and Gram matrix.
        """
        size = len(family)
        equations = self.normal_equations(family, fit_intercept=False)
        products = np.empty((size + 1, size + 1))
        products[0, 0] = equations.weight
        products[0, 1:] = products[1:, 0] = self.weight * self.feature_mean[:size]
        products[1:, 1:] = equations.gram
        squares = products.diagonal()
        cross = np.abs(products[place])
        return np.asarray(squares + squares[place] - 2 * cross <= _SAME * (squares + squares[place]))

    def lost_product(self, family: Family) -> Subset:
        r"""The fewest columns whose product rounding took: of several the furthest from 0. Empty where all are left.

        In the span of a family with an intercept, what is a product's own is :math:`\prod_{i \in S} (x_i - \bar x_i)`,
        a sum of all products of columns in S whose coefficients are products of means. If its square is less than what
        rounding did to these sums, the product is a combination of smaller ones as far as floats can tell.
        """
        place = {subset: i for i, subset in enumerate(self.family.leading(family).subsets)}
        noise, squares = self._noise(fit_intercept=True), self.gram.diagonal()
        singles = [place.get((i,), -1) for i in range(self.n)]
        mean = np.array([abs(self.feature_mean[i]) if i >= 0 else 0.0 for i in singles])
        variance = np.array([squares[i] if i >= 0 and squares[i] > noise[i] else 0.0 for i in singles]) / self.weight
        moves = variance > 0
        furthest = np.argsort(-np.where(moves, mean / np.sqrt(np.where(moves, variance, 1.0)), -1.0))
        for size in range(2, max(map(len, place), default=0) + 1):
            chosen = tuple(sorted(furthest[:size].tolist()))
            parts = [part for k in range(1, size + 1) for part in combinations(chosen, k)]
            if not moves[list(chosen)].all() or any(part not in place for part in parts):
                continue
            rounding = sum(
                np.prod([mean[i] for i in chosen if i not in part]) * np.sqrt(noise[place[part]]) for part in parts
            )
            if self.weight * np.prod(variance[list(chosen)]) <= rounding**2:
                return chosen
        return ()

    def check_kept(self, family: Family) -> None:
        """Refuse a family of products that rounding has taken."""
        if lost := self.lost_product(family):
            raise ValueError(f"{lost_in_words(lost)}, or choose a degree below {len(lost)}.")

    def _noise(self, fit_intercept: bool) -> NDArray[np.float64]:
        """Bound of the rounding error of the Gram matrix's diagonal: a generous multiple of the expected error.

        Sums of m products are off by about ``sqrt(m) * eps`` of their size, and features minus their mean by ``eps`` of
        the mean. Rows that are taken away leave what rounding did to the sums that they were part of.
        """
        squares, of_means = self._sizes()
        n_summed = max(self.n_rows, self._n_summed)
        own = (len(self.family) + n_summed**0.5) * (squares + (not fit_intercept) * of_means)
        return np.asarray(8 * _EPS * (own + 2 * np.sqrt(own * of_means)) + n_summed * _EPS**2 * of_means)

    def _sizes(self) -> NDArray[np.float64]:
        """Diagonal of the Gram matrix, and squares of the mean times the weight, (2, D): the largest so far."""
        return np.maximum(self._largest, (self.gram.diagonal(), self.weight * self.feature_mean**2))


def lost_in_words(lost: Subset) -> str:
    """Need, fact and remedy of a lost product."""
    return (
        f"products of columns need digits of their own, and columns {', '.join(map(str, lost))} of `X` lie so far "
        "from 0 that rounding leaves nothing of their product; subtract their means, as StandardScaler does"
    )


def exponent_of(exponents: NDArray[np.int64]) -> int:
    """Exponent on the grid of limbs of a unit for targets of these exponents."""
    there = np.flatnonzero(exponents != NO_TARGET)
    if not len(there):
        return 0
    small, large = (int(there[choose(exponents[there])]) for choose in (np.argmin, np.argmax))
    check_alike(int(exponents[large] - exponents[small]), small, large)
    return min(int(exponents[large] + LIMB_BITS // 2) // LIMB_BITS, MAX_UNIT)


def check_products(features: NDArray[np.float64], family: Family) -> None:
    """Refuse rows whose products of columns are so large that sums of their squares overflow."""
    largest = np.abs(features).max(axis=0, initial=0.0)
    if not (largest < MAX_PRODUCT).all():
        column = int(np.argmin(largest < MAX_PRODUCT))
        raise ValueError(
            f"columns {family.subsets[column]} of `X` have a product of {largest[column]:.0e} in some row, and squares "
            f"of products beyond {MAX_PRODUCT:.0e} overflow; scale the columns."
        )


def monomials(X: NDArray[np.float64], family: Family) -> NDArray[np.float64]:
    """Products of the columns in each subset, (m, D)."""
    size_of, products = sizes(family.masks), [np.ones((len(X), 0))]
    for size in np.unique(size_of):
        members = np.array([family.subsets[i] for i in np.flatnonzero(size_of == size)], dtype=np.intp)
        product = X[:, members[:, 0]]
        for column in members.T[1:]:
            product = product * X[:, column]
        products.append(product)
    return np.concatenate(products, axis=1)

"""Polynomials of low degree: the monomials that one may use, the fitted polynomial, and its standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hypercube import WORD, Masks, Subset, masks_of, n_subsets, n_words, subset_masks, subsets_of
from sparsact.learners.low_degree.coefficient_precision import Design
from sparsact.learners.points import Encoding, Points
from sparsact.memory import has_room
from sparsact.saving.schema import Arrays, as_count, check_array
from sparsact.validation.arrays import checked_subset

_MAX_TABLE_N, _MAX_TABLE = 20, 1 << 22  # columns, and values
_ALL_ZERO: Final = 1e60  # a lasso penalty that leaves no coefficient of targets of size one


@dataclass(frozen=True, eq=False)
class Family:
    """A set of non-empty subsets of n coordinates, by size, then lexicographic; the empty subset is the intercept.

    Attributes
    ----------
    n : int
        Number of coordinates.
    masks : ndarray of shape (D, ceil(n / 64)), uint64
        The subsets.
    degree_range : (int, int) or None
        ``(min_degree, degree)`` when these are all subsets with sizes from the one to the other, None for a list.
    """

    n: int
    masks: Masks
    degree_range: tuple[int, int] | None

    @classmethod
    def full(cls, n: int, degree: int, min_degree: int = 1) -> Family:
        """All subsets with ``max(1, min_degree) <= |S| <= min(degree, n)``; a MemoryError if memory has no room."""
        low, high = max(1, min_degree), min(degree, n)
        if not has_room(cls._list_bytes(n, high, low)):
            fits = [size for size in range(low, high) if has_room(cls._list_bytes(n, size, low))]
            need = f"need about {cls._list_bytes(n, high, low) / 2**30:,.1f} GiB"
            remedy = f"degree={fits[-1]} fits" if fits else "name fewer `subsets`"
            raise MemoryError(f"{cls.count(n, high, low):,} monomials of {n:,} columns {need}; {remedy}.")
        return cls(n, subset_masks(n, high, low), (low, high))

    @classmethod
    def explicit(cls, n: int, subsets: Sequence[Iterable[int]]) -> Family:
        """The given subsets, without repetition and without the empty one.

        Raises
        ------
        ValueError
            If a subset names a coordinate outside ``range(n)``, or one twice.
        TypeError
            If a coordinate is no integer.
        """
        chosen = sorted({checked_subset(subset) for subset in subsets} - {()}, key=lambda subset: (len(subset), subset))
        return cls(n, masks_of(chosen, n), None)

    @classmethod
    def of_file(cls, n: int, degree_range: Any, arrays: Arrays, expected: int | None = None) -> Family:
        """The family of a file: of its masks, if it has any, or all subsets of some sizes, as many as expected."""
        given = None
        if "masks" in arrays:
            given = check_array(arrays, "masks", np.uint64, (None, n_words(n)))
            check_bits(given, n)
            if not given.any(axis=1).all() or len(np.unique(given, axis=0)) < len(given):
                raise ValueError("a subset is empty, or stands twice")
            expected = len(given)
        if degree_range is None:
            return cls(n, arrays["masks"], None)
        low, high = (as_count(size, "span") for size in degree_range)
        if not low <= n or not high <= n:
            raise ValueError(f"degrees {low} to {high} of {n} coordinates")
        count = cls.count(n, high, low)
        if expected not in (None, count) or not has_room(8.0 * n_words(n) * count):
            found = "more than memory holds" if expected is None else expected
            raise ValueError(f"{count} subsets of {low} to {high} of {n} coordinates, where there are {found}")
        family = cls.full(n, high, low)
        if given is not None and not np.array_equal(family.masks, given):
            raise ValueError(f"masks that are not all subsets of sizes {low} to {high}")
        return family

    @staticmethod
    def count(n: int, degree: int, min_degree: int = 1) -> int:
        """Size of :meth:`full` without building it."""
        return n_subsets(n, degree, max(1, min_degree))

    @classmethod
    def _list_bytes(cls, n: int, degree: int, min_degree: int) -> float:  # with lists of members, while it is made
        return 8.0 * (n_words(n) + 2 * degree + 2) * cls.count(n, degree, min_degree)

    def __len__(self) -> int:
        return len(self.masks)

    @cached_property
    def subsets(self) -> list[Subset]:
        """The subsets as sorted tuples of coordinates."""
        return subsets_of(self.masks)

    @cached_property
    def with_empty(self) -> Masks:
        """Masks of the empty subset, then of the family: shape (D + 1, words)."""
        return np.concatenate([np.zeros((1, n_words(self.n)), dtype=np.uint64), self.masks])

    def part(self, chosen: NDArray[np.intp]) -> Family:
        """Some of the subsets, in graded order."""
        return Family(self.n, np.ascontiguousarray(self.masks[np.sort(chosen)]), None)

    def leading(self, wanted: Family) -> Family:
        """The wanted family; a ValueError if it is not the leading part of this one, whose sums were kept."""
        if not np.array_equal(self.masks[: len(wanted)], wanted.masks):
            raise ValueError(
                f"sums were kept for {len(self):,} monomials, and the rows are gone; to change degree, min_degree or "
                "subsets, fit all rows again."
            )
        return wanted


def check_bits(words: NDArray[np.uint64], n: int) -> None:
    """Refuse packed words that name coordinates beyond the n there are."""
    if n % WORD and (words[:, -1] >> np.uint64(n % WORD)).any():
        raise ValueError(f"coordinates beyond the {n} there are")


class FittedPolynomial:
    """``intercept_t + sum_S coef[S, t] * chi_S(x)``, for several targets t at once.

    Attributes
    ----------
    family : Family
        The subsets, D of them.
    coef : ndarray of shape (D, T)
        Their coefficients.
    intercept : ndarray of shape (T,)
        Coefficients of the empty subset.
    """

    coef: NDArray[np.float64]

    def __init__(self, family: Family, coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        self.family, self.coef, self.intercept = family, coef, intercept

    def undo_scaling(self, unit: float, origin: NDArray[np.float64]) -> FittedPolynomial:
        """Polynomial of the targets themselves, if this was fitted to targets / unit - origin (T,)."""
        return FittedPolynomial(self.family, self.coef * unit, (self.intercept + origin) * unit)

    def values(self, points: Points, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Values (m, T) at packed points: by a table, or without one where it would be large.

        The choice does not depend on the points: a row has the same bits in every batch.
        """
        n, n_targets = self.family.n, len(self.intercept)
        if n <= _MAX_TABLE_N and 2**n <= 4096 * len(self.family) and n_targets * 2**n <= _MAX_TABLE:
            return np.asarray(self.table[points.codes()[:, 0].astype(np.intp)])  # a transform for about 1,000 walks
        return self._sums(points, n_threads) + self.intercept

    def _sums(self, points: Points, n_threads: int) -> NDArray[np.float64]:
        """Values without the intercept, by a walk over the monomials."""
        return kernels.evaluate_packed(points.columns, points.n_rows, *self._walk, n_threads=n_threads)

    def values_at_reals(self, X: NDArray[np.float64], *, n_threads: int = 1) -> NDArray[np.float64]:
        """Values (m, T) of the multilinear polynomial at real rows (m, n)."""
        return kernels.evaluate(np.ascontiguousarray(X), *self._walk, n_threads=n_threads) + self.intercept

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """Values (2**n, T) at every point of the cube, by one transform for each target."""
        table = np.zeros((len(self.intercept), 2**self.family.n))
        table[:, self.family.masks[:, 0].astype(np.intp)] = self.coef.T
        table[:, 0] += self.intercept
        kernels.walsh_hadamard(table)
        return np.ascontiguousarray(table.T)

    @cached_property
    def _walk(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Masks and coefficients in the order in which neighbours share the most coordinates."""
        order = np.lexsort(self.family.masks.T)
        return np.ascontiguousarray(self.family.masks[order]), np.ascontiguousarray(self.coef[order])


@dataclass(frozen=True)
class Penalty:
    """How coefficients are estimated: ``"ridge"`` (least squares at alpha 0), ``"lasso"`` or ``"correlation"``."""

    kind: str
    alpha: float
    fit_intercept: bool

    def origin(self, statistic: Any, exponent: int) -> NDArray[np.float64]:
        """What the intercept may take from rescaled targets beforehand: their mean, (T,)."""
        if self.fit_intercept and self.kind != "correlation":
            return np.asarray(statistic.origin(exponent))
        return np.zeros(statistic.n_targets)

    def over(self, unit: float) -> Penalty:
        """The same penalty for targets over a unit: that on a square is as it was, that on a size is in the unit."""
        if self.kind != "lasso":
            return self
        with np.errstate(over="ignore"):
            return replace(self, alpha=min(float(np.float64(self.alpha) / unit), _ALL_ZERO))


@dataclass(eq=False)
class Solution:
    """A fitted polynomial and what its standard errors need.

    Attributes
    ----------
    polynomial : FittedPolynomial
        The fitted coefficients.
    solver, reason : str
        The solver, and one sentence on why.
    squared_error, target_squares : ndarray of shape (T,)
        Weighted squares of the residuals, and of the targets about their mean, both over ``unit**2``.
    n_rows, total_weight : int, float
        Rows of positive weight, and the sum of the weights.
    design : Design
        What is known of the rows.
    parameters : float or None
        Effective parameters, where they are known; the intercept is not counted.
    choice : CVSelection or None
        What cross-validation chose.
    importances : ndarray of shape (n,), or None
        Total effects of the columns, once they were asked for.
    unit : float
        A power of two near the size of the targets, over which squares are float64 whatever that size.
    first_alike : ndarray of shape (n,), intp, or None
        Place of the first column equal to each on all rows, up to sign; -1 for a constant. None for real columns.
    frequencies : ndarray of shape (n,), or None
        Share of the rows' weight at which each column is bit 1; None where the sums do not say.
    """

    polynomial: FittedPolynomial
    solver: str
    reason: str
    squared_error: NDArray[np.float64]
    target_squares: NDArray[np.float64]
    n_rows: int
    total_weight: float
    penalty: Penalty
    design: Design
    encoding: Encoding | None = None
    parameters: float | None = None
    choice: Any = None
    importances: NDArray[np.float64] | None = None
    unit: float = 1.0
    first_alike: NDArray[np.intp] | None = None
    frequencies: NDArray[np.float64] | None = None

    def undo_scaling(self, unit: float, origin: NDArray[np.float64], penalty: Penalty) -> Solution:
        """The solution for the targets themselves, where it was found for targets over a unit, minus an origin."""
        self.polynomial, self.unit, self.penalty = self.polynomial.undo_scaling(unit, origin), unit, penalty
        return self

    @cached_property
    def residual_degrees_of_freedom(self) -> float:
        """Rows minus effective parameters (the intercept is one)."""
        if self.parameters is None:
            self.parameters = self.design.effective_parameters(self.penalty.alpha)
        return self.n_rows - self.parameters - self.penalty.fit_intercept

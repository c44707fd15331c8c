"""The exact additive statistic of low-degree regression: what a learner keeps of rows of the cube.

Three forms hold the same exact sums; each can stand for any degree, so that the choice is one of cost alone:

- :class:`~sparsact.learners.low_degree.distinct_points.DistinctPoints`: the points themselves (any n, few rows);
- :class:`~sparsact.learners.low_degree.compact_sums.Cells`: one cell for each of the 2**n points (n <= 26, many rows);
- :class:`~sparsact.learners.low_degree.compact_sums.Moments`: the moments that one family of monomials needs
  (any n, any number of rows, that family only).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from fractions import Fraction
from math import frexp, inf
from typing import ClassVar, Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.identification import RowSpace
from sparsact.learners.low_degree.normal_equations import ROWS_AT_ONCE, NormalEquations, centre_exactly
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial
from sparsact.learners.points import Points
from sparsact.saving.schema import Arrays, State, as_n_rows, check_array
from sparsact.statistics.exact_sum import LIMB_BITS, MAX_DIGIT, MAX_LIMBS, ExactSum
from sparsact.statistics.statistic import Batch

MAX_UNIT: Final = 31  # of a unit that is a float; targets beyond 2**992 are below 2**32 of it
_MAX_APART: Final = 332  # powers of two between targets, so that squares of the smaller do not vanish
_FEW_DIGITS: Final = 1e-6  # of the weight: features of a variance below it are centred exactly
Reading = Callable[[ExactSum], NDArray[np.float64]]  # how exact moments become the entries of a Gram matrix


class Totals:
    """Exact totals over the rows seen so far.

    Attributes
    ----------
    n_rows : int
        Rows of non-zero weight.
    weight, sums, squares : ExactSum of shape (1,), (T,), (T,)
        Sums of ``w``, ``w * y_t`` and ``w * y_t**2``.
    """

    def __init__(self, n_targets: int) -> None:
        self.n_rows = 0
        self.weight = ExactSum.zeros((1,))
        self.sums = ExactSum.zeros((n_targets,))
        self.squares = ExactSum.zeros((n_targets,))

    def update(self, y: NDArray[np.float64], weights: NDArray[np.float64], sign: int = 1) -> None:
        """Add (sign 1) or take away (sign -1) rows: targets (m, T), weights (m,), already carrying the sign."""
        self.n_rows += sign * len(y)
        self.weight.add(weights, None, np.zeros(len(y), dtype=np.uint64))
        for target, column in enumerate(y.T):
            values = np.ascontiguousarray(column)
            here = np.full(len(y), target, dtype=np.uint64)
            self.sums.add(values, weights, here)
            self.squares.add(values, weights, here, values)

    def merge(self, other: Totals, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another."""
        self.n_rows += sign * other.n_rows
        for mine, theirs in zip(self.parts(), other.parts(), strict=True):
            mine.merge(theirs, sign)

    def copy(self) -> Totals:
        """An independent copy."""
        twin = Totals(self.sums.shape[0])
        twin.merge(self)
        return twin

    def parts(self) -> tuple[ExactSum, ExactSum, ExactSum]:
        """The exact sums: weight, sums, squares."""
        return self.weight, self.sums, self.squares

    def target_exponent(self) -> int:
        """Place on the grid of limbs of a unit of the targets: near their root mean square, so that squares are floats.

        A ValueError is raised if targets differ too much in size for one unit.
        """
        (weight,) = self.weight.to_fractions()
        sizes = [square / weight for square in self.squares.to_fractions()] if weight > 0 else []
        some = [size for size in sizes if size > 0]
        if not some:
            return 0
        powers = [size.numerator.bit_length() - size.denominator.bit_length() for size in some]
        check_alike((max(powers) - min(powers)) // 2, sizes.index(min(some)), sizes.index(max(some)))
        return min(round(max(powers) / (2 * LIMB_BITS)), MAX_UNIT)

    def mean(self, place: int) -> NDArray[np.float64]:
        """The mean of each target over ``2**(32 * place)``, rounded once; zeros if there is no weight."""
        (weight,) = self.weight.to_fractions()
        if not weight:
            return np.zeros(self.sums.shape)
        return np.array([float(total / weight) for total in self.sums.rescaled(place).to_fractions()])

    def rescaled(self, place: int, origin: NDArray[np.float64]) -> Totals:
        """The totals of ``y_t / 2**(32 * place) - origin_t``, exactly; to read from."""
        view = Totals(self.sums.shape[0])
        view.n_rows, view.weight = self.n_rows, self.weight
        view.sums, view.squares = self.sums.rescaled(place), self.squares.rescaled(2 * place)
        if origin.any():
            both, view.sums, view.squares = view.sums.copy(), view.sums.copy(), view.squares.copy()
            view.sums.add_multiples(self.weight, -origin)
            both.merge(view.sums)  # w (y - c)**2 = w y**2 - c (w y + w (y - c))
            view.squares.add_multiples(both, -origin)
        return view

    def squares_about(self, centre: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted sum of ``(y_t - centre_t)**2`` per target, rounded once: nothing cancels; inf beyond float64."""
        if not np.isfinite(centre).all():
            raise ValueError("the mean of a target is beyond any double; scale the targets down, or the weights up.")
        (weight,) = self.weight.to_fractions()
        return np.array(
            [
                _rounded(square - 2 * Fraction(c) * total + Fraction(c) ** 2 * weight)
                for c, total, square in zip(
                    centre.tolist(), self.sums.to_fractions(), self.squares.to_fractions(), strict=True
                )
            ]
        )


def _rounded(value: Fraction) -> float:
    """The nearest float; infinity beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def check_alike(powers_of_two: int, small: int, large: int) -> None:
    """Refuse targets so far apart in size that squares of both are not float64 in one unit."""
    if powers_of_two > _MAX_APART:
        raise ValueError(
            f"targets {small} and {large} differ in size by more than 1e100, so that no unit serves the squares of "
            "both; fit them one at a time, or scale them."
        )


class ExactStatistic(ABC):
    """Exact weighted sums over rows: the same bits in any order and in any grouping.

    Attributes
    ----------
    n : int
        Number of coordinates.
    n_targets : int
        Number of targets T.
    totals : Totals
        Rows, weight, sums and squares of the targets.
    weights, sums : ExactSum of shape (N,), (T, ...)
        Sums of weights and of weighted targets, in the form of the class.
    """

    kind: ClassVar[str]  # what files call the form
    weights: ExactSum
    sums: ExactSum

    def __init__(self, n: int, n_targets: int) -> None:
        self.n = n
        self.n_targets = n_targets
        self.totals = Totals(n_targets)

    # ---- rows ----

    def add(self, batch: Batch, sign: int = 1) -> None:
        """Add rows at packed points or, with sign -1, take away rows that were added before, exactly."""
        weights = batch.row_weights() * sign
        self.totals.update(batch.y, weights, sign)
        self._add(batch.X, batch.y, weights)

    @abstractmethod
    def _add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Add ``w`` and ``w * y_t`` of every row at its point."""

    @abstractmethod
    def merge(self, other: ExactStatistic, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same form, or of distinct points."""

    def _refuse(self, other: ExactStatistic) -> NoReturn:
        raise ValueError(f"cannot merge {other.kind} into {self.kind}; fit both with the same solver.")

    @abstractmethod
    def flush(self) -> None:
        """Bring waiting rows into the sums, by one assignment; the rows held are the same."""

    def fork(self) -> Self:
        """A copy that shares sums with this one until it is changed; this one must not be changed any more."""
        twin = copy(self)
        twin.totals = self.totals.copy()
        return twin

    def restricted(self, family: Family) -> Self:
        """The sums that a family needs: the statistic itself, where it serves every family."""
        return self

    def copy(self) -> Self:
        """An independent copy."""
        twin = self.empty()
        twin.merge(self)
        return twin

    def empty(self) -> Self:
        """The same layout without rows."""
        return type(self)(self.n, self.n_targets)

    # ---- what is known of the rows ----

    @property
    def n_rows(self) -> int:
        """Rows of positive weight."""
        return self.totals.n_rows

    @property
    def weight(self) -> float:
        """Total weight."""
        return float(self.totals.weight.to_float()[0])

    def variances(self) -> NDArray[np.float64]:
        """Weighted variance of each target, (T,)."""
        return np.asarray(self.totals.squares_about(self.totals.sums.to_float() / self.weight) / self.weight)

    def target_exponent(self) -> int:
        """Exponent of a unit of the targets, see :meth:`Totals.target_exponent`."""
        return self.totals.target_exponent()

    def origin(self, exponent: int) -> NDArray[np.float64]:
        """The mean of each target over ``2**(32 * exponent)``, rounded once, (T,)."""
        return self.totals.mean(exponent)

    def rescaled(self, exponent: int, origin: NDArray[np.float64]) -> Self:
        """The same rows with targets ``y_t / 2**(32 * exponent) - origin_t``, exactly; to read from: it shares sums.

        About their mean, targets lose nothing when their sums are rounded, however far from zero they are.
        """
        self.flush()
        view = copy(self)
        view.totals, view.sums = self.totals.rescaled(exponent, origin), self.sums.rescaled(exponent)
        if origin.any():
            view.sums = view.sums.copy()
            view.sums.add_multiples(self._weights_of_sums(), -origin[:, None])
        return view

    def _weights_of_sums(self) -> ExactSum:
        """What the sums of a target that is 1 everywhere are."""
        return self.weights

    @abstractmethod
    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of the characters of the empty subset and the family, (D + 1, D + 1)."""

    @abstractmethod
    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""

    @abstractmethod
    def aliases(self, family: Family, place: int) -> NDArray[np.bool_]:
        """Whether each monomial of ``[(), *family]`` equals, up to sign, that of ``place`` on all rows."""

    @abstractmethod
    def first_alike(self) -> NDArray[np.intp]:
        """Place of the first column that each equals up to sign on all rows, (n,); -1 if it is constant.

        Its own place where no column before it does, or where the sums do not say.
        """

    @abstractmethod
    def frequencies(self) -> NDArray[np.float64] | None:
        """Share (n,) of the weight of the rows at which each column is bit 1; None where the sums do not say."""

    def _shares_of_ones(self, moments: ExactSum) -> NDArray[np.float64]:
        """Shares (n,) of the weight at bit 1, from the moment of each column alone."""
        ones = self.totals.weight.repeated(self.n).plus(moments, -1)  # twice their weight, exactly
        return np.asarray(ones.to_float() / 2 / self.weight)

    @abstractmethod
    def squared_error(self, polynomial: FittedPolynomial, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted squared error (T,) of a polynomial on the rows."""

    def normal_equations(self, family: Family, *, fit_intercept: bool = True, n_threads: int = 1) -> NormalEquations:
        """The equations of a family of monomials from the exact sums; D x D floats."""
        gram = self.gram(family, n_threads=n_threads)
        correlations = self.correlations(family, n_threads=n_threads)
        weight = float(gram[0, 0])
        if fit_intercept and weight > 0:
            sums, (scale, exponent) = gram[0, 1:].copy(), frexp(weight)
            feature_mean, target_mean = sums / weight, correlations[:, 0] / weight
            rhs = correlations[:, 1:] - np.outer(target_mean, sums)
            centred, shares = gram[1:, 1:], np.ldexp(sums, -exponent)
            for start in range(0, len(centred), ROWS_AT_ONCE):  # in place: no second D x D array
                block = centred[start : start + ROWS_AT_ONCE]
                block *= scale  # W G - s s' first: of counts below 2**26 these are integers, and exact
                block -= np.outer(sums[start : start + ROWS_AT_ONCE], shares)
                block /= scale
            if not (weight < 2.0**26 and weight == round(weight) and (sums == np.round(sums)).all()):
                small = np.flatnonzero(centred.diagonal() < _FEW_DIGITS * weight)
                if len(small):
                    centre_exactly(centred, self.gram, family, small)
        else:
            feature_mean, target_mean = np.zeros(len(family)), np.zeros(self.n_targets)
            centred, rhs = gram[1:, 1:], correlations[:, 1:]
        squares = np.maximum(self.totals.squares_about(target_mean), 0.0)
        row_space = RowSpace(self.gram, family, fit_intercept)
        means = feature_mean, target_mean
        return NormalEquations(centred, rhs.T.copy(), *means, squares, weight, self.n_rows, fit_intercept, row_space)

    def _parts(self) -> dict[str, ExactSum]:
        totals = zip(("total.weight", "total.sums", "total.squares"), self.totals.parts(), strict=True)
        return {"weights": self.weights, "sums": self.sums, **dict(totals)}

    def state(self) -> tuple[State, Arrays]:
        """The sums as JSON and arrays."""
        self.flush()
        parts = self._parts()
        for sums in parts.values():
            sums.normalize()
        base = {part: sums.base for part, sums in parts.items()}
        return {"n_rows": self.n_rows, "base": base, "kind": self.kind}, {k: sums.limbs for k, sums in parts.items()}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Become the sums that :meth:`state` wrote."""
        self.totals.n_rows = as_n_rows(state["n_rows"], "n_rows")
        for part, sums in self._parts().items():
            limbs = check_array(arrays, part, np.int64, (None, *sums.shape))
            if limbs.size and (limbs.max() > MAX_DIGIT or limbs.min() < -MAX_DIGIT):
                raise ValueError(f"{part} is not a normalised sum")
            base = int(state["base"][part])
            if abs(base) > MAX_LIMBS or len(limbs) > MAX_LIMBS:
                raise ValueError(f"{part} is beyond any double")
            sums.replace(base, limbs)
        weight, means = self.weight, self.totals.sums.to_float()
        if not np.isfinite([weight, *means]).all() or (weight <= 0 if self.n_rows else weight != 0):
            raise ValueError("a weight of rows that are there is none, or sums are beyond any double")

"""Sums whose size does not grow with the rows: a cell for each point of the cube, or the moments of one family."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import sizes
from sparsact.learners.low_degree.distinct_points import DistinctPoints, SymmetricDifferences
from sparsact.learners.low_degree.exact_statistic import ExactStatistic, Reading, Totals
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial
from sparsact.learners.points import Points
from sparsact.memory import has_room
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.exact_sum import ExactSum

MAX_N: Final = 26
_GRAM_ROWS_AT_ONCE: Final = 256
_MIN_WAITING, _SHARE_WAITING = 1 << 16, 8  # rows that wait in a fork: at least 65,536, or cells / 8
_MAX_WAITING: Final = 1 << 17


class CompactSums(ExactStatistic):
    """Sums that rows enter many at a time: until then they wait as distinct points."""

    _waiting: DistinctPoints | None = None  # None: rows are added at once, in place

    @abstractmethod
    def summed(self, points: DistinctPoints) -> tuple[ExactSum, ExactSum]:
        """New weights and sums in the form of the class, of distinct points."""

    def fork(self) -> Self:
        """A copy that shares sums with this one until it is changed; this one must not be changed any more."""
        twin = super().fork()
        twin._waiting = DistinctPoints(self.n, self.n_targets) if self._waiting is None else self._waiting.fork()
        return twin

    def merge(self, other: ExactStatistic, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same form, or of distinct points."""
        other.flush()
        if isinstance(other, DistinctPoints):
            weights, sums = self.summed(other)
        elif type(self) is type(other):
            weights, sums = other.weights, other.sums
        else:
            self._refuse(other)
        self.totals.merge(other.totals, sign)
        self.weights, self.sums = self.weights.plus(weights, sign), self.sums.plus(sums, sign)

    def flush(self) -> None:
        """Bring waiting rows into the sums, in new arrays, by one assignment."""
        if self._waiting is not None and self._waiting.n_points:
            self._waiting.flush()
            weights, sums = self.summed(self._waiting)
            weights.merge(self.weights)
            sums.merge(self.sums)
            self.weights, self.sums, self._waiting = weights, sums, self._emptied()

    def _emptied(self) -> DistinctPoints | None:
        """What stands for rows that wait when none does."""
        return None  # the sums are in new arrays, that no fork shares


class Cells(CompactSums):
    """Exact sums of weights and of weighted targets in each of the ``2**n`` cells.

    Attributes
    ----------
    weights, sums : ExactSum of shape (2**n,), (T, 2**n)
        In table order (see :mod:`sparsact.hypercube`).
    """

    kind = "cells"
    _origin: NDArray[np.float64] | None = None  # of targets, to take off whatever is read of their sums

    def __init__(self, n: int, n_targets: int) -> None:
        super().__init__(n, n_targets)
        if n > MAX_N:
            raise ValueError(f"cells of {n} coordinates")
        self.weights = ExactSum.zeros((2**n,))
        self.sums = ExactSum.zeros((n_targets, 2**n))

    def _add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        if self._waiting is not None:
            self._waiting._add(points, y, weights)
            if self._waiting.n_points >= max(_MIN_WAITING, 2**self.n // _SHARE_WAITING):
                self.flush()
            return
        code = np.ascontiguousarray(points.codes()[:, 0])
        self.weights.add(weights, None, code)
        size = np.uint64(2**self.n)
        for target, column in enumerate(y.T):
            self.sums.add(np.ascontiguousarray(column), weights, code + np.uint64(target) * size)

    def summed(self, points: DistinctPoints) -> tuple[ExactSum, ExactSum]:
        """New weights and sums in this form, of distinct points."""
        distinct = points.fork()
        distinct.deduplicate()
        place = distinct.codes[:, 0].astype(np.intp)
        return distinct.weights.scattered(place, 2**self.n), distinct.sums.scattered(place, 2**self.n)

    def rescaled(self, exponent: int, origin: NDArray[np.float64]) -> Self:
        """The same rows with targets ``y_t / 2**(32 * exponent) - origin_t``, exactly; to read from: it shares sums.

        The origin is taken off few numbers as they are read, and not off all cells.
        """
        view = super(Cells, self._settled()).rescaled(exponent, np.zeros_like(origin))
        view.totals, view._origin = self.totals.rescaled(exponent, origin), origin if origin.any() else None
        return view

    def merge(self, other: ExactStatistic, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same form, or of distinct points."""
        self.sums, self._origin = self._settled().sums, None
        super().merge(other._settled() if isinstance(other, Cells) else other, sign)

    def state(self) -> tuple[State, Arrays]:
        """The sums as JSON and arrays."""
        return super(Cells, self._settled()).state()

    def _settled(self) -> Self:
        """The same with the origin taken off all cells, in new sums; itself if there is none."""
        if self._origin is None:
            return self
        twin = copy(self)
        twin.sums, twin._origin = self._about_origin(self.sums.copy(), lambda: self.weights), None
        return twin

    def _about_origin(self, sums: ExactSum, weights: Callable[[], ExactSum]) -> ExactSum:
        """Sums of targets (T, N) as they are about the origin, given the same sums of weights (N,)."""
        if self._origin is not None:
            sums.add_multiples(weights(), -self._origin[:, None])
        return sums

    @classmethod
    def of(cls, statistic: ExactStatistic) -> Self:
        """The cells of a statistic that holds points: itself, if it is in cells."""
        if isinstance(statistic, cls):
            return statistic
        cells = cls(statistic.n, statistic.n_targets)
        cells.merge(statistic)
        return cells

    def as_points(self) -> DistinctPoints:
        """The cells that hold something, as distinct points."""
        self.flush()
        points = DistinctPoints(self.n, self.n_targets)
        place = np.flatnonzero(self.weights.nonzero() | self.sums.nonzero().any(axis=0))
        points.totals.merge(self.totals)
        points.codes = place.astype(np.uint64)[:, None]
        points.weights = self.weights.take(place)
        points.sums = self._about_origin(self.sums.take(place), lambda: points.weights)
        return points

    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of characters, (D + 1, D + 1): ``G[S, T] = c(S xor T)``, look-ups alone."""
        self.flush()
        moments = read(self.weights.walsh_hadamard(n_threads=n_threads))
        codes = family.with_empty[:, 0]
        gram = np.empty((len(codes), len(codes)))
        for start in range(0, len(codes), _GRAM_ROWS_AT_ONCE):
            rows = slice(start, start + _GRAM_ROWS_AT_ONCE)
            np.take(moments, (codes[rows, None] ^ codes).astype(np.intp), out=gram[rows], mode="clip")  # unbuffered
        return gram

    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        self.flush()
        chosen = family.with_empty[:, 0].astype(np.intp)
        sums = self.sums.walsh_hadamard(chosen, n_threads=n_threads)
        return self._about_origin(sums, lambda: self.weights.walsh_hadamard(chosen, n_threads=n_threads)).to_float()

    def first_alike(self) -> NDArray[np.intp]:
        """Place of the first column that each equals up to sign on all rows, (n,); -1 if it is constant."""
        self.flush()
        codes = np.flatnonzero(self.weights.nonzero()).astype(np.uint64)[:, None]
        return Points.from_codes(codes, self.n).first_alike()

    def frequencies(self) -> NDArray[np.float64]:
        """Share (n,) of the weight of the rows at which each column is bit 1."""
        self.flush()
        return self._shares_of_ones(self.weights.walsh_hadamard(np.intp(1) << np.arange(self.n)))

    def aliases(self, family: Family, place: int) -> NDArray[np.bool_]:
        """Whether each monomial of ``[(), *family]`` equals, up to sign, that of ``place`` on all rows."""
        return self.as_points().aliases(family, place)

    def squared_error(self, polynomial: FittedPolynomial, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted squared error (T,) of a polynomial on the rows."""
        return self.as_points().squared_error(polynomial, n_threads=n_threads)


def distinct_points_of(statistic: Cells | DistinctPoints) -> DistinctPoints:
    """The distinct points of a statistic that holds points."""
    return statistic.as_points() if isinstance(statistic, Cells) else statistic


class Moments(CompactSums):
    """Exact sums of weights times the characters of every symmetric difference, and of targets times the family's.

    Attributes
    ----------
    family : Family
        The monomials, D of them.
    differences : SymmetricDifferences
        The distinct ``S xor T``, N of them.
    weights, sums : ExactSum of shape (N,), (T, D + 1)
        The moments, and the correlations of the targets.
    """

    kind = "moments"

    def __init__(self, family: Family, n_targets: int, *, n_threads: int = 1, max_waiting: int = _MAX_WAITING) -> None:
        super().__init__(family.n, n_targets)
        self.n_threads, self.max_waiting = n_threads, max_waiting
        self._serve(family)

    def _serve(self, family: Family) -> None:
        self.family = family
        self.differences = SymmetricDifferences.of(family)
        self._clear()

    def _clear(self) -> None:
        self.totals = Totals(self.n_targets)
        self.weights = ExactSum.zeros((len(self.differences.masks),))
        self.sums = ExactSum.zeros((self.n_targets, len(self.family) + 1))
        self._waiting: DistinctPoints = DistinctPoints(self.n, self.n_targets)

    def empty(self) -> Self:
        """The same layout without rows."""
        twin = copy(self)  # shares the differences, which never change
        twin._clear()
        return twin

    def restricted(self, family: Family) -> Self:
        """The sums that a leading part of the family needs."""
        if len(family) == len(self.family):
            return self
        self.flush()
        twin = copy(self)
        twin._serve(self.family.leading(family))
        twin.totals = self.totals.copy()
        twin.weights = self.weights.take(self.differences.places(twin.differences.masks))
        twin.sums = self.sums.take(slice(len(family) + 1))
        return twin

    def _add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        self._waiting._add(points, y, weights)
        if self._waiting.n_points >= self.max_waiting:
            self.flush()

    def summed(self, points: DistinctPoints) -> tuple[ExactSum, ExactSum]:
        """New weights and sums in this form, of distinct points."""
        weights = self.differences.moments(points, n_threads=self.n_threads)
        return weights, points.sums_of(self.family, n_threads=self.n_threads)

    def _emptied(self) -> DistinctPoints:
        return DistinctPoints(self.n, self.n_targets)

    def merge(self, other: ExactStatistic, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same family, or of distinct points."""
        if isinstance(other, Moments) and not np.array_equal(self.family.masks, other.family.masks):
            raise ValueError(
                f"cannot merge moments of {len(other.family)} monomials into moments of {len(self.family)}; "
                "fit both with the same degree, min_degree and subsets."
            )
        super().merge(other, sign)

    def state(self) -> tuple[State, Arrays]:
        """The sums as JSON and arrays."""
        state, arrays = super().state()
        return state | {"span": self.family.degree_range}, arrays | {"masks": self.family.masks}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Become the sums that :meth:`state` wrote."""
        family = Family.of_file(self.n, state["span"], arrays)
        if not has_room(8.0 * len(family) ** 2):
            raise ValueError(f"moments of {len(family)} subsets")
        self._serve(family)
        super().restore(state, arrays)

    def _weights_of_sums(self) -> ExactSum:
        return self.weights.take(self.differences.places(self.family.with_empty))

    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of characters, (D + 1, D + 1), for the family or a leading part of it."""
        self.flush()
        return self.differences.gram(self.family.leading(family), read(self.weights), n_threads=n_threads)

    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        self.flush()
        return self.sums.take(slice(len(self.family.leading(family)) + 1)).to_float()

    def aliases(self, family: Family, place: int) -> NDArray[np.bool_]:
        """Whether each monomial of ``[(), *family]`` equals, up to sign, that of ``place`` on all rows.

        A moment is plus or minus the total weight when the two characters agree wherever there is weight.
        """
        return self._extreme(self._places(family)[place])

    def first_alike(self) -> NDArray[np.intp]:
        """Place of the first column that each equals up to sign on all rows, (n,); -1 if it is constant."""
        n_columns, first = int((sizes(self.family.masks) == 1).sum()), np.arange(self.n)
        columns = Family(self.n, self.family.masks[:n_columns], None)
        alike = self._extreme(self._places(columns))
        members = np.array([i for (i,) in columns.subsets], dtype=np.intp)
        first[members] = np.append(-1, members)[alike[1:].argmax(axis=1)]
        return first

    def frequencies(self) -> NDArray[np.float64] | None:
        """Share (n,) of the weight of the rows at which each column is bit 1; None without the sums of all columns."""
        self.flush()
        masks, known = Family.full(self.n, 1).masks, self.differences.masks
        places = np.minimum(self.differences.places(masks), len(known) - 1)
        if not np.array_equal(known[places], masks):
            return None
        return self._shares_of_ones(self.weights.take(places))

    def _places(self, family: Family) -> NDArray[np.intp]:
        """Places of the moments of ``S xor T`` for S, T in ``[(), *family]``, a leading part, (D + 1, D + 1)."""
        every = np.arange(len(self.differences.masks), dtype=np.float64)
        return self.differences.gram(family, every, n_threads=self.n_threads).astype(np.intp)

    def _extreme(self, places: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether moments at some places are plus or minus the total weight."""
        self.flush()
        moments, weight = self.weights.take(places.ravel()), self.totals.weight.repeated(places.size)
        less = moments.plus(weight, 1).nonzero() & moments.plus(weight, -1).nonzero()
        return np.asarray(~less.reshape(places.shape))

    def squared_error(self, polynomial: FittedPolynomial, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted squared error (T,) of a polynomial on the rows, from the equations of its family."""
        equations = self.normal_equations(polynomial.family, n_threads=n_threads)
        return equations.squared_error(polynomial.coef, np.zeros(len(polynomial.family)), polynomial.intercept)

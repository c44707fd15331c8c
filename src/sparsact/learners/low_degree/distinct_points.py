r"""The distinct points with their exact sums, and exact correlations of sums with characters, by XOR and popcount.

A Gram matrix of characters consists of correlations :math:`\sum_i v_i \chi_S(x_i)`, one for each symmetric
difference of two subsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hypercube import WORD, Masks, n_words
from sparsact.kernels.subset_ranks import character_sums
from sparsact.learners.low_degree.exact_statistic import ExactStatistic, Reading
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial, check_bits
from sparsact.learners.points import Points
from sparsact.saving.schema import Arrays, State, check_array
from sparsact.statistics.exact_sum import LIMB_BITS, ExactSum

_COUNTS_AT_ONCE: Final = 1 << 22
_MANY_ROWS, _MANY_COLUMNS = 1 << 12, 8  # that fill the words of a sort
_MAX_APPENDED: Final = 4096  # batches, since each fork copies their list


def correlations(points: Points, values: ExactSum, masks: Masks, *, n_threads: int = 1) -> ExactSum:
    r"""Exact :math:`\sum_i v_i \chi_S(x_i)` of values (..., m) at m points for every subset, (..., N).

    Each limb of the values is cut into bit planes; a plane's correlation is its popcount minus twice the popcount of
    its overlap with the parity of the columns in S: ``N * planes * m / 64`` word operations, with one plane for counts
    and about 70 for general doubles. Fastest when neighbouring subsets share high coordinates.
    """
    values.normalize()
    *shape, m = values.limbs.shape
    limbs, n_values = values.limbs.reshape(prod(shape), m), prod(shape[1:])
    result = np.zeros((len(limbs), len(masks)), dtype=np.int64)
    for row, limb in enumerate(limbs):
        planes, worth = _bit_planes(limb, top=row >= len(limbs) - n_values)
        if len(planes):
            result[row] = _signed_sums(points, planes, worth, masks, n_threads)
    return ExactSum(values.base, result.reshape(*shape, len(masks)), max(1, m) << (LIMB_BITS + 1))


def small_correlations(codes: Masks, n: int, values: ExactSum, size: int, *, n_threads: int = 1) -> ExactSum:
    """The same of codes, packed by row, for all subsets of at most ``size`` of n coordinates, in numeric order."""
    m = len(codes)
    if m < _MANY_ROWS or n < _MANY_COLUMNS:
        return correlations(Points.from_codes(codes, n), values, kernels.subsets_in_order(n, size), n_threads=n_threads)
    values.normalize()
    sums = character_sums(codes, values.limbs.reshape(-1, m), n, size, n_threads=n_threads)
    return ExactSum(values.base, sums.reshape(*values.limbs.shape[:-1], sums.shape[1]), m << (LIMB_BITS + 1))


def _bit_planes(limb: NDArray[np.int64], *, top: bool) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Non-empty bit planes (P, words) of a normalised limb, and what a set bit of each is worth."""
    words = np.ascontiguousarray(limb).view(np.uint64)[:, None]
    planes = kernels.transpose_bits(words, 64)[: LIMB_BITS + top]
    worth = np.int64(1) << np.arange(len(planes), dtype=np.int64)
    if top:
        worth[-1] = -worth[-1]  # two's complement: the top limb lies in [-2**32, 2**32)
    some = planes.any(axis=1)
    return np.ascontiguousarray(planes[some]), worth[some]


def _signed_sums(
    points: Points, planes: NDArray[np.uint64], worth: NDArray[np.int64], masks: Masks, n_threads: int
) -> NDArray[np.int64]:
    ones = np.bitwise_count(planes).sum(axis=1, dtype=np.int64)
    sums = np.empty(len(masks), dtype=np.int64)
    step = max(1, _COUNTS_AT_ONCE // len(planes))
    for start in range(0, len(masks), step):
        odd = kernels.parity_counts(points.columns, planes, masks[start : start + step], n_threads=n_threads)
        for plane, each in zip(odd, worth.tolist(), strict=True):
            plane *= -2 * each
        sums[start : start + step] = odd.sum(axis=0) + int(worth @ ones)
    return sums


def agreeing(points: Points, masks: Masks, place: int) -> NDArray[np.bool_]:
    """Whether each character equals, up to sign, that of ``place`` at all points, (N,)."""
    every = np.full((1, points.columns.shape[1]), ~np.uint64(0))
    every[0, -1] >>= np.uint64(-points.n_rows % WORD)
    odd = kernels.parity_counts(points.columns, every, masks ^ masks[place])[0]
    return np.asarray((odd == 0) | (odd == points.n_rows))


@dataclass(frozen=True, eq=False)
class SymmetricDifferences:
    """The distinct ``S xor T`` of the subsets of a family, the empty one among them.

    Attributes
    ----------
    masks : ndarray of shape (N, words), uint64
        In the order of the numbers they spell.
    size : int
        If ``position`` is None, they are all subsets up to a size, and members give the place of each.
    position : ndarray of shape (D + 1, D + 1), int32, or None
        The place of the difference of every pair.
    """

    masks: Masks
    size: int = 0
    position: NDArray[np.int32] | None = None

    @classmethod
    def of(cls, family: Family) -> SymmetricDifferences:
        """By rank when the family holds all subsets up to some size; else by search."""
        if family.degree_range is not None and family.degree_range[0] == 1:
            size = min(2 * family.degree_range[1], family.n)
            return cls(kernels.subsets_in_order(family.n, size), size)
        masks, position = kernels.symmetric_differences(family.with_empty)
        return cls(masks, position=position)

    def moments(self, points: DistinctPoints, *, n_threads: int = 1) -> ExactSum:
        """Sums of the weights of points times the character of each difference, (N,)."""
        points.flush()
        if self.position is None:
            return small_correlations(points.codes, points.n, points.weights, self.size, n_threads=n_threads)
        return correlations(points.points, points.weights, self.masks, n_threads=n_threads)

    def places(self, masks: Masks) -> NDArray[np.intp]:
        """Places of some of the masks."""
        return np.searchsorted(_as_bytes(self.masks), _as_bytes(masks))

    def gram(self, family: Family, moments: NDArray[np.float64], *, n_threads: int = 1) -> NDArray[np.float64]:
        """Moments (N,) arranged by pair, (D + 1, D + 1), for the family or a leading part of it."""
        if self.position is None:
            return kernels.ranked_gram(family.with_empty, moments, family.n, self.size, n_threads=n_threads)
        size = len(family) + 1
        return np.asarray(moments[self.position[:size, :size]])


def _as_bytes(masks: Masks) -> NDArray[np.bytes_]:
    """Masks as strings of bytes that sort like the numbers they spell."""
    words = np.ascontiguousarray(masks[:, ::-1].astype(">u8"))
    return words.view(f"S{words.shape[1] * words.itemsize}").ravel()


class DistinctPoints(ExactStatistic):
    """Points with the exact sums of their weights and weighted targets; repeated points are merged now and then.

    Attributes
    ----------
    codes : ndarray of shape (N, ceil(n / 64)), uint64
        The points, packed by row.
    weights, sums : ExactSum of shape (N,), (T, N)
        Exact sums at each of them.
    """

    kind = "rows"

    def __init__(self, n: int, n_targets: int) -> None:
        super().__init__(n, n_targets)
        self._hold(np.zeros((0, n_words(n)), dtype=np.uint64))
        self._n_distinct = 0
        self._appended: list[tuple[NDArray[np.uint64], ExactSum, ExactSum]] = []

    def _hold(self, codes: NDArray[np.uint64]) -> None:
        self.codes = codes
        self.weights, self.sums = ExactSum.zeros((len(codes),)), ExactSum.zeros((self.n_targets, len(codes)))

    @property
    def points(self) -> Points:
        """The points, packed by column."""
        self.flush()
        return Points.from_codes(self.codes, self.n)

    @property
    def n_points(self) -> int:
        """Points held, repeated ones counted as often as they stand."""
        return len(self.codes) + sum(len(codes) for codes, _, _ in self._appended)

    def _add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        each = np.broadcast_to(weights, y.T.shape)
        sums = ExactSum.of(np.ascontiguousarray(y.T), np.ascontiguousarray(each))
        self._append(points.codes(), ExactSum.of(weights), sums)

    def merge(self, other: ExactStatistic, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another."""
        other.flush()
        if not isinstance(other, DistinctPoints):
            self._refuse(other)
        self.totals.merge(other.totals, sign)
        self._append(other.codes, other.weights.times(sign), other.sums.times(sign))

    def _append(self, codes: NDArray[np.uint64], weights: ExactSum, sums: ExactSum) -> None:
        self._appended.append((codes, weights, sums))
        if self.n_points > max(1 << 18, 3 * self._n_distinct):  # amortised: each row is sorted a few times at most
            self.deduplicate()

    def flush(self) -> None:
        """Put the appended rows next to the others, in any order, by one assignment."""
        if self._appended:
            parts = [(self.codes, self.weights, self.sums), *self._appended][not len(self.codes) :]
            codes, weights, sums = zip(*parts, strict=True)
            together = codes[0], weights[0], sums[0]
            if len(parts) > 1:
                together = np.concatenate(codes), ExactSum.concatenated(weights), ExactSum.concatenated(sums)
            (self.codes, self.weights, self.sums), self._appended = together, []

    def deduplicate(self) -> None:
        """Merge equal points, in table order, and drop points of weight 0: the canonical form."""
        self.flush()
        order = np.lexsort(self.codes.T)
        codes = self.codes[order]
        new = np.ones(len(codes), dtype=bool)
        new[1:] = (codes[1:] != codes[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        weights, sums = self.weights.grouped(order, first), self.sums.grouped(order, first)
        kept = np.flatnonzero(weights.nonzero() | sums.nonzero().any(axis=0))
        codes, weights, sums = np.ascontiguousarray(codes[first[kept]]), weights.take(kept), sums.take(kept)
        self.codes, self.weights, self.sums, self._n_distinct = codes, weights, sums, kept.size

    def fork(self) -> Self:
        """A copy that shares sums with this one until it is changed; this one must not be changed any more."""
        if len(self._appended) > _MAX_APPENDED:
            self.flush()
        twin = super().fork()
        twin._appended = [*self._appended]
        return twin

    def state(self) -> tuple[State, Arrays]:
        """The sums as JSON and arrays."""
        self.deduplicate()
        state, arrays = super().state()
        return state, arrays | {"codes": self.codes}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Become the sums that :meth:`state` wrote."""
        codes = check_array(arrays, "codes", np.uint64, (None, n_words(self.n)))
        check_bits(codes, self.n)
        self._hold(codes)
        super().restore(state, arrays)

    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of characters, (D + 1, D + 1), from the unique symmetric differences."""
        differences = SymmetricDifferences.of(family)
        moments = differences.moments(self, n_threads=n_threads)
        return differences.gram(family, read(moments), n_threads=n_threads)

    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        return self.sums_of(family, n_threads=n_threads).to_float()

    def sums_of(self, family: Family, *, n_threads: int = 1) -> ExactSum:
        """Exact weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        self.flush()
        span = family.degree_range
        if span is None or span[0] > 1:
            return correlations(self.points, self.sums, family.with_empty, n_threads=n_threads)
        sums = small_correlations(self.codes, self.n, self.sums, span[1], n_threads=n_threads)
        return sums.take(np.lexsort(family.with_empty.T).argsort())

    def aliases(self, family: Family, place: int) -> NDArray[np.bool_]:
        """Whether each monomial of ``[(), *family]`` equals, up to sign, that of ``place`` on all rows."""
        return agreeing(self._weighted(), family.with_empty, place)

    def first_alike(self) -> NDArray[np.intp]:
        """Place of the first column that each equals up to sign on all rows, (n,); -1 if it is constant."""
        return self._weighted().first_alike()

    def frequencies(self) -> NDArray[np.float64]:
        """Share (n,) of the weight of the rows at which each column is bit 1."""
        return self._shares_of_ones(correlations(self.points, self.weights, Family.full(self.n, 1).masks))

    def _weighted(self) -> Points:
        """The points that have a weight, some of them repeated."""
        self.flush()
        self.weights.normalize()
        if (self.weights.limbs[-1:] < 0).any():  # rows that were taken away
            self.deduplicate()
        return Points.from_codes(np.ascontiguousarray(self.codes[self.weights.nonzero()]), self.n)

    def squared_error(self, polynomial: FittedPolynomial, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted squared error (T,) of a polynomial on the rows, point by point."""
        self.deduplicate()
        weights, sums = self.weights.to_float()[:, None], self.sums.to_float().T
        values = polynomial.values(self.points, n_threads=n_threads)
        mean = self.totals.sums.to_float() / self.weight  # about the mean: nothing large cancels
        about = self.totals.squares_about(mean)
        values, sums = values - mean, sums - weights * mean
        error = about + np.einsum("mt,mt->t", values, weights * values - 2 * sums)
        return np.asarray(np.maximum(error, 0.0))

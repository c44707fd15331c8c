"""The distinct points themselves, each with its exact sums."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import n_words
from sparsact.learners.low_degree.correlations import correlations
from sparsact.learners.low_degree.family import Family, check_bits
from sparsact.learners.low_degree.statistic import Reading, Statistic, row_sums
from sparsact.learners.low_degree.symmetric_differences import Differences
from sparsact.learners.points import Points
from sparsact.saving.schema import Arrays, State, check_array
from sparsact.statistics.exact_sum import ExactSum

_MOST_APPENDED = 4096  # batches, since each fork copies their list


class DistinctPoints(Statistic):
    """Points with the exact sums of their weights and weighted targets; repeated points are joined now and then.

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
        self.codes = np.zeros((0, n_words(n)), dtype=np.uint64)
        self.weights = ExactSum.zeros((0,))
        self.sums = ExactSum.zeros((n_targets, 0))
        self._n_joined = 0
        self._appended: list[tuple[NDArray[np.uint64], ExactSum, ExactSum]] = []

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        waiting = sum(codes.nbytes + weights.nbytes + sums.nbytes for codes, weights, sums in self._appended)
        return self.codes.nbytes + self.weights.nbytes + self.sums.nbytes + waiting

    @property
    def points(self) -> Points:
        """The points, packed by column."""
        self.digest()
        return Points.from_codes(self.codes, self.n)

    @property
    def n_points(self) -> int:
        """Points held, repeated ones counted as often as they stand."""
        return len(self.codes) + sum(len(codes) for codes, _, _ in self._appended)

    def add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Add ``w`` and ``w * y_t`` of every row at its point; the totals are the caller's affair."""
        self._append(points.codes(), *row_sums(y, weights))

    def merge(self, other: Self, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another."""
        other.digest()
        self.totals.merge(other.totals, sign)
        self._append(other.codes, other.weights.times(sign), other.sums.times(sign))

    def in_unit(self, place: int, origin: NDArray[np.float64]) -> Self:
        """The same rows with targets ``y_t / 2**(32 * place) - origin_t``, exactly; to read from: it shares sums."""
        self.join()
        return super().in_unit(place, origin)

    def state(self, name: str, arrays: Arrays) -> State:
        """The statistic as state; its arrays are put among the others, under its name."""
        self.join()
        arrays[f"{name}.codes"] = self.codes
        return super().state(name, arrays)

    @classmethod
    def _of_shape(cls, state: State, name: str, n: int, n_targets: int, arrays: Arrays) -> Self:
        rows = cls(n, n_targets)
        rows.codes = check_array(arrays, f"{name}.codes", np.uint64, (None, n_words(n)))
        check_bits(rows.codes, n)
        rows.weights, rows.sums = ExactSum.zeros((len(rows.codes),)), ExactSum.zeros((n_targets, len(rows.codes)))
        return rows

    def fork(self) -> Self:
        """A copy that shares sums with this one until it is changed; this one must not be changed any more."""
        if len(self._appended) > _MOST_APPENDED:
            self.digest()
        twin = super().fork()
        twin._appended = [*self._appended]
        return twin

    def _append(self, codes: NDArray[np.uint64], weights: ExactSum, sums: ExactSum) -> None:
        self._appended.append((codes, weights, sums))
        if self.n_points > max(1 << 18, 3 * self._n_joined):  # amortised: each row is sorted a few times at the most
            self.join()

    def digest(self) -> None:
        """Bring the appended rows beside the others, in any order, by one assignment."""
        if self._appended:
            codes, weights, sums = zip(*self._appended, strict=True)
            all_codes = np.concatenate([self.codes, *codes])
            all_weights = ExactSum.concatenated([self.weights, *weights])
            all_sums = ExactSum.concatenated([self.sums, *sums])
            self.codes, self.weights, self.sums, self._appended = all_codes, all_weights, all_sums, []

    def join(self) -> None:
        """Join equal points, in table order, and drop those of which nothing is left: the canonical form."""
        self.digest()
        order = np.lexsort(self.codes.T)
        codes = self.codes[order]
        new = np.ones(len(codes), dtype=bool)
        new[1:] = (codes[1:] != codes[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        weights, sums = self.weights.grouped(order, first), self.sums.grouped(order, first)
        kept = np.flatnonzero(weights.nonzero() | sums.nonzero().any(axis=0))
        codes, weights, sums = np.ascontiguousarray(codes[first[kept]]), weights.take(kept), sums.take(kept)
        self.codes, self.weights, self.sums, self._n_joined = codes, weights, sums, kept.size

    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of characters, (D + 1, D + 1), from the unique symmetric differences."""
        differences = Differences.of(family)
        moments = correlations(self.points, self.weights, differences.masks, n_threads=n_threads)
        return differences.gram(family, read(moments), n_threads=n_threads)

    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        return correlations(self.points, self.sums, family.with_empty, n_threads=n_threads).to_float()

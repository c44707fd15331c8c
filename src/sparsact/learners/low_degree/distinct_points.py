"""The distinct points themselves, each with its exact sums."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import n_words
from sparsact.learners.low_degree.correlations import SymmetricDifferences, agreeing, correlations
from sparsact.learners.low_degree.exact_statistic import BufferedSums, ExactStatistic, Reading
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial, check_bits
from sparsact.learners.points import Points
from sparsact.saving.schema import Arrays, State, check_array
from sparsact.statistics.exact_sum import ExactSum

_MAX_APPENDED = 4096  # batches, since each fork copies their list


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
    def nbytes(self) -> int:
        """Bytes held."""
        held = [(self.codes, self.weights, self.sums), *self._appended]
        return sum(part.nbytes for parts in held for part in parts)

    @property
    def points(self) -> Points:
        """The points, packed by column."""
        self.flush()
        return Points.from_codes(self.codes, self.n)

    @property
    def n_points(self) -> int:
        """Points held, repeated ones counted as often as they stand."""
        return len(self.codes) + sum(len(codes) for codes, _, _ in self._appended)

    def as_points(self) -> Self:
        """The statistic itself."""
        return self

    def _add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        each = np.broadcast_to(weights, y.T.shape)
        sums = ExactSum.of(np.ascontiguousarray(y.T), np.ascontiguousarray(each))
        self._append(points.codes(), ExactSum.of(weights), sums)

    def merge(self, other: Self, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another."""
        other.flush()
        self.totals.merge(other.totals, sign)
        self._append(other.codes, other.weights.times(sign), other.sums.times(sign))

    def sums_for(self, form: BufferedSums) -> tuple[ExactSum, ExactSum]:
        """The weights and sums in another form, to be added to those of such a statistic."""
        return form.summed(self)

    def _append(self, codes: NDArray[np.uint64], weights: ExactSum, sums: ExactSum) -> None:
        self._appended.append((codes, weights, sums))
        if self.n_points > max(1 << 18, 3 * self._n_distinct):  # amortised: each row is sorted a few times at most
            self.deduplicate()

    def flush(self) -> None:
        """Put the appended rows next to the others, in any order, by one assignment."""
        if self._appended:
            codes, weights, sums = zip(*self._appended, strict=True)
            all_codes = np.concatenate([self.codes, *codes])
            all_weights = ExactSum.concatenated([self.weights, *weights])
            all_sums = ExactSum.concatenated([self.sums, *sums])
            self.codes, self.weights, self.sums, self._appended = all_codes, all_weights, all_sums, []

    def deduplicate(self) -> None:
        """Merge equal points, in table order, and drop those of which nothing is left: the canonical form."""
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

    def rescaled(self, exponent: int, origin: NDArray[np.float64]) -> Self:
        """The same rows with targets ``y_t / 2**(32 * exponent) - origin_t``, exactly; to read from: it shares sums."""
        self.deduplicate()
        return super().rescaled(exponent, origin)

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
        moments = correlations(self.points, self.weights, differences.masks, n_threads=n_threads)
        return differences.gram(family, read(moments), n_threads=n_threads)

    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        return correlations(self.points, self.sums, family.with_empty, n_threads=n_threads).to_float()

    def aliases(self, family: Family, place: int) -> NDArray[np.bool_]:
        """Whether each monomial of ``[(), *family]`` equals, up to sign, that of ``place`` on all rows."""
        self.deduplicate()
        codes = np.ascontiguousarray(self.codes[self.weights.nonzero()])
        return agreeing(Points.from_codes(codes, self.n), family.with_empty, place)

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

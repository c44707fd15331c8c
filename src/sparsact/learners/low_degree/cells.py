"""One cell a point of the cube: every moment and every correlation by one Walsh-Hadamard transform each."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.rows import DistinctPoints
from sparsact.learners.low_degree.statistic import Reading, Statistic
from sparsact.learners.points import Points
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.exact_sum import ExactSum

MAX_N = 26
_ROWS_AT_ONCE = 256
_LEAST_WAITING, _SHARE_WAITING = 1 << 16, 8  # rows that wait: so many, or cells over so many


class Cells(Statistic):
    """Exact sums of weights and of weighted targets in each of the ``2**n`` cells.

    Attributes
    ----------
    weights, sums : ExactSum of shape (2**n,), (T, 2**n)
        In table order (see :mod:`sparsact.hypercube`).
    """

    kind = "cells"

    def __init__(self, n: int, n_targets: int) -> None:
        super().__init__(n, n_targets)
        self.weights = ExactSum.zeros((2**n,))
        self.sums = ExactSum.zeros((n_targets, 2**n))
        self._waiting = DistinctPoints(n, n_targets)
        self._shared = False

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.weights.nbytes + self.sums.nbytes + self._waiting.nbytes

    @classmethod
    def _of_shape(cls, state: State, name: str, n: int, n_targets: int, arrays: Arrays) -> Self:
        if n > MAX_N or arrays[f"{name}.weights"].shape[-1:] != (2**n,):
            raise ValueError(f"cells of {n} coordinates")
        return cls(n, n_targets)

    def fork(self) -> Self:
        """A copy that shares sums with this one until it is changed; this one must not be changed any more."""
        twin = super().fork()
        twin._waiting, twin._shared = self._waiting.fork(), True
        return twin

    def add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Add ``w`` and ``w * y_t`` of every row at its point; the totals are the caller's affair."""
        if self._shared:
            self._waiting.add(points, y, weights)
            if self._waiting.n_points >= max(_LEAST_WAITING, 2**self.n // _SHARE_WAITING):
                self.digest()
            return
        code = np.ascontiguousarray(points.codes()[:, 0])
        self.weights.add(weights, None, code)
        size = np.uint64(2**self.n)
        for target, column in enumerate(y.T):
            self.sums.add(np.ascontiguousarray(column), weights, code + np.uint64(target) * size)

    def merge(self, other: Self, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another."""
        other.digest()
        self.totals.merge(other.totals, sign)
        self.weights, self.sums = self.weights.plus(other.weights, sign), self.sums.plus(other.sums, sign)

    def absorb(self, rows: DistinctPoints) -> None:
        """Add all that a statistic of rows holds."""
        self.totals.merge(rows.totals)
        self._waiting.merge(rows)
        self.digest()

    def digest(self) -> None:
        """Add the waiting rows to their cells, in new arrays, by one assignment."""
        if self._waiting.n_points:
            waiting = self._waiting
            waiting.join()
            place = waiting.codes[:, 0].astype(np.intp)
            weights, sums = (part.scattered(place, 2**self.n) for part in (waiting.weights, waiting.sums))
            weights.merge(self.weights)
            sums.merge(self.sums)
            nothing = DistinctPoints(self.n, self.n_targets)
            self.weights, self.sums, self._waiting, self._shared = weights, sums, nothing, False

    def rows(self) -> DistinctPoints:
        """The cells that hold something, as a statistic of rows."""
        self.digest()
        rows = DistinctPoints(self.n, self.n_targets)
        place = np.flatnonzero(self.weights.nonzero() | self.sums.nonzero().any(axis=0))
        rows.totals.merge(self.totals)
        rows.codes = place.astype(np.uint64)[:, None]
        rows.weights, rows.sums = self.weights.take(place), self.sums.take(place)
        return rows

    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of characters, (D + 1, D + 1): ``G[S, T] = c(S xor T)``, look-ups alone."""
        self.digest()
        moments = read(self.weights.walsh_hadamard(n_threads=n_threads))
        codes = family.with_empty[:, 0]
        gram = np.empty((len(codes), len(codes)))
        for start in range(0, len(codes), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            np.take(moments, (codes[rows, None] ^ codes).astype(np.intp), out=gram[rows])
        return gram

    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        self.digest()
        chosen = family.with_empty[:, 0].astype(np.intp)
        return self.sums.walsh_hadamard(chosen, n_threads=n_threads).to_float()

"""One cell for each point of the cube: every moment and every correlation by one Walsh-Hadamard transform each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.exact_statistic import BufferedSums, Reading
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial
from sparsact.learners.points import Points
from sparsact.statistics.exact_sum import ExactSum

MAX_N = 26
_ROWS_AT_ONCE = 256
_MIN_WAITING, _SHARE_WAITING = 1 << 16, 8  # rows that wait in a fork: so many, or cells over so many


class Cells(BufferedSums):
    """Exact sums of weights and of weighted targets in each of the ``2**n`` cells.

    Attributes
    ----------
    weights, sums : ExactSum of shape (2**n,), (T, 2**n)
        In table order (see :mod:`sparsact.hypercube`).
    """

    kind, buffer = "cells", DistinctPoints

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

    def _emptied(self) -> None:
        """The sums are in new arrays, that no fork shares."""

    def as_points(self) -> DistinctPoints:
        """The cells that hold something, as distinct points."""
        self.flush()
        points = DistinctPoints(self.n, self.n_targets)
        place = np.flatnonzero(self.weights.nonzero() | self.sums.nonzero().any(axis=0))
        points.totals.merge(self.totals)
        points.codes = place.astype(np.uint64)[:, None]
        points.weights, points.sums = self.weights.take(place), self.sums.take(place)
        return points

    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of characters, (D + 1, D + 1): ``G[S, T] = c(S xor T)``, look-ups alone."""
        self.flush()
        moments = read(self.weights.walsh_hadamard(n_threads=n_threads))
        codes = family.with_empty[:, 0]
        gram = np.empty((len(codes), len(codes)))
        for start in range(0, len(codes), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            np.take(moments, (codes[rows, None] ^ codes).astype(np.intp), out=gram[rows])
        return gram

    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        self.flush()
        chosen = family.with_empty[:, 0].astype(np.intp)
        return self.sums.walsh_hadamard(chosen, n_threads=n_threads).to_float()

    def aliases(self, family: Family, place: int) -> NDArray[np.bool_]:
        """Whether each monomial of ``[(), *family]`` equals, up to sign, that of ``place`` on all rows."""
        return self.as_points().aliases(family, place)

    def squared_error(self, polynomial: FittedPolynomial, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted squared error (T,) of a polynomial on the rows, point by point."""
        return self.as_points().squared_error(polynomial, n_threads=n_threads)

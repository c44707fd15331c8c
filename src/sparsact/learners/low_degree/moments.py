"""The moments that one family of monomials needs: any number of rows in a fixed amount of memory."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.learners.exact_sum import ExactSum
from sparsact.learners.low_degree.correlations import correlations
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.rows import Rows
from sparsact.learners.low_degree.statistic import Statistic
from sparsact.learners.points import Points

_ROWS_AT_ONCE = 1 << 16


class Moments(Statistic):
    """Exact sums of weights times the characters of every symmetric difference, and of targets times the family's.

    Attributes
    ----------
    family : Family
        The monomials, D of them.
    differences : ndarray of shape (N, words), uint64
        The distinct ``S xor T``.
    weights, sums : ExactSum of shape (N,), (T, D + 1)
        The moments, and the correlations of the targets.
    """

    def __init__(self, family: Family, n_targets: int, *, n_threads: int = 1) -> None:
        super().__init__(family.n, n_targets)
        self.family = family
        self.n_threads = n_threads
        self.differences, self.position = kernels.symmetric_differences(family.with_empty)
        self.weights = ExactSum.zeros((len(self.differences),))
        self.sums = ExactSum.zeros((n_targets, len(family) + 1))
        self._waiting = Rows(family.n, n_targets)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        own = self.differences.nbytes + self.position.nbytes + self.weights.nbytes + self.sums.nbytes
        return own + self._waiting.nbytes

    def _empty(self) -> Self:
        return type(self)(self.family, self.n_targets, n_threads=self.n_threads)

    def _add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        self._waiting.update(points, y, weights)
        if self._waiting.totals.n_rows >= _ROWS_AT_ONCE:
            self.digest()

    def absorb(self, rows: Rows) -> None:
        """Add all that a statistic of rows holds."""
        self.totals.merge(rows.totals)
        self._waiting.merge(rows)
        self.digest()

    def digest(self) -> None:
        """Turn the waiting rows into moments."""
        points, waiting = self._waiting.points, self._waiting
        if points.n_rows:
            self.weights.merge(correlations(points, waiting.weights, self.differences, n_threads=self.n_threads))
            masks = self.family.with_empty
            self.sums.merge(correlations(points, waiting.sums, masks, n_threads=self.n_threads))
            self._waiting = Rows(self.n, self.n_targets)

    def merge(self, other: Self, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same family."""
        self.totals.merge(other.totals, sign)
        self.weights.merge(other.weights, sign)
        self.sums.merge(other.sums, sign)
        self._waiting.merge(other._waiting, sign)

    def gram(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of characters, (D + 1, D + 1), for the family or a leading part of it."""
        self.digest()
        size = len(family) + 1
        return np.asarray(self.weights.to_float()[self.position[:size, :size]])

    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        self.digest()
        return self.sums.take(slice(len(family) + 1)).to_float()

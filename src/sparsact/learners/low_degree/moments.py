"""The moments that one family of monomials needs: any number of rows in a fixed amount of memory."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.correlations import correlations
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.plan import available_memory, spanned
from sparsact.learners.low_degree.rows import DistinctPoints
from sparsact.learners.low_degree.statistic import Reading, Statistic
from sparsact.learners.low_degree.symmetric_differences import Differences
from sparsact.learners.points import Points
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.exact_sum import ExactSum
from sparsact.statistics.totals import Totals

_ROWS_AT_ONCE = 1 << 16


class Moments(Statistic):
    """Exact sums of weights times the characters of every symmetric difference, and of targets times the family's.

    Attributes
    ----------
    family : Family
        The monomials, D of them.
    differences : Differences
        The distinct ``S xor T``, N of them.
    weights, sums : ExactSum of shape (N,), (T, D + 1)
        The moments, and the correlations of the targets.
    """

    kind, holds_points = "moments", False

    def __init__(self, family: Family, n_targets: int, *, n_threads: int = 1) -> None:
        super().__init__(family.n, n_targets)
        self.family = family
        self.n_threads = n_threads
        self.differences = Differences.of(family)
        self._clear()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.differences.nbytes + self.weights.nbytes + self.sums.nbytes + self._waiting.nbytes

    def _empty(self) -> Self:
        twin = copy(self)  # shares the differences, which never change
        twin._clear()
        return twin

    def _clear(self) -> None:
        self.totals = Totals(self.n_targets)
        self.weights = ExactSum.zeros((len(self.differences.masks),))
        self.sums = ExactSum.zeros((self.n_targets, len(self.family) + 1))
        self._waiting = DistinctPoints(self.n, self.n_targets)

    def add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Add ``w`` and ``w * y_t`` of every row at its point; the totals are the caller's affair."""
        self._waiting.add(points, y, weights)
        if self._waiting.n_points >= _ROWS_AT_ONCE:
            self.digest()

    def absorb(self, rows: DistinctPoints) -> None:
        """Add all that a statistic of rows holds."""
        self.totals.merge(rows.totals)
        self._waiting.merge(rows)
        self.digest()

    def state(self, name: str, arrays: Arrays) -> State:
        """The statistic as state; its arrays are put among the others, under its name."""
        arrays[f"{name}.masks"] = self.family.masks
        return super().state(name, arrays) | {"span": self.family.span}

    @classmethod
    def _of_shape(cls, state: State, name: str, n: int, n_targets: int, arrays: Arrays) -> Self:
        family = Family.of_masks(n, arrays, f"{name}.masks")
        span = None if state["span"] is None else (int(state["span"][0]), int(state["span"][1]))
        if span is not None and not np.array_equal(spanned(n, span).masks, family.masks):
            raise ValueError(f"masks that are not all subsets of sizes {span}")
        if 8.0 * len(family) ** 2 > available_memory():
            raise ValueError(f"moments of {len(family)} subsets")
        return cls(Family(n, family.masks, span), n_targets)

    def fork(self) -> Self:
        """A copy that shares sums with this one until it is changed; this one must not be changed any more."""
        twin = super().fork()
        twin._waiting = self._waiting.fork()
        return twin

    def _weights_of_sums(self) -> ExactSum:
        return self.weights.take(self.differences.places(self.family.with_empty))

    def digest(self) -> None:
        """Turn the waiting rows into moments, by one assignment."""
        points, waiting = self._waiting.points, self._waiting
        if points.n_rows:
            weights = correlations(points, waiting.weights, self.differences.masks, n_threads=self.n_threads)
            sums = correlations(points, waiting.sums, self.family.with_empty, n_threads=self.n_threads)
            weights.merge(self.weights)
            sums.merge(self.sums)
            nothing = DistinctPoints(self.n, self.n_targets)
            self.weights, self.sums, self._waiting = weights, sums, nothing

    def merge(self, other: Self, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same family.

        Raises
        ------
        ValueError
            If the families differ.
        """
        if not np.array_equal(self.family.masks, other.family.masks):
            raise ValueError(
                f"cannot merge moments of {len(other.family)} monomials into those of {len(self.family)}; "
                "fit both with the same degree, min_degree and subsets."
            )
        other.digest()
        self.totals.merge(other.totals, sign)
        self.weights, self.sums = self.weights.plus(other.weights, sign), self.sums.plus(other.sums, sign)

    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of characters, (D + 1, D + 1), for the family or a leading part of it."""
        self.digest()
        return self.differences.gram(self.family.leading(family), read(self.weights), n_threads=n_threads)

    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""
        self.digest()
        return self.sums.take(slice(len(self.family.leading(family)) + 1)).to_float()

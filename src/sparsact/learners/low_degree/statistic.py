"""The additive statistic of low-degree regression: what a learner keeps of its rows.

Three forms hold the same exact sums; each can stand for any degree, so that the choice is one of cost alone:

- :class:`~sparsact.learners.low_degree.rows.Rows`: the distinct points themselves (any n, few rows);
- :class:`~sparsact.learners.low_degree.cells.Cells`: one cell for each of the 2**n points (n <= 26, many rows);
- :class:`~sparsact.learners.low_degree.moments.Moments`: the moments that one family of monomials needs
  (any n, any number of rows, that family only).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.family import Family
from sparsact.learners.points import Points
from sparsact.saving.schema import Arrays, State, as_n_rows, check_array
from sparsact.statistics.exact_sum import MOST_DIGIT, MOST_PLACES, ExactSum
from sparsact.statistics.totals import Totals

Reading = Callable[[ExactSum], NDArray[np.float64]]  # how exact moments become the entries of a Gram matrix


class Statistic(ABC):
    """Exact weighted sums over rows; ``update`` in any order, ``merge`` in any grouping, the same bits.

    Attributes
    ----------
    n : int
        Number of coordinates.
    n_targets : int
        Number of targets T.
    totals : Totals
        Rows, weight, sums and squares of the targets.
    weights, sums : ExactSum of shape (N,), (T, ...)
        Of weights and of weighted targets, in the form of the class.
    """

    kind: ClassVar[str]  # what files call the form
    holds_points: ClassVar[bool] = True  # so that any function of them can be summed
    weights: ExactSum
    sums: ExactSum

    def __init__(self, n: int, n_targets: int) -> None:
        self.n = n
        self.n_targets = n_targets
        self.totals = Totals(n_targets)

    def update(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        """Add rows: packed points, targets (m, T), weights (m,) or None for ones."""
        self._change(points, y, np.ones(len(y)) if weights is None else weights, 1)

    def forget(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        """Take rows away that were added before, exactly.

        Raises
        ------
        ValueError
            If more rows are taken than are there.
        """
        if self.totals.n_rows < len(y):
            raise ValueError(f"cannot forget {len(y)} rows of {self.totals.n_rows}; forget only rows that were fitted.")
        self._change(points, y, -np.ones(len(y)) if weights is None else -weights, -1)

    def _change(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64], sign: int) -> None:
        self.totals.update(y, weights, sign)
        self.add(points, y, weights)

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held."""

    @abstractmethod
    def merge(self, other: Self, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same form."""

    def fork(self) -> Self:
        """A copy that shares sums with this one until it is changed; this one must not be changed any more."""
        twin = copy(self)
        twin.totals = self.totals.copy()
        return twin

    @abstractmethod
    def digest(self) -> None:
        """Bring waiting rows into the sums, by one assignment; the rows held are the same."""

    def copy(self) -> Self:
        """An independent copy."""
        twin = self._empty()
        twin.merge(self)
        return twin

    @property
    def n_rows(self) -> int:
        """Rows of non-zero weight."""
        return self.totals.n_rows

    @property
    def weight(self) -> float:
        """Total weight."""
        return self.totals.total_weight()

    def variances(self) -> NDArray[np.float64]:
        """Weighted variance of each target, (T,)."""
        return np.asarray(self.totals.squares_about(self.totals.sums.to_float() / self.weight) / self.weight)

    def state(self, name: str, arrays: Arrays) -> State:
        """The statistic as state; its arrays are put among the others, under its name."""
        self.digest()
        base = {}
        for part, sums in self._parts().items():
            sums.normalize()
            base[part] = sums.base
            arrays[f"{name}.{part}"] = sums.limbs
        return {"n_rows": self.n_rows, "base": base, "kind": self.kind}

    @classmethod
    def from_state(cls, state: State, name: str, n: int, n_targets: int, arrays: Arrays) -> Self:
        """The statistic that :meth:`state` wrote."""
        statistic = cls._of_shape(state, name, n, n_targets, arrays)
        totals = statistic.totals
        totals.n_rows = as_n_rows(state["n_rows"], "n_rows")
        for part, sums in statistic._parts().items():
            limbs = check_array(arrays, f"{name}.{part}", np.int64, (None, *sums.shape))
            if limbs.size and (limbs.max() > MOST_DIGIT or limbs.min() < -MOST_DIGIT):
                raise ValueError(f"{part} is not a normalised sum")
            base = int(state["base"][part])
            if abs(base) > MOST_PLACES or len(limbs) > MOST_PLACES:
                raise ValueError(f"{part} is beyond any double")
            sums.replace(base, limbs)
        weight, means = statistic.weight, totals.sums.to_float()
        if not np.isfinite([weight, *means]).all() or (weight <= 0 if totals.n_rows else weight != 0):
            raise ValueError("a weight of rows that are there is none, or sums are beyond any double")
        return statistic

    @classmethod
    @abstractmethod
    def _of_shape(cls, state: State, name: str, n: int, n_targets: int, arrays: Arrays) -> Self:
        """A statistic of no rows, with room for the sums of a file."""

    def _parts(self) -> dict[str, ExactSum]:
        totals = zip(("total.weight", "total.sums", "total.squares"), self.totals.parts(), strict=True)
        return {"weights": self.weights, "sums": self.sums, **dict(totals)}

    def place(self) -> int:
        """Place of a unit of the targets, see :meth:`Totals.place`."""
        return self.totals.place()

    def mean(self, place: int) -> NDArray[np.float64]:
        """The mean of each target over ``2**(32 * place)``, rounded once, (T,)."""
        return self.totals.mean(place)

    def in_unit(self, place: int, origin: NDArray[np.float64]) -> Self:
        """The same rows with targets ``y_t / 2**(32 * place) - origin_t``, exactly; to read from: it shares sums.

        About their mean, targets lose nothing when their sums are rounded, however far from zero they are.
        """
        self.digest()
        view = copy(self)
        view.totals, view.sums = self.totals.in_unit(place, origin), self.sums.in_unit(place)
        if origin.any():
            view.sums = view.sums.copy()
            view.sums.add_multiples(self._weights_of_sums(), -origin[:, None])
        return view

    def _weights_of_sums(self) -> ExactSum:
        """What the sums of a target that is 1 everywhere are."""
        return self.weights

    def _empty(self) -> Self:
        return type(self)(self.n, self.n_targets)

    @abstractmethod
    def add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Add ``w`` and ``w * y_t`` of every row at its point; the totals are the caller's affair."""

    @abstractmethod
    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of the characters of the empty subset and the family, (D + 1, D + 1)."""

    @abstractmethod
    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""


def row_sums(y: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[ExactSum, ExactSum]:
    """Exact ``w`` (m,) and ``w * y_t`` (T, m) of each row."""
    spread = np.broadcast_to(weights, y.T.shape)
    return ExactSum.of(weights), ExactSum.of(np.ascontiguousarray(y.T), np.ascontiguousarray(spread))

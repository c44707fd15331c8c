"""The moments that one family of monomials needs: any number of rows in a fixed amount of memory."""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.correlations import SymmetricDifferences, correlations
from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.exact_statistic import BufferedSums, Reading
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial
from sparsact.learners.points import Points
from sparsact.memory import has_room
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.exact_sum import ExactSum
from sparsact.statistics.totals import Totals

_ROWS_AT_ONCE = 1 << 16


class Moments(BufferedSums):
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

    kind, buffer = "moments", DistinctPoints

    def __init__(self, family: Family, n_targets: int, *, n_threads: int = 1) -> None:
        super().__init__(family.n, n_targets)
        self.n_threads = n_threads
        self._serve(family)

    @classmethod
    def for_family(cls, family: Family, n_targets: int) -> Self:
        """A statistic without rows that serves a family."""
        return cls(family, n_targets)

    def _serve(self, family: Family) -> None:
        self.family = family
        self.differences = SymmetricDifferences.of(family)
        self._clear()

    def _clear(self) -> None:
        self.totals = Totals(self.n_targets)
        self.weights = ExactSum.zeros((len(self.differences.masks),))
        self.sums = ExactSum.zeros((self.n_targets, len(self.family) + 1))
        self._waiting = self._buffer()

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

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return super().nbytes + self.differences.nbytes

    def _add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        self._waiting._add(points, y, weights)
        if self._waiting.n_points >= _ROWS_AT_ONCE:
            self.flush()

    def summed(self, points: DistinctPoints) -> tuple[ExactSum, ExactSum]:
        """New weights and sums in this form, of distinct points."""
        packed = points.points
        weights = correlations(packed, points.weights, self.differences.masks, n_threads=self.n_threads)
        return weights, correlations(packed, points.sums, self.family.with_empty, n_threads=self.n_threads)

    def sums_for(self, form: BufferedSums) -> tuple[ExactSum, ExactSum]:
        """The weights and sums, to be added to those of another statistic of the same family."""
        if isinstance(form, Moments) and not np.array_equal(self.family.masks, form.family.masks):
            raise ValueError(
                f"cannot merge moments of {len(self.family)} monomials into those of {len(form.family)}; "
                "fit both with the same degree, min_degree and subsets."
            )
        return super().sums_for(form)

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
        weight = self.totals.weight

        def extreme(moments: ExactSum) -> NDArray[np.float64]:
            off = [moments.plus(weight.repeated(moments.shape[0]), sign).nonzero() for sign in (1, -1)]
            return (~(off[0] & off[1])).astype(np.float64)

        return np.asarray(self.gram(family, read=extreme)[place] > 0)

    def squared_error(self, polynomial: FittedPolynomial, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted squared error (T,) of a polynomial on the rows, from the equations of its family."""
        equations = self.normal_equations(polynomial.family, n_threads=n_threads)
        return equations.squared_error(polynomial.coef, np.zeros(len(polynomial.family)), polynomial.intercept)

"""The exact additive statistic of low-degree regression: what a learner keeps of rows of the cube.

Three forms hold the same exact sums; each can stand for any degree, so that the choice is one of cost alone:

- :class:`~sparsact.learners.low_degree.distinct_points.DistinctPoints`: the points themselves (any n, few rows);
- :class:`~sparsact.learners.low_degree.cells.Cells`: one cell for each of the 2**n points (n <= 26, many rows);
- :class:`~sparsact.learners.low_degree.moments.Moments`: the moments that one family of monomials needs
  (any n, any number of rows, that family only).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from math import frexp
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.identification import RowSpace
from sparsact.learners.low_degree.normal_equations import NormalEquations, centre_exactly
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial
from sparsact.learners.points import Points
from sparsact.saving.schema import Arrays, State, as_n_rows, check_array
from sparsact.statistics.exact_sum import MAX_DIGIT, MAX_LIMBS, ExactSum
from sparsact.statistics.statistic import Batch
from sparsact.statistics.totals import Totals

Reading = Callable[[ExactSum], NDArray[np.float64]]  # how exact moments become the entries of a Gram matrix
_ROWS_AT_ONCE = 64
_FEW_DIGITS = 1e-6


class ExactStatistic(ABC):
    """Exact weighted sums over rows: the same bits in any order and in any grouping.

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
    weights: ExactSum
    sums: ExactSum

    def __init__(self, n: int, n_targets: int) -> None:
        self.n = n
        self.n_targets = n_targets
        self.totals = Totals(n_targets)

    @classmethod
    def for_family(cls, family: Family, n_targets: int) -> Self:
        """A statistic without rows that serves a family."""
        return cls(family.n, n_targets)

    # ---- rows ----

    def add(self, batch: Batch) -> None:
        """Add rows at packed points."""
        self._change(batch, 1)

    def remove(self, batch: Batch) -> None:
        """Take rows away that were added before, exactly.

        Raises
        ------
        ValueError
            If more rows are taken than are there.
        """
        if self.totals.n_rows < len(batch):
            raise ValueError(
                f"cannot forget {len(batch)} rows of {self.totals.n_rows}; forget only rows that were fitted."
            )
        self._change(batch, -1)

    def _change(self, batch: Batch, sign: int) -> None:
        weights = batch.row_weights() * sign
        self.totals.update(batch.y, weights, sign)
        self._add(batch.X, batch.y, weights)

    @abstractmethod
    def _add(self, points: Points, y: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Add ``w`` and ``w * y_t`` of every row at its point."""

    @abstractmethod
    def merge(self, other: Any, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same form, or of distinct points."""

    @abstractmethod
    def flush(self) -> None:
        """Bring waiting rows into the sums, by one assignment; the rows held are the same."""

    def fork(self) -> Self:
        """A copy that shares sums with this one until it is changed; this one must not be changed any more."""
        twin = copy(self)
        twin.totals = self.totals.copy()
        return twin

    def restricted(self, family: Family) -> Self:
        """The sums that a family needs: the statistic itself, where it serves every family."""
        return self

    def copy(self) -> Self:
        """An independent copy."""
        twin = self.empty()
        twin.merge(self)
        return twin

    def empty(self) -> Self:
        """The same layout without rows."""
        return type(self)(self.n, self.n_targets)

    def to(self, form: type[Any]) -> Any:
        """The same rows in another form: cells or distinct points, from one of these."""
        if type(self) is form:
            return self
        other = form(self.n, self.n_targets)
        other.merge(self.as_points())
        return other

    def as_points(self) -> Any:
        """The distinct points, where the form holds them."""
        raise TypeError(f"{self.kind} hold no points")

    # ---- what is known of the rows ----

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held."""

    @property
    def n_rows(self) -> int:
        """Rows of positive weight."""
        return self.totals.n_rows

    @property
    def n_points(self) -> int:
        """Points held, or a bound on them."""
        return self.totals.n_rows

    @property
    def weight(self) -> float:
        """Total weight."""
        return self.totals.total_weight()

    def variances(self) -> NDArray[np.float64]:
        """Weighted variance of each target, (T,)."""
        return np.asarray(self.totals.squares_about(self.totals.sums.to_float() / self.weight) / self.weight)

    def target_exponent(self) -> int:
        """Exponent of a unit of the targets, see :meth:`Totals.target_exponent`."""
        return self.totals.target_exponent()

    def origin(self, exponent: int) -> NDArray[np.float64]:
        """The mean of each target over ``2**(32 * exponent)``, rounded once, (T,)."""
        return self.totals.mean(exponent)

    def rescaled(self, exponent: int, origin: NDArray[np.float64]) -> Self:
        """The same rows with targets ``y_t / 2**(32 * exponent) - origin_t``, exactly; to read from: it shares sums.

        About their mean, targets lose nothing when their sums are rounded, however far from zero they are.
        """
        self.flush()
        view = copy(self)
        view.totals, view.sums = self.totals.rescaled(exponent, origin), self.sums.rescaled(exponent)
        if origin.any():
            view.sums = view.sums.copy()
            view.sums.add_multiples(self._weights_of_sums(), -origin[:, None])
        return view

    def _weights_of_sums(self) -> ExactSum:
        """What the sums of a target that is 1 everywhere are."""
        return self.weights

    # ---- equations ----

    @abstractmethod
    def gram(self, family: Family, *, n_threads: int = 1, read: Reading = ExactSum.to_float) -> NDArray[np.float64]:
        """Weighted inner products of the characters of the empty subset and the family, (D + 1, D + 1)."""

    @abstractmethod
    def correlations(self, family: Family, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted inner products of targets and characters, empty subset first, (T, D + 1)."""

    @abstractmethod
    def aliases(self, family: Family, place: int) -> NDArray[np.bool_]:
        """Whether each monomial of ``[(), *family]`` equals, up to sign, that of ``place`` on all rows."""

    @abstractmethod
    def squared_error(self, polynomial: FittedPolynomial, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Weighted squared error (T,) of a polynomial on the rows."""

    def family_of(self, wanted: Family) -> Family:
        """The family, if the sums serve it."""
        return wanted

    def normal_equations(self, family: Family, *, fit_intercept: bool = True, n_threads: int = 1) -> NormalEquations:
        """The equations of a family of monomials from the exact sums; D x D floats."""
        gram = self.gram(family, n_threads=n_threads)
        correlations = self.correlations(family, n_threads=n_threads)
        weight = float(gram[0, 0])
        if fit_intercept and weight > 0:
            sums, (scale, exponent) = gram[0, 1:].copy(), frexp(weight)
            feature_mean, target_mean = sums / weight, correlations[:, 0] / weight
            rhs = correlations[:, 1:] - np.outer(target_mean, sums)
            centred, shares = gram[1:, 1:], np.ldexp(sums, -exponent)
            for start in range(0, len(centred), _ROWS_AT_ONCE):  # in place: no second D x D array
                block = centred[start : start + _ROWS_AT_ONCE]
                block *= scale  # W G - s s' first: of counts below 2**26 these are integers, and exact
                block -= np.outer(sums[start : start + _ROWS_AT_ONCE], shares)
                block /= scale
            if not (weight < 2.0**26 and weight == round(weight) and (sums == np.round(sums)).all()):
                small = np.flatnonzero(centred.diagonal() < _FEW_DIGITS * weight)
                if len(small):
                    centre_exactly(centred, self, family, small)
        else:
            feature_mean, target_mean = np.zeros(len(family)), np.zeros(self.n_targets)
            centred, rhs = gram[1:, 1:], correlations[:, 1:]
        squares = np.maximum(self.totals.squares_about(target_mean), 0.0)
        row_space = RowSpace(self, family, fit_intercept)
        means = feature_mean, target_mean
        return NormalEquations(centred, rhs.T.copy(), *means, squares, weight, self.n_rows, fit_intercept, row_space)

    # ---- files ----

    def _parts(self) -> dict[str, ExactSum]:
        totals = zip(("total.weight", "total.sums", "total.squares"), self.totals.parts(), strict=True)
        return {"weights": self.weights, "sums": self.sums, **dict(totals)}

    def state(self) -> tuple[State, Arrays]:
        """The sums as JSON and arrays."""
        self.flush()
        parts = self._parts()
        for sums in parts.values():
            sums.normalize()
        base = {part: sums.base for part, sums in parts.items()}
        return {"n_rows": self.n_rows, "base": base, "kind": self.kind}, {k: sums.limbs for k, sums in parts.items()}

    def restore(self, state: State, arrays: Arrays) -> None:
        """Become the sums that :meth:`state` wrote."""
        self.totals.n_rows = as_n_rows(state["n_rows"], "n_rows")
        for part, sums in self._parts().items():
            limbs = check_array(arrays, part, np.int64, (None, *sums.shape))
            if limbs.size and (limbs.max() > MAX_DIGIT or limbs.min() < -MAX_DIGIT):
                raise ValueError(f"{part} is not a normalised sum")
            base = int(state["base"][part])
            if abs(base) > MAX_LIMBS or len(limbs) > MAX_LIMBS:
                raise ValueError(f"{part} is beyond any double")
            sums.replace(base, limbs)
        weight, means = self.weight, self.totals.sums.to_float()
        if not np.isfinite([weight, *means]).all() or (weight <= 0 if self.n_rows else weight != 0):
            raise ValueError("a weight of rows that are there is none, or sums are beyond any double")


class BufferedSums(ExactStatistic):
    """Sums that rows enter many at a time: until then they wait as distinct points."""

    buffer: ClassVar[type[Any]]  # of the distinct points
    _waiting: Any = None  # None: rows are added at once, in place

    def _buffer(self) -> Any:
        return self.buffer(self.n, self.n_targets)

    @abstractmethod
    def summed(self, points: Any) -> tuple[ExactSum, ExactSum]:
        """New weights and sums in the form of the class, of distinct points."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        waiting = 0 if self._waiting is None else self._waiting.nbytes
        return int(self.weights.nbytes + self.sums.nbytes + waiting)

    def fork(self) -> Self:
        """A copy that shares sums with this one until it is changed; this one must not be changed any more."""
        twin = super().fork()
        twin._waiting = self._buffer() if self._waiting is None else self._waiting.fork()
        return twin

    def merge(self, other: Any, sign: int = 1) -> None:
        """Add (or, with sign -1, take away) the rows of another of the same form, or of distinct points."""
        other.flush()
        weights, sums = other.sums_for(self)
        self.totals.merge(other.totals, sign)
        self.weights, self.sums = self.weights.plus(weights, sign), self.sums.plus(sums, sign)

    def sums_for(self, form: BufferedSums) -> tuple[ExactSum, ExactSum]:
        """The weights and sums, to be added to those of another statistic.

        Raises
        ------
        ValueError
            If that is of another form or family.
        """
        if type(self) is not type(form):
            raise ValueError(f"cannot merge {self.kind} into {form.kind}; fit both with the same solver.")
        return self.weights, self.sums

    def flush(self) -> None:
        """Bring waiting rows into the sums, in new arrays, by one assignment."""
        if self._waiting is not None and self._waiting.n_points:
            self._waiting.flush()
            weights, sums = self.summed(self._waiting)
            weights.merge(self.weights)
            sums.merge(self.sums)
            self.weights, self.sums, self._waiting = weights, sums, self._emptied()

    def _emptied(self) -> Any:
        """What stands for rows that wait when none does."""
        return self._buffer()

"""Rows in, statistic out: recognise how points are written, and keep the cheapest exact form of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.compact_sums import Cells, Moments
from sparsact.learners.low_degree.distinct_points import DistinctPoints
from sparsact.learners.low_degree.polynomial import Family, Penalty
from sparsact.learners.low_degree.real_columns import CentredMoments
from sparsact.learners.low_degree.solvers.cells import MAX_CELLS_N, MAX_CHOLESKY, cells_bytes, prefers_cells
from sparsact.learners.low_degree.solvers.solver import (
    LowDegreeStatistic,
    ProblemSize,
    choose_solver,
    possible,
    solvers,
)
from sparsact.learners.points import Encoding, Points, pack, recognize
from sparsact.memory import has_room
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays, State
from sparsact.statistics.statistic import Batch

_ROWS_AT_ONCE: Final = 1 << 17
_CACHED_N: Final = 16
_BYTES_OF_A_FOLD: Final = 4096  # of the sums of no rows, as objects
_FORMS: Final[dict[str, Callable[[int, int], LowDegreeStatistic]]] = {
    Cells.kind: Cells,
    DistinctPoints.kind: DistinctPoints,
    Moments.kind: lambda n, n_targets: Moments(Family.explicit(n, []), n_targets),  # a state has its family
    CentredMoments.kind: lambda n, n_targets: CentredMoments(Family.explicit(n, []), n_targets),
}
_BATCH: Final = {
    "y": ArrayField("m T", finite=True),
    "weights": ArrayField("m", finite=True, nonnegative=True, optional=True),
    "folds": ArrayField("m", np.intp, optional=True),
}


@dataclass(frozen=True)
class FitSpec:
    """Parameters of an estimator that decide which sums its fit needs."""

    degree: int
    min_degree: int
    subsets: Sequence[Sequence[int]] | None
    solver: str
    fit_intercept: bool
    max_memory: float | None
    n_threads: int

    def with_degree(self, degree: int) -> FitSpec:
        """The same for another largest degree; a list of subsets is cut to it."""
        subsets = None if self.subsets is None else [subset for subset in self.subsets if len(subset) <= degree]
        return replace(self, degree=degree, subsets=subsets)

    def penalty(self, alpha: float) -> Penalty:
        """How the coefficients are estimated."""
        kind = "ridge" if self.solver == "auto" else solvers()[self.solver].penalty
        return Penalty(kind, alpha, self.fit_intercept)

    def family(self, n: int) -> Family:
        """The monomials that the learner may use."""
        if self.subsets is not None:
            return Family.explicit(n, self.subsets)
        return Family.full(n, self.degree, self.min_degree)

    def size(self, n: int, n_rows: int, n_targets: int, form: str = "rows") -> ProblemSize:
        """What decides the cost of a fit."""
        low, high = max(1, self.min_degree), min(self.degree, n)
        listed = self.subsets is not None
        n_monomials = len(self.family(n)) if listed else Family.count(n, high, low)
        degree_range = None if listed else (low, high)
        return ProblemSize(n, n_monomials, n_rows, n_targets, degree_range, form)


@dataclass(eq=False)
class Accumulator:
    """The rows a learner has seen, in the form of additive statistics: one, or one for each fold.

    Attributes
    ----------
    domain : {"cube", "real", None}
        What the rows are; None until that is known.
    encoding : {"signs", "bits", None}
        How points of the cube are written.
    statistics : list of LowDegreeStatistic
        One for each fold.
    pending : list of (int, Batch)
        Rows of ones that came (1) or went (-1) before the domain was known.
    """

    n: int
    n_targets: int
    n_folds: int = 1
    domain: str | None = None
    encoding: Encoding | None = None
    statistics: list[LowDegreeStatistic] = field(default_factory=list)
    pending: list[tuple[int, Batch]] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """Rows of positive weight seen so far."""
        return sum(sign * len(batch) for sign, batch in self.pending) + sum(each.n_rows for each in self.statistics)

    def recognized(self, X: NDArray[Any], domain: str, names: NDArray[Any] | None = None) -> Points | NDArray[Any]:
        """Rows as the statistics take them; the first show the domain, unless all are 1, which may be bits or signs.

        A ValueError is raised if X is not written like the rows before.
        """
        if self.domain is None:
            encoding, points = recognize(X, domain, names)
            if encoding == "ones":
                return X
            self.domain, self.encoding = ("real", None) if encoding == "real" else ("cube", encoding)
            if points is not None:
                return points
        return X.astype(np.float64, copy=False) if self.encoding is None else pack(X, self.encoding, names)

    def change(self, spec: FitSpec, batch: Batch, sign: int = 1) -> None:
        """Add :meth:`recognized` rows or, with sign -1, take them away. After an error, change a fork made before.

        Raises
        ------
        ValueError
            If more rows are taken away than are there, or if they have other targets.
        """
        if batch.y.shape[1] != self.n_targets:
            raise ValueError(f"`y` has {batch.y.shape[1]} targets, earlier rows had {self.n_targets}; pass the same.")
        if sign < 0 and self.n_rows < (gone := len(batch.positive())):
            raise ValueError(f"cannot forget {gone} rows of {self.n_rows}; forget only rows that were fitted.")
        if self.domain is None:  # a later row will show what the ones are
            kept = batch.positive()
            copies = (None if part is None else part.copy() for part in (kept.y, kept.weights, kept.folds))
            self.pending.append((sign, Batch(np.broadcast_to(np.int8(1), (len(kept), self.n)), *copies)))  # type: ignore[arg-type]
            return
        self._flush_pending(spec)
        self._change(spec, batch, sign)

    def _flush_pending(self, spec: FitSpec) -> None:
        pending, self.pending = self.pending, []
        for sign, batch in pending:
            X = self.recognized(np.ascontiguousarray(batch.X), "auto")
            self._change(spec, replace(batch, X=X), sign)

    def fork(self) -> Accumulator:
        """A copy to change in this one's stead; the two share what changes leave alone."""
        return replace(self, statistics=[each.fork() for each in self.statistics], pending=[*self.pending])

    def resolved(self, spec: FitSpec) -> Accumulator:
        """The accumulator itself or, while all values are 1, a copy in which they are signs."""
        if self.domain is not None:
            return self
        twin = replace(self, statistics=[], domain="cube", encoding="signs")
        twin._begin(spec, 0)
        twin._flush_pending(spec)
        return twin

    # ---- form ----

    def _begin(self, spec: FitSpec, n_rows: int) -> None:
        """Make the statistics, in the form for a number of rows, once the domain is known."""
        if self.statistics:
            return
        size = spec.size(self.n, 0, self.n_targets, "real" if self.domain == "real" else "rows")
        possible(spec.solver, size)
        if self.n_folds > 1 and not has_room(float(self.n_folds * _BYTES_OF_A_FOLD), spec.max_memory):
            raise MemoryError(
                f"{self.n_folds:,} folds need one set of sums each, more than memory holds; pass a smaller cv."
            )
        if self.domain == "real":
            choose_solver(spec.solver, size, spec.max_memory)
            first: LowDegreeStatistic = CentredMoments(spec.family(self.n), self.n_targets)
        else:
            first = self._compact_form(spec, n_rows) or DistinctPoints(self.n, self.n_targets)
        self.statistics = [first, *(first.empty() for _ in range(self.n_folds - 1))]

    def _compact_form(self, spec: FitSpec, n_rows: int) -> Cells | Moments | None:
        """Empty statistic that costs less than distinct points for the given number of rows, if there is one."""
        if spec.solver == "kernel":
            return None
        size = spec.size(self.n, n_rows, self.n_targets)
        # Few rows give moments faster than a table of cells beyond the cache; conjugate gradients need the table.
        counted = n_rows // (8 if self.n > _CACHED_N and size.n_monomials <= MAX_CHOLESKY else 1)
        preferred = spec.solver != "moments" and prefers_cells(self.n, counted)
        if spec.solver == "cells" or (
            preferred and has_room(self.n_folds * cells_bytes(self.n, self.n_targets), spec.max_memory)
        ):
            return Cells(self.n, self.n_targets)
        if (self.n > MAX_CELLS_N or spec.solver == "moments") and solvers()["moments"].prefers_sums(size):
            choose_solver(spec.solver, size, spec.max_memory)
            return Moments(spec.family(self.n), self.n_targets, n_threads=spec.n_threads)
        return None

    def _adapt(self, spec: FitSpec, n_rows: int) -> None:
        """Change distinct points into cells or moments once these are cheaper; all forms hold the same sums exactly."""
        if any(isinstance(statistic, DistinctPoints) for statistic in self.statistics) and (
            compact := self._compact_form(spec, n_rows)
        ):
            for fold, statistic in enumerate(self.statistics):
                if isinstance(statistic, DistinctPoints):
                    form = compact.empty()
                    form.merge(statistic)
                    self.statistics[fold] = form

    def _change(self, spec: FitSpec, batch: Batch, sign: int) -> None:
        batch = batch.positive()
        n_rows = self.n_rows + sign * len(batch)
        self._begin(spec, n_rows)
        self._adapt(spec, n_rows)
        for fold, statistic in enumerate(self.statistics):
            part = batch if batch.folds is None else batch[batch.folds == fold]
            for block in part.blocks(_ROWS_AT_ONCE):  # the memory in between is bounded
                statistic.add(block, sign)

    # ---- sums of several ----

    def merge(self, spec: FitSpec, other: Accumulator) -> None:
        """Add the rows that another has seen.

        Raises
        ------
        ValueError
            If the two have seen rows of different kinds.
        """
        if (self.n, self.n_targets, self.n_folds) != (other.n, other.n_targets, other.n_folds):
            raise ValueError(
                f"cannot merge {other.n} columns, {other.n_targets} targets, {other.n_folds} folds into "
                f"{self.n}, {self.n_targets}, {self.n_folds}; fit both with the same columns, targets and folds."
            )
        if self.domain is None:
            self.domain, self.encoding = other.domain, other.encoding
        if other.domain is not None and (self.domain, self.encoding) != (other.domain, other.encoding):
            raise ValueError(
                f"cannot merge a learner of {other.encoding or 'real columns'} into one of "
                f'{self.encoding or "real columns"}; use one encoding or, if they are numbers, pass domain="real".'
            )
        n_rows, self.pending = self.n_rows + other.n_rows, self.pending + other.pending
        if self.domain is not None:
            self._begin(spec, n_rows)
            self._adapt(spec, n_rows)
            for fold, theirs in enumerate(other.statistics):
                self.statistics[fold] = _joined(self.statistics[fold], theirs)
            self._flush_pending(spec)

    def rescaled(self, exponent: int, origin: NDArray[np.float64]) -> Accumulator:
        """The same rows with targets ``y_t / 2**(32 * exponent) - origin_t``, to read from."""
        return replace(self, statistics=[statistic.rescaled(exponent, origin) for statistic in self.statistics])

    def total(self) -> LowDegreeStatistic:
        """The statistic of all rows: a new one, the folds joined."""
        statistic = self.statistics[0].copy()
        for other in self.statistics[1:]:
            statistic = _joined(statistic, other)
        return statistic

    # ---- files ----

    def state(self) -> tuple[State, Arrays]:
        """Return all of it as JSON and arrays."""
        statistics: list[State] = []
        arrays: Arrays = {}
        for fold, statistic in enumerate(self.statistics):
            state, own = statistic.state()
            statistics.append(state)
            arrays |= schema.add_prefix(f"statistic.{fold}", own)
        for i, (_, batch) in enumerate(self.pending):
            parts = {"y": batch.y, "weights": batch.weights, "folds": batch.folds}
            arrays |= schema.add_prefix(f"undecided.{i}", parts)
        names = ("n", "n_targets", "n_folds", "domain", "encoding")
        known = {name: getattr(self, name) for name in names}
        return known | {"statistics": statistics, "undecided": [sign for sign, _ in self.pending]}, arrays

    @classmethod
    def of_state(cls, state: State, arrays: Arrays, n: int, n_targets: int) -> Accumulator:
        """Restore the accumulator that :meth:`state` wrote, of the given numbers of columns and targets."""
        if (state["n"], state["n_targets"]) != (n, n_targets):
            raise ValueError("the sums have other columns or targets than the solution")
        n_folds = schema.as_count(state["n_folds"], "n_folds", minimum=1)
        domain, states = state["domain"], state["statistics"]
        if domain not in ("cube", "real", None) or (state["encoding"] is None) == (domain == "cube"):
            raise ValueError("a statistic of no known kind")
        if len(states) != (0 if domain is None else n_folds):
            raise ValueError("a statistic is missing or too many")
        seen = cls(n, n_targets, n_folds, domain, schema.as_encoding(state["encoding"]))
        for fold, one in enumerate(states):
            kind = str(one["kind"])
            if kind not in _FORMS or (kind == CentredMoments.kind) != (domain == "real"):
                raise ValueError(f"a statistic is not of {domain} columns, or of no known kind")
            statistic = _FORMS[kind](n, n_targets)
            statistic.restore(one, schema.strip_prefix(f"statistic.{fold}", arrays))
            seen.statistics.append(statistic)
        for i, sign in enumerate(state["undecided"]):
            found = schema.read_arrays(_BATCH, schema.strip_prefix(f"undecided.{i}", arrays), T=n_targets)
            folds = found.get("folds")
            outside = folds is not None and len(folds) > 0 and not 0 <= folds.min() <= folds.max() < n_folds
            if sign not in (1, -1) or outside or (folds is None) != (n_folds == 1):
                raise ValueError("rows of no known kind")
            ones = np.broadcast_to(np.int8(1), (len(found["y"]), n))
            seen.pending.append((sign, Batch(ones, found["y"], found.get("weights"), folds)))
        return seen


def _joined(mine: LowDegreeStatistic, other: LowDegreeStatistic) -> LowDegreeStatistic:
    """The first statistic with the rows of the second added, in the more compact form of the two."""
    if mine.kind == DistinctPoints.kind != other.kind:
        mine, other = other.copy(), mine
    mine.merge(other)  # type: ignore[arg-type] # of one domain
    return mine

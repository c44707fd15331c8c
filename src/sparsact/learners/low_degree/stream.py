"""Rows in, statistic out: recognise how points are written, and keep the cheapest exact form of what was seen."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.cells import MAX_N, Cells
from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.moments import Moments
from sparsact.learners.low_degree.plan import MAX_CELLS_N, Size, cells_bytes, plan, prefers_cells, prefers_moments
from sparsact.learners.low_degree.real import RealStatistic
from sparsact.learners.low_degree.rows import DistinctPoints
from sparsact.learners.low_degree.statistic import Statistic
from sparsact.learners.points import Encoding, Points, pack, recognized

_ROWS_AT_ONCE = 1 << 16
_BYTES_OF_A_FOLD = 4096  # of the sums of no rows, as objects


@dataclass(frozen=True)
class Request:
    """What a learner asks of its statistic: parameters of the estimator that decide which sums are needed."""

    degree: int
    min_degree: int
    subsets: Any
    solver: str
    domain: str
    max_memory: float
    n_threads: int

    def of_degree(self, degree: int) -> Request:
        """The same request for another largest degree; a list of subsets is cut to it."""
        subsets = None if self.subsets is None else [subset for subset in self.subsets if len(subset) <= degree]
        return replace(self, degree=degree, subsets=subsets)

    def family(self, n: int) -> Family:
        """The monomials that the learner may use."""
        if self.subsets is not None:
            return Family.listed(n, self.subsets)
        return Family.full(n, self.degree, self.min_degree)

    def size(self, n: int, n_rows: int, n_targets: int) -> Size:
        """What decides the cost of a fit of so many rows."""
        if self.subsets is not None:
            return Size(n, len(self.family(n)), n_rows, n_targets, None)
        low, high = max(1, self.min_degree), min(self.degree, n)
        return Size(n, Family.count(n, high, low), n_rows, n_targets, (low, high))


@dataclass(frozen=True)
class Batch:
    """What comes with the points of some rows: targets (m, T), weights (m,), folds (m,); sign -1 takes rows away."""

    y: NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    folds: NDArray[np.intp] | None = None
    sign: int = 1

    def part(self, rows: NDArray[np.bool_] | slice) -> Batch:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, y=self.y[rows], weights=weights, folds=None if self.folds is None else self.folds[rows])

    def positive(self) -> Batch:
        """The rows of positive weight."""
        return self if self.weights is None else self.part(self.weights > 0)

    def copy(self) -> Batch:
        """An independent copy: the caller may use its arrays again."""
        return deepcopy(self)


@dataclass(eq=False)
class Stream:
    """The rows a learner has seen, in the form of additive statistics: one, or one a fold.

    Attributes
    ----------
    domain : {"cube", "real", None}
        What the rows are; None until that is known.
    encoding : {"signs", "bits", None}
        How points of the cube are written.
    statistics : list of Statistic or of RealStatistic
        One for each fold.
    """

    n: int
    n_targets: int
    n_folds: int = 1
    domain: str | None = None
    encoding: Encoding | None = None
    statistics: list[Any] = field(default_factory=list)
    undecided: list[Batch] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """Rows of non-zero weight seen so far."""
        waiting = sum(int(batch.sign * len(batch.y)) for batch in self.undecided)
        return waiting + sum(int(statistic.n_rows) for statistic in self.statistics)

    def add(self, request: Request, X: NDArray[Any], batch: Batch, names: NDArray[Any] | None = None) -> None:
        """Add the rows of a batch (or take them away). After an error the stream is of no use: change a fork.

        Raises
        ------
        ValueError
            If X is not written like the rows before, or if more rows are taken away than are there.
        """
        if batch.y.shape[1] != self.n_targets:
            raise ValueError(f"`y` has {batch.y.shape[1]} targets, the rows before had {self.n_targets}; pass as many.")
        if batch.sign < 0 and self.n_rows < len(batch.positive().y):
            gone = len(batch.positive().y)
            raise ValueError(f"cannot forget {gone} rows of {self.n_rows}; forget only rows that were fitted.")
        points = self._decide(request, X, names) if self.domain is None else None
        if self.domain is None:  # all values are 1: they may be bits or signs, and a later row will tell
            self.undecided.append(batch.positive().copy())
            return
        if self.encoding is not None:
            rows: Points | NDArray[np.float64] = points or pack(X, self.encoding, names)
        else:
            rows = X.astype(np.float64, copy=False)
        self._digest_waiting(request)
        self._digest(request, rows, batch)

    def _digest_waiting(self, request: Request) -> None:
        waiting, self.undecided = self.undecided, []
        for batch in waiting:
            ones = np.ones((len(batch.y), self.n))
            self._digest(request, ones if self.encoding is None else pack(ones, self.encoding), batch)

    def fork(self) -> Stream:
        """A copy to change in this one's stead; the two share what changes leave alone."""
        return replace(self, statistics=[each.fork() for each in self.statistics], undecided=[*self.undecided])

    def settled(self, request: Request) -> Stream:
        """The stream itself or, while all values are 1, a copy in which they are signs."""
        if self.domain is not None:
            return self
        twin = replace(self, statistics=[])
        twin._begin(request, "cube", "signs")
        twin._digest_waiting(request)
        return twin

    def _decide(self, request: Request, X: NDArray[Any], names: NDArray[Any] | None) -> Points | None:
        """Tell the domain from the first rows, if they tell; the points, where they were packed on the way."""
        if request.domain == "real":
            self._begin(request, "real", None)
            return None
        encoding, points = recognized(X)
        if encoding == "real":
            if request.domain == "cube":
                pack(X, "signs" if (X == -1).any() else "bits", names)  # raises, naming the column and row
            self._begin(request, "real", None)
        elif encoding != "ones":
            self._begin(request, "cube", encoding)
        return points

    def _begin(self, request: Request, domain: str, encoding: Encoding | None) -> None:
        if domain == "real" and request.solver in ("cells", "moments", "kernel"):
            raise ValueError(
                f'`X` holds real columns, and solver="{request.solver}" needs points of the cube: '
                'pass bits or signs, or solver="auto".'
            )
        if request.solver == "cells" and domain == "cube" and self.n > MAX_N:
            raise ValueError(f'solver="cells" serves up to {MAX_N} coordinates; `X` has {self.n}: pass solver="auto".')
        if self.n_folds > 1 and self.n_folds * _BYTES_OF_A_FOLD > request.max_memory:
            raise MemoryError(
                f"{self.n_folds:,} folds keep as many sets of sums, more than {request.max_memory:.1e} bytes hold; "
                "pass a smaller cv."
            )
        if domain == "real":
            plan(request.size(self.n, 0, self.n_targets), "dense", request.max_memory)
        self.domain, self.encoding = domain, encoding
        self.statistics = [self._empty(request) for _ in range(self.n_folds)]

    def _empty(self, request: Request) -> Statistic | RealStatistic:
        if self.domain == "real":
            return RealStatistic(request.family(self.n), self.n_targets)
        if request.solver == "cells":
            return Cells(self.n, self.n_targets)
        return DistinctPoints(self.n, self.n_targets)

    def _digest(self, request: Request, rows: Points | NDArray[np.float64], batch: Batch) -> None:
        if batch.weights is not None and not batch.weights.all():
            positive = batch.weights > 0
            rows = rows.take(positive) if isinstance(rows, Points) else rows[positive]
            batch = batch.positive()
        if not len(batch.y):
            return
        if self.domain == "cube":
            self._adapt(request, self.n_rows + batch.sign * len(batch.y))
        for fold, statistic in enumerate(self.statistics):
            if batch.folds is None:
                _update(statistic, rows, batch)
            else:
                chosen = batch.folds == fold
                _update(statistic, rows.take(chosen) if isinstance(rows, Points) else rows[chosen], batch.part(chosen))
        if self.domain == "cube":
            self._adapt(request, self.n_rows)

    def _adapt(self, request: Request, n_rows: int) -> None:
        """Change rows into cells or moments once those are cheaper; all forms hold the same sums exactly."""
        for fold, statistic in enumerate(self.statistics):
            if not isinstance(statistic, DistinctPoints) or request.solver == "kernel":
                continue
            size = request.size(self.n, n_rows, self.n_targets)
            if request.solver != "moments" and prefers_cells(self.n, n_rows) and self._affords_cells(request):
                cells = Cells(self.n, self.n_targets)
                cells.absorb(statistic)
                self.statistics[fold] = cells
            elif (self.n > MAX_CELLS_N or request.solver == "moments") and prefers_moments(size):
                plan(size, request.solver, request.max_memory)
                moments = Moments(request.family(self.n), self.n_targets, n_threads=request.n_threads)
                moments.absorb(statistic)
                self.statistics[fold] = moments

    def _affords_cells(self, request: Request) -> bool:
        """Whether every fold may hold its cells. Asked for by name, they are; the plan then refuses."""
        need = self.n_folds * cells_bytes(self.n, self.n_targets)
        return request.solver == "cells" or need <= request.max_memory

    def merge(self, request: Request, other: Stream) -> None:
        """Add the rows that another has seen.

        Raises
        ------
        ValueError
            If the two have seen rows of different kinds.
        """
        if (self.n, self.n_targets, self.n_folds) != (other.n, other.n_targets, other.n_folds):
            raise ValueError(
                f"cannot merge {other.n} columns, {other.n_targets} targets, {other.n_folds} folds into "
                f"{self.n}, {self.n_targets}, {self.n_folds}; fit both alike."
            )
        if other.domain is None:
            for batch in list(other.undecided):
                self.add(request, np.ones((len(batch.y), self.n), dtype=np.int8), batch)
            return
        if self.domain is None:
            self._begin(request, other.domain, other.encoding)
        if (self.domain, self.encoding) != (other.domain, other.encoding):
            raise ValueError(
                f"cannot merge a learner of {other.encoding or 'real columns'} into one of "
                f'{self.encoding or "real columns"}; write all rows alike or, if they are numbers, pass domain="real".'
            )
        self._adapt(request, self.n_rows + other.n_rows)
        for fold, theirs in enumerate(other.statistics):
            self.statistics[fold] = joined(self.statistics[fold], theirs)
        self._digest_waiting(request)

    def in_unit(self, place: int, origin: NDArray[np.float64]) -> Stream:
        """The same rows with targets ``y_t / 2**(32 * place) - origin_t``, to read from."""
        return replace(self, statistics=[statistic.in_unit(place, origin) for statistic in self.statistics])

    def total(self) -> Any:
        """The statistic of all rows: a new one, the folds joined."""
        statistic = self.statistics[0].copy()
        for other in self.statistics[1:]:
            statistic = joined(statistic, other)
        return statistic


def joined(mine: Any, other: Any) -> Any:
    """The first statistic with the rows of the second added; the more compact form of the two."""
    if isinstance(mine, DistinctPoints) and not isinstance(other, DistinctPoints):
        twin = other.copy()
        twin.absorb(mine)
        return twin
    if isinstance(other, DistinctPoints) and not isinstance(mine, DistinctPoints):
        mine.absorb(other.copy())
    else:
        mine.merge(other)
    return mine


def _update(statistic: Any, rows: Points | NDArray[np.float64], batch: Batch) -> None:
    """Add or take away rows, a block at a time, so that the memory in between is bounded."""
    change = statistic.update if batch.sign > 0 else statistic.forget
    for start in range(0, len(batch.y), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        here = rows.between(start, start + _ROWS_AT_ONCE) if isinstance(rows, Points) else rows[block]
        change(here, batch.y[block], None if batch.weights is None else batch.weights[block])

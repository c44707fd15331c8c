"""Oracles for statistical queries and for membership queries, with a log and a budget of the queries asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.hypercube import Masks
from sparsact.validation.arrays import checked_masks, checked_per_row, checked_signs
from sparsact.validation.parameters import checked_share, checked_size

Query = Callable[[NDArray[Any], NDArray[Any]], ArrayLike]


class QueryBudgetError(RuntimeError):
    """The error of a learner that asks more queries than its budget allows."""


@dataclass(frozen=True, eq=False)
class QueryRecord:
    """Queries made together.

    Attributes
    ----------
    description, count, n_samples : str, int, int
        What was asked, number of queries, and of random examples that the oracle drew to answer.
    tolerance : float
        How far from the truth an answer may lie; 0 for an oracle that returns values.
    answers : ndarray of shape (count,)
        The answers given, read-only.
    """

    description: str
    count: int
    tolerance: float
    answers: NDArray[np.float64]
    n_samples: int = 0


@dataclass
class Ledger:
    """Records of all queries so far, within a budget.

    Parameters
    ----------
    budget : int, optional
        Maximum number of queries that are answered; None sets no limit.

    Examples
    --------
    >>> ledger = Ledger(budget=5)
    >>> ledger.record("two coins", [0.5, -0.5], tolerance=0.1)
    >>> ledger.n_queries, ledger.left
    (2, 3)
    >>> ledger.admit(4)
    Traceback (most recent call last):
    ...
    sparsact.hardness.queries.QueryBudgetError: 4 queries were asked for, and 3 of the budget of 5 are left: raise
    `budget`, or request less (a lower degree).
    """

    budget: int | None = None
    records: list[QueryRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.budget is not None:
            checked_size(self.budget, "`budget`", minimum=0)

    @property
    def n_queries(self) -> int:
        """Queries answered so far."""
        return sum(record.count for record in self.records)

    @property
    def n_samples(self) -> int:
        """Random examples drawn so far in order to answer."""
        return sum(record.n_samples for record in self.records)

    @property
    def left(self) -> int | None:
        """Queries that may still be asked; None if there is no limit."""
        return None if self.budget is None else self.budget - self.n_queries

    def admit(self, count: int) -> None:
        """Raise :class:`QueryBudgetError` if ``count`` more queries would exceed the budget; none is answered then."""
        if self.left is not None and count > self.left:
            raise QueryBudgetError(
                f"{count} queries were asked for, and {self.left} of the budget of {self.budget} are left: "
                "raise `budget`, or request less (a lower degree)."
            )

    def record(
        self, description: str, answers: list[float] | NDArray[np.float64], *, tolerance: float, n_samples: int = 0
    ) -> None:
        """Add a record of queries that were answered."""
        kept = np.array(answers, dtype=np.float64)
        kept.setflags(write=False)
        self.records.append(QueryRecord(description, len(kept), tolerance, kept, n_samples))


class StatisticalQueries(ABC):
    """Base of statistical-query oracles: checks a query, answers it, records it.

    Parameters
    ----------
    n, tolerance, budget : int, float, and int or None
        Coordinates of a point, largest error of an answer, above 0 and at most 1, and most queries.
    """

    n_samples = 0
    """Number of random examples drawn for one answer, or for one family of characters."""

    def __init__(self, n: int, tolerance: float, budget: int | None = None) -> None:
        self.n = n
        self.tolerance = checked_share(tolerance, "`tolerance`", ", as queries have values in [-1, 1]")
        self.ledger = Ledger(budget)

    def query(self, phi: Query, description: str = "a query") -> float:
        r"""Answer for :math:`\mathbb{E}[\phi(x, y)]`, within the tolerance; :class:`QueryBudgetError` if none is left.

        ``phi`` takes points, signs (rows, n), and labels (rows,), and returns a value in [-1, 1] for each row; the
        ledger keeps the description.
        """
        self.ledger.admit(1)
        answer = self._mean(phi)
        self.ledger.record(description, [answer], tolerance=self.tolerance, n_samples=self.n_samples)
        return answer

    def correlation(self, g: Callable[[NDArray[Any]], Any], description: str = "a correlation") -> float:
        r"""Answer for :math:`\mathbb{E}[y\, g(x)]`, the special case :math:`\phi(x, y) = y\, g(x)`; g as phi above."""
        return self.query(lambda X, y: y * np.asarray(g(X), dtype=np.float64), description)

    def correlations(
        self, subsets: Iterable[Iterable[int]] | Masks, description: str = "characters"
    ) -> NDArray[np.float64]:
        r"""Answers for :math:`\mathbb{E}[y\, \chi_T(x)]`, one query for each of N subsets, shape (N,).

        ``subsets`` are N tuples of coordinates, or masks (N, words); the ledger keeps them as one record.
        """
        masks = checked_masks(subsets, self.n)
        self.ledger.admit(len(masks))
        answers = self._correlations(masks)
        samples = self.n_samples if len(masks) else 0
        self.ledger.record(description, answers, tolerance=self.tolerance, n_samples=samples)
        return answers

    @abstractmethod
    def _mean(self, phi: Query) -> float: ...

    @abstractmethod
    def _correlations(self, masks: Masks) -> NDArray[np.float64]: ...


def query_values(phi: Query, X: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Values (rows,) of a query at examples, refused unless they are legal: finite and in [-1, 1]."""
    returned = np.asarray(phi(X, y))
    if np.iscomplexobj(returned):
        raise ValueError(f"a query must have real values in [-1, 1]; it returned {returned.dtype}: query each part.")
    values = returned.astype(np.float64, copy=False)
    if values.shape != (len(X),):
        raise ValueError(f"a query must return one value per example, shape ({len(X)},); it returned {values.shape}.")
    illegal = ~(np.abs(values) <= 1 + 1e-12)  # NaN too; rounding of a legal product is forgiven
    if illegal.any():
        worst = values[illegal][0]
        raise ValueError(f"a query must have values in [-1, 1]; it returned {worst}: divide it by its bound.")
    return values


class MembershipOracle:
    """Values of a function at chosen points of the cube, one query per point.

    Parameters
    ----------
    f : callable
        Takes signs (rows, n), returns a value for each row; a network, a spectrum, a fitted model.
    n, budget : int, and int or None
        Number of coordinates, and maximum number of values.

    Examples
    --------
    >>> oracle = MembershipOracle(lambda X: X[:, 0] * X[:, 2], n=3, budget=100)
    >>> oracle([[1, 1, -1], [-1, 1, -1]])
    array([-1.,  1.])
    >>> oracle.ledger.n_queries
    2
    """

    def __init__(self, f: Callable[[NDArray[Any]], Any], n: int, *, budget: int | None = None) -> None:
        checked_size(n, "`n`")
        self.f = f
        self.n = n
        self.ledger = Ledger(budget)

    def __call__(self, X: ArrayLike, description: str = "values") -> NDArray[np.float64]:
        """Values (rows,) at the rows of ``X``, signs (rows, n); :class:`QueryBudgetError` if the ledger is full."""
        points = checked_signs(X, self.n)
        self.ledger.admit(len(points))
        values = checked_per_row(self.f(points), len(points), "the function")
        self.ledger.record(description, values, tolerance=0.0)
        return values

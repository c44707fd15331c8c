"""The ledger of an oracle: what was asked, and how much may still be asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import index

import numpy as np
from numpy.typing import NDArray


class QueryBudgetError(RuntimeError):
    """The ledger is full: a learner asked for more than its budget."""


@dataclass(frozen=True, eq=False)
class QueryRecord:
    """Queries made together.

    Attributes
    ----------
    description : str
        What was asked.
    count : int
        How many queries.
    tolerance : float
        How far from the truth an answer may lie; 0 for an oracle that tells values.
    answers : ndarray of shape (count,)
        The answers given, read-only.
    n_samples : int
        Random examples that the oracle itself drew to answer.
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
        Most queries that may be answered; None sets no limit.

    Examples
    --------
    >>> ledger = Ledger(budget=5)
    >>> ledger.record("two coins", [0.5, -0.5], tolerance=0.1)
    >>> ledger.n_queries, ledger.left
    (2, 3)
    >>> ledger.admit(4)
    Traceback (most recent call last):
    ...
    sparsact.hardness.ledger.QueryBudgetError: 4 queries were asked for, and 3 of the budget of 5 are left: raise
    `budget`, or ask for less (a lower degree).
    """

    budget: int | None = None
    records: list[QueryRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.budget is not None and index(self.budget) < 0:
            raise ValueError(f"`budget` is a number of queries, or None for no limit; got {self.budget}.")

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
        """Raise :class:`QueryBudgetError` if ``count`` more queries would pass the budget; none is answered then."""
        if self.left is not None and count > self.left:
            raise QueryBudgetError(
                f"{count} queries were asked for, and {self.left} of the budget of {self.budget} are left: "
                "raise `budget`, or ask for less (a lower degree)."
            )

    def record(
        self, description: str, answers: list[float] | NDArray[np.float64], *, tolerance: float, n_samples: int = 0
    ) -> None:
        """Write down queries that were answered."""
        kept = np.array(answers, dtype=np.float64)
        kept.setflags(write=False)
        self.records.append(QueryRecord(description, len(kept), tolerance, kept, n_samples))

"""Membership queries: values of an unknown function at points of the learner's choice."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.checks import checked_reals, checked_signs
from sparsact.hardness.ledger import Ledger


class MembershipOracle:
    """Values of a function at chosen points of the cube, every point a query.

    Parameters
    ----------
    f : callable
        Takes signs (rows, n), returns a value for each row; a network, a spectrum, a fitted model.
    n : int
        Number of coordinates.
    budget : int, optional
        Most values that may be asked for.

    Examples
    --------
    >>> oracle = MembershipOracle(lambda X: X[:, 0] * X[:, 2], n=3, budget=100)
    >>> oracle([[1, 1, -1], [-1, 1, -1]])
    array([-1.,  1.])
    >>> oracle.ledger.n_queries
    2
    """

    def __init__(self, f: Callable[[NDArray[Any]], Any], n: int, *, budget: int | None = None) -> None:
        if index(n) < 1:
            raise ValueError(f"`n` must be at least 1; got {n}.")
        self.f = f
        self.n = n
        self.ledger = Ledger(budget)

    def __call__(self, X: ArrayLike, description: str = "values") -> NDArray[np.float64]:
        """Values (rows,) at the rows of ``X``, signs (rows, n).

        Raises
        ------
        QueryBudgetError
            If the ledger is full.
        ValueError
            If a point is off the cube, or the function does not return one finite value a row.
        """
        points = checked_signs(X, self.n)
        self.ledger.admit(len(points))
        values = checked_reals(self.f(points), "values of the function")
        if values.shape != (len(points),):
            raise ValueError(
                f"the function must return one value a row, shape ({len(points)},); it returned {values.shape}."
            )
        self.ledger.record(description, values, tolerance=0.0)
        return values

r"""Which coefficients the rows determine, decided exactly: rank and null space of the design.

Rows of positive weight alone decide, not the weights: a coefficient is determined when its unit vector is a combination
of rows of the design, that is when every null vector of the Gram matrix is zero there. The entries of that matrix are
exact sums, so its echelon form modulo primes decides.

The rank modulo a prime never exceeds the rank over the rationals, and is below it only if the prime divides every
non-zero minor of that order. For a matrix that knows nothing of the prime the chance is about one in the prime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.polynomial import Family
from sparsact.statistics.exact_sum import ExactSum

# The largest below 2**23: products of residues, 64 of them summed, are exact in float64.
PRIMES: Final = (8388593, 8388587)
_PANEL: Final = 64


def residues(values: NDArray[np.float64], prime: int) -> NDArray[np.float64]:
    """Remainders in ``range(prime)`` of integers below 2**53 in magnitude, in place."""
    values -= prime * np.floor(values * (1.0 / prime))  # the quotient may be off by one
    values += prime * (values < 0)
    values -= prime * (values >= prime)
    return values


def reduced_echelon(matrix: NDArray[np.float64], prime: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Pivot columns (r,) and the non-zero rows (r, m) of the reduced row echelon form of residues (k, m).

    Notes
    -----
    ``2 * k * m * r`` multiplications, most of them in matrix products.
    """
    a = matrix.copy()
    pivots: list[int] = []
    for start in range(0, a.shape[1], _PANEL):
        row, panel = len(pivots), slice(start, start + _PANEL)
        order, columns = eliminate(a[row:, panel].copy(), prime)
        if not columns:
            continue
        a[row:] = a[row:][order]
        chosen, own = [start + column for column in columns], slice(row, row + len(columns))
        factors = a[:, chosen]
        inverse = _inverse(factors[own], prime)
        top = residues(inverse @ a[own, start:], prime)
        factors[own] = 0.0
        a[:, start:] = residues(a[:, start:] - factors @ top, prime)
        a[own, start:] = top
        pivots += chosen
    return np.array(pivots, dtype=np.intp), a[: len(pivots)]


def _inverse(matrix: NDArray[np.float64], prime: int) -> NDArray[np.float64]:
    augmented = np.concatenate([matrix, np.eye(len(matrix))], axis=1)
    eliminate(augmented, prime, len(matrix))
    return augmented[:, len(matrix) :]


def eliminate(
    a: NDArray[Any], prime: int, n_columns: int | None = None, reduce: Callable[[NDArray[Any], int], Any] = residues
) -> tuple[NDArray[np.intp], list[int]]:
    """Bring residues to reduced echelon form in place; the order in which the rows then stand, and the pivot columns.

    Only the first ``n_columns`` columns are given pivots; ``reduce(values, prime)`` takes remainders.
    """
    order, pivots = np.arange(len(a)), list[int]()
    for column in range(a.shape[1] if n_columns is None else n_columns):
        row = len(pivots)
        below = np.flatnonzero(a[row:, column])
        if not len(below):
            continue
        swap = [row, row + int(below[0])]
        a[swap], order[swap] = a[swap[::-1]], order[swap[::-1]]
        rest = a[:, column:]  # to the left, the pivot's row is 0
        rest[row] = reduce(rest[row] * pow(int(rest[row, 0]), -1, prime), prime)
        others = np.flatnonzero(rest[:, 0])
        others = others[others != row]
        rest[others] = reduce(rest[others] - np.outer(rest[others, 0], rest[row]), prime)
        pivots.append(column)
    return order, pivots


class Gram(Protocol):
    """The Gram matrix of a family, its entries read from exact sums."""

    def __call__(self, family: Family, *, read: Callable[[ExactSum], NDArray[np.float64]]) -> NDArray[np.float64]:
        """Entries (D + 1, D + 1)."""


@dataclass(frozen=True, eq=False)
class RowSpace:
    """The row space of the design of ``[(), *family]``, or of its first columns.

    Attributes
    ----------
    gram : callable
        Weighted inner products of ``[(), *family]``: ``gram(family, read=...)``, entries read from exact sums.
    family : Family
        The monomials, D of them.
    fit_intercept : bool
        Whether the empty subset is a column too.
    n_leading : int or None
        Monomials looked at, from the first on; None for all.
    """

    gram: Gram
    family: Family
    fit_intercept: bool
    n_leading: int | None = None

    def leading(self, n: int) -> RowSpace:
        """The row space of the first n monomials."""
        return RowSpace(self.gram, self.family, self.fit_intercept, n)

    @cached_property
    def _echelons(self) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Pivot columns and reduced rows, modulo each prime; only primes of the largest rank."""
        found = []
        columns = slice(0 if self.fit_intercept else 1, None if self.n_leading is None else 1 + self.n_leading)
        for prime in PRIMES:
            gram = self.gram(self.family, read=partial(ExactSum.modulo, prime=prime))
            part = gram[columns, columns]
            found.append(reduced_echelon(part, prime))
            if len(found[-1][0]) == len(part):
                break  # a full rank is beyond doubt
        rank = max(len(pivots) for pivots, _ in found)
        return [(pivots, rows) for pivots, rows in found if len(pivots) == rank]

    def rank(self) -> int:
        """Rank of the columns, centred if there is an intercept."""
        return len(self._echelons[0][0]) - self.fit_intercept

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Whether the rows determine each coefficient of ``[(), *family]``; a missing intercept is known to be 0."""
        size = self._echelons[0][1].shape[1]
        found = np.ones(size, dtype=bool)
        for pivots, rows in self._echelons:
            free = np.ones(size, dtype=bool)
            free[pivots] = False
            found[free] = False
            found[pivots] &= ~rows[:, free].any(axis=1)
        return found if self.fit_intercept else np.concatenate([[True], found])

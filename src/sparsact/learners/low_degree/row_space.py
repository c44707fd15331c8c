"""Which coefficients the rows determine, decided exactly: the rank and the null space of the design.

Rows of positive weight alone decide, not the weights: a coefficient is determined when its unit vector is a combination
of rows of the design, that is when every null vector of the Gram matrix is zero there. The entries of that matrix are
exact sums, so its echelon form modulo primes tells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.low_degree.family import Family
from sparsact.learners.low_degree.modular import PRIMES, reduced_echelon
from sparsact.learners.low_degree.statistic import Statistic


@dataclass(frozen=True, eq=False)
class RowSpace:
    """The row space of the design of ``[(), *family]``, or of some of its columns.

    Attributes
    ----------
    statistic : Statistic
        Of the rows.
    family : Family
        The monomials, D of them.
    fit_intercept : bool
        Whether the empty subset is a column too.
    chosen : ndarray of shape (k,), or None
        Places in the family of the monomials looked at; None for all.
    """

    statistic: Statistic
    family: Family
    fit_intercept: bool
    chosen: NDArray[np.intp] | None = None

    def part(self, chosen: slice | NDArray[np.intp]) -> RowSpace:
        """The row space of some of the monomials."""
        places = np.arange(len(self.family)) if self.chosen is None else self.chosen
        return RowSpace(self.statistic, self.family, self.fit_intercept, places[chosen])

    @cached_property
    def _echelons(self) -> list[tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Pivot columns and reduced rows, modulo each prime; those of the largest rank alone."""
        found = []
        for prime in PRIMES:
            gram = self.statistic.gram(self.family, read=lambda sums, prime=prime: sums.modulo(prime))  # type: ignore[misc]
            columns = np.arange(len(gram)) if self.chosen is None else np.concatenate([[0], self.chosen + 1])
            columns = columns[0 if self.fit_intercept else 1 :]
            found.append(reduced_echelon(gram[np.ix_(columns, columns)], prime))
            if len(found[-1][0]) == len(columns):
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

"""Rank and null space of integer matrices by elimination modulo a prime: nothing is rounded, so nothing is a tolerance.

The rank modulo a prime never exceeds the rank over the rationals, and is below it only if the prime divides every
non-zero minor of that order. For a matrix that knows nothing of the prime the chance is about one in the prime.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PRIMES = (8388593, 8388587)  # the largest below 2**23: products of residues, 64 of them summed, are exact in float64
_PANEL = 64


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
        order, columns = _eliminated(a[row:, panel].copy(), prime)
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
    beside = np.concatenate([matrix, np.eye(len(matrix))], axis=1)
    _eliminated(beside, prime, len(matrix))
    return beside[:, len(matrix) :]


def _eliminated(a: NDArray[np.float64], prime: int, width: int | None = None) -> tuple[NDArray[np.intp], list[int]]:
    """Reduce residues to echelon form in place; the order in which the rows then stand, and the pivot columns."""
    order, columns = np.arange(len(a)), list[int]()
    for column in range(a.shape[1] if width is None else width):
        row = len(columns)
        below = np.flatnonzero(a[row:, column])
        if not len(below):
            continue
        swap = [row, row + int(below[0])]
        a[swap], order[swap] = a[swap[::-1]], order[swap[::-1]]
        a[row] = residues(a[row] * pow(int(a[row, column]), -1, prime), prime)
        others = np.flatnonzero(a[:, column])
        others = others[others != row]
        a[others] = residues(a[others] - np.outer(a[others, column], a[row]), prime)
        columns.append(column)
    return order, columns

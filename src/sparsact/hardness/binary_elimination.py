"""Linear systems over GF(2), packed 64 to a word: Gaussian elimination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact import kernels
from sparsact.checks import checked_reals
from sparsact.hypercube import WORD


class InconsistentLabelsError(ValueError):
    """No function of the class that was asked for has these labels: a system without solution."""


@dataclass(frozen=True, eq=False)
class BinarySolution:
    """A solution of a system over GF(2), and how much of it the system decides.

    Attributes
    ----------
    bits : ndarray of shape (N,), uint8
        The solution whose free unknowns are 0.
    rank : int
        Rank of the matrix; the solution is the only one when it is N.
    word_operations : int
        Words of 64 bits that elimination has added to others.
    """

    bits: NDArray[np.uint8]
    rank: int
    word_operations: int

    @property
    def unique(self) -> bool:
        """Whether there is no other solution."""
        return self.rank == len(self.bits)


def solve_binary(A: ArrayLike, b: ArrayLike) -> BinarySolution:
    r"""A solution of :math:`A s = b` over GF(2).

    Parameters
    ----------
    A : array-like of shape (M, N)
        Bits 0/1 or bool, one row an equation.
    b : array-like of shape (M,)
        Bits 0/1 or bool.

    Returns
    -------
    solution : BinarySolution
        With every free unknown 0.

    Raises
    ------
    InconsistentLabelsError
        If there is no solution.
    ValueError
        If shapes disagree or an entry is no bit.

    Notes
    -----
    At most rank * M * ceil((N + 1) / 64) additions of words, half of that on random bits; ``A`` is held packed.

    Examples
    --------
    >>> solve_binary([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1, 0, 1])
    BinarySolution(bits=array([1, 0, 0], dtype=uint8), rank=2, word_operations=3)
    """
    matrix, sides = np.asarray(A), np.asarray(b)
    if matrix.ndim != 2 or sides.shape != matrix.shape[:1]:
        raise ValueError(f"`A` (M, N) and `b` (M,) must agree on M; got shapes {matrix.shape} and {sides.shape}.")
    return solve_packed(_packed(np.column_stack([matrix, sides])), len(matrix))


def solve_packed(columns: NDArray[np.uint64], n_equations: int) -> BinarySolution:
    """:func:`solve_binary` of N columns and the right-hand side below them, packed: (N + 1, ceil(n_equations / 64))."""
    n_unknowns = len(columns) - 1
    rows = kernels.transpose_bits(columns, n_equations)
    pivots, operations = reduce_rows(rows, n_unknowns)
    sides = rows[:, n_unknowns // WORD] >> np.uint64(n_unknowns % WORD) & np.uint64(1)
    if sides[len(pivots) :].any():
        raise InconsistentLabelsError(
            f"the system of {n_equations} equations over GF(2) has no solution: no such function has these labels. "
            "Noisy labels need another method; elimination does not tolerate one wrong label."
        )
    bits = np.zeros(n_unknowns, dtype=np.uint8)
    bits[pivots] = sides[: len(pivots)]
    return BinarySolution(bits, len(pivots), operations)


def reduce_rows(rows: NDArray[np.uint64], n_columns: int) -> tuple[list[int], int]:
    """Bring packed rows (M, words) to reduced row echelon form, in place.

    Only the first ``n_columns`` columns are given pivots; those beyond (right-hand sides) are carried along.

    Returns
    -------
    pivots : list of int
        Column of the pivot of each of the first rows; its length is the rank.
    word_operations : int
        Words added to others.
    """
    pivots: list[int] = []
    operations = 0
    for column in range(n_columns):
        word, bit = column // WORD, np.uint64(1) << np.uint64(column % WORD)
        holding = np.flatnonzero(rows[:, word] & bit)
        rank = len(pivots)
        first = np.searchsorted(holding, rank)
        if first == len(holding):
            continue
        chosen = int(holding[first])
        others = np.delete(holding, first)
        # To the left of the pivot the chosen row is zero, so words before its own need no addition.
        rows[others, word:] ^= rows[chosen, word:]
        operations += len(others) * (rows.shape[1] - word)
        rows[[rank, chosen]] = rows[[chosen, rank]]
        pivots.append(column)
        if len(pivots) == len(rows):
            break
    return pivots, operations


def _packed(bits: NDArray[Any]) -> NDArray[np.uint64]:
    if bits.dtype not in (np.bool_, np.int8, np.uint8, np.int32, np.int64):
        bits = checked_reals(bits, "a system over GF(2)")
    columns, bad = kernels.pack_columns(bits, 0, 1)
    if bad >= 0:
        row, column = divmod(bad, bits.shape[1])
        raise ValueError(f"a system over GF(2) holds bits 0 and 1; row {row}, column {column}: {bits[row, column]}.")
    return columns

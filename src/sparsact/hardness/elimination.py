"""Linear systems over GF(2), in packed words, and modulo a prime, by Gaussian elimination."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from operator import index
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact import kernels
from sparsact.hypercube import WORD
from sparsact.learners.low_degree.identification import eliminate
from sparsact.validation.arrays import checked_reals

LARGEST_MODULUS: Final = 2**31  # products of residues fit int64


class InconsistentLabelsError(ValueError):
    """No function of the requested class has these labels: a system without solution."""


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """A solution of a linear system over GF(2) or modulo a prime, unique if the ``rank`` is the number of unknowns.

    Attributes
    ----------
    values : ndarray of shape (N,), int
        The solution whose free unknowns are 0: bits, uint8, or residues, int64.
    rank, word_operations : int
        Rank of the matrix; and, over GF(2), words of 64 bits that elimination has added to others.
    """

    values: NDArray[Any]
    rank: int
    word_operations: int = 0

    @property
    def unique(self) -> bool:
        """Whether there is no other solution."""
        return self.rank == len(self.values)


def solve_binary(A: ArrayLike, b: ArrayLike) -> LinearSolution:
    r"""A solution of :math:`A s = b` over GF(2), every free unknown 0; :class:`InconsistentLabelsError` if none exists.

    Parameters
    ----------
    A, b : array-like of shape (M, N) and (M,)
        Bits 0/1 or bool, one row per equation.

    Returns
    -------
    solution : LinearSolution
        Takes at most rank * M * ceil((N + 1) / 64) additions of words, half of that on random bits.

    Examples
    --------
    >>> solve_binary([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1, 0, 1])
    LinearSolution(values=array([1, 0, 0], dtype=uint8), rank=2, word_operations=3)
    """
    bits = _augmented(np.asarray(A), np.asarray(b))
    if bits.dtype not in (np.bool_, np.int8, np.uint8, np.int32, np.int64):
        bits = checked_reals(bits, "a system over GF(2)")
    columns, bad = kernels.pack_columns(bits, 0, 1)
    if bad >= 0:
        row, column = divmod(bad, bits.shape[1])
        raise ValueError(f"a system over GF(2) holds bits 0 and 1; row {row}, column {column}: {bits[row, column]}.")
    return solve_packed(columns, len(bits))


def solve_packed(columns: NDArray[np.uint64], n_equations: int) -> LinearSolution:
    """:func:`solve_binary` of N columns and the right-hand side below them, packed: (N + 1, ceil(n_equations / 64))."""
    n_unknowns = len(columns) - 1
    rows = kernels.transpose_bits(columns, n_equations)
    pivots, operations = reduce_rows(rows, n_unknowns)
    sides = rows[:, n_unknowns // WORD] >> np.uint64(n_unknowns % WORD) & np.uint64(1)
    bits = _solution(sides, pivots, n_unknowns, "over GF(2)", "no such function has these labels")
    return LinearSolution(bits.astype(np.uint8), len(pivots), operations)


def reduce_rows(rows: NDArray[np.uint64], n_columns: int) -> tuple[list[int], int]:
    """Pivot columns and words added, of packed rows (M, words) brought to reduced row echelon form in place.

    Only the first ``n_columns`` columns are given pivots; further columns (right-hand sides) are carried along.
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


def solve_modulo(A: ArrayLike, b: ArrayLike, prime: int) -> LinearSolution:
    r"""A solution of :math:`A w \equiv b` modulo a prime, every free unknown 0; or :class:`InconsistentLabelsError`.

    Parameters
    ----------
    A, b : array-like of shape (M, N) and (M,)
        Integers, one row per equation.
    prime : int
        The modulus, below 2**31. A composite one has residues without inverse, which cannot be pivots.

    Returns
    -------
    solution : LinearSolution
        Takes rank * M * N multiplications.

    Examples
    --------
    >>> solve_modulo([[2, 1], [1, 3]], [0, 4], 7)
    LinearSolution(values=array([2, 3]), rank=2, word_operations=0)
    """
    p = checked_prime(prime)
    rows = _augmented(_residues(A, "`A`", p), _residues(b, "`b`", p))
    n_unknowns = rows.shape[1] - 1
    pivots = eliminate(rows, p, n_unknowns, lambda values, modulus: values % modulus)[1]
    over = f"modulo {p}"
    return LinearSolution(
        _solution(rows[:, -1], pivots, n_unknowns, over, f"the labels are not linear {over}"), len(pivots)
    )


def checked_prime(prime: int) -> int:
    """``prime`` itself, refused unless it is a prime below 2**31."""
    p = index(prime)
    if not 2 <= p < LARGEST_MODULUS:
        raise ValueError(f"the modulus must be a prime from 2 to below 2**31; got {p}.")
    divisor = next((d for d in (2, *range(3, isqrt(p) + 1, 2)) if p % d == 0 and d < p), None)
    if divisor:
        raise ValueError(
            f"elimination divides by its pivots, so the modulus must be prime; {p} = {divisor} * {p // divisor}: "
            "reduce the system modulo each prime factor and solve there."
        )
    return p


def _augmented(matrix: NDArray[Any], sides: NDArray[Any]) -> NDArray[Any]:
    if matrix.ndim != 2 or sides.shape != matrix.shape[:1]:
        raise ValueError(f"`A` (M, N) and `b` (M,) must agree on M; got shapes {matrix.shape} and {sides.shape}.")
    return np.column_stack([matrix, sides])


def _solution(sides: NDArray[Any], pivots: list[int], n_unknowns: int, over: str, why: str) -> NDArray[np.int64]:
    """The solution whose free unknowns are 0, from the right-hand sides of reduced rows."""
    if sides[len(pivots) :].any():
        raise InconsistentLabelsError(
            f"the system of {len(sides)} equations {over} has no solution: {why}. Noisy or rounded labels need another "
            "method: elimination fails with a single wrong label."
        )
    values = np.zeros(n_unknowns, dtype=np.int64)
    values[pivots] = sides[: len(pivots)]
    return values


def _residues(values: ArrayLike, what: str, p: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    kind = array.dtype.kind
    # Floats from 2**53 on are integers too, but hardly the intended ones.
    if kind not in "biu" and not (kind == "f" and (np.abs(array, dtype=float) < 2**53).all() and not (array % 1).any()):
        raise ValueError(
            f"{what} must hold integers for an exact solution, floats below 2**53; got dtype {array.dtype}: "
            f"round them, or reduce large ones modulo {p}."
        )
    return (array.astype(np.uint64 if kind == "u" else np.int64) % p).astype(np.int64)

"""Linear systems modulo a prime: Gaussian elimination."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.hardness.binary_elimination import InconsistentLabelsError

LARGEST_MODULUS = 2**31  # products of residues fit int64


@dataclass(frozen=True, eq=False)
class ModularSolution:
    """A solution of a system modulo a prime.

    Attributes
    ----------
    residues : ndarray of shape (N,), int64
        The solution whose free unknowns are 0.
    rank : int
        Rank of the matrix; the solution is the only one when it is N.
    """

    residues: NDArray[np.int64]
    rank: int

    @property
    def unique(self) -> bool:
        """Whether there is no other solution."""
        return self.rank == len(self.residues)


def solve_modulo(A: ArrayLike, b: ArrayLike, prime: int) -> ModularSolution:
    r"""A solution of :math:`A w \equiv b` modulo a prime.

    Parameters
    ----------
    A : array-like of shape (M, N)
        Integers, one row an equation.
    b : array-like of shape (M,)
        Integers.
    prime : int
        The modulus, below 2**31.

    Returns
    -------
    solution : ModularSolution
        With every free unknown 0.

    Raises
    ------
    InconsistentLabelsError
        If there is no solution.
    ValueError
        If the modulus is no prime, shapes disagree, or an entry is no integer.

    Notes
    -----
    rank * M * N multiplications. A composite modulus has residues without inverse, and no pivot can be made of them.

    Examples
    --------
    >>> solve_modulo([[2, 1], [1, 3]], [0, 4], 7)
    ModularSolution(residues=array([2, 3]), rank=2)
    """
    p = checked_prime(prime)
    matrix, sides = _residues(A, "`A`", p), _residues(b, "`b`", p)
    if matrix.ndim != 2 or sides.shape != matrix.shape[:1]:
        raise ValueError(f"`A` (M, N) and `b` (M,) must agree on M; got shapes {matrix.shape} and {sides.shape}.")
    rows = np.column_stack([matrix, sides])
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        rank = len(pivots)
        holding = rank + np.flatnonzero(rows[rank:, column])
        if not len(holding):
            continue
        rows[[rank, holding[0]]] = rows[[holding[0], rank]]
        rows[rank] = rows[rank] * pow(int(rows[rank, column]), -1, p) % p
        factors = rows[:, column].copy()
        factors[rank] = 0
        rest = rows[:, column:]  # the pivot's row is 0 before
        rest -= factors[:, None] * rest[rank]  # below 2**62 in size
        rest %= p
        pivots.append(column)
    if rows[len(pivots) :, -1].any():
        raise InconsistentLabelsError(
            f"the system of {len(matrix)} equations modulo {p} has no solution: the labels are not linear modulo {p}. "
            "Noisy or rounded labels need another method."
        )
    residues = np.zeros(matrix.shape[1], dtype=np.int64)
    residues[pivots] = rows[: len(pivots), -1]
    return ModularSolution(residues, len(pivots))


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


def _residues(values: ArrayLike, what: str, p: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    kind = array.dtype.kind
    # Floats from 2**53 on are integers too, but hardly the ones that were meant.
    if kind not in "biu" and not (kind == "f" and (np.abs(array, dtype=float) < 2**53).all() and not (array % 1).any()):
        raise ValueError(
            f"{what} must hold integers for an exact solution, floats below 2**53; got dtype {array.dtype}: "
            f"round them, or reduce large ones modulo {p}."
        )
    return (array.astype(np.uint64 if kind == "u" else np.int64) % p).astype(np.int64)

"""Targets of few directions of a high-dimensional space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.validation.arrays import checked_frame
from sparsact_papers.data.frames import random_frame
from sparsact_papers.data.targets.target import Target


@dataclass(frozen=True, eq=False, repr=False)
class Composed(Target):
    r"""The function :math:`x \mapsto p(A x)` of a target p and a matrix A with orthonormal rows.

    Parameters
    ----------
    target : Target
        p, of k columns.
    A : array-like of shape (k, ambient)
        Orthonormal rows.

    Notes
    -----
    *Lipschitz bound.* A is 1-Lipschitz, and the j-th coordinate of Ax is at most :math:`r \|a_j\|_1` for x within
    [-r, r]^ambient. So p's bound within :math:`r \max_j \|a_j\|_1` holds: Ax leaves [-1, 1]^k, where p's own bound
    stands, also if x does not leave its cube.
    """

    target: Target
    A: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not isinstance(self.target, Target):
            raise TypeError(f"`target` must be a Target of sparsact_papers.data; got {self.target!r}.")
        A = checked_frame(np.asarray(self.A).T, "the transpose of `A`").T
        if len(A) != self.target.n:
            raise ValueError(f"`A` must have a row for each of the target's {self.target.n} columns; got {len(A)}.")
        object.__setattr__(self, "A", A)

    @property
    def n(self) -> int:
        """Number of columns."""
        return int(self.A.shape[1])

    def _values(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.target._values(X @ self.A.T)

    def _steepness(self, radius: float) -> float:
        return self.target._steepness(radius * float(np.abs(self.A).sum(axis=1).max()))

    def __repr__(self) -> str:
        return f"Composed({self.target!r}, ambient={self.n})"


def composed(target: Target, A: ArrayLike) -> Composed:
    """The function x -> target(Ax), for A of shape (target.n, ambient) with orthonormal rows: see :class:`Composed`.

    Parameters
    ----------
    target : Target
        On ``target.n`` columns.
    A : array-like of shape (target.n, ambient)
        Orthonormal rows.

    Returns
    -------
    target : Composed
        On ``ambient`` columns, with its Lipschitz bound.

    Examples
    --------
    The product of the first and the third coordinate:

    >>> from sparsact_papers.data import Multilinear
    >>> f = composed(Multilinear([1, -1, -1, 1]), [[1, 0, 0], [0, 0, 1]])
    >>> f([[2.0, 9.0, 3.0]])
    array([6.])
    """
    return Composed(target, np.asarray(A))


def random_composed(target: Target, ambient: int, *, rng: np.random.Generator) -> Composed:
    """The function x -> target(Ax) for uniformly random orthonormal rows A, as in Section A.2 of paper B.

    Parameters
    ----------
    target : Target
    ambient : int
        Number of columns of x, at least ``target.n``.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    target : Composed
        On ``ambient`` columns, with its Lipschitz bound.

    Notes
    -----
    For x uniform on [-1, 1]^ambient a coordinate of Ax has variance 1/3, so about one in twelve leaves [-1, 1], where
    paper B's polynomials are small. The paper does not say how it draws x.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Section A.2.

    Examples
    --------
    >>> from sparsact_papers.data import random_polynomial
    >>> rng = np.random.default_rng(0)
    >>> random_composed(random_polynomial(3, 2, rng=rng), 7, rng=rng)
    Composed(Polynomial(n=3, degree=2), ambient=7)
    """
    return Composed(target, random_frame(ambient, target.n, rng=rng).T)

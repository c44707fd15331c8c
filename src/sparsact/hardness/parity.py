r"""Parity: hidden from statistical queries, plain to linear algebra.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.checks import checked_sign_examples, checked_signs, checked_subset
from sparsact.fourier import Spectrum
from sparsact.hardness.binary_elimination import solve_binary
from sparsact.hardness.distribution import LiftedFunction
from sparsact.hypercube import Subset, signs_to_bits
from sparsact.lift import Lift


def parity_distribution(subset: Iterable[int], m: int, *, lifted: bool = False) -> LiftedFunction:
    r"""Examples :math:`(x(y), \chi_S(y))` of uniform :math:`y \in \{-1, 1\}^m`.

    Parameters
    ----------
    subset : iterable of int
        S, coordinates of y.
    m : int
        Number of bits.
    lifted : bool
        True: x(y) is the quadratic lift, on whose ``m * m`` coordinates a one-sparse network computes the parity
        (:func:`sparsact.constructions.parity`). False: x(y) = y.

    Returns
    -------
    distribution : LiftedFunction
        Draws examples, and knows its expectations.

    Examples
    --------
    >>> X, y = parity_distribution((0, 2), 5, lifted=True).sample(7, rng=np.random.default_rng(0))
    >>> X.shape, bool((X[:, 0] * X[:, 12] == y).all())
    ((7, 25), True)
    """
    parity = Spectrum.of({checked_subset(subset): 1.0}, n=m)
    return LiftedFunction(parity, m, Lift.quadratic(m) if lifted else None)


@dataclass(frozen=True)
class LearnedParity:
    """A character that agrees with all examples.

    Attributes
    ----------
    subset : tuple of int
        Its coordinates.
    n : int
        Number of coordinates of a point.
    rank : int
        Independent examples seen; the subset is the only one that agrees when there are n.
    """

    subset: Subset
    n: int
    rank: int

    @property
    def unique(self) -> bool:
        """Whether no other parity agrees with the examples."""
        return self.rank == self.n

    def __call__(self, X: ArrayLike) -> NDArray[np.int8]:
        """Values +-1 at the rows of ``X``, signs (rows, n)."""
        signs = checked_signs(X, self.n)
        return np.asarray(signs[:, list(self.subset)].prod(axis=1), dtype=np.int8)

    def __spectrum__(self) -> Spectrum:
        return Spectrum.of({self.subset: 1.0}, n=self.n)


def learn_parity(X: ArrayLike, y: ArrayLike) -> LearnedParity:
    r"""The parity that has the given labels, by elimination over GF(2).

    Parameters
    ----------
    X : array-like of shape (rows, n)
        Points, signs.
    y : array-like of shape (rows,)
        Labels, signs, without noise: :math:`y = \chi_S(x)`.

    Returns
    -------
    parity : LearnedParity
        Exactly right on all points in the span (over GF(2), as bits) of those given.

    Raises
    ------
    InconsistentLabelsError
        If no parity has these labels.
    ValueError
        If a point or label is not a sign, or shapes disagree.

    Notes
    -----
    Points that are uniform on a linear space (over GF(2), as bits) of dimension r span it once there are ``r + t`` of
    them, with probability at least ``1 - 2**-t``. The cube has r = n; the quadratic lift of m bits is one of r = m,
    since the bits of its ``m * m`` coordinates are sums of the m: so ``m + t`` examples are enough there too, with no
    knowledge of the lift. Costs at most r (r + t) ceil((n + 1) / 64) additions of words.

    Examples
    --------
    >>> X, y = parity_distribution((1, 4, 5), 9).sample(30, rng=np.random.default_rng(1))
    >>> learn_parity(X, y)
    LearnedParity(subset=(1, 4, 5), n=9, rank=9)
    """
    points, labels = checked_sign_examples(X, y)
    solution = solve_binary(signs_to_bits(points), signs_to_bits(labels))
    subset = tuple(np.flatnonzero(solution.bits).tolist())
    return LearnedParity(subset, points.shape[1], solution.rank)

r"""Parity: hard for statistical queries, easy for linear algebra; with the adversary of the lower bound.

For a query phi and a parity on S, put :math:`g(x) = (\phi(x, 1) - \phi(x, -1)) / 2` and
:math:`c = \mathbb{E}_x (\phi(x, 1) + \phi(x, -1)) / 2`. Then

.. math:: \mathbb{E}_x[\phi(x, \chi_S(x))] = c + \hat g(S), \qquad \sum_S \hat g(S)^2 = \mathbb{E}[g^2] \le 1.

So the answer c is legal for every parity but the at most :math:`1 / \tau^2` with :math:`|\hat g(S)| > \tau`: after Q
queries at least :math:`2^m - Q / \tau^2` parities are possible. If the sign of a hypothesis is wrong at most at 1/3 of
the points (a sign 0 counting half), that sign has a coefficient of at least 1/3 at the true parity, and by the same sum
at most 9 parities share this; so a learner that always succeeds asks :math:`Q \ge \tau^2 (2^m - 9)` queries.

References
----------
.. [B] A. Blum et al., "Weakly learning DNF and characterizing statistical query learning", 1994.
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Theorem 14.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier import Spectrum, walsh_hadamard
from sparsact.fourier.spectrum import spectrum_of
from sparsact.hardness.distribution import LARGEST_ENUMERATION, LiftedFunction, pulled_back
from sparsact.hardness.elimination import solve_binary
from sparsact.hardness.queries import Query, StatisticalQueries, query_values
from sparsact.hypercube import Masks, Subset, points, signs_to_bits
from sparsact.lift import Lift
from sparsact.validation.arrays import checked_sign_examples, checked_signs, checked_subset
from sparsact.validation.parameters import checked_size


def parity_distribution(subset: Iterable[int], m: int, *, lifted: bool = False) -> LiftedFunction:
    r"""Examples :math:`(x(y), \chi_S(y))` of uniform :math:`y \in \{-1, 1\}^m`.

    Parameters
    ----------
    subset, m : iterable of int, and int
        S, coordinates of y, and the number of bits.
    lifted : bool
        True: x(y) is the quadratic lift, on whose ``m * m`` coordinates a one-sparse network computes the parity
        (:func:`sparsact.constructions.parity`). False: x(y) = y.

    Returns
    -------
    distribution : LiftedFunction
        Draws examples and computes exact expectations.

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
    subset, n : tuple of int, and int
        Its coordinates, and the number of coordinates of a point.
    rank : int
        Number of independent examples; the subset is the only one that agrees when it is n.
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


@spectrum_of.register
def spectrum_of_parity(learned: LearnedParity) -> Spectrum:
    """Spectrum of a parity: one coefficient."""
    return Spectrum.of({learned.subset: 1.0}, n=learned.n)


def learn_parity(X: ArrayLike, y: ArrayLike) -> LearnedParity:
    r"""The parity that has the given labels, by elimination over GF(2).

    Parameters
    ----------
    X, y : array-like of shape (rows, n) and (rows,)
        Points and their labels, signs, without noise: :math:`y = \chi_S(x)`.

    Returns
    -------
    parity : LearnedParity
        Right on the span (over GF(2), as bits) of the points; :class:`InconsistentLabelsError` if none fits the labels.

    Notes
    -----
    Points that are uniform on a linear space (over GF(2), as bits) of dimension r span it once there are ``r + t`` of
    them, with probability at least ``1 - 2**-t``. The cube has r = n; the quadratic lift of m bits is one of r = m,
    since the bits of its ``m * m`` coordinates are sums of the m: so ``m + t`` examples are enough there too, without
    knowledge of the lift. Takes at most r (r + t) ceil((n + 1) / 64) additions of words.

    Examples
    --------
    >>> X, y = parity_distribution((1, 4, 5), 9).sample(30, rng=np.random.default_rng(1))
    >>> learn_parity(X, y)
    LearnedParity(subset=(1, 4, 5), n=9, rank=9)
    """
    points, labels = checked_sign_examples(X, y)
    solution = solve_binary(signs_to_bits(points), signs_to_bits(labels))
    subset = tuple(np.flatnonzero(solution.values).tolist())
    return LearnedParity(subset, points.shape[1], solution.rank)


class ParityAdversary(StatisticalQueries):
    r"""Answers statistical queries about *some* parity of m uniform bits, and reveals as little as possible.

    Every answer is within the tolerance of the truth for each parity in :attr:`possible`; so at the end any of them may
    be named as the hidden one.

    Parameters
    ----------
    m, tolerance : int, and float
        Number of bits, at most 16, and :math:`\tau`, in (0, 1].
    lift : Lift, optional
        Points are x(y) instead of the bits y.
    budget : int, optional
        Maximum number of queries. Each takes ``m * 2**m`` additions; a character is looked up.

    Examples
    --------
    >>> adversary = ParityAdversary(6, tolerance=0.5)
    >>> adversary.correlations([(0,), (2, 5)])
    array([0., 0.])
    >>> int(adversary.possible.sum())
    62
    """

    def __init__(self, m: int, tolerance: float, lift: Lift | None = None, *, budget: int | None = None) -> None:
        checked_size(m, "`m` of an adversary, which keeps a list of all 2**m parities,", maximum=LARGEST_ENUMERATION)
        self.lift = Lift.of(lift, m)
        super().__init__(self.lift.n, tolerance, budget)
        self.m = m
        self.possible: NDArray[np.bool_] = np.ones(2**m, dtype=bool)
        """Parities that no answer has excluded, by subset number, (2**m,)."""

    @cached_property
    def _points(self) -> NDArray[np.int8]:
        X = self.lift(points(self.m))
        X.setflags(write=False)  # passed to every query
        return X

    def _mean(self, phi: Query) -> float:
        plus, minus = (query_values(phi, self._points, np.full(len(self._points), label)) for label in (1.0, -1.0))
        decoy = float(np.mean(plus + minus)) / 2
        return self._answer(decoy, walsh_hadamard((plus - minus) / 2))

    def _correlations(self, masks: Masks) -> NDArray[np.float64]:
        """As :meth:`_answer` of a table with coefficient 1 at the character itself and 0 elsewhere."""
        answers = np.zeros(len(masks))
        left = int(self.possible.sum())
        for k, number in enumerate(pulled_back(self.lift, masks)[:, 0].tolist()):
            if self.tolerance < 1 and self.possible[number]:
                if left == 1:
                    answers[k] = 1.0
                else:
                    self.possible[number] = False
                    left -= 1
        return answers

    def _answer(self, decoy: float, coefficients: NDArray[np.float64]) -> float:
        """The decoy while it is legal for a possible parity; else the truth for the nearest one."""
        sizes = np.abs(coefficients)
        nearest = int(np.argmin(np.where(self.possible, sizes, np.inf)))
        shift = 0.0 if sizes[nearest] <= self.tolerance else float(coefficients[nearest])
        self.possible &= np.abs(coefficients - shift) <= self.tolerance
        return decoy + shift

r"""The adversary of the lower bound: it has no parity in mind until its answers leave only one.

For a query phi and a parity on S, put :math:`g(x) = (\phi(x, 1) - \phi(x, -1)) / 2` and
:math:`c = \mathbb{E}_x (\phi(x, 1) + \phi(x, -1)) / 2`. Then

.. math:: \mathbb{E}_x[\phi(x, \chi_S(x))] = c + \hat g(S), \qquad \sum_S \hat g(S)^2 = \mathbb{E}[g^2] \le 1.

So the answer c is legal for every parity but the at most :math:`1 / \tau^2` with :math:`|\hat g(S)| > \tau`: after Q
queries at least :math:`2^m - Q / \tau^2` parities are still possible. If the sign of a hypothesis is wrong at no more
than 1/3 of the points (a sign 0 counting half), that sign has a coefficient of at least 1/3 at the true parity, and by
the same sum at most 9 parities share this; so a learner that always succeeds asks :math:`Q \ge \tau^2 (2^m - 9)`
queries.

References
----------
.. [B] A. Blum et al., "Weakly learning DNF and characterizing statistical query learning", 1994.
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Theorem 14.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier import walsh_hadamard
from sparsact.hardness.answers import Query, query_values
from sparsact.hardness.distribution import LARGEST_ENUMERATION, pulled_back
from sparsact.hardness.statistical_query import StatisticalQueries
from sparsact.hypercube import Masks, points
from sparsact.lift import Lift


class ParityAdversary(StatisticalQueries):
    r"""Answers statistical queries about *some* parity of m uniform bits, and tells as little as it can.

    Every answer is within the tolerance of the truth for each parity that is still possible
    (:attr:`possible`); so at the end any of them may be called the one that was asked about.

    Parameters
    ----------
    m : int
        Number of bits, at most 16.
    tolerance : float
        :math:`\tau`, in (0, 1].
    lift : Lift, optional
        Points are x(y) instead of the bits y.
    budget : int, optional
        Most queries that may be asked.

    Notes
    -----
    ``m * 2**m`` additions a query; a character costs a look at one parity.

    Examples
    --------
    >>> adversary = ParityAdversary(6, tolerance=0.5)
    >>> adversary.correlations([(0,), (2, 5)])
    array([0., 0.])
    >>> int(adversary.possible.sum())
    62
    """

    def __init__(self, m: int, tolerance: float, lift: Lift | None = None, *, budget: int | None = None) -> None:
        if not 1 <= m <= LARGEST_ENUMERATION:
            raise ValueError(f"the adversary keeps a list of all 2**m parities, m from 1 to 16; got m = {m}.")
        self.lift = Lift([(i,) for i in range(m)], m) if lift is None else lift
        if self.lift.m != m:
            raise ValueError(f"the lift takes {self.lift.m} bits, not m = {m}; they must agree.")
        super().__init__(self.lift.n, tolerance, budget)
        self.m = m
        self.possible: NDArray[np.bool_] = np.ones(2**m, dtype=bool)
        """Parities that no answer has excluded, by subset number, (2**m,)."""

    @cached_property
    def _points(self) -> NDArray[np.int8]:
        X = self.lift(points(self.m))
        X.setflags(write=False)  # shown to every query
        return X

    def _mean(self, phi: Query) -> float:
        plus, minus = (query_values(phi, self._points, np.full(len(self._points), label)) for label in (1.0, -1.0))
        decoy = float(np.mean(plus + minus)) / 2
        return self._answer(decoy, walsh_hadamard((plus - minus) / 2))

    def _correlations(self, masks: Masks) -> NDArray[np.float64]:
        """A character is the parity it is: coefficient 1 there, 0 elsewhere; as :meth:`_answer` of such a table."""
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
        """The decoy while it is legal for a parity that is possible; else the truth for the nearest one."""
        sizes = np.abs(coefficients)
        nearest = int(np.argmin(np.where(self.possible, sizes, np.inf)))
        shift = 0.0 if sizes[nearest] <= self.tolerance else float(coefficients[nearest])
        self.possible &= np.abs(coefficients - shift) <= self.tolerance
        return decoy + shift

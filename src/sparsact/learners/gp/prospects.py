r"""Reduction of variances by measurements at new points: rank-one updates of a posterior.

With the posterior covariance C of a process f, a measurement at x with noise of variance :math:`s^2` takes

.. math:: \frac{\mathrm{Cov}(w, f(x))^2}{C(x, x) + s^2}

from the variance of a linear quantity w, and leaves :math:`C(a, b) - C(a, x)\, C(x, b) / (C(x, x) + s^2)`: the
posterior of a fit to one row more, with the same kernel and noise [1]_. Taking the largest sum over quantities is the
greedy step of an A-optimal design.

References
----------
.. [1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, Sections 2.2 and A.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from sparsact.learners.gp.kernel import Array, Points
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.gp.systems.system import POINTS_AT_ONCE

_LEAST_DEVIATION: Final = 1e-100  # whose inverse has a square


class Quantities(NamedTuple):
    """Linear functionals, such as coefficients, with prior variances (q,) and covariances with values.

    ``covariances`` takes points (m, n) and returns covariances (q, m) of the quantities with the values there.
    """

    variances: Array
    covariances: Callable[[Points], Array]


@dataclass(frozen=True, eq=False)
class Belief:
    """A posterior, the matrix of all or some of its rows, and the noise variance of a new measurement."""

    posterior: Posterior
    system: DenseSystem
    noise: float

    def variances(self, quantities: Quantities) -> Array:
        """Posterior variances (q,)."""
        known = self.system.explained(quantities.covariances(self.system.points).T)
        return np.asarray(np.maximum(quantities.variances - known, 0.0))

    def roughness(self, points: Points) -> Array:
        r"""Leave-one-out errors of the rows near each point, relative to the mean over all rows, (N,).

        .. math:: \frac{\sum_i \rho(x, x_i)^2 z_i^2 + \bar z}{\bar z\, (\sum_i \rho(x, x_i)^2 + 1)}, \qquad
                  z_i^2 = \frac{(A^{-1} y)_i^2}{(A^{-1})_{ii}},

        with the errors z of rows left out, in deviations [1]_ (Section 5.4.2), and the prior's correlations, whose
        squares are how squares correlate; all rows together weigh like one that is at x. A kernel is as rough
        everywhere, and a measured function is not: it may be flat behind a floor. 1 where errors are not known.
        """
        kernel, alpha = self.system.kernel, self.posterior.alpha
        if len(alpha) != len(self.system):
            return np.ones(len(points))
        squares = alpha**2 / self.system.factor.lower_inverse().diagonal()
        squares /= max(float(squares.mean()), _LEAST_DEVIATION)
        sums = np.empty((len(points), 2))
        for start in range(0, len(points), POINTS_AT_ONCE):
            block = slice(start, start + POINTS_AT_ONCE)
            near = np.maximum(kernel.covariance(points[block], self.system.points) / kernel.variance, 0.0) ** 2
            sums[block] = np.stack([near @ squares, near.sum(axis=1)], axis=1) + 1
        return np.asarray(sums[:, 0] / sums[:, 1])

    def with_rows(self, points: Points) -> Belief:
        """The posterior after measurements at points (j, n) that equal the predictions."""
        system, noise = self.system, np.append(self.system.noise, np.full(len(points), self.noise))
        return replace(self, system=DenseSystem(system.kernel, np.concatenate([system.points, points]), noise))


@dataclass(eq=False)
class Prospects:
    """Posterior at candidates, updated by measurements that are assumed to equal the predictions.

    Attributes
    ----------
    belief : Belief
        The posterior.
    points : ndarray of shape (N, n)
        Candidates.
    half : ndarray of shape (m + room, N)
        Products of its columns are what rows and measurements explain of the candidates' prior covariances.
    n_known : int
        Its rows in use.
    means, variances : ndarray of shape (N,)
        Means and variances of the function at the candidates.
    covariances : ndarray of shape (q, N)
        Covariances of the quantities with the function at the candidates.
    """

    belief: Belief
    points: Points
    half: Array
    n_known: int
    means: Array
    variances: Array
    covariances: Array

    @classmethod
    def of(cls, belief: Belief, points: Points, quantities: Quantities, room: int) -> Self:
        """Prospects of candidates, with room for measurements: ``m**2`` products per candidate."""
        system = belief.system
        half = np.zeros((len(system) + room, len(points)))
        known = half[: len(system)]
        for start in range(0, len(points), POINTS_AT_ONCE):
            block = slice(start, start + POINTS_AT_ONCE)
            known[:, block] = system.factor.halved(system.kernel.covariance(system.points, points[block]))
        variances = np.maximum(system.kernel.variance - np.einsum("mk,mk->k", known, known), 0.0)
        covariances = quantities.covariances(points)
        covariances -= system.factor.halved(quantities.covariances(system.points).T).T @ known
        return cls(belief, points, half, len(system), belief.posterior.values(points), variances, covariances)

    def at(self, place: int) -> Self:
        """Prospects of a single candidate."""
        own = slice(place, place + 1)
        half, means, variances, covariances = (
            part[..., own] for part in (self.half, self.means, self.variances, self.covariances)
        )
        return type(self)(self.belief, self.points[own], half, self.n_known, means, variances, covariances)

    def measure(self, one: Prospects) -> None:
        """Update for a measurement at one point, given by its prospects: ``N (m + q)`` products."""
        cross = self.belief.system.kernel.covariance(one.points, self.points)[0] - one.half[:, 0] @ self.half
        deviation = float(np.sqrt(one.variances[0] + self.belief.noise))
        self.half[self.n_known] = cross / deviation
        self.covariances -= np.outer(one.covariances[:, 0] / deviation, self.half[self.n_known])
        self.variances = np.maximum(self.variances - self.half[self.n_known] ** 2, 0.0)
        self.n_known += 1

    def falls(self) -> Array:
        """Reduction of the sum of the quantities' variances by a measurement at each candidate, (N,)."""
        squares = np.einsum("qn,qn->n", self.covariances, self.covariances)
        return np.asarray(squares / (self.variances + self.belief.noise))

    def improvements(self, best: float, sign: int) -> Array:
        r"""Expected improvement (N,) beyond a value, :math:`s\, (z \Phi(z) + \phi(z))` at a distance of z deviations s.

        ``sign`` is 1 where large values are better, else -1.
        """
        deviation = np.maximum(np.sqrt(self.variances), _LEAST_DEVIATION)
        z = sign * (self.means - best) / deviation
        return np.asarray(deviation * (z * ndtr(z) + np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)))

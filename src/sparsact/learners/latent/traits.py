r"""Traits that several targets share, such as energies of folding and of binding, by penalised maximum likelihood.

With the polynomials :math:`f_0, \dots, f_K` of the traits, energies in units of kT, target t is

.. math:: y_t = C_t + A_t\, g_t(f) + \sigma_t \varepsilon, \qquad
          g = \frac{1}{1 + e^{f_0}} \text{ (two-state)}, \quad \frac{1}{1 + e^{f_k} (1 + e^{f_0})} \text{ (three-state)}

[1]_: the fractions of molecules that are folded, and that are folded and bound. Each three-state target has a binding
energy :math:`f_k` of its own. Parameters are the coefficients and, of each target, :math:`\gamma = 1/\sigma`,
:math:`\gamma C` and :math:`\gamma A > 0`, so that a residual is :math:`r = \gamma y - \gamma C - \gamma A\, g(f)`.

A ridge penalty is in units of the noise, as that of a single latent is: of :math:`\gamma A b / 4`, what a coefficient b
adds where the curve is steepest, for the first target that measures the trait. Beside it an energy at the mean of the
rows has prior deviation 3, and :math:`\log(A / 4) \sim N(0, 1)` for targets of variance 1, as for a single sigmoid.

:math:`\gamma` and A maximise the marginal likelihood, coefficients (in units of the noise) and levels integrated out by
Laplace's approximation: the joint mode of many coefficients prefers curves that are too straight. What the integral
adds, :math:`-\tfrac12 \log |H|`, and MacKay's penalties are computed in turn with the mode.

References
----------
.. [1] A. J. Faure et al., "Mapping the energetic and allosteric landscapes of protein binding domains", Nature 2022.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sparsact.learners.gp.cholesky import Cholesky
from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent import newton
from sparsact.learners.latent.latent_polynomial import LEAST_NOISE, LEAST_PENALTY, SETTLED
from sparsact.learners.latent.measurement import STRAIGHT
from sparsact.learners.latent.targets import Targets, residual_terms
from sparsact.statistics.solved import Solved

THERMODYNAMIC: Final = ("two-state", "three-state")
SHARING: Final = ("identity", "log", "sigmoid", *THERMODYNAMIC)  # links that may measure a shared trait
_STEEPEST: Final = 4.0  # one over the greatest slope of a fraction by its exponent
PATIENCE: Final = 50  # updates of penalties without a smaller change than before; fits that settle had at most 24
_STEP: Final = 1e-3  # of a logarithm, in differences


def traits_of(links: tuple[str, ...]) -> list[list[int]]:
    """The traits that each link measures: the first one and, for three states, a binding energy of its own."""
    found: list[list[int]] = []
    for link in links:
        found.append([0, 1 + sum(len(traits) - 1 for traits in found)] if link == "three-state" else [0])
    return found


class Fractions(NamedTuple):
    """Values (m,) of a link, and their first (m, j) and second derivatives (m, j, j) by its traits."""

    value: Array
    slope: Array
    bend: Array


def fractions(link: str, f: Array) -> Fractions:
    """A link at traits (m, j), without level and height."""
    if link in STRAIGHT:
        return Fractions(f[:, 0], np.ones_like(f), np.zeros((*f.shape, 1)))
    sign = -1.0 if link == "sigmoid" else 1.0
    exponent, by, bend = sign * f[:, -1], np.full_like(f, sign), np.zeros((*f.shape, f.shape[1]))
    if link == "three-state":
        exponent = exponent + np.logaddexp(0.0, f[:, 0])
        by[:, 0] = expit(f[:, 0])
        bend[:, 0, 0] = by[:, 0] * expit(-f[:, 0])
    value = expit(-exponent)
    density = (value * expit(exponent))[:, None]
    both = (1 - 2 * value)[:, None, None] * by[:, :, None] * by[:, None, :]
    return Fractions(value, -density * by, density[:, :, None] * (both - bend))


class SharedTarget(NamedTuple):
    """One target: its link, the traits that it measures, the rows that have it, and standardised targets there."""

    link: str
    traits: list[int]
    rows: NDArray[np.intp]
    targets: Targets


@dataclass(frozen=True, eq=False)
class TraitProblem:
    """Targets, monomials (m, p): a constant, and others minus their means, with sizes (p,); and the prior.

    ``penalty`` (K, p) has the precisions of coefficients; ``tilt`` (T, 2) the derivatives of the integral's term by the
    logarithms of gamma and gamma A. Parameters are a row (q,) of coefficients (K, p) and measurements (T, 3).
    """

    monomials: Array
    sizes: NDArray[np.intp]
    targets: list[SharedTarget]
    penalty: Array
    tilt: Array

    def parts(self, at: Array) -> tuple[Array, Array]:
        """Coefficients (K, p), and gamma, gamma C and gamma A of each target (T, 3)."""
        return at[: self.penalty.size].reshape(self.penalty.shape), at[self.penalty.size :].reshape(-1, 3)

    @cached_property
    def homes(self) -> list[int]:
        """The first target that measures each trait."""
        return [
            next(t for t, target in enumerate(self.targets) if k in target.traits) for k in range(len(self.penalty))
        ]

    def start(self) -> Array:
        """Constant traits, at which every curve is steep."""
        at_0 = [fractions(target.link, np.zeros((1, len(target.traits)))).value[0] for target in self.targets]
        measurements = [[1.0, -_STEEPEST * value, _STEEPEST] for value in at_0]
        return np.concatenate([np.zeros(self.penalty.size), np.ravel(measurements)])

    def of_target(self, at: Array, t: int) -> newton.Terms:
        """Log-likelihood of a target's rows, its gradient and negative second derivatives by all parameters."""
        (link, traits, rows, targets), (b, measurements) = self.targets[t], self.parts(at)
        (precision, level, height), monomials, p = measurements[t], self.monomials[rows], b.shape[1]
        value, slope, bend = fractions(link, monomials @ b[traits].T)
        found = residual_terms(precision * targets.y - level - height * value, targets.side)
        likelihood, force, curvature = (targets.weights * each for each in found)
        # Derivatives of -r by gamma, level, height and the traits; the constant 1 or the monomials lead on from there.
        first = np.column_stack([-targets.y, np.ones_like(value), value, height * slope])
        local = curvature[:, None, None] * first[:, :, None] * first[:, None, :]
        local[:, 2, 3:] += force[:, None] * slope
        local[:, 3:, 2] += force[:, None] * slope
        local[:, 3:, 3:] += (force * height)[:, None, None] * bend
        own = b.size + 3 * t
        designs = [np.ones((len(rows), 1))] * 3 + [monomials] * len(traits)
        places = [slice(own + i, own + i + 1) for i in range(3)] + [slice(k * p, (k + 1) * p) for k in traits]
        gradient, hessian = np.zeros(len(at)), np.zeros((len(at), len(at)))
        for a, place in enumerate(places):
            gradient[place] = -designs[a].T @ (force * first[:, a])
            for other, design, each in zip(places, designs, local[:, a].T, strict=True):
                hessian[place, other] = designs[a].T @ (each[:, None] * design)
        gradient[own] += targets.measured * (1 / precision - LEAST_NOISE**2 * precision)
        hessian[own, own] += targets.measured * (1 / precision**2 + LEAST_NOISE**2)
        noise = targets.measured * (np.log(precision) - 0.5 * (LEAST_NOISE * precision) ** 2)
        return float(likelihood.sum() + noise), gradient, hessian

    def prior(self, at: Array) -> newton.Terms:
        """Log prior density and what the integral adds, their gradient and negative second derivatives."""
        (b, measurements), p = self.parts(at), len(self.sizes)
        value, gradient, hessian = 0.0, np.zeros(len(at)), np.zeros((len(at), len(at)))
        for t, ((precision, _, height), tilt) in enumerate(zip(measurements, self.tilt, strict=True)):
            both, g_h = [b.size + 3 * t, b.size + 3 * t + 2], np.array([precision, height])
            u, sign = np.log(height / precision / _STEEPEST), np.array([-1, 1])  # u is standard normal
            value += float(tilt @ np.log(g_h) - 0.5 * u**2)
            gradient[both] = (tilt - sign * u) / g_h
            hessian[np.ix_(both, both)] = (np.outer(sign, sign) + np.diag(tilt - sign * u)) / np.outer(g_h, g_h)
        for k, home in enumerate(self.homes):
            own, h, height = np.arange(k * p, (k + 1) * p), b.size + 3 * home + 2, measurements[home, 2]
            precisions = self.penalty[k] * np.where(self.sizes, (height / _STEEPEST) ** 2, 1.0)
            force = precisions * b[k]
            ridge = force[1:] @ b[k, 1:]
            value -= 0.5 * force @ b[k]
            gradient[own] = -force
            gradient[h] -= ridge / height
            hessian[own, own] = precisions
            hessian[h, h] += ridge / height**2
            hessian[own[1:], h] = hessian[h, own[1:]] = 2 * force[1:] / height
        return value, gradient, hessian

    def in_range(self, at: Array) -> bool:
        """Whether every gamma and A is positive."""
        return bool((self.parts(at)[1][:, ::2] > 0).all())

    def terms(self, at: Array) -> newton.Terms:
        """Penalised log-likelihood, its gradient and negative second derivatives."""
        value, gradient, hessian = self.prior(at)
        for t in range(len(self.targets)):
            found = self.of_target(at, t)
            value, gradient, hessian = value + found[0], gradient + found[1], hessian + found[2]
        return value, gradient, hessian

    def updated(self, at: Array, *, learns_penalty: bool) -> TraitProblem:
        """MacKay's penalties, and the tilt at these parameters."""
        (b, measurements), information, n = self.parts(at), self.terms(at)[2], self.penalty.size
        covariance, penalty, tilt = newton.inverse(information), self.penalty.copy(), np.zeros_like(self.tilt)
        for k, home in enumerate(self.homes if learns_penalty else []):
            own, h = np.arange(k * b.shape[1], (k + 1) * b.shape[1]), n + 3 * home + 2
            unit, height = measurements[home, 2] / _STEEPEST, at[h]
            largest = max(self.targets[home].targets.measured, 1.0)
            relative = covariance[own, own] + 2 * at[own] * covariance[own, h] / height
            variances = unit**2 * (relative + (at[own] / height) ** 2 * covariance[h, h])  # of b in units of the noise
            for size in np.unique(self.sizes[1:]):
                of_size = self.sizes == size
                known = max(float((1 - penalty[k, of_size] * variances[of_size]).sum()), 0.0)
                squares = ((unit * b[k, of_size]) ** 2).sum()  # and one more coefficient of one standard error
                penalty[k, of_size] = np.clip((known + 1) / (squares + 1 / largest), LEAST_PENALTY, largest)
        integrated = np.flatnonzero(np.append(np.full(n, True), np.tile([False, True, False], len(self.targets))))
        factor = Cholesky.nearly_of(information[np.ix_(integrated, integrated)])
        for t, i in product(range(len(self.targets)), (0, 1)):
            place = n + 3 * t + 2 * i
            step = np.zeros(len(at))
            step[place] = _STEP * at[place]
            step[integrated] = -factor.solve(information[integrated, place]) * step[place]
            ends = [self.terms(at + sign * step)[2][np.ix_(integrated, integrated)] for sign in (-1, 1)]
            below, above = (Cholesky.nearly_of(end).log_determinant() for end in ends)
            # The unit of the integrated coefficients is that of the penalty. A flat direction makes differences
            # meaningless: information grows at most with the square of a scale, so that each parameter adds 1 at most.
            slope = np.clip((above - below) / (4 * _STEP), -len(integrated), len(integrated))
            tilt[t, i] = i * self.homes.count(t) * (b.shape[1] - 1) - slope
        return replace(self, penalty=penalty, tilt=tilt)

    def fitted(self, max_iter: int, *, learns_penalty: bool) -> tuple[Solved[Array], Array]:
        """Parameters of greatest likelihood, and negative second derivatives there."""
        problem, at, steps, change = self, self.start(), 0, np.inf
        share, before = 1.0, np.zeros(self.penalty.size + self.tilt.size)
        least, place = np.inf, 0
        for count in range(max_iter):
            found = newton.maximum(problem.terms, problem.in_range, at, max_iter)
            at, steps = found.value.parameters, steps + found.steps
            updated = problem.updated(at, learns_penalty=learns_penalty)
            ratio = np.log((updated.penalty + LEAST_PENALTY) / (problem.penalty + LEAST_PENALTY))
            step = np.append(ratio, (updated.tilt - problem.tilt) / (1 + np.abs(problem.tilt)))
            change = float(np.abs(step).max())
            if change < least:
                least, place = change, count
            if change < SETTLED or count - place == PATIENCE:
                break
            share = share / 2 if step @ before < 0 else min(1.1 * share, 1.0)  # some turn back the one before
            tilt = problem.tilt + share * (updated.tilt - problem.tilt)
            problem, before = replace(self, penalty=problem.penalty * np.exp(share * ratio), tilt=tilt), step
        converged = found.converged and change < SETTLED
        return Solved(at, steps, change, SETTLED, converged), problem.terms(at)[2]

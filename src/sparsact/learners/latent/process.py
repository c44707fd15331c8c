r"""A latent Gaussian process on the cube and the noise of its measurement, by Laplace's approximation.

In units of the noise, :math:`\eta = \gamma f` has the prior :math:`N(0, K)`, so that the joint mode of
:math:`\eta` and :math:`\gamma = 1/\sigma` has the noise of greatest marginal likelihood. The curve of the link is
known: its mode together with so free a latent would be a straight line. With the curvatures W of the negative
log-likelihood by :math:`\eta` and its mixed derivatives b with :math:`\gamma`, a Newton step of both is

.. math:: \eta = (I - W^{-1} A^{-1})(t - W^{-1} b\, d\gamma), \qquad A = K + W^{-1},

where t are pseudo-targets of noise variances :math:`W^{-1}`: an ordinary process, whose solutions come from Cholesky
factors or, of many rows, from conjugate gradients. Kernel parameters are learned from these pseudo-targets, which has
the derivatives of Laplace's marginal likelihood but for those of W [1]_; the two take turns.

References
----------
.. [1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, Sections 3.4 and 5.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.cube_gp.hyperparameters import default_kernel, most_probable, prior_of
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.marginal import PARTS, MarginalPosterior
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.cube_gp.rows import DistinctRows
from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent.measurement import KnownCurve
from sparsact.learners.latent.polynomial import LEAST_NOISE
from sparsact.learners.latent.targets import Targets, residual_terms

_ENOUGH: Final = 1e-6  # of a step's gain in log-likelihood
_SHORTEST: Final = 1e-6  # part of a step
_SETTLED: Final = 0.1  # of changes of the kernel's parameters
_LEAST_CURVATURE: Final = 1e-7
_ROUNDS: Final = 4  # of kernel and measurement in turn
_MOST_ROWS: Final = 600  # that kernels are learned from
_TOLERANCE: Final = 1e-6  # of conjugate gradients


@dataclass(frozen=True, eq=False)
class Mode:
    r""":math:`\gamma`, and :math:`\eta` (m,) at distinct points with the inverse covariance matrix times it."""

    precision: float
    eta: Array
    dual: Array

    def moved(self, other: Mode, length: float) -> Mode:
        """A part of the way to another."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("precision", "eta", "dual"))
        return Mode(*(one + length * (two - one) for one, two in pairs))


@dataclass(frozen=True, eq=False)
class ProcessProblem:
    """Distinct points, the point of each row, the targets of the rows, and the curve."""

    points: DistinctRows
    place: NDArray[np.intp]
    targets: Targets
    curve: KnownCurve

    def objective(self, at: Mode) -> float:
        """Log-likelihood plus log prior density, up to a constant."""
        value = residual_terms(at.precision * self._curve(at)[1], self.targets.side)[0]
        noise = self.targets.measured * (np.log(at.precision) - 0.5 * (LEAST_NOISE * at.precision) ** 2)
        return float(self.targets.weights @ value + noise - 0.5 * at.eta @ at.dual)

    def _curve(self, at: Mode) -> tuple[Array, Array, Array]:
        """Slopes of the curve at the rows, the targets less its values, and the varying part of the latent."""
        varying = at.eta[self.place] / at.precision
        values, slopes = self.curve.values_and_slopes(varying)
        return slopes, self.targets.y - values, varying

    def pseudo_rows(self, at: Mode) -> tuple[DistinctRows, Array, float, float]:
        r"""Pseudo-targets and curvatures at the points, b (m,), and both derivatives by :math:`\gamma`."""
        slopes, away, varying = self._curve(at)
        found = residual_terms(at.precision * away, self.targets.side)
        _, by_residual, curvature = (self.targets.weights * each for each in found)
        by_precision, total = away + varying * slopes, self.targets.measured
        gradient = by_residual @ by_precision + total * (1 / at.precision - LEAST_NOISE**2 * at.precision)
        hessian = curvature @ by_precision**2 + total * (1 / at.precision**2 + LEAST_NOISE**2)
        weights = np.maximum(self._summed(curvature * slopes**2), _LEAST_CURVATURE)
        pseudo = at.eta - self._summed(by_residual * slopes) / weights
        rows = replace(self.points, y=pseudo, weights=weights)
        return rows, self._summed(-curvature * slopes * by_precision), float(gradient), float(hessian)

    def _summed(self, values: Array) -> Array:
        """Sums over the rows of each point."""
        return np.bincount(self.place, values, len(self.points)).astype(np.float64)

    def mode(self, at: Mode, kernel: CubeKernel, max_iter: int) -> tuple[Mode, DistinctRows, bool]:
        """The most probable latent and measurement given the kernel, and the pseudo-targets there.

        The last is whether Newton's method came to rest: no step of any length leads up, or a step hardly gains.
        """
        converged = False
        value = self.objective(at)
        for _ in range(max_iter):
            aim = self._aim(at, kernel)
            length = 1.0
            while length > _SHORTEST:
                tried = at.moved(aim, length)
                if tried.precision > 0 and (found := self.objective(tried)) >= value:
                    break
                length /= 2
            else:
                converged = True
                break
            gain, at, value = found - value, tried, found
            if gain < _ENOUGH:
                converged = True
                break
        return at, self.pseudo_rows(at)[0], converged

    def _aim(self, at: Mode, kernel: CubeKernel) -> Mode:
        """Where a whole Newton step leads."""
        rows, mixed, gradient, hessian = self.pseudo_rows(at)
        targets = np.stack([rows.y, mixed / rows.weights])
        system = Hyperparameters(kernel, 1.0).system(rows)
        solved = system.solve(targets, _TOLERANCE).checked(system.solver, system.remedy)
        smooth = targets - solved / rows.weights
        step = float((gradient - mixed @ (smooth[0] - at.eta)) / (hessian - mixed @ smooth[1]))
        return Mode(at.precision + step, smooth[0] - step * smooth[1], solved[0] - step * solved[1])


def fitted_process(
    problem: ProcessProblem, start: Mode, unit: float, kernel: str, rng: np.random.Generator, max_iter: int
) -> tuple[Mode, MarginalPosterior, bool]:
    """Kernel and measurement in turn, from a measurement whose latent is constant and will deviate by about a unit."""
    n = problem.points.bits.shape[1]
    prior = prior_of(default_kernel(n) if kernel == "auto" else kernel, n)
    chosen = np.sort(rng.permutation(len(problem.points))[:_MOST_ROWS])
    at, mode = start, prior.mean
    for _ in range(_ROUNDS):
        before = mode
        kernel_now = _in_units(prior.kernel.with_theta(mode[:-1]), unit)
        at, pseudo, _ = problem.mode(replace(start, precision=at.precision), kernel_now, max_iter)
        rows = pseudo.take(chosen).standardized(0.0, unit)
        found = most_probable(prior, rows, unit**-2, rng=rng, report=lambda line: None, start=mode)
        mode = found.mode
        if np.abs(mode - before).max() < _SETTLED:
            break
    best = _in_units(found.best.kernel, unit)
    at, pseudo, converged = problem.mode(replace(start, precision=at.precision), best, max_iter)
    drawn = found.draws(PARTS, rng)  # of kernels; the pseudo-targets' noise is in their weights alone
    parameters = np.column_stack([drawn[:, :-1] + best.theta - found.best.kernel.theta, np.zeros(len(drawn))])
    given, seed = Hyperparameters(best, 1.0), tuple(rng.integers(2**31, size=4).tolist())
    return at, MarginalPosterior(pseudo, given, given.posterior(pseudo), parameters, seed), converged


def _in_units(kernel: CubeKernel, unit: float) -> CubeKernel:
    """The kernel of a function times a number."""
    return kernel.scaled(unit).scaled(unit)

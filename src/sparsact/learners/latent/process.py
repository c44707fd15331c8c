r"""A latent Gaussian process on the cube, its kernel and the noise of its measurement, by Laplace's approximation.

The curve of the link is known: its mode together with so free a latent would be a straight line. Kernel parameters are
learned from the working targets of :mod:`sparsact.learners.gp.laplace`, which has the derivatives of Laplace's marginal
likelihood but for derivatives of the weights; the two take turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.cube_gp.hyperparameters import HyperparameterPosterior, most_probable, prior_of
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.cube_gp.posterior_mixture import PARTS, MarginalPosterior
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.laplace import Mode, Working, laplace_mode
from sparsact.learners.gp.systems.system import System
from sparsact.learners.latent.latent_polynomial import LEAST_NOISE
from sparsact.learners.latent.measurement import KnownCurve
from sparsact.learners.latent.targets import Targets, residual_terms
from sparsact.statistics.solved import Solved

_SETTLED: Final = 0.1  # of changes of the kernel's parameters
_LEAST_CURVATURE: Final = 1e-7
_ROUNDS: Final = 4  # of kernel and measurement in turn
_MOST_ROWS: Final = 600  # that kernels are learned from


@dataclass(frozen=True, eq=False)
class ProcessProblem:
    """Distinct points, the point of each row, the targets of the rows, and the curve."""

    points: DistinctRows
    place: NDArray[np.intp]
    targets: Targets
    curve: KnownCurve

    def log_likelihood(self, at: Mode) -> float:
        """Log-likelihood of the targets and log prior density of the noise, up to a constant."""
        value = residual_terms(at.precision * self._curve(at)[1], self.targets.side)[0]
        noise = self.targets.measured * (np.log(at.precision) - 0.5 * (LEAST_NOISE * at.precision) ** 2)
        return float(self.targets.weights @ value + noise)

    def _curve(self, at: Mode) -> tuple[Array, Array, Array]:
        """Slopes of the curve at the rows, the targets less its values, and the varying part of the latent."""
        varying = at.eta[self.place] / at.precision
        values, slopes = self.curve.values_and_slopes(varying)
        return slopes, self.targets.y - values, varying

    def working(self, at: Mode) -> Working:
        """The normal measurement of the points with the same derivatives."""
        slopes, away, varying = self._curve(at)
        found = residual_terms(at.precision * away, self.targets.side)
        _, by_residual, curvature = (self.targets.weights * each for each in found)
        by_precision, total = away + varying * slopes, self.targets.measured
        gradient = by_residual @ by_precision + total * (1 / at.precision - LEAST_NOISE**2 * at.precision)
        hessian = curvature @ by_precision**2 + total * (1 / at.precision**2 + LEAST_NOISE**2)
        weights = np.maximum(self._summed(curvature * slopes**2), _LEAST_CURVATURE)
        targets = at.eta - self._summed(by_residual * slopes) / weights
        mixed = self._summed(-curvature * slopes * by_precision)
        return Working(targets, weights, mixed, float(gradient), float(hessian))

    def _summed(self, values: Array) -> Array:
        """Sums over the rows of each point."""
        return np.bincount(self.place, values, len(self.points)).astype(np.float64)

    def mode(self, start: Mode, kernel: CubeKernel, max_iter: int) -> tuple[Solved[Mode], DistinctRows]:
        """The most probable latent and measurement given the kernel, and the working targets there."""

        def system_of(weights: Array) -> System:
            return Hyperparameters(kernel, 1.0).system(replace(self.points, weights=weights))

        found = laplace_mode(self, system_of, start, max_iter)
        working = self.working(found.value)
        return found, replace(self.points, y=working.targets, weights=working.weights)


def fitted_process(
    problem: ProcessProblem, start: Mode, unit: float, rng: np.random.Generator, max_iter: int
) -> tuple[Solved[Mode], MarginalPosterior]:
    """Kernel and measurement in turn, from a measurement whose latent is constant and will deviate by about a unit."""
    prior = prior_of("auto", problem.points.bits.shape[1])
    chosen = np.sort(rng.permutation(len(problem.points))[:_MOST_ROWS])
    at, mode = start, prior.mean
    for _ in range(_ROUNDS):
        before = mode
        kernel_now = prior.kernel.with_theta(mode[:-1]).times(unit)
        # one that did not converge is no worse a start
        solved, working = problem.mode(start._replace(precision=at.precision), kernel_now, max_iter)
        at, rows = solved.value, working.take(chosen).standardized(0.0, unit)
        found = most_probable(HyperparameterPosterior(prior, rows, unit**-2, mode))
        mode = found.mode
        if np.abs(mode - before).max() < _SETTLED:
            break
    best = found.best.kernel.times(unit)
    solved, working = problem.mode(start._replace(precision=at.precision), best, max_iter)
    drawn = found.draws(PARTS, rng)  # of kernels; the noise of the working targets is in their weights alone
    parameters = np.column_stack([drawn[:, :-1] + best.theta - found.best.kernel.theta, np.zeros(len(drawn))])
    given, seed = Hyperparameters(best, 1.0), tuple(rng.integers(2**31, size=4).tolist())
    return solved, MarginalPosterior(working, given, given.posterior(working), parameters, seed, 0.0, 1.0)

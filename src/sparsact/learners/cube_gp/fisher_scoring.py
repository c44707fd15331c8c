r"""Hyperparameters from all rows: Fisher scoring with derivatives from conjugate gradients and random probes.

Where a Cholesky factor takes less time, derivatives are exact. With probes z of random signs, :math:`u = A^{-1} z` and
the transform H, the traces in :func:`~sparsact.learners.gp.cholesky.log_density_sensitivity` are means of
:math:`(H u)_S (H z)_S`. For the Fisher information A is taken to have the eigenvalues :math:`m p_S + e`, as if the m
rows filled the cube evenly; e is the noise and what m rows leave open elsewhere,

.. math:: e = \sigma^2 + \Big(1 - \frac{m}{2^n}\Big) \sum_S \frac{p_S\, e}{m p_S + e}.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier import walsh_hadamard
from sparsact.learners.cube_gp.hyperparameters import HyperparameterPosterior
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.search import MAX_SCORING_STEPS, by_scoring
from sparsact.learners.gp.systems.cube import CubeSystem
from sparsact.statistics.folds import deal_at_random, out_of_fold
from sparsact.statistics.solved import Solved

_PROBES: Final = 8
_TOLERANCE: Final = 1e-3
WARM_STEPS: Final = 3  # from the optimum of slightly other rows
_SUBSETS_AT_ONCE: Final = 1 << 14
_FOLDS: Final = 5


def refined(found: HyperparameterPosterior, rows: DistinctRows, *, rng: np.random.Generator) -> HyperparameterPosterior:
    """Posterior of kernel and noise given all rows, from that given some of them; n up to 20.

    More likelihood is not always less error, as where rows have outliers: the parameters of all rows are kept only if
    they predict better in five-fold cross-validation.
    """
    moved = more_probable(found, rows, rng=rng).value  # converged or not, errors decide
    fold = deal_at_random(len(rows), _FOLDS, rng)
    return min(found, moved, key=lambda each: out_of_fold_error(each.best, rows, fold))


def more_probable(
    found: HyperparameterPosterior, rows: DistinctRows, *, max_steps: int = MAX_SCORING_STEPS, rng: np.random.Generator
) -> Solved[HyperparameterPosterior]:
    """Parameters moved towards the most probable ones given all rows; each step solves nine systems.

    The residual is the gain of log-likelihood that one more step promises.
    """
    probes = rng.choice([-1.0, 1.0], (_PROBES, len(rows)))

    def gradient(mode: Array) -> Array:
        return _gradient(replace(found, mode=mode), rows, probes) + found.prior.log_density(mode)[1]

    def information(mode: Array) -> Array:
        return _fisher_information(replace(found, mode=mode), rows) + found.prior.precision

    moved = by_scoring(gradient, information, found.mode, information=found.known_precision, max_steps=max_steps)
    mode, precision = moved.value
    better = replace(found, mode=mode, known_precision=precision)
    return Solved(better, moved.steps, moved.residual, moved.tolerance, moved.converged)


def out_of_fold_error(tried: Hyperparameters, rows: DistinctRows, fold: NDArray[np.intp]) -> float:
    """Weighted mean squared error of rows predicted by the rows of other folds."""

    def predict(_: int, left: NDArray[np.bool_]) -> Array:
        return tried.posterior(rows.take(np.flatnonzero(~left))).values(rows.bits[left])

    return float(np.average((out_of_fold(fold, predict) - rows.y) ** 2, weights=rows.shares))


def _gradient(
    found: HyperparameterPosterior, rows: DistinctRows, probes: Array, tolerance: float = _TOLERANCE
) -> Array:
    """Gradient of the log marginal likelihood by all parameters."""
    best = found.best
    system = best.system(rows)
    if not isinstance(system, CubeSystem):
        _, by_kernel, by_noise = best.log_likelihood_gradient(rows)
        return np.append(by_kernel, by_noise * found.noise_slope)
    targets = np.concatenate([rows.y[None], probes])
    solved = system.solve(targets, tolerance).checked("conjugate gradients for derivatives", system.remedy)
    tables = system.at_points(np.concatenate([solved, targets]))
    ours, theirs = np.split(np.asarray(walsh_hadamard(tables, normalize=False, overwrite=True)), 2)
    by_spectrum = 0.5 * (ours[0] ** 2 - np.einsum("ks,ks->s", ours[1:], theirs[1:]) / len(probes))
    traces = np.einsum("km,km->m", solved[1:], probes) / len(probes)
    by_noise, by_variance = best.noise_derivatives(rows, 0.5 * (solved[0] ** 2 - traces))
    return np.append(best.kernel.spectrum_pullback(by_spectrum + by_variance), by_noise * found.noise_slope)


def _fisher_information(found: HyperparameterPosterior, rows: DistinctRows) -> Array:
    """Fisher information of all parameters."""
    tried, by_log_noise = found.best, found.noise_slope
    p, m = tried.kernel.spectrum, float(rows.counts.sum()) * rows.typical_weight
    share = min(1.0, len(rows) / p.size)
    left = tried.noise_variance
    for _ in range(30):
        left = tried.noise_variance + (1 - share) * float((p * left / (m * p + left)).sum())
    information = np.zeros((tried.kernel.theta.size + 1,) * 2)
    for start in range(0, p.size, _SUBSETS_AT_ONCE):
        numbers = np.arange(start, min(start + _SUBSETS_AT_ONCE, p.size))
        scores = np.column_stack([tried.kernel.derivatives(numbers), np.full(len(numbers), by_log_noise / m)])
        scores /= (p[numbers] + left / m)[:, None]
        information += 0.5 * scores.T @ scores
    information[-1, -1] += (
        0.5 * max(0.0, float(rows.counts.sum()) - p.size) * (by_log_noise / tried.noise_variance) ** 2
    )
    return information

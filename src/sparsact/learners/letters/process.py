"""Gaussian processes on letters: kernels by likelihood, and a process for each fold that is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.gp.cholesky import log_density_sensitivity
from sparsact.learners.gp.kernel import Array, Codes
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.search import Adam
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.gp.systems.kronecker_grid import GridSystem
from sparsact.learners.letters.kernel import FIRST_NOISE, LetterKernel, prior

ADAM_STEPS: Final = 36
ROWS: Final = 1_000  # of a step
RATE: Final = 0.08
DECAY: Final = (0.9, 0.95)  # of Adam's means of derivatives and of their squares
DENSE_ROWS: Final = 1_200  # whose matrix is factorized even where the grid is small
MOST_DENSE_ROWS: Final = 5_000  # that a process has where the grid is too large
LARGEST_GRID: Final = 1 << 23  # cells
CELLS_A_ROW: Final = 2_000  # with more, a matrix of the rows is less work
ROWS_FOR_FACTORS: Final = 2_000
FACTORS: Final = (0.4, 0.16)  # by which the noise is multiplied, if that predicts better


def log_likelihood_gradient(kernel: LetterKernel, codes: Codes, y: Array, weights: Array) -> tuple[float, Array]:
    """Log marginal likelihood of rows (m, n) with targets and weights (m,), and its derivatives by ``kernel.theta``.

    Covariances are float32 except for their Cholesky factor, unless rounding could turn an eigenvalue beyond the noise
    negative: m^3 multiplications, and m^2 times the number of sites.
    """
    rounding = len(y) * float(np.finfo(np.float32).eps) * kernel.variance
    shared = kernel.covariance(codes, codes, np.float32 if rounding < kernel.noise_variance else np.float64)
    matrix = np.asfortranarray(shared, dtype=np.float64)
    matrix[np.diag_indices(len(y))] += kernel.noise_variance / weights
    value, lower = log_density_sensitivity(matrix, y)
    by_noise = float((lower.diagonal() / weights).sum() * np.exp(kernel.theta[1]))
    by_variance, *by_sites = kernel.pullback(codes, lower, shared)
    return value, np.concatenate([by_variance, [by_noise], *by_sites])


def most_probable(
    features: Sequence[Array],
    codes: Codes,
    y: Array,
    weights: Array,
    rng: np.random.Generator,
    steps: int = ADAM_STEPS,
    first_noise: float = FIRST_NOISE,
) -> LetterKernel:
    """The kernel after steps of Adam uphill, each by the likelihood of other rows, scaled up to all, and the prior.

    A stochastic search of a fixed budget, without a test of convergence: held-out rows judge its kernel.
    """
    m, size = len(y), min(len(y), ROWS)
    means, precisions = prior(features)
    apart = [1 - ((np.bincount(letters) / m) ** 2).sum() for letters in codes.T]  # shares of pairs of rows
    kernel = LetterKernel.start(features, float(np.sum(apart)), first_noise)
    theta, order = kernel.theta.copy(), rng.permutation(m)
    optimizer = Adam([theta], DECAY, [0.0])
    for step in range(1, steps + 1):
        if len(order) < size:
            order = rng.permutation(m)
        chosen, order = order[:size], order[size if m > size else 0 :]
        _, gradient = log_likelihood_gradient(kernel.with_theta(theta), codes[chosen], y[chosen], weights[chosen])
        gradient = (theta - means) * precisions - gradient * (m / size)
        optimizer.step([gradient], RATE * min(1.0, 2 * (1 - (step - 1) / steps) + 0.05))
    return kernel.with_theta(theta)


def on_grid(codes: Codes) -> bool:
    """Whether products with all combinations of the rows' letters are less work than a matrix of the rows."""
    cells = float(np.prod([float(len(np.unique(letters))) for letters in codes.T]))
    return len(codes) > DENSE_ROWS and cells <= min(LARGEST_GRID, CELLS_A_ROW * len(codes))


def system_of(
    kernel: LetterKernel, codes: Codes, weights: Array, *, grid: bool | None = None
) -> DenseSystem | GridSystem:
    """The covariance matrix of rows of letters (m, n) and weights (m,), on a grid if asked or less work."""
    grid = on_grid(codes) if grid is None else grid
    return (GridSystem if grid else DenseSystem)(kernel, codes, kernel.noise_variance / weights)


def dual_coefficients(system: DenseSystem | GridSystem, y: Array, kept: NDArray[np.bool_]) -> Array:
    """Dual coefficients (k, m) of the rows that are kept (k, m), zero for the others."""
    noise = np.where(kept, system.noise, np.inf)
    solved = system.solve(np.broadcast_to(y, kept.shape), system.tolerance, noise)
    return solved.checked(system.solver, system.remedy)


def processes_by_fold(
    features: Sequence[Array],
    codes: Codes,
    z: Array,
    weights: Array,
    folds: NDArray[np.intp],
    rng: np.random.Generator,
    *,
    grid: bool | None = None,
    most: int = MOST_DENSE_ROWS,
    steps: int = ADAM_STEPS,
    first_noise: float = FIRST_NOISE,
) -> tuple[tuple[Posterior, ...], Array]:
    """Processes of standardized targets of all rows, and values (m,) of each by one that has not seen its fold.

    Rows come in random order. On a grid where that is less work, unless ``grid`` says so; else of ``most`` rows.

    A kernel that has seen a fold makes its rows look easier than others. So each is learned without one, predicts that
    fold from the other rows, and then is fitted to all rows. With many rows the first chooses less noise for all, if it
    predicts its fold better so.
    """
    grid = on_grid(codes) if grid is None else grid
    chosen = slice(None if grid else most)

    def fitted(kernel: LetterKernel, fold: NDArray[np.bool_]) -> tuple[Posterior, Array, float]:
        """The process of all rows, values of the fold by that of the others, and the mean square of their errors."""
        system = system_of(kernel, codes[chosen], weights[chosen], grid=grid)
        kept = np.stack([np.ones(len(system), dtype=bool), ~fold[chosen]])
        alpha = dual_coefficients(system, z[chosen], kept)
        held_out = Posterior(system, alpha[1]).values(codes[fold])
        error = float(np.average((held_out - z[fold]) ** 2, weights=weights[fold]))
        return Posterior(system, alpha[0]), held_out, error

    left_out = np.empty(len(z))
    members: list[Posterior] = []
    factor = 1.0
    for number in range(folds.max() + 1):
        fold, others = folds == number, folds != number
        kernel = most_probable(features, codes[others], z[others], weights[others], rng, steps, first_noise)
        member, held_out, error = fitted(kernel.with_noise_times(factor), fold)
        for smaller in FACTORS if number == 0 and len(z) > ROWS_FOR_FACTORS else ():
            other = fitted(kernel.with_noise_times(smaller), fold)
            if other[2] >= error:
                break
            factor, (member, held_out, error) = smaller, other
        members.append(member)
        left_out[fold] = held_out
    return tuple(members), left_out

"""Kernels of letters by marginal likelihood, on rows redrawn at each step."""

from __future__ import annotations

import numpy as np

from sparsact.learners.cube_gp.likelihood import LOG_2PI, Cholesky
from sparsact.learners.letters.kernel import Array, Codes, LetterKernel, prior

STEPS = 36
ROWS = 1_000  # of a step
RATE = 0.08
DECAY = (0.9, 0.95)  # of Adam's means of derivatives and of their squares


def log_likelihood_gradient(kernel: LetterKernel, codes: Codes, y: Array, weights: Array) -> tuple[float, Array]:
    """Log marginal likelihood of rows (m, n) with targets and weights (m,), and its derivatives by ``kernel.theta``.

    Covariances are float32 but for their Cholesky factor: m^3 multiplications, and m^2 times the number of sites.
    """
    shared = kernel.covariance(codes, codes, np.float32)
    noise = kernel.noise_variance / weights
    matrix = np.asfortranarray(shared, dtype=np.float64)
    matrix[np.diag_indices(len(y))] += noise
    factor = Cholesky.of(matrix)
    alpha = factor.solve(y)
    value = -0.5 * (float(y @ alpha) + factor.log_determinant() + len(y) * LOG_2PI)
    inverse = factor.lower_inverse()
    diagonal = inverse.diagonal().copy()
    by_noise = 0.5 * float(((alpha**2 - diagonal) / weights).sum() * np.exp(kernel.theta[1]))
    pull = inverse.astype(np.float32)  # lower triangle
    pull += pull.T
    pull[np.diag_indices(len(y))] = diagonal
    short = alpha.astype(np.float32)
    pull -= short[:, None] * short
    pull *= -0.5
    pull *= shared
    by_variance = float(pull.sum(dtype=np.float64))
    by_sites = []
    for site, letters in zip(kernel.site_kernels, codes.T, strict=True):
        one_hot = (letters[:, None] == np.arange(len(site.kernel))).astype(np.float32)
        by_sites.append(site.pullback((one_hot.T @ (pull @ one_hot)).astype(np.float64) / site.kernel))
    return value, np.concatenate([[by_variance, by_noise], *by_sites])


def most_probable(
    kernel: LetterKernel, codes: Codes, y: Array, weights: Array, rng: np.random.Generator
) -> LetterKernel:
    """The kernel after steps of Adam uphill, each by the likelihood of other rows, scaled up to all, and the prior."""
    m, size = len(y), min(len(y), ROWS)
    means, precisions = prior(kernel.features)
    theta = kernel.theta.copy()
    mean, square = np.zeros_like(theta), np.zeros_like(theta)
    order = rng.permutation(m)
    for step in range(1, STEPS + 1):
        if len(order) < size:
            order = rng.permutation(m)
        chosen, order = order[:size], order[size if m > size else 0 :]
        _, gradient = log_likelihood_gradient(kernel.with_theta(theta), codes[chosen], y[chosen], weights[chosen])
        gradient = (theta - means) * precisions - gradient * (m / size)
        mean += (1 - DECAY[0]) * (gradient - mean)
        square += (1 - DECAY[1]) * (gradient**2 - square)
        shortened = np.sqrt(square / (1 - DECAY[1] ** step)) + 1e-8
        rate = RATE * min(1.0, 2 * (1 - (step - 1) / STEPS) + 0.05)
        theta -= rate * mean / (1 - DECAY[0] ** step) / shortened
    return kernel.with_theta(theta)

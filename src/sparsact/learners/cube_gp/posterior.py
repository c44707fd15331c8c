r"""Posterior of a function on the cube: of its values, of every Walsh coefficient, and draws of it.

With the prior variances p, :math:`\alpha = (K + D)^{-1} y` and the transform H, coefficients have

.. math:: \mathbb{E} w = p \circ H \alpha, \qquad
          \mathrm{Var}\, w_S = p_S - p_S^2 \sum_{ij} (K + D)^{-1}_{ij} \chi_S(x_i) \chi_S(x_j),

all at once by a transform of the histogram of the inverse. A draw is one of the prior plus the posterior mean of what
it leaves of the targets (Matheron's rule) [1]_, unless :mod:`.conjugate_gradients` draws directly.

References
----------
.. [1] J. T. Wilson et al., "Efficiently sampling functions from Gaussian process posteriors", ICML 2020.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self

import numpy as np
from scipy.linalg import solve_triangular

from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import Subset, characters
from sparsact.learners.cube_gp.component import Array
from sparsact.learners.cube_gp.conjugate_gradients import REMEDY, CubeSystem
from sparsact.learners.cube_gp.kernel import CubeKernel, codes_of
from sparsact.learners.cube_gp.likelihood import Cholesky, covariance_matrix, difference_sums
from sparsact.learners.cube_gp.rows import DistinctRows

DIRECT_ROWS, MOST_DIRECT_ROWS = 1_024, 4_096  # up to which a Cholesky factor is made where there is a choice
DIRECT_WORK: Final = 16_000.0  # of the second: cube of the rows over n 2**n, with about a hundred steps to a solution
TOLERANCE, DRAW_TOLERANCE = 1e-8, 1e-4  # of residuals, for means and for draws
_NUMBERS_AT_ONCE: Final = 1 << 19
_POINTS_AT_ONCE: Final = 1 << 10
_SUBSETS_AT_ONCE: Final = 1 << 8


@dataclass(frozen=True, eq=False)
class Posterior(ABC):
    """Gaussian posterior given kernel and noise, in the units of the rows.

    Attributes
    ----------
    kernel : CubeKernel
        Prior covariance.
    noise_variance : float
        Of a row of weight 1.
    rows : DistinctRows
        What was measured.
    known_alpha : ndarray of shape (m,) or None
        :attr:`alpha`, if it has been computed before.
    """

    kernel: CubeKernel
    noise_variance: float
    rows: DistinctRows
    known_alpha: Array | None = None

    def with_parameters(self, parameters: Array) -> Self:
        """With another ``theta`` of the kernel and, last, another logarithm of the noise variance."""
        kernel, noise_variance = self.kernel.with_theta(parameters[:-1]), float(np.exp(parameters[-1]))
        return replace(self, kernel=kernel, noise_variance=noise_variance, known_alpha=None)

    @property
    def is_direct(self) -> bool:
        """Whether a Cholesky factor is made."""
        return True

    @cached_property
    def alpha(self) -> Array:
        """Inverse covariance matrix of the rows times their targets, (m,)."""
        return self.solve(self.rows.y[None], TOLERANCE)[0] if self.known_alpha is None else self.known_alpha

    def solve(self, targets: Array, tolerance: float) -> Array:
        """Inverse covariance matrix of the rows times targets (k, m); residuals have at most a relative norm."""
        return self.cholesky.solve(targets.T).T

    @cached_property
    def cholesky(self) -> Cholesky:
        """Factor of the covariance matrix of the rows."""
        return Cholesky.of(covariance_matrix(self.kernel, self.noise_variance, self.rows))

    @cached_property
    def _noise(self) -> Array:
        return self.rows.noise(self.noise_variance, self.kernel.variance)

    @abstractmethod
    def values(self, bits: Array) -> Array:
        """Means at points of bits (m', n)."""

    def variances(self, bits: Array) -> Array:
        """Variances at points of bits (m', n), by triangular solutions: m**2 products a point."""
        variances = np.empty(len(bits))
        for start in range(0, len(bits), _POINTS_AT_ONCE):
            block = slice(start, start + _POINTS_AT_ONCE)
            cross = self.kernel.covariance(self.rows.bits, bits[block])
            variances[block] = self.kernel.variance - self._explained(cross)
        return np.maximum(variances, 0.0)

    def _explained(self, cross: Array) -> Array:
        """Variance that the rows explain of quantities of covariances (m, k) with them."""
        half = solve_triangular(self.cholesky.lower, cross, lower=True, check_finite=False)
        return np.asarray(np.einsum("mk,mk->k", half, half))

    def draws_at(self, bits: Array, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, m') of the values at distinct points, from their joint covariance."""
        cross = self.kernel.covariance(self.rows.bits, bits)
        half = solve_triangular(self.cholesky.lower, cross, lower=True, check_finite=False)
        eigenvalues, vectors = np.linalg.eigh(self.kernel.covariance(bits, bits) - half.T @ half)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        return np.asarray(self.values(bits) + rng.standard_normal((n_samples, len(bits))) @ root.T)


class RowPosterior(Posterior):
    """Posterior for any number of columns, by dense matrices of the rows."""

    def values(self, bits: Array) -> Array:
        """Means at points of bits (m', n)."""
        at_once = max(1, _NUMBERS_AT_ONCE // len(self.rows))
        blocks = (bits[start : start + at_once] for start in range(0, len(bits), at_once))
        return np.concatenate([self.alpha @ self.kernel.covariance(self.rows.bits, block) for block in blocks])

    def coefficient_means(self, subsets: list[Subset]) -> Array:
        """Means (N,) of the coefficients of some subsets."""
        starts, signs = range(0, len(subsets), _SUBSETS_AT_ONCE), 1 - 2 * self.rows.bits
        sums = [self.alpha @ characters(signs, subsets[start : start + _SUBSETS_AT_ONCE]) for start in starts]
        return np.asarray(np.concatenate(sums) * self.kernel.variances_of(subsets))

    def coefficient_moments(self, subsets: list[Subset]) -> tuple[Array, Array]:
        """Means and variances (N,) of the coefficients of some subsets, by their covariances with the rows."""
        prior = self.kernel.variances_of(subsets)
        cross = characters(1 - 2 * self.rows.bits, subsets) * prior
        return np.asarray(self.alpha @ cross), np.maximum(prior - self._explained(cross), 0.0)


class CubePosterior(Posterior):
    """Posterior over the whole cube of at most 20 columns."""

    def solve(self, targets: Array, tolerance: float) -> Array:
        """Inverse covariance matrix of the rows times targets (k, m); residuals have at most a relative norm."""
        if self.is_direct:
            return super().solve(targets, tolerance)
        return self.system.solve(targets, tolerance).checked("conjugate gradients", REMEDY)

    @cached_property
    def coefficients(self) -> Array:
        """Posterior means of all coefficients, (2**n,), in table order."""
        table = np.zeros(2**self.kernel.n)
        table[self.rows.codes] = self.alpha
        return np.asarray(self.kernel.spectrum * walsh_hadamard(table, normalize=False, overwrite=True))

    @cached_property
    def table(self) -> Array:
        """Means at all points, (2**n,)."""
        return np.asarray(walsh_hadamard(self.coefficients, normalize=False))

    def values(self, bits: Array) -> Array:
        """Means at points of bits (m', n)."""
        return self.table[codes_of(bits)]

    @property
    def is_direct(self) -> bool:
        """Whether a Cholesky factor is made."""
        return is_direct(len(self.rows), self.kernel.n)

    def variances(self, bits: Array) -> Array:
        """Variances at points of bits (m', n)."""
        codes, place = np.unique(codes_of(bits), return_inverse=True)
        points = (codes[:, None] >> np.arange(self.kernel.n) & 1).astype(np.float64)
        return super().variances(points)[place.ravel()]

    @cached_property
    def coefficient_variances(self) -> Array:
        """Posterior variances of all coefficients, (2**n,), from the inverse of the covariance matrix."""
        sums = difference_sums(self.cholesky.lower_inverse(), self.rows.codes, 2**self.kernel.n)
        p = self.kernel.spectrum
        return np.asarray(np.maximum(p - p**2 * walsh_hadamard(sums, normalize=False), 0.0))

    def draws(self, n_samples: int, rng: np.random.Generator) -> Iterator[Array]:
        """Draws of all coefficients in blocks (k, 2**n)."""
        for block in self._deviations(n_samples, rng):
            block += self.coefficients
            yield block

    def draws_at(self, bits: Array, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, m') of the values at points."""
        codes = codes_of(bits)
        values = (walsh_hadamard(block, normalize=False) for block in self.draws(n_samples, rng))
        return np.concatenate([block[:, codes] for block in values])

    def _deviations(self, n_samples: int, rng: np.random.Generator) -> Iterator[Array]:
        """Draws of the coefficients minus their mean."""
        size = 2**self.kernel.n
        at_once = max(1, _NUMBERS_AT_ONCE // size)
        deviation = np.sqrt(self._noise)
        for start in range(0, n_samples, at_once):
            count = min(at_once, n_samples - start)
            if not self.is_direct and self.system.solves_coefficients:
                yield self.system.deviations(count, rng)
                continue
            prior = rng.standard_normal((count, size)) * np.sqrt(self.kernel.spectrum)
            noisy = np.asarray(walsh_hadamard(prior, normalize=False))[:, self.rows.codes]
            noisy += deviation * rng.standard_normal((count, len(self.rows)))
            solved = np.zeros_like(prior)
            solved[:, self.rows.codes] = self.solve(noisy, DRAW_TOLERANCE)
            prior -= self.kernel.spectrum * walsh_hadamard(solved, normalize=False, overwrite=True)
            yield prior

    @cached_property
    def system(self) -> CubeSystem:
        """The covariance matrix of the rows, by transforms."""
        return CubeSystem(self.kernel.spectrum, self.rows.codes, self._noise)


def is_direct(n_rows: int, n: int) -> bool:
    """Whether a Cholesky factor of distinct rows takes less time than conjugate gradients on all 2**n points."""
    return n_rows <= DIRECT_ROWS or (n_rows <= MOST_DIRECT_ROWS and n_rows**3 <= DIRECT_WORK * n * 2**n)


def posterior_of(
    kernel: CubeKernel, noise_variance: float, rows: DistinctRows, known_alpha: Array | None = None
) -> Posterior:
    """By transforms of the whole cube where it has a table, else by matrices of the rows."""
    return (CubePosterior if kernel.has_table else RowPosterior)(kernel, noise_variance, rows, known_alpha)

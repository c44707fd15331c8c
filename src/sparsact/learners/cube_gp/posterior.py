r"""Posterior of a function on the cube: of its values, of every Walsh coefficient, and draws of it.

With the prior variances p, :math:`\alpha = (K + D)^{-1} y` and the transform H, coefficients have

.. math:: \mathbb{E} w = p \circ H \alpha, \qquad
          \mathrm{Var}\, w_S = p_S - p_S^2 \sum_{ij} (K + D)^{-1}_{ij} \chi_S(x_i) \chi_S(x_j),

all at once by a transform of the histogram of the inverse. A draw is one of the prior plus the posterior mean of what
it leaves of the targets (Matheron's rule) [1]_.

References
----------
.. [1] J. T. Wilson et al., "Efficiently sampling functions from Gaussian process posteriors", ICML 2020.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from sparsact.fourier import Spectrum, walsh_hadamard
from sparsact.hypercube import Subset, characters
from sparsact.learners.cube_gp.component import Array
from sparsact.learners.cube_gp.conjugate_gradients import CubeSystem
from sparsact.learners.cube_gp.kernel import CubeKernel, codes_of
from sparsact.learners.cube_gp.likelihood import Cholesky, covariance_matrix, difference_sums
from sparsact.learners.cube_gp.rows import DistinctRows
from sparsact.validation.parameters import checked_probability

DIRECT_ROWS = 4_096  # distinct rows up to which a Cholesky factor is made where there is a choice
TOLERANCE, DRAW_TOLERANCE = 1e-8, 1e-4  # of residuals, for means and for draws
VARIANCE_DRAWS = 512  # from which variances are estimated: deviations have a standard error of 3 %
_NUMBERS_AT_ONCE = 1 << 23
_POINTS_AT_ONCE = 1 << 10


@dataclass(frozen=True, eq=False)
class Posterior(ABC):
    """Gaussian posterior, in the units of the rows.

    Attributes
    ----------
    kernel : CubeKernel
        Prior covariance.
    noise_variance : float
        Of a row of weight 1.
    rows : DistinctRows
        What was measured.
    seed : tuple of int
        Of the draws that estimate variances.
    known_alpha : ndarray of shape (m,) or None
        :attr:`alpha`, if it has been computed before.
    """

    kernel: CubeKernel
    noise_variance: float
    rows: DistinctRows
    seed: tuple[int, ...]
    known_alpha: Array | None = None

    @cached_property
    def alpha(self) -> Array:
        """Inverse covariance matrix of the rows times their targets, (m,)."""
        return self.cholesky.solve(self.rows.y) if self.known_alpha is None else self.known_alpha

    @cached_property
    def cholesky(self) -> Cholesky:
        """Factor of the covariance matrix of the rows."""
        return Cholesky.of(covariance_matrix(self.kernel, self.noise_variance, self.rows))

    @abstractmethod
    def values(self, bits: Array) -> Array:
        """Means at points of bits (m', n)."""

    @abstractmethod
    def coefficient_moments(self, subsets: list[Subset]) -> tuple[Array, Array]:
        """Means and variances (N,) of the coefficients of some subsets."""

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
        blocks = range(0, len(bits), _POINTS_AT_ONCE)
        return np.concatenate(
            [self.alpha @ self.kernel.covariance(self.rows.bits, bits[i : i + _POINTS_AT_ONCE]) for i in blocks]
        )

    def coefficient_moments(self, subsets: list[Subset]) -> tuple[Array, Array]:
        """Means and variances (N,) of the coefficients of some subsets, by their covariances with the rows."""
        prior = self.kernel.variances_of(subsets)
        cross = characters(1 - 2 * self.rows.bits, subsets) * prior
        return np.asarray(self.alpha @ cross), np.maximum(prior - self._explained(cross), 0.0)


class CubePosterior(Posterior):
    """Posterior over the whole cube of at most 20 columns.

    Variances are exact up to 4,096 distinct rows, and estimated from 512 draws beyond.
    """

    @cached_property
    def alpha(self) -> Array:
        """Inverse covariance matrix of the rows times their targets, (m,)."""
        if self.known_alpha is not None or self.is_direct:
            return np.asarray(super().alpha)
        return np.asarray(self.system.solve(self.rows.y[None], TOLERANCE)[0][0])

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
        return len(self.rows) <= DIRECT_ROWS

    def variances(self, bits: Array) -> Array:
        """Variances at points of bits (m', n)."""
        if not self.is_direct:
            return self._estimated_variances[1][codes_of(bits)]
        codes, place = np.unique(codes_of(bits), return_inverse=True)
        points = (codes[:, None] >> np.arange(self.kernel.n) & 1).astype(np.float64)
        return super().variances(points)[place.ravel()]

    @cached_property
    def coefficient_variances(self) -> Array:
        """Posterior variances of all coefficients, (2**n,)."""
        if not self.is_direct:
            return self._estimated_variances[0]
        sums = difference_sums(self.cholesky.lower_inverse(), self.rows.codes, 2**self.kernel.n)
        p = self.kernel.spectrum
        return np.asarray(np.maximum(p - p**2 * walsh_hadamard(sums, normalize=False), 0.0))

    def coefficient_moments(self, subsets: list[Subset]) -> tuple[Array, Array]:
        """Means and variances (N,) of the coefficients of some subsets, from those of all, or a solution for each."""
        numbers = np.array([sum(1 << i for i in subset) for subset in subsets], dtype=np.intp)
        means = self.coefficients[numbers]
        if self.is_direct or len(subsets) >= VARIANCE_DRAWS:
            return means, self.coefficient_variances[numbers]
        prior, variances = self.kernel.spectrum[numbers], np.empty(len(subsets))
        at_once = max(1, _NUMBERS_AT_ONCE // 2**self.kernel.n)
        for start in range(0, len(subsets), at_once):
            block = slice(start, start + at_once)
            cross = (characters(1 - 2 * self.rows.bits, subsets[block]) * prior[block]).T
            variances[block] = prior[block] - np.einsum("km,km->k", cross, self.system.solve(cross, DRAW_TOLERANCE)[0])
        return means, np.maximum(variances, 0.0)

    @cached_property
    def _estimated_variances(self) -> tuple[Array, Array]:
        """Variances of all coefficients and at all points, from draws of known mean."""
        of_coefficients, of_values = np.zeros(2**self.kernel.n), np.zeros(2**self.kernel.n)
        for draws in self._deviations(VARIANCE_DRAWS, np.random.default_rng(self.seed)):
            of_coefficients += np.einsum("ks,ks->s", draws, draws)
            values = walsh_hadamard(draws, normalize=False, overwrite=True)
            of_values += np.einsum("ks,ks->s", values, values)
        return of_coefficients / VARIANCE_DRAWS, of_values / VARIANCE_DRAWS

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
        deviation = np.sqrt(self.noise_variance / self.rows.weights)
        for start in range(0, n_samples, at_once):
            count = min(at_once, n_samples - start)
            prior = rng.standard_normal((count, size)) * np.sqrt(self.kernel.spectrum)
            noisy = np.asarray(walsh_hadamard(prior, normalize=False))[:, self.rows.codes]
            noisy += deviation * rng.standard_normal((count, len(self.rows)))
            solved = np.zeros_like(prior)
            solved[:, self.rows.codes] = self._solve(noisy)
            prior -= self.kernel.spectrum * walsh_hadamard(solved, normalize=False, overwrite=True)
            yield prior

    def _solve(self, targets: Array) -> Array:
        if self.is_direct:
            return self.cholesky.solve(targets.T).T
        return self.system.solve(targets, DRAW_TOLERANCE)[0]

    @cached_property
    def system(self) -> CubeSystem:
        """The covariance matrix of the rows, by transforms."""
        return CubeSystem(self.kernel.spectrum, self.rows.codes, self.noise_variance / self.rows.weights)


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """Draws of some quantities from their posterior.

    Attributes
    ----------
    draws : ndarray of shape (n_samples, k)
        A draw of all quantities a row.

    Examples
    --------
    >>> PosteriorDraws(np.arange(101.0)[:, None]).interval(0.9)
    array([[ 5., 95.]])
    """

    draws: Array

    def mean(self) -> Array:
        """Posterior means, (k,)."""
        return np.asarray(self.draws.mean(axis=0))

    def standard_deviation(self) -> Array:
        """Posterior standard deviations, (k,)."""
        return np.asarray(self.draws.std(axis=0, ddof=1))

    def interval(self, confidence: float = 0.95) -> Array:
        """Central credible intervals, (k, 2): quantiles of the draws."""
        tail = (1 - checked_probability(confidence, "`confidence`")) / 2
        return np.quantile(self.draws, [tail, 1 - tail], axis=0).T


@dataclass(frozen=True, eq=False)
class VarianceDecomposition:
    """Posterior of how the variance of a function over uniform points divides.

    Attributes
    ----------
    by_degree : PosteriorDraws
        Sums of squared coefficients of each size, n + 1 of them; that of degree 0 is the squared mean.
    shares : PosteriorDraws
        Shares of the degrees 1, ..., n in the variance, n of them.
    influences : PosteriorDraws
        Influence of each coordinate, n of them.

    Examples
    --------
    Two draws of the coefficients of (), (0,), (1,) and (0, 1):

    >>> variance_decomposition([np.array([[9.0, 1.0, 1.0, 0.0], [8.0, 1.0, 0.0, 3.0]])]).shares.draws
    array([[1. , 0. ],
           [0.1, 0.9]])
    """

    by_degree: PosteriorDraws
    shares: PosteriorDraws
    influences: PosteriorDraws


def variance_decomposition(blocks: Iterable[Array]) -> VarianceDecomposition:
    """From blocks of draws of all coefficients."""
    found = [(s.weight_by_degree(), s.influences()) for block in blocks for s in map(Spectrum.from_coefficients, block)]
    weights, influences = (np.stack(values) for values in zip(*found, strict=True))
    variance = weights[:, 1:].sum(axis=1, keepdims=True)
    shares = np.divide(weights[:, 1:], variance, out=np.zeros_like(weights[:, 1:]), where=variance > 0)
    return VarianceDecomposition(PosteriorDraws(weights), PosteriorDraws(shares), PosteriorDraws(influences))

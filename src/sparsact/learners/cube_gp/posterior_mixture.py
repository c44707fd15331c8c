r"""Posterior of a function on the cube with kernel and noise uncertain: a mixture of Gaussian posteriors.

Means belong to the most probable kernel and noise. Variances are mean squares around them over draws of both,

.. math:: \frac1K \sum_k \Big( \mathrm{Var}_k f + (\mathbb{E}_k f - \hat f)^2 \Big),

without which intervals from few rows are too narrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from sparsact.fourier import Spectrum, walsh_hadamard
from sparsact.hypercube import Subset, characters
from sparsact.kernels.threads import in_threads
from sparsact.learners.cube_gp.component import LARGEST_CUBE
from sparsact.learners.cube_gp.hyperparameters import HyperparameterPosterior
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.cube import DIRECT_ROWS, CubePosterior, codes_of
from sparsact.learners.gp.systems.inducing import InducingSystem
from sparsact.statistics.conformal import LocalErrors
from sparsact.validation.parameters import checked_probability

PARTS: Final = 20  # draws of kernel and noise
VARIANCE_DRAWS: Final = 520  # of functions: deviations have a relative standard error of 1 / sqrt(2 * 520)
CONTRAST_DRAWS: Final = 200  # deviations have a relative standard error of 1 / sqrt(2 * 200)
_SUBSETS_AT_ONCE: Final = 1 << 8


@dataclass(frozen=True, eq=False)
class MarginalPosterior:
    """Posterior of ``shift + unit * f``, where f is a function in the units of the rows.

    Attributes
    ----------
    rows : DistinctRows
        What was measured.
    given : Hyperparameters
        The most probable kernel and noise.
    best : Posterior
        The posterior given these.
    hyperparameters : HyperparameterPosterior, or ndarray of shape (K, k + 1)
        Posterior of kernel and noise, or draws of it: ``theta`` and the logarithm of the noise variance. None of them
        where both are known.
    seed : tuple of int
        Seed of draws.
    shift, unit : float
        Shift and unit of the targets. Variances are kept in these units, because targets may have any size.
    """

    rows: DistinctRows
    given: Hyperparameters
    best: Posterior
    hyperparameters: HyperparameterPosterior | Array
    seed: tuple[int, ...]
    shift: float
    unit: float

    @property
    def inducing(self) -> InducingSystem | None:
        """The system, where it has inducing points."""
        return self.best.system if isinstance(self.best.system, InducingSystem) else None

    @cached_property
    def parameters(self) -> Array:
        """Draws (K, k + 1) of the kernel's ``theta`` and the logarithm of the noise variance."""
        if not isinstance(self.hyperparameters, HyperparameterPosterior):
            return self.hyperparameters
        if self.inducing is not None:  # many rows: kernel and noise are nearly certain
            return np.empty((0, len(self.hyperparameters.mode)))
        return self.hyperparameters.draws(PARTS, np.random.default_rng([*self.seed, 1]))

    @property
    def parts(self) -> Iterator[tuple[Hyperparameters, Posterior]]:
        """Each draw of kernel and noise and the posterior given it, one after the other."""
        return map(self._part, range(self._n_parts))

    @property
    def _n_parts(self) -> int:
        return max(1, len(self.parameters))

    def _part(self, k: int) -> tuple[Hyperparameters, Posterior]:
        if not len(self.parameters):
            return self.given, self.best
        *theta, log_noise = self.parameters[k]
        given = Hyperparameters(self.given.kernel.with_theta(theta), float(np.exp(log_noise)))
        return given, given.posterior(self.rows)

    @property
    def _cube(self) -> CubePosterior:
        return _on_cube(self.best)

    @property
    def noise_deviation(self) -> float:
        """Root of the mean noise variance of a row of weight 1."""
        known = self.given.noise_variance
        variance = float(np.exp(self.parameters[:, -1]).mean()) if len(self.parameters) else known
        return self.unit * float(np.sqrt(variance))

    @cached_property
    def leave_one_out_errors(self) -> LocalErrors:
        r"""Errors of measured rows over their deviations, each predicted from the others: at most 1,024 of them.

        With A the covariance matrix of the rows, that of row i is :math:`(A^{-1} y)_i / \sqrt{(A^{-1})_{ii}}` [1]_.

        References
        ----------
        .. [1] C. E. Rasmussen, C. K. I. Williams, "Gaussian Processes for Machine Learning", 2006, Section 5.4.2.
        """
        if self.inducing is not None:
            errors = self.inducing.left_out_errors(self.best.alpha)
            return LocalErrors(np.zeros(len(errors)), errors)
        rows = self.rows
        if len(rows) > DIRECT_ROWS:
            rows = rows.take(np.random.default_rng([*self.seed, 3]).permutation(len(rows))[:DIRECT_ROWS])
        factor = self.given.dense(rows).factor
        errors, precisions = factor.solve(rows.y), factor.lower_inverse().diagonal()
        return LocalErrors(rows.y - errors / precisions, errors / np.sqrt(precisions))

    def interval_deviations(self, values: Array, confidence: float) -> Array:
        """Deviations (m',) on either side of predictions within which new measurements lie with this probability.

        Quantiles of a normal distribution. If kernel and noise were learned or variances are approximate, quantiles of
        errors of measured rows where such values are predicted; on average not less than a normal distribution's.
        """
        normal = NormalDist().inv_cdf((1 + confidence) / 2)
        if not len(self.parameters) and self.inducing is None:
            return np.full(len(values), normal)
        found = self.leave_one_out_errors.reach((values - self.shift) / self.unit, confidence, least=normal)
        return np.where(np.isinf(found), normal, found)

    def values(self, bits: Array) -> Array:
        """Means at points of bits (m', n)."""
        return self.shift + self.unit * self.best.values(bits)

    def deviations(self, bits: Array) -> Array:
        """Standard deviations at points of bits (m', n): exact where rows are few, else from draws."""
        if not self.best.system.is_direct:
            variances = self._estimated_variances[1][codes_of(bits)]
        elif not len(self.parameters):
            variances = self.best.variances(bits)
        else:
            centre = self.best.values(bits)
            squares = [part.variances(bits) + (part.values(bits) - centre) ** 2 for _, part in self.parts]
            variances = np.mean(squares, axis=0)
        return np.asarray(self.unit * np.sqrt(variances))

    @property
    def all_means(self) -> Array:
        """Means of all coefficients, (2**n,), in table order; n up to 20."""
        means = self.unit * self._cube.coefficients
        means[0] += self.shift
        return means

    def coefficients(self, subsets: list[Subset] | None) -> tuple[Array, Array]:
        """Means and standard deviations (N,) of the coefficients of some subsets, or of all in table order."""
        if subsets is None:
            return self.all_means, self.unit * np.sqrt(self._coefficient_variances)
        if isinstance(self.best, CubePosterior):
            numbers = np.array([sum(1 << i for i in subset) for subset in subsets], dtype=np.intp)
            means, variances = self.best.coefficients[numbers], self._coefficient_variances[numbers]
        else:
            known = self._known_moments
            if new := [subset for subset in dict.fromkeys(subsets) if subset not in known]:
                known |= dict(zip(new, np.transpose(self._moments(new)), strict=True))
            means, variances = np.reshape([known[subset] for subset in subsets], (-1, 2)).T
        return self._in_units(means, subsets), self.unit * np.sqrt(variances)

    def means_of(self, subsets: list[Subset]) -> Array:
        """Means (N,) of the coefficients of some subsets, of a kernel without a table: deviations take long."""
        return self._in_units(self._means(subsets), subsets)

    def _in_units(self, means: Array, subsets: list[Subset]) -> Array:
        return np.asarray(self.unit * means + [0.0 if subset else self.shift for subset in subsets])

    @cached_property
    def _known_moments(self) -> dict[Subset, Array]:
        """Moments that have been computed: with inducing points each takes a solution."""
        return {}

    def _moments(self, subsets: list[Subset]) -> tuple[Array, Array]:
        """Means and variances (N,) of coefficients by their covariances with the rows."""
        signs = characters(1 - 2 * self.rows.bits, subsets)
        centre, squares = self._means(subsets), []
        for given, part in self.parts:
            prior = given.kernel.variances_of(subsets)
            mean, variance = part.moments(signs * prior, prior)
            squares.append(variance + (mean - centre) ** 2)
        return centre, np.mean(squares, axis=0)

    def _means(self, subsets: list[Subset]) -> Array:
        starts, signs = range(0, len(subsets), _SUBSETS_AT_ONCE), 1 - 2 * self.rows.bits
        sums = [self.best.alpha @ characters(signs, subsets[start : start + _SUBSETS_AT_ONCE]) for start in starts]
        return np.asarray(np.concatenate(sums) * self.given.kernel.variances_of(subsets))

    @cached_property
    def _coefficient_variances(self) -> Array:
        """Variances of all coefficients, (2**n,), n up to 20: exact where rows are few, else from draws."""
        if not self.best.system.is_direct:
            return self._estimated_variances[0]
        variances = np.zeros(2**self.given.kernel.n)
        for part in (_on_cube(part) for _, part in self.parts):
            variances += part.coefficient_variances + (part.coefficients - self._cube.coefficients) ** 2
        return variances / self._n_parts

    @cached_property
    def _estimated_variances(self) -> tuple[Array, Array]:
        """Mean squares of draws around the means: of all coefficients, and of the values at all points."""
        rngs = np.random.default_rng([*self.seed, 2]).spawn(self._n_parts)
        means = self._cube.coefficients

        def squares(task: tuple[int, int, np.random.Generator]) -> Array:
            k, count, rng = task
            sums = np.zeros((2, 2**self.given.kernel.n))
            for draws in _on_cube(self._part(k)[1]).draws(count, rng):
                draws -= means
                sums[0] += np.einsum("ks,ks->s", draws, draws)
                values = walsh_hadamard(draws, normalize=False, overwrite=True)
                sums[1] += np.einsum("ks,ks->s", values, values)
            return sums

        tasks = zip(range(self._n_parts), self._counts(VARIANCE_DRAWS), rngs, strict=True)
        of_coefficients, of_values = np.sum(list(in_threads(squares, tasks)), axis=0) / VARIANCE_DRAWS
        return of_coefficients, of_values

    def draws(self, n_samples: int, rng: np.random.Generator) -> Iterator[Array]:
        """Draws of all coefficients in blocks (k, 2**n), n up to 20."""
        for k, count in enumerate(self._counts(n_samples)):
            for block in _on_cube(self._part(k)[1]).draws(count, rng) if count else ():
                block *= self.unit
                block[:, 0] += self.shift
                yield block

    def draws_at(self, bits: Array, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, m') of the values at points of bits."""
        counts = enumerate(self._counts(n_samples))
        draws = [self._part(k)[1].draws_at(bits, count, rng) for k, count in counts if count]
        return self.shift + self.unit * np.concatenate(draws)

    def contrast_deviations(self, bits: Array, weights: csr_array) -> Array:
        """Deviations (k,) of contrasts of weights (k, m'), each of sum 0, of values at distinct points."""
        centre = weights @ self.best.values(bits)
        if not self.best.system.is_direct:
            draws = self.draws_at(bits, CONTRAST_DRAWS, np.random.default_rng([*self.seed, 4]))
            apart = weights @ draws.T - self.unit * centre[:, None]
            return np.asarray(np.sqrt((apart**2).mean(axis=1)))
        squares = np.zeros_like(centre)
        for _, part in self.parts:
            squares += ((weights @ part.system.covariance(bits)) * weights.toarray()).sum(axis=1)
            squares += (weights @ part.values(bits) - centre) ** 2
        return self.unit * np.sqrt(np.maximum(squares, 0.0) / self._n_parts)

    def _counts(self, n_samples: int) -> list[int]:
        """Numbers of draws of the parts, which differ by one at most."""
        ends = [n_samples * k // self._n_parts for k in range(self._n_parts + 1)]
        return [after - before for before, after in pairwise(ends)]


def _on_cube(posterior: Posterior) -> CubePosterior:
    """The posterior, which has tables of all coefficients; n up to 20."""
    if not isinstance(posterior, CubePosterior):
        n = posterior.system.points.shape[1]
        raise AttributeError(
            f"all coefficients of {n} columns are 2**{n} numbers, made for up to {LARGEST_CUBE} columns; name some "
            "subsets in standard_errors or confidence_intervals."
        )
    return posterior


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
    """Posterior of the parts of a function's variance over uniform points.

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

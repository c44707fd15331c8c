"""Fitted latents as they are reported: means and deviations of values and of coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsact.hypercube import Subset, characters
from sparsact.learners.cube_gp.posterior_mixture import MarginalPosterior
from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent.monomials import SPARSE
from sparsact.validation.arrays import places_of

ROWS_AT_ONCE: Final = 1 << 12


@dataclass(frozen=True, eq=False)
class PolynomialLatent:
    """A polynomial f of some subsets, the empty one first, reported as ``shift + unit * f``.

    Attributes
    ----------
    subsets : list of p tuples of int
        Its monomials.
    values : ndarray of shape (p,)
        Coefficients of f.
    covariance, conditional : ndarray of shape (p, p)
        Their covariance, the measurement's parameters being uncertain, and given these.
    shift, unit : float
        Shift and unit of the targets. Variances are kept in this unit, for targets may be of any size.
    """

    subsets: list[Subset]
    values: Array
    covariance: Array
    conditional: Array
    shift: float
    unit: float

    def moments(self, bits: NDArray[Any]) -> tuple[Array, Array]:
        """Means and standard deviations (m,) at points of bits (m, n), curve and noise being uncertain."""
        return self._moments(bits, self.covariance)

    def given_curve(self, bits: NDArray[Any]) -> tuple[Array, Array]:
        """The same, curve and noise being known."""
        return self._moments(bits, self.conditional)

    def _moments(self, bits: NDArray[Any], covariance: Array) -> tuple[Array, Array]:
        found = []
        for start in range(0, max(1, len(bits)), ROWS_AT_ONCE):
            rows = characters(1 - 2 * bits[start : start + ROWS_AT_ONCE], self.subsets)
            found.append(np.stack([rows @ self.values, _quadratic_forms(rows, covariance)]))
        mean, variance = np.concatenate(found, axis=1)
        return self.shift + self.unit * mean, self.unit * np.sqrt(np.maximum(variance, 0.0))

    def contrast_deviations(self, bits: Array, weights: csr_array) -> Array:
        """Deviations (k,) of contrasts of weights (k, m), each of sum 0, of values at points of bits."""
        rows = weights @ characters(1 - 2 * bits, self.subsets)
        variance = np.einsum("kp,kp->k", rows @ self.covariance, rows)
        return np.asarray(self.unit * np.sqrt(np.maximum(variance, 0.0)))

    def coefficients(self, subsets: list[Subset] | None) -> tuple[Array, Array]:
        """Values and standard errors (N,) of the coefficients of some subsets, or of all."""
        wanted = self.subsets if subsets is None else subsets
        chosen = places_of(wanted, self.subsets)
        errors = np.sqrt(np.maximum(self.covariance.diagonal()[chosen], 0.0))
        empty = np.array([not subset for subset in wanted], dtype=bool)
        return self.unit * self.values[chosen] + np.where(empty, self.shift, 0.0), self.unit * errors


@dataclass(frozen=True, eq=False)
class ProcessLatent:
    """A Gaussian process; its values are given the most probable kernel, curve and noise, its coefficients not."""

    posterior: MarginalPosterior

    @cached_property
    def given(self) -> MarginalPosterior:
        """The posterior given the most probable kernel."""
        return replace(self.posterior, hyperparameters=self.posterior.parameters[:0])

    def moments(self, bits: NDArray[Any]) -> tuple[Array, Array]:
        """Means and standard deviations (m,) at points of bits (m, n)."""
        points = bits.astype(np.float64)
        return self.given.values(points), self.given.deviations(points)

    given_curve = moments

    def contrast_deviations(self, bits: Array, weights: csr_array) -> Array:
        """Deviations (k,) of contrasts of weights (k, m), each of sum 0, of values at points of bits."""
        return self.posterior.contrast_deviations(bits, weights)

    def coefficients(self, subsets: list[Subset] | None) -> tuple[Array, Array]:
        """Means and standard deviations (N,) of the coefficients of some subsets, or of all in table order."""
        return self.posterior.coefficients(subsets)


@dataclass(frozen=True, eq=False)
class Traits:
    """Coefficients (K, p) of traits, the empty subset first; their covariance (K, p, K, p), and given the curves."""

    subsets: list[Subset]
    values: Array
    covariance: Array
    conditional: Array

    @cached_property
    def each(self) -> list[PolynomialLatent]:
        """Each trait by itself."""
        own, given = (np.einsum("kpkq->kpq", of_all) for of_all in (self.covariance, self.conditional))
        parts = zip(self.values, own, given, strict=True)
        return [PolynomialLatent(self.subsets, *of_trait, shift=0.0, unit=1.0) for of_trait in parts]

    def given_curve(self, bits: NDArray[Any]) -> tuple[Array, Array]:
        """Means (m, K) and covariances (m, K, K) at points of bits (m, n), curves and noise being known."""
        found = []
        for start in range(0, max(1, len(bits)), ROWS_AT_ONCE):
            rows = characters(1 - 2 * bits[start : start + ROWS_AT_ONCE], self.subsets)
            between = np.einsum("mp,kplq,mq->mkl", rows, self.conditional, rows, optimize="greedy")
            found.append((rows @ self.values.T, between))
        means, covariances = zip(*found, strict=True)
        return np.concatenate(means), np.concatenate(covariances)

    def moments(self, bits: NDArray[Any]) -> tuple[Array, Array]:
        """Means and standard deviations at points, (m, K), or (m,) of one trait; curves and noise are uncertain."""
        means, deviations = zip(*(trait.moments(bits) for trait in self.each), strict=True)
        return squeezed(np.stack(means, axis=1)), squeezed(np.stack(deviations, axis=1))

    def contrast_deviations(self, bits: Array, weights: csr_array) -> Array:
        """Deviations (k,) or (k, K) of contrasts, as of one latent."""
        return squeezed(np.stack([trait.contrast_deviations(bits, weights) for trait in self.each], axis=1))

    def coefficients(self, subsets: list[Subset] | None) -> tuple[Array, Array]:
        """Values and standard errors of coefficients, (K, N), or (N,) of one trait."""
        values, errors = zip(*(trait.coefficients(subsets) for trait in self.each), strict=True)
        return squeezed(np.stack(values), axis=0), squeezed(np.stack(errors), axis=0)


def squeezed(values: Array, axis: int = 1) -> Array:
    """An array without an axis of one entry."""
    return np.asarray(values.take(0, axis)) if values.shape[axis] == 1 else values


def _quadratic_forms(rows: Array, matrix: Array) -> Array:
    """The quadratic form of a symmetric matrix (p, p) at each of some rows (m, p).

    About the most frequent entry of each column, where few rows differ from it: (a + d)' M (a + d), d being sparse.
    """
    usual = np.where(rows.sum(axis=0) < 0, -1.0, 1.0)
    different = rows != usual
    if different.sum() >= SPARSE * different.size:
        return np.asarray(np.einsum("mp,mp->m", rows @ matrix, rows))
    d, by_usual = csr_array(np.where(different, rows - usual, 0.0)), matrix @ usual
    return np.asarray(usual @ by_usual + 2 * (d @ by_usual) + d.multiply(d @ matrix).sum(axis=1))


Latent = PolynomialLatent | ProcessLatent | Traits


class LatentMeasurement(Protocol):
    """From latents to targets."""

    def expected(self, mean: Array, spread: Array, /) -> Array:
        """Expected targets of latents as :meth:`PolynomialLatent.given_curve` describes them."""


M = TypeVar("M", bound=LatentMeasurement, covariant=True)


@dataclass(frozen=True, eq=False)
class LatentFit(Generic[M]):
    """Latent and measurement, whether the search came to rest, its steps, and degrees of freedom of the errors."""

    latent: Latent
    measurement: M
    converged: bool
    steps: int
    freedom: float = np.inf

    def expected(self, bits: NDArray[Any]) -> Array:
        """Expected measurements at points of bits (m, n)."""
        return self.measurement.expected(*self.latent.given_curve(bits))

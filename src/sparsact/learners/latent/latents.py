"""Fitted latents as they are reported: means and deviations of values and of coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsact.hypercube import Subset, characters
from sparsact.learners.cube_gp.posterior_mixture import MarginalPosterior
from sparsact.learners.gp.kernel import Array
from sparsact.learners.latent.monomials import SPARSE

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

    def moments(self, bits: NDArray[Any], *, curve_known: bool = False) -> tuple[Array, Array]:
        """Means and standard deviations (m,) at points of bits (m, n), curve and noise being uncertain or known."""
        found, covariance = [], self.conditional if curve_known else self.covariance
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
        place = {subset: k for k, subset in enumerate(self.subsets)}
        wanted = self.subsets if subsets is None else subsets
        missing = [subset for subset in wanted if subset not in place]
        if missing:
            raise ValueError(f"subset {missing[0]} is not among the fitted monomials; see subsets_.")
        chosen = [place[subset] for subset in wanted]
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

    def moments(self, bits: NDArray[Any], *, curve_known: bool = True) -> tuple[Array, Array]:
        """Means and standard deviations (m,) at points of bits (m, n)."""
        points = bits.astype(np.float64)
        return self.given.values(points), self.given.deviations(points)

    def contrast_deviations(self, bits: Array, weights: csr_array) -> Array:
        """Deviations (k,) of contrasts of weights (k, m), each of sum 0, of values at points of bits."""
        return self.posterior.contrast_deviations(bits, weights)

    def coefficients(self, subsets: list[Subset] | None) -> tuple[Array, Array]:
        """Means and standard deviations (N,) of the coefficients of some subsets, or of all in table order."""
        return self.posterior.coefficients(subsets)


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


Latent = PolynomialLatent | ProcessLatent

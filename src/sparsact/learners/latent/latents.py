"""Fitted latents as they are reported: means and variances of values and of coefficients, and their arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from sparsact.hypercube import Subset, characters
from sparsact.learners.cube_gp.component import LARGEST_CUBE
from sparsact.learners.cube_gp.marginal import MarginalPosterior
from sparsact.learners.cube_gp.saving import posterior_arrays, read_posterior
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.systems.cube import CubePosterior
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays

_ROWS_AT_ONCE: Final = 1 << 12
_POLYNOMIAL: Final = {
    "coefficients": ArrayField("p", finite=True),
    "covariance": ArrayField("p p", finite=True),
    "conditional": ArrayField("p p", finite=True),
    "units": ArrayField("2", finite=True),
}
_UNITS: Final = {"units": ArrayField("2", finite=True)}


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
    shift: float = 0.0
    unit: float = 1.0

    def moments(self, bits: Array, *, curve_known: bool = False) -> tuple[Array, Array]:
        """Means and standard deviations (m,) at points of bits (m, n), curve and noise being uncertain or known."""
        found, covariance = [], self.conditional if curve_known else self.covariance
        for start in range(0, max(1, len(bits)), _ROWS_AT_ONCE):
            rows = characters(1 - 2 * bits[start : start + _ROWS_AT_ONCE], self.subsets)
            found.append(np.stack([rows @ self.values, np.einsum("mp,mp->m", rows @ covariance, rows)]))
        mean, variance = np.concatenate(found, axis=1)
        return self.shift + self.unit * mean, self.unit * np.sqrt(np.maximum(variance, 0.0))

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

    def arrays(self) -> Arrays:
        """What a file keeps; the subsets follow from the model's degree."""
        return {
            "coefficients": self.values,
            "covariance": self.covariance,
            "conditional": self.conditional,
            "units": np.array([self.shift, self.unit]),
        }

    @classmethod
    def of_arrays(cls, subsets: list[Subset], arrays: Arrays) -> PolynomialLatent:
        """The latent that :meth:`arrays` took apart."""
        read = schema.read_arrays(_POLYNOMIAL, arrays, p=len(subsets))
        shift, unit = read["units"].tolist()
        return cls(subsets, read["coefficients"], read["covariance"], read["conditional"], shift, unit)


@dataclass(frozen=True, eq=False)
class ProcessLatent:
    """A Gaussian process f, reported as ``shift + unit * f``."""

    posterior: MarginalPosterior
    shift: float
    unit: float

    @cached_property
    def given(self) -> MarginalPosterior:
        """The posterior given the most probable kernel."""
        return replace(self.posterior, hyperparameters=self.posterior.parameters[:0])

    def moments(self, bits: Array, *, curve_known: bool = True) -> tuple[Array, Array]:
        """Means and standard deviations (m,) at points of bits (m, n), given kernel, curve and noise."""
        return self.shift + self.unit * self.given.best.values(bits), self.unit * np.sqrt(self.given.variances(bits))

    def coefficients(self, subsets: list[Subset] | None) -> tuple[Array, Array]:
        """Means and standard deviations (N,) of the coefficients of some subsets, or of all in table order."""
        if subsets is not None:
            mean, variance = self.posterior.coefficient_moments(subsets)
            empty = np.array([not subset for subset in subsets])
        elif isinstance(self.posterior.best, CubePosterior):
            mean, variance = self.posterior.best.coefficients, self.posterior.coefficient_variances
            empty = np.arange(len(mean)) == 0
        else:
            raise AttributeError(
                f"a spectrum of {self.posterior.given.kernel.n} columns needs all coefficients, made for up to "
                f"{LARGEST_CUBE} columns; name some subsets."
            )
        return self.unit * mean + np.where(empty, self.shift, 0.0), self.unit * np.sqrt(variance)

    def arrays(self) -> Arrays:
        """What a file keeps."""
        return posterior_arrays(self.posterior) | {"units": np.array([self.shift, self.unit])}

    @classmethod
    def of_arrays(cls, n: int, arrays: Arrays) -> ProcessLatent:
        """The latent that :meth:`arrays` took apart."""
        shift, unit = schema.read_arrays(_UNITS, arrays)["units"].tolist()
        return cls(read_posterior(n, arrays), shift, unit)


Latent = PolynomialLatent | ProcessLatent

"""How sure the coefficients of a fit are: what is left of its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsact.hypercube import Masks, characters, subsets_of
from sparsact.learners.low_degree.factor import Factor

_MOST_MONOMIALS: Final = 1 << 26  # of all rows of contrasts: half a gigabyte
SAME: Final = 1e-8  # of a length: closer than that, a vector lies in the space that rounded sums span


class InnerProducts(NamedTuple):
    """Centred inner products of the features (D, D), and their rank where the factor of a penalty needed it, else D."""

    gram: NDArray[np.float64]
    rank: int


class Design(ABC):
    """What is kept of the rows after a fit, for standard errors of its coefficients."""

    @property
    @abstractmethod
    def identified(self) -> NDArray[np.bool_] | None:
        """Whether the rows determine each coefficient of ``[(), *subsets]``, (D + 1,); None if that is not known."""

    @abstractmethod
    def effective_parameters(self, alpha: float) -> float:
        """Effective parameters, the intercept not counted."""

    def all_variances(self, alpha: float) -> NDArray[np.float64] | None:
        """Variance per unit of residual variance of each coefficient of ``[(), *subsets]``, if they cost little."""
        return None

    def unscaled_variances(self, places: NDArray[np.intp], alpha: float) -> NDArray[np.float64] | None:
        """The same at some places, (N,), one at a time; None without formula, NaN if not determined by the rows."""
        variances = self.all_variances(alpha)
        return None if variances is None else variances[places]

    def contrast_variances(
        self, signs: NDArray[np.float64], weights: csr_array, masks: Masks, alpha: float
    ) -> NDArray[np.float64] | None:
        """Posterior variances (k,) per unit of residual variance of contrasts (k, m) of values at signs (m, n).

        The ridge penalty is the prior. None without formula, NaN if neither rows nor penalty determine one.
        """
        factor = self.factor(alpha)
        if factor is None or len(signs) * len(masks) > _MOST_MONOMIALS:
            return None
        if not len(masks):
            return np.zeros(weights.shape[0])
        features = weights @ characters(signs, subsets_of(masks))
        variances = np.einsum("kd,dk->k", features, factor.solve(features.T))
        if factor.method != "eigenvectors":
            return np.asarray(variances)
        outside = ((features - features @ factor.projection) ** 2).sum(axis=1)  # what no row determines
        unknown = outside > SAME * (features**2).sum(axis=1)
        return np.where(unknown, variances + outside / alpha if alpha else np.nan, variances)

    def factor(self, alpha: float) -> Factor | None:
        """Factor of the inner products plus the penalty, where they are known."""
        return None

    def products(self, alpha: float) -> InnerProducts | None:
        """What a file needs for :meth:`factor`."""
        return None


@dataclass(frozen=True, eq=False)
class KnownDesign(Design):
    """Precision of coefficients as a file holds it, or of an average, which has none but their number.

    Attributes
    ----------
    parameters : float
        Effective number of coefficients.
    variances, identified : (D + 1,) or None
        Variance of each coefficient per unit of residual variance, and whether the rows determine it; None: not known.
    inner : InnerProducts or None
        Inner products of the features.
    """

    parameters: float
    variances: NDArray[np.float64] | None = None
    identified: NDArray[np.bool_] | None = None
    inner: InnerProducts | None = None

    def factor(self, alpha: float) -> Factor | None:
        """The factor that the file holds."""
        inner = self.inner
        return None if inner is None else Factor(inner.gram, alpha, lambda: inner.rank)

    def products(self, alpha: float) -> InnerProducts | None:
        """What the file holds."""
        return self.inner

    def effective_parameters(self, alpha: float) -> float:
        """The number that is known."""
        return self.parameters

    def all_variances(self, alpha: float) -> NDArray[np.float64] | None:
        """The variances, if they are known."""
        return self.variances

"""How sure the coefficients of a fit are: what is left of its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsact.hypercube import Masks


class Design(ABC):
    """What is left of the rows after a fit, to say how sure its coefficients are."""

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
    """

    parameters: float
    variances: NDArray[np.float64] | None = None
    identified: NDArray[np.bool_] | None = None

    def effective_parameters(self, alpha: float) -> float:
        """The number that is known."""
        return self.parameters

    def all_variances(self, alpha: float) -> NDArray[np.float64] | None:
        """The variances, if they are known."""
        return self.variances

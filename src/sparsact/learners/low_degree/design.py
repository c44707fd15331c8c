"""How sure the coefficients of a fit are: what is left of its rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Design:
    """What is left of the rows after a fit, to say how sure its coefficients are."""

    @abstractmethod
    def effective_parameters(self, alpha: float) -> float:
        """Effective parameters, the intercept not counted."""

    identified: Any  # whether the rows determine each coefficient of ``[(), *subsets]``, (D + 1,)

    def all_variances(self, alpha: float) -> NDArray[np.float64] | None:
        """Variance per unit of residual variance of each coefficient of ``[(), *subsets]``, if they cost little."""

    def unscaled_variances(self, places: NDArray[np.intp], alpha: float) -> NDArray[np.float64] | None:
        """The same at some places, (N,), one at a time; None if there are none."""
        variances = self.all_variances(alpha)
        return None if variances is None else variances[places]

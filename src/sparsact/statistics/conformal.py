r"""Intervals of new rows by the absolute errors of rows left out: split-conformal prediction.

Of rows in random order, a new one's error is as likely to have any rank among m others'. So it is at most the
:math:`\lceil c\,(m + 1) \rceil`-th smallest of these with probability c or more, whatever the noise.

References
----------
.. [1] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman, "Distribution-free predictive inference for
   regression", J. Am. Stat. Assoc. 113, 2018.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def kept_errors(errors: ArrayLike, most: int) -> NDArray[np.float64]:
    """Sorted absolute errors; if more than ``most``, that many quantiles instead, each rounded up to an error."""
    ranked = np.sort(np.abs(np.asarray(errors, dtype=np.float64)))
    if len(ranked) <= most:
        return ranked
    steps = np.arange(1, most + 1) / (most + 1)
    return np.asarray(ranked[np.minimum(np.ceil(steps * (len(ranked) + 1)).astype(np.intp), len(ranked)) - 1])


def reach(errors: Sequence[float] | NDArray[np.float64], confidence: float) -> float:
    """Half of the width of an interval that holds a new row with this probability; infinite of too few errors."""
    place = int(np.ceil((len(errors) + 1) * confidence)) - 1
    return float(errors[place]) if place < len(errors) else np.inf

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
from dataclasses import dataclass
from functools import cached_property
from typing import Final

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


ROWS_OF_A_BIN: Final = 50  # their mean absolute error has a relative standard error of about a tenth
MOST_BINS: Final = 20


@dataclass(frozen=True, eq=False)
class LocalErrors:
    """Errors of rows left out, whose size follows the predicted value: in bins of equally many rows, then linear.

    Parameters
    ----------
    predicted, errors : ndarray of shape (m,)
        Predictions of rows that had not been seen, and their errors; fewer than 100 rows make one bin.

    Examples
    --------
    Errors of large values are twice as large; half of them are below their mean there:

    >>> predicted = np.repeat([1.0, 2.0], 500)
    >>> errors = np.tile(np.linspace(-1, 1, 500), 2) * predicted
    >>> LocalErrors(predicted, errors).reach(np.array([1.0, 2.0]), 0.5).round(2).tolist()
    [0.5, 1.0]
    """

    predicted: NDArray[np.float64]
    errors: NDArray[np.float64]

    @cached_property
    def knots(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predicted values of the bins, and their mean absolute errors over that of all rows, which counts as a row."""
        sizes = np.abs(self.errors)
        sizes = sizes / (sizes.max() or 1.0)  # sums of errors of any size are then numbers
        sizes = sizes / sizes.mean() if sizes.any() else sizes + 1
        n_bins = min(MOST_BINS, max(1, len(sizes) // ROWS_OF_A_BIN)) if np.ptp(self.predicted) else 1
        bins = np.array_split(self.predicted.argsort(kind="stable"), n_bins)
        means = [(sizes[rows].sum() + 1) / (len(rows) + 1) for rows in bins]
        return np.array([np.median(self.predicted[rows]) for rows in bins]), np.array(means)

    def shape(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean absolute errors where these values (m',) are predicted, over that of all rows."""
        return np.interp(values, *self.knots)

    def reach(self, values: NDArray[np.float64], confidence: float, *, least: float = 0.0) -> NDArray[np.float64]:
        """Half widths (m',) of intervals about predicted values that hold new rows with this probability.

        Infinite of too few rows, or else at least ``least`` times the shape.
        """
        width = reach(np.sort(np.abs(self.errors) / self.shape(self.predicted)), confidence)
        return np.full(len(values), np.inf) if np.isinf(width) else max(width, least) * self.shape(values)

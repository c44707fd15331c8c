r"""Rows :math:`\sum_f r_f v_f \ge b + \theta` in a form that a solver with tolerances can be trusted with.

HiGHS accepts a point that misses a row by 1e-6 or so, and drops coefficients below 1e-9. Neither may cut off a true
point:

- *whole rows*: all numbers are multiples of one step, and at most ``2**18`` steps make up their sum; divided by the
  step they are integers, exactly. "Active" is then "at least 1", and a miss by 1e-6 (of the sum) changes no decision.
- *fine rows*: anything else, scaled by a power of two to a common size. "Active" is then "at least the least value
  above 0", where the values of a row can be listed (:mod:`sparsact.certificate.thresholds`), else "at least 0": never
  too strict, so that the bound is one still, but points at a tie may pass.

Coefficients too small for HiGHS leave a fine row, and every threshold is lowered by what that and the rounding of sums
can amount to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.certificate.thresholds import nearest_values
from sparsact.exact_sign import Weights, grids

WHOLE_AT_MOST = 18  # log2 of the steps in a whole row: times 1e-6 it must stay below 1
FINE = 10  # log2 of the sum of magnitudes in a fine row
DROPPED = 1e-8


@dataclass(frozen=True, eq=False)
class ConstraintRows:
    """Scaled rows: where a row is met, ``weights @ v - b >= threshold``; ``error`` bounds how far that is off."""

    weights: NDArray[np.float64]  # (q, F)
    b: NDArray[np.float64]
    threshold: NDArray[np.float64]
    error: NDArray[np.float64]


def scaled_rows(
    reduced: NDArray[np.float64], counts: NDArray[np.int64], W: Weights, b: NDArray[np.float64], *, strict: bool
) -> ConstraintRows:
    """Rows over the features of a reduction, each scaled by a power of two of its own, which rounds nothing.

    ``reduced`` (q, F) and ``counts`` (F,) are the reduction of ``W`` (q, n). A row is met where its value is above
    ``b`` (``strict``) or at least ``b``.
    """
    lowest, span = grids(W, b)
    whole = span - lowest <= WHOLE_AT_MOST
    shift = np.where(whole, -lowest, FINE - span)
    weights, b_scaled = np.ldexp(reduced, shift[:, None]), np.ldexp(b, shift)
    rounding = 8 * (W.shape[1] + 4) * np.finfo(np.float64).eps * 2.0**FINE  # features are sums: they may have rounded
    error = np.where(whole, 0.0, rounding)
    small = (np.abs(weights) < DROPPED) & ~whole[:, None]
    error += np.where(small, np.abs(weights), 0.0) @ counts
    threshold = np.full(len(b), float(strict))
    fine = np.flatnonzero(~whole)
    threshold[fine] = np.ldexp(nearest_values(W[fine], b[fine], strict=strict)[0], shift[fine])
    return ConstraintRows(np.where(small, 0.0, weights), b_scaled, threshold - error, error)

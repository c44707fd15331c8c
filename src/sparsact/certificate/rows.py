r"""Rows :math:`\sum_f r_f v_f \ge b + \theta` in a form that a solver with tolerances can be trusted with.

HiGHS accepts a point that misses a row by 1e-6 or so, and drops coefficients below 1e-9. Neither may cut off a true point:

- *whole rows*: all numbers are multiples of one step, and few thousand steps make up their sum; divided by the step they
  are integers, exactly. "Active" is then "at least 1", and a miss by 1e-6 changes no decision.
- *fine rows*: anything else. Scaled by a power of two to a common size; coefficients too small for HiGHS leave the row,
  and ``slack`` is what that and the rounding of sums can amount to. "Active" is then "above 0 - slack": never too
  strict, so that the bound is one still, but points at a tie may pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WHOLE_AT_MOST = 18  # log2 of the steps in a whole row: times 1e-6 it must stay below 1
FINE = 10  # log2 of the sum of magnitudes in a fine row
DROPPED = 1e-8


@dataclass(frozen=True, eq=False)
class Rows:
    """Scaled rows: active where ``weights @ v - b >= 1 - slack`` (whole) or ``>= -slack`` (fine)."""

    weights: NDArray[np.float64]  # (q, F)
    b: NDArray[np.float64]
    slack: NDArray[np.float64]
    whole: NDArray[np.bool_]


def scaled_rows(
    weights: NDArray[np.float64],
    counts: NDArray[np.int64],
    b: NDArray[np.float64],
    grid: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Rows:
    """Rows over the features of a reduction, each scaled by a power of two of its own (so, without rounding).

    ``grid`` is that of the units on all their inputs (:func:`sparsact.exact_sign.grids`).
    """
    lowest, span = grid
    whole = span - lowest <= WHOLE_AT_MOST
    shift = np.where(whole, -lowest, FINE - span)
    weights, b = np.ldexp(weights, shift[:, None]), np.ldexp(b, shift)
    total = np.abs(weights) @ counts + np.abs(b)
    error = np.where(span - lowest <= 52, 0.0, 8 * (counts.sum() + 4) * np.finfo(np.float64).eps * total)
    small = (np.abs(weights) < DROPPED) & ~whole[:, None]
    error = error + np.where(small, np.abs(weights), 0.0) @ counts
    weights = np.where(small, 0.0, weights)
    return Rows(weights, b, error, whole)

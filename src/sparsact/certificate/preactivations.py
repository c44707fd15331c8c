r"""Pre-activations nearest to 0, listed without rounding, and rows scaled for a solver with tolerances.

HiGHS accepts a point that misses a row by 1e-6 or so, and drops coefficients below 1e-9. Neither may cut off a true
point:

- *whole rows*: all numbers are multiples of one step, and at most ``2**18`` steps make up their sum; divided by the
  step they are integers, exactly. "Active" is then "at least 1", and a miss by 1e-6 (of the sum) changes no decision.
- *fine rows*: anything else, scaled by a power of two to a common size. "Active" is then "at least the least value
  above 0", where the values of a row can be listed, else "at least 0": never
  too strict, so that the bound is one still, but points at a tie may pass.

Coefficients too small for HiGHS leave a fine row, and every threshold is lowered by what that and the rounding of sums
can amount to.

*Ties.* A unit whose weights have few distinct magnitudes takes few values on the cube. Between the least value above 0
and the most that is not, any threshold decides the same points; one halfway decides them in spite of rounding. So
networks with weights such as 0.1 or 1 / sqrt(3) are decided as fast as networks with integer weights, ties and all.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.exact_sign import Weights, dense, grids
from sparsact.kernels.enumeration import ROUNDING_STEPS
from sparsact.network import SparselyActivatedNetwork

MOST_VALUES: Final = 2**14
MOST_DIGITS: Final = 1000  # of the sums, in binary, and of their size: beyond, a listed value may be no float64


def separated(
    network: SparselyActivatedNetwork, most_values: int = MOST_VALUES
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Thresholds that decide the same points of the cube as the network's, and the rounding to fear at each, (s,) both.

    A unit has nothing to fear (0) when its sums are exact, or its threshold could be moved away from all its values.
    """
    total = np.asarray(abs(network.W).sum(axis=1)) + np.abs(network.b)
    steps = max(ROUNDING_STEPS, 4 * (network.n + 2))  # of the kernel; of a sum over features, which are sums themselves
    fear = np.where(network.has_exact_weights(), 0.0, steps * np.finfo(np.float64).eps * total)
    unsure = np.flatnonzero(fear)
    b = network.b.copy()
    above, below = nearest_values(network.W[unsure], network.b[unsure], strict=True, most_values=most_values)
    apart = (above - below) / 2 > 2 * fear[unsure]
    b[unsure[apart]] += (above + below)[apart] / 2
    fear[unsure[apart]] = 0.0
    return b, fear


def nearest_values(
    W: Weights, b: NDArray[np.float64], *, strict: bool, most_values: int = MOST_VALUES
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""The least value of :math:`\langle w, x \rangle - b` on the cube that meets its row, and the most that does not.

    A row is met above 0 (``strict``) or from 0 on. Both (q,), rounded once to float64; out of reach where there is no
    such value, and 0 where a row may take more than ``most_values`` values, or too long ones.
    """
    above, below = np.zeros(len(b)), np.zeros(len(b))
    for j, (step, span) in enumerate(np.stack(grids(W, b), axis=1).tolist()):
        if max(span, span - step) > MOST_DIGITS:
            continue
        row = dense(W[[j]])[0]
        magnitudes = Counter(_in_steps(x, step) for x in np.abs(row[row != 0]).tolist())
        if prod(count + 1 for count in magnitudes.values()) > most_values:
            continue
        values = {-_in_steps(b[j], step)}
        for magnitude, count in magnitudes.items():
            values = {value + magnitude * (count - 2 * t) for value in values for t in range(count + 1)}
        met = {value for value in values if value > 0 or (value == 0 and not strict)}
        beyond = 2 + 2 * max(map(abs, values))
        above[j] = np.ldexp(float(min(met, default=beyond)), step)
        below[j] = np.ldexp(float(max(values - met, default=-beyond)), step)
    return above, below


def _in_steps(x: float, step: int) -> int:
    """The integer ``x / 2**step``."""
    numerator, denominator = float(x).as_integer_ratio()
    return (numerator << -step) // denominator if step < 0 else numerator >> step


WHOLE_AT_MOST: Final = 18  # log2 of the steps in a whole row: times 1e-6 it must stay below 1
FINE: Final = 10  # log2 of the sum of magnitudes in a fine row
DROPPED: Final = 1e-8


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

r"""The least pre-activation that counts as active: :math:`\min \{ z_j(x) : z_j(x) > 0 \}`, exactly.

A unit whose weights have few distinct magnitudes takes few values on the cube, and they can all be listed without
rounding. "Above 0" is then "at least so much", which a solver with tolerances can tell from a tie.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sparsact.exact_sign import Weights

MOST_VALUES = 2**12


def least_values(
    W: Weights, b: NDArray[np.float64], lowest: NDArray[np.int64], shift: NDArray[np.int64], *, strict: bool
) -> NDArray[np.float64]:
    """A lower bound, times ``2**shift``, on the values above 0 (``strict``) or from 0 on that each row takes, (q,).

    0 where a row takes too many values to list; more than it can reach where it has none. ``2**lowest`` divides each
    number of a row. The conversion to float64 may round, by less than an eps of the value.
    """
    found = np.zeros(len(b))
    for j, step in enumerate(lowest.tolist()):
        row = W[[j]].toarray()[0] if isinstance(W, sp.csr_array) else W[j]
        magnitudes = Counter(_in_steps(x, step) for x in np.abs(row[row != 0]).tolist())
        sums = {-_in_steps(b[j], step)}
        for magnitude, count in magnitudes.items():
            sums = {value + magnitude * (count - 2 * t) for value in sums for t in range(count + 1)}
            if len(sums) > MOST_VALUES:
                break
        else:
            beyond = [value for value in sums if value > 0 or (value == 0 and not strict)]
            out_of_reach = 2 + 2 * max(map(abs, sums))
            found[j] = np.ldexp(float(min(beyond, default=out_of_reach)), step + int(shift[j]))
    return found


def _in_steps(x: float, step: int) -> int:
    """The integer ``x / 2**step``."""
    numerator, denominator = float(x).as_integer_ratio()
    exact = numerator << -step if step < 0 else numerator >> step
    return exact // denominator if step < 0 else exact

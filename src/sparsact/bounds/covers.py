r"""How many sets and functions the units of a network make on m points, up to a distance: what union bounds run over.

References
----------
.. [C] T. Cover, "Geometrical and statistical properties of systems of linear inequalities", 1965, Theorem 1.
.. [K] Z. Sidak, "Rectangular confidence regions for the means of multivariate normal distributions", 1967.
.. [Z] T. Zhang, "Covering number bounds of certain regularized linear function classes", 2002.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc, logsumexp

_MOST_TERMS: Final = 10**6
_TAUS: Final = np.geomspace(0.05, 40, 400)  # each of them gives a bound


def log_halfspace_sets(n: int, m: int) -> float:
    r"""Natural logarithm of :math:`2 \sum_{i \le n} \binom{m-1}{i} \le 2^m`, or, for large n, a little more."""
    if m - 1 <= n:
        return m * log(2)
    if n > _MOST_TERMS:  # no such sum exceeds (e (m - 1) / n)**n
        return min(m * log(2), n * (1 + log((m - 1) / n)) + log(2))
    i = np.arange(1, n + 1, dtype=np.float64)
    logarithms = np.concatenate([[0.0], np.cumsum(np.log((m - i) / i))])
    return min(m * log(2), float(logsumexp(logarithms)) + log(2))


def log_cover(m: int, widths: NDArray[np.float64], n: int | None) -> NDArray[np.float64]:
    r"""Logarithms of how many functions on m points come within half of each width of all units of scale WR + B = 1.

    For every :math:`\tau`, :math:`8 \tau^2 / \text{width}^2 - m \ln \operatorname{erf}(\tau / \sqrt 2)`, a form of [Z]_
    by [K]_ with its constants; with n given, the number of balls in n + 1 dimensions where that is less.
    """
    log_inside = np.log1p(-erfc(_TAUS / sqrt(2)))
    with np.errstate(over="ignore", divide="ignore"):  # infinitely many at no width
        entropy: NDArray[np.float64] = (8 * np.outer(widths**-2.0, _TAUS**2) - m * log_inside).min(axis=1)
        return entropy if n is None else np.minimum(entropy, log_balls(n, widths))


def log_balls(n: int, widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for inputs of n dimensions, by balls in n + 1 dimensions: for units of all scales with WR + B = 1."""
    return np.asarray((n + 1) * np.log1p(4 / widths))

r"""Sparsity generalises: the mean number of active units on fresh rows, from a sample, for every network at once.

Let :math:`z(x) = \langle w, x \rangle - b` be a unit with :math:`a = \|w\| R + |b|`, on rows of norm at most R that are
drawn independently from any distribution. Let Y be how many of m rows have :math:`z > -\gamma a`, and q the probability
that z > 0 at a fresh row. With probability :math:`1 - \delta` over the rows, for all units at once,

.. math:: mq \le \alpha Y + 1 + \log_g \frac{2N}{\delta}, \qquad g + g^{-\alpha} = 2, \quad g > 1,

where N functions on 2m points come within :math:`\gamma/2` of every unit with a = 1, at all points. Any network is
bounded by the sum over its units, also one that was chosen after seeing the rows. For :math:`\alpha = 2`, g is the
golden ratio. Weights to :math:`0.9\, \gamma/2` and thresholds to a tenth of it make :math:`\ln N \le 20 \ln(4m) /
\gamma^2 + \ln(2 + 40/\gamma)`, without the dimension; if W and B are fixed beforehand and a = WR + B,
:math:`16 \ln(4m) / \gamma^2 + \ln 2`.

The proof stands in the documentation ("Exact degrees and fast rates for sparsely activated networks", Section 7): m
further rows, a fair coin that swaps the i-th rows of both samples, and Markov's inequality for a power of g.

Without a margin N counts the sets that halfspaces cut from 2m points; then R is not needed, and any real rows may come.
Margins of inactive units also serve [M]_, who bound the generalisation of deep networks by them.

References
----------
.. [M] R. Muthukumar and J. Sulam, "Sparsity-aware generalization theory for deep neural networks", 2023.
"""

from __future__ import annotations

from math import exp, frexp, log
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from sparsact.bounds.covers import log_balls, log_cover, log_halfspace_sets
from sparsact.bounds.registry import bound
from sparsact.network import PREACTIVATIONS_AT_ONCE, SparselyActivatedNetwork
from sparsact.validation.arrays import check_norms, checked_columns
from sparsact.validation.parameters import check_named

_FACTORS: Final = (16.0, 4.0, 2.0, 1.5, 1.25, 1.125, 1.0625)  # alpha; each has its share of delta
_MARGINS: Final[NDArray[np.float64]] = np.array([2.0**-i for i in range(1, 7)])  # the next takes millions of rows
_OF_WEIGHTS: Final = 0.9  # share of the distance to the cover
_FAR: Final = 2**12  # beyond every exponent of a float
_ROUNDING: Final = 1e-9  # of a, far above the rounding error of a pre-activation


def log_growth(alpha: float) -> float:
    r"""The positive :math:`\ln g` with :math:`g + g^{-\alpha} = 2`, for alpha above 1.

    >>> round(exp(log_growth(2.0)), 6)
    1.618034
    """
    least = log(alpha) / (1 + alpha)  # where the sum is least, hence below 2
    return float(brentq(lambda x: exp(x) + exp(-alpha * x) - 2, least, log(2), xtol=1e-15)) * (1 - 1e-12)


@bound("sparsity generalises", None, "sharper", "mean number of active units on fresh rows, at most")
def fresh_activity_bound(s: int, k: int, W: float, B: float, R: float, gamma: float, m: int, delta: float) -> float:
    r"""Upper bound on the mean number of active units on fresh rows, if on average k exceed :math:`-\gamma` on m rows.

    .. math:: 2k + \frac sm \Big( 1 + 2.08 \ln \frac{2N}{\delta} \Big), \qquad
              \ln N \le \frac{16\, (WR + B)^2 \ln(4m)}{\gamma^2} + \ln 2

    *Sharper, proved* (:mod:`sparsact.bounds.fresh_activity`), for any distribution on points of norm at most R and all
    networks of s units of scale (W, B) at once, with probability 1 - delta over the rows; the units are scaled so that
    :math:`\|u\|_\infty = 1`. The excess falls as 1/m. :func:`expected_active_bound` is the bound of a network and its
    rows. Never above s.

    >>> [round(fresh_activity_bound(64, 1, W=1.0, B=1.0, R=1.0, gamma=1.0, m=m, delta=0.05), 2) for m in (10**5, 10**6)]
    [2.64, 2.08]
    """
    if W * R + B == 0:
        return 0.0
    entropy = float(log_cover(2 * m, np.array([gamma / (W * R + B)]), None)[0])
    return min(float(s), 2 * k + s / m * (1 + (log(2 / delta) + entropy) / log_growth(2.0)))


def expected_active_bound(
    network: SparselyActivatedNetwork, X: ArrayLike, *, R: float | None = None, confidence: float = 0.95
) -> float:
    r"""Upper bound on the mean number of active units on fresh rows, from rows that may have been used for fitting.

    Parameters
    ----------
    network : SparselyActivatedNetwork
        Any network, including one fitted to these rows.
    X : array-like of shape (m, n)
        Rows drawn independently from any one distribution.
    R : float, optional
        Norm that no row of that distribution exceeds, known beforehand: the root of n for signs. With it margins count,
        and the bound can be free of n. Without it only the sets that halfspaces cut from 2m points do.
    confidence : float
        Probability with which the bound holds, over the draw of the rows.

    Returns
    -------
    bound : float
        At most s: the sum over the units of the least that the theorem gives, over margins :math:`2^{-i}` of their
        :math:`\|w\| R + |b|` and over factors alpha. All combinations hold together, each with its share of the doubt.

    Raises
    ------
    ValueError
        If there are no rows, or a row is longer than R.

    Notes
    -----
    Without margins a unit that is off on all rows is on at about :math:`1.44\,(n \ln(2em/n) + 7)/m` of fresh ones, at
    95 %. Costs two products of the rows and the weights.

    Examples
    --------
    A unit that is on at one of 10,000 rows, and may be on at one of 160 others:

    >>> X = np.linspace(-1.0, 1.0, 10_000)[:, None]
    >>> round(expected_active_bound(SparselyActivatedNetwork([1.0], [[1.0]], [0.9999]), X), 4)
    0.003
    """
    check_named(confidence=confidence, **({} if R is None else {"R": R}))
    rows = checked_columns(X, network.n)
    m = len(rows)
    if not m:
        raise ValueError("`X` has no rows; a bound needs rows: pass the rows that were fitted, or new rows.")
    margins = _MARGINS if R is not None else _MARGINS[:0]
    if R is not None:
        check_norms(rows, R)
    entropies = [log_halfspace_sets(network.n, 2 * m), *_log_units(network.n, m, margins)]
    counts = _exceeding(network, rows, R or 0.0, margins)
    doubt = (1 - confidence) / (len(entropies) * len(_FACTORS))
    shares = [
        (alpha * count + 1 + (log(2 / doubt) + entropy) / log_growth(alpha)) / m
        for count, entropy in zip(counts, entropies, strict=True)
        for alpha in _FACTORS
    ]
    return float(np.minimum(np.min(shares, axis=0), 1.0).sum())


def _log_units(n: int, m: int, margins: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of N for every margin: of covers of weights and thresholds, or of units in n + 1 dimensions."""
    # One cover of both would need the ratio of W to B: weights and thresholds of any units with a = 1 have none.
    free = log_cover(2 * m, _OF_WEIGHTS * margins, None) + np.log1p(2 / ((1 - _OF_WEIGHTS) * margins))
    return np.asarray(np.minimum(free, log_balls(n, margins)))


def _exceeding(
    network: SparselyActivatedNetwork, rows: NDArray[np.float64], R: float, margins: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How many rows switch on each unit, and at how many it exceeds minus each margin: (1 + margins, s)."""
    counts = np.zeros((1 + len(margins), network.s))
    step = max(1, PREACTIVATIONS_AT_ONCE // max(1, network.s))
    blocks = [rows[start : start + step] for start in range(0, len(rows), step)]
    for block in blocks:
        counts[0] += np.count_nonzero(network.active(block), axis=0)
    if len(margins):
        unit, size = frexp(R)
        scaled = _of_size_1(network, size)
        a = np.sqrt(np.asarray((scaled.W * scaled.W).sum(axis=1))) * unit + np.abs(scaled.b)
        for block in blocks:
            z = scaled.preactivations(np.ldexp(block, -size))
            counts[1:] += [np.count_nonzero(z > -(margin + _ROUNDING) * a, axis=0) for margin in margins]
    return counts


def _of_size_1(network: SparselyActivatedNetwork, size: int) -> SparselyActivatedNetwork:
    """The same units on rows divided by ``2**size``, each times the power of two that brings it near 1."""
    W, b = sp.csr_array(network.W), network.b
    largest = np.asarray(abs(W).max(axis=1).toarray()).ravel()
    exponents = np.where(largest > 0, np.frexp(largest)[1] + size, -_FAR)
    exponents = np.maximum(exponents, np.where(b != 0, np.frexp(b)[1], -_FAR))
    W.data = np.ldexp(W.data, np.repeat(size - exponents, np.diff(W.indptr)))
    return SparselyActivatedNetwork(network.u, W, np.ldexp(b, -exponents))

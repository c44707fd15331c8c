r"""Errors bounded by held-out rows, and how many of them a bound takes.

References
----------
.. [W] I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting", 2024.
"""

from __future__ import annotations

from math import ceil, inf, log, log1p
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp

from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import check_named, checked_positive

_BETS: Final = 0.5 ** np.arange(11)  # shares of the capital
_WEIGHTS: Final = 1 / np.arange(1, 12) / (1 / np.arange(1, 12)).sum()  # a third for the first
_POWERS: Final = np.geomspace(0.01, 100, 60)


def held_out_bound(losses: ArrayLike, largest: float, delta: float) -> float:
    r"""Upper bound on the expected loss, from independent held-out losses; it fails with probability at most delta.

    Parameters
    ----------
    losses : array-like of shape (N,)
        Independent, identically distributed, from 0 to ``largest``: losses of a hypothesis on rows not used to fit it.
    largest : float
        Largest possible loss, known before these rows.
    delta : float
        Probability of failure.

    Returns
    -------
    bound : float
        At most ``largest``.

    Raises
    ------
    ValueError
        If a loss is negative or above ``largest``.

    Notes
    -----
    With losses scaled to [0, 1], for every share c in [0, 1] and every candidate mean m,

    .. math:: K_c(m) = \prod_i \Big( 1 - c + c\, \frac{1 - x_i}{1 - m} \Big)

    is not negative, and has mean 1 where m is the expected loss. So has the weighted mean K of 11 shares, and by
    Markov's inequality K reaches :math:`1/\delta` there with probability at most delta. K increases with m: the bound
    is the m with :math:`K(m) = 1/\delta`. It needs no large N, and follows the variance of the losses [W]_; without any
    loss it is about :math:`\text{largest} \cdot \ln(3/\delta) / N`.

    Examples
    --------
    >>> round(held_out_bound([0.0] * 1000, largest=1.0, delta=0.05), 4)
    0.004
    """
    check_named(delta=delta)
    checked_positive(largest, "`largest`")
    x = checked_reals(losses, "`losses`").ravel() / largest
    if x.size and (x.min() < 0 or x.max() > 1 + 1e-9):
        raise ValueError(
            f"`losses` must lie between 0 and `largest` = {largest:g}; they span [{x.min() * largest:.4g}, "
            f"{x.max() * largest:.4g}]. Clip the hypothesis to the range of the targets."
        )
    gains = 1 - np.minimum(x, 1)

    def excess(mean: float) -> float:
        with np.errstate(divide="ignore"):
            capital = [np.log1p(bet * (gains / (1 - mean) - 1)).sum() for bet in _BETS]
        return float(logsumexp(capital, b=_WEIGHTS) + log(delta))

    highest = 1 - 1e-12
    if not gains.any() or excess(highest) <= 0:
        return float(largest)
    return float(largest * brentq(excess, min(1 - gains.mean(), highest), highest, xtol=1e-12, rtol=1e-9))


def held_out_rows(error: float, epsilon: float, largest: float, delta: float, failure: float) -> float:
    r"""Rows with which :func:`held_out_bound` is at most epsilon, except with probability ``failure``.

    Parameters
    ----------
    error, epsilon : float
        Largest expected loss, and target value of the bound. Infinite unless ``error < epsilon``.
    largest : float
        Largest possible loss.
    delta, failure : float
        Probability that the bound fails, and that it is larger than epsilon.

    Returns
    -------
    rows : float
        A whole number, or infinity.

    Notes
    -----
    *Proved.* With :math:`f(x) = 1 - c + c (1 - x) / (1 - \epsilon)`, scaled to losses in [0, 1], the bound exceeds
    epsilon only if :math:`\prod_i f(x_i)^{-r} > (w \delta)^r`, w being the weight of c. As :math:`f^{-r}` is convex,
    its mean is at most that of losses 0 and 1 with the same mean; Markov's inequality bounds the probability, and the
    least over c and :math:`r > 0` is taken. About :math:`\text{largest} / \epsilon` times a logarithm where ``error``
    is a share of epsilon, as in Lemma 7.

    Examples
    --------
    >>> held_out_rows(0.01, 0.05, largest=1.0, delta=0.05, failure=0.05)
    499.0
    """
    check_named(epsilon=epsilon, delta=delta)
    check_named(delta=failure)
    if epsilon >= largest:
        return 1.0
    p, q = error / largest, epsilon / largest
    if not p < q:
        return inf
    powers = _POWERS[:, None]
    log_won, log_lost = np.log1p(_BETS[1:] * q / (1 - q)), np.log1p(-_BETS[1:])
    log_mean = np.logaddexp(log1p(-p) - powers * log_won, (log(p) if p > 0 else -inf) - powers * log_lost)
    with np.errstate(divide="ignore", over="ignore"):
        rows: NDArray[np.float64] = (-log(failure) - powers * np.log(_WEIGHTS[1:] * delta)) / -log_mean
    sure = -log(_WEIGHTS[0] * delta) / -log1p(-q) if p == 0 else inf  # all capital on losses of 0
    found = min(float(rows[log_mean < 0].min(initial=inf)), sure)
    return float(ceil(found)) if found < inf else inf

"""Upper bounds of a mean that hold with a stated confidence at any sample size."""

from __future__ import annotations

from math import log, sqrt

from sparsact.bounds.parameters import check
from sparsact.fourier import Estimate


def upper_confidence_bound(estimate: Estimate, spread: float, confidence: float = 0.95) -> float:
    r"""Number that the mean of bounded samples exceeds with probability at most ``1 - confidence``.

    .. math:: \bar q + \sqrt{\frac{2 V \ln(2/\delta)}{N}} + \frac{7\, \text{spread} \ln(2/\delta)}{3 (N - 1)},
              \qquad \delta = 1 - \text{confidence}

    Parameters
    ----------
    estimate : Estimate
        Mean of N samples, with its standard error :math:`\sqrt{V/N}`; a single number.
    spread : float
        Length of an interval in which every sample lies.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    bound : float
        Above the mean, with that confidence.

    Raises
    ------
    ValueError
        If there are fewer than two samples, or a parameter is out of range.

    Notes
    -----
    The empirical Bernstein bound [1]_. Unlike Hoeffding's (:meth:`~sparsact.fourier.Estimate.bounded_interval`) its
    width follows the samples' own variance, and unlike the normal interval it needs no large N.

    References
    ----------
    .. [1] A. Maurer and M. Pontil, "Empirical Bernstein bounds and sample variance penalization", 2009, Theorem 4.

    Examples
    --------
    >>> round(upper_confidence_bound(Estimate(0.5, 0.0, 1001), spread=1.0), 4)
    0.5086
    """
    check(confidence=confidence, spread=spread)
    if estimate.n_samples < 2:
        raise ValueError(f"the variance of samples shows from 2 on; `estimate` is of {estimate.n_samples}.")
    logarithm = log(2 / (1 - confidence))
    return float(
        estimate.value
        + sqrt(2 * logarithm) * estimate.standard_error
        + 7 * spread * logarithm / (3 * (estimate.n_samples - 1))
    )

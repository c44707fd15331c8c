r"""A mean of independent samples with its standard error.

References
----------
.. [H] W. Hoeffding, "Probability inequalities for sums of bounded random variables", 1963, Theorem 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.validation.parameters import checked_number, checked_positive, checked_probability


@dataclass(frozen=True, eq=False)
class Estimate:
    """Mean of ``n_samples`` independent samples with its standard error: numbers, or arrays of one shape.

    Examples
    --------
    >>> low, high = Estimate(value=10.0, standard_error=1.0, n_samples=400).interval(0.95)
    >>> round(low, 2), round(high, 2)
    (8.04, 11.96)
    """

    value: Any
    standard_error: Any
    n_samples: int

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Two-sided interval from the normal approximation to the mean.

        Good when many samples differ. It has no width when all of them are equal, as for an event too rare to occur
        among them: :meth:`bounded_interval` then still holds.
        """
        half = NormalDist().inv_cdf((1 + checked_probability(confidence, "`confidence`")) / 2) * self.standard_error
        return self.value - half, self.value + half

    def bounded_interval(self, spread: float, confidence: float = 0.95) -> tuple[Any, Any]:
        r"""Two-sided interval that holds at any sample size, by Hoeffding's inequality [H]_.

        .. math:: \text{half-width} = \text{spread} \sqrt{\ln(2 / (1 - \text{confidence})) / (2\, n_\text{samples})}

        Parameters
        ----------
        spread : float
            Length of an interval in which every sample lies. For a function with values +-1: 1 for an influence or a
            noise sensitivity, 2 for a coefficient, n for the average sensitivity.
        confidence : float
            Minimum probability for each number (not for all numbers of an array at once) to lie in its interval.
        """
        doubt = 1 - checked_probability(confidence, "`confidence`")
        half = checked_number(spread, "`spread`") * sqrt(log(2 / doubt) / (2 * self.n_samples))
        return self.value - half, self.value + half

    def pooled(self, other: Estimate) -> Estimate:
        """The estimate from the samples of both, which must be independent."""
        if np.shape(self.value) != np.shape(other.value):
            raise ValueError(
                f"estimates of one thing are pooled; these have shapes {np.shape(self.value)} and "
                f"{np.shape(other.value)}."
            )
        return _of_moments(*_merged(self._moments(), other._moments()))

    def _moments(self) -> Moments:
        return self.n_samples, self.value, np.square(self.standard_error) * self.n_samples * (self.n_samples - 1)


Moments = tuple[int, Any, Any]
"""Count, mean, and sum of squared distances from the mean."""


def mean_of(batches: Iterable[NDArray[Any]]) -> Estimate:
    """Mean and standard error over the rows of all batches."""
    moments: Moments = (0, np.float64(0.0), np.float64(0.0))
    for batch in batches:
        mean = batch.mean(axis=0)
        moments = _merged(moments, (len(batch), mean, ((batch - mean) ** 2).sum(axis=0)))
    return _of_moments(*moments)


def estimate_within(
    relative_error: float, estimate: Callable[[int], Estimate], *, n_samples: int = 256, most: int = 2**20
) -> Estimate:
    r"""An estimate from a sample that is doubled until its standard error is small compared with its value.

    Parameters
    ----------
    relative_error : float
        Wanted standard error, as a share of the value; of an array, the norms of both are compared.
    estimate : callable
        Takes a number of samples, returns an estimate from that many new ones.
    n_samples, most : int
        Size of the first sample, at least 2, and maximum size of all (the first may exceed it). If the goal is missed,
        the standard error shows it.

    Returns
    -------
    estimate : Estimate
        From all samples.

    Notes
    -----
    The size of the sample depends on the samples: a run that happens to show little spread stops early. Hence the value
    is not exactly unbiased, and an interval covers the truth a little less often than it states; the more so, the
    smaller the first sample. Where that matters, draw ``n_samples`` of the result again and keep only these. A value
    of 0 never counts as precise: rare events may not have occurred yet.

    Examples
    --------
    >>> from sparsact.fourier import estimate_average_sensitivity
    >>> rng, f = np.random.default_rng(0), lambda X: np.sign(X.sum(axis=1))
    >>> found = estimate_within(0.02, lambda m: estimate_average_sensitivity(f, 101, n_samples=m, rng=rng))
    >>> bool(found.standard_error <= 0.02 * found.value)
    True
    """
    checked_positive(relative_error, "`relative_error`")
    found = estimate(n_samples)
    while found.n_samples + 1 < most:  # one sample has no standard error
        size = float(np.linalg.norm(found.value))
        if size > 0 and float(np.linalg.norm(found.standard_error)) <= relative_error * size:
            break
        found = found.pooled(estimate(min(found.n_samples, most - found.n_samples)))
    return found


def _merged(one: Moments, other: Moments) -> Moments:
    """Moments of two samples together, by the update of Chan, Golub and LeVeque."""
    count, step = one[0] + other[0], other[1] - one[1]
    mean = one[1] + step * (other[0] / count)
    return count, mean, one[2] + other[2] + step**2 * (one[0] * other[0] / count)


def _of_moments(count: int, mean: NDArray[Any] | float, squares: NDArray[Any] | float) -> Estimate:
    error = np.sqrt(squares / (count - 1) / count)
    return Estimate(mean, error, count) if np.ndim(mean) else Estimate(float(mean), float(error), count)

"""Estimate the number of buckets, seen and unseen, from the counts of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from sparsact.validation.arrays import checked_reals
from sparsact.validation.parameters import checked_share

FREQUENT: Final = 3.0  # counts above (this many roots of the row number) are taken at their face value
GRID: Final = 1.1
SLACK: Final = 0.5  # deviations, in standard ones, that a histogram may have above the least


def unseen_mass(counts: NDArray[np.int64]) -> float:
    """Probability that the next input falls into a bucket not seen yet: singletons over rows (Good, 1953).

    >>> unseen_mass(np.array([1, 1, 2]))
    0.5
    """
    total = int(counts.sum())
    return float(np.count_nonzero(counts == 1) / total) if total else 1.0


@dataclass(frozen=True)
class SupportEstimate:
    """Number of buckets of noticeable probability.

    Attributes
    ----------
    seen : int
        Buckets in the sample.
    chao : float
        :math:`S + f_1 (f_1 - 1) / (2 (f_2 + 1))`, a lower bound in expectation (Chao, 1984; bias-corrected).
    valiant : float
        The linear programs of Valiant and Valiant: the fewest buckets that explain the counts.
    unseen_mass : float
        Probability of all buckets not seen.

    Examples
    --------
    A hundred rows in ten buckets of ten leave nothing unseen:

    >>> found = estimate_support([10] * 10)
    >>> found.seen, found.chao, found.unseen_mass
    (10, 10.0, 0.0)
    """

    seen: int
    chao: float
    valiant: float
    unseen_mass: float


def estimate_support(counts: ArrayLike, least_probability: float | None = None) -> SupportEstimate:
    r"""Number of buckets with probability of at least ``least_probability``, from the counts of a sample.

    The proof of Theorem C.1 keeps only buckets of a least volume, and finds how many there are by the "approximate
    support estimation" of [1]_, whose linear programs these are: the histogram of probabilities that best explains how
    many buckets were met once, twice, ... in a sample of n rows, each met Poisson(n p) times.

    Parameters
    ----------
    counts : array-like of shape (S,)
        Rows in each bucket met, whole numbers from 1.
    least_probability : float, optional
        Default 1 / (n ln n): n rows say nothing about rarer buckets.

    Returns
    -------
    found : SupportEstimate
        Buckets seen, and an estimate of all.

    Raises
    ------
    ValueError
        If a count is not a positive whole number, or the probability is not in (0, 1].

    Notes
    -----
    Mean and spread of a fingerprint entry are about its size, so deviations are weighed by :math:`1/\sqrt{F_i + 1}`.
    Costs two linear programs of about a hundred variables, whatever the sample.

    References
    ----------
    .. [1] G. Valiant, P. Valiant, "Estimating the unseen", STOC 2011; Algorithm 1 of their 2013 sequel.

    Examples
    --------
    A thousand equally likely buckets, met 2,000 times in all:

    >>> rng = np.random.default_rng(0)
    >>> met = np.bincount(rng.integers(0, 1000, 2000), minlength=1000)
    >>> estimate = estimate_support(met[met > 0])
    >>> bool(estimate.seen < 900), bool(abs(estimate.valiant - 1000) < 100)
    (True, True)
    """
    met = checked_reals(counts, "`counts`")
    if met.ndim != 1 or not len(met) or (met < 1).any() or (met != np.floor(met)).any():
        raise ValueError("`counts` must hold the whole number of rows, at least 1, in each bucket that holds rows.")
    n = float(met.sum())
    least = 1.0 / (n * max(1.0, np.log(n))) if least_probability is None else float(least_probability)
    checked_share(least, "`least_probability`")
    ones, twos = int((met == 1).sum()), int((met == 2).sum())
    chao = len(met) + ones * (ones - 1) / (2 * (twos + 1))
    return SupportEstimate(len(met), float(chao), _by_linear_program(met, n, least), unseen_mass(met.astype(np.int64)))


def _by_linear_program(met: NDArray[np.float64], n: float, least: float) -> float:
    from scipy.stats import poisson  # slow to import, and seldom needed

    frequent = met > FREQUENT * np.sqrt(n)
    rare = met[~frequent]
    if not len(rare):
        return float(len(met))
    highest = int(rare.max())
    fingerprint = np.bincount(rare.astype(np.int64), minlength=highest + 1)[1:].astype(np.float64)
    top = (highest + 3 * np.sqrt(highest) + 1) / n
    probabilities = least * GRID ** np.arange(int(np.ceil(np.log(max(top / least, 1.0)) / np.log(GRID))) + 1)
    times = np.arange(1, highest + 1)
    expected = poisson.pmf(times[:, None], n * probabilities[None])
    size, width = len(probabilities), len(fingerprint)
    weigh = 1.0 / np.sqrt(fingerprint + 1.0)
    objective = np.concatenate([np.zeros(size), weigh, weigh])
    # expected @ h + above - below = fingerprint, and the probabilities of rare buckets sum to their share of the rows
    equal = np.vstack(
        [np.hstack([expected, np.eye(width), -np.eye(width)]), np.concatenate([probabilities, np.zeros(2 * width)])]
    )
    right = np.concatenate([fingerprint, [rare.sum() / n]])
    solve: Any = linprog  # its type hints are narrower than what it takes
    closest = solve(objective, A_eq=equal, b_eq=right, bounds=(0, None), method="highs")
    if closest.x is None:  # the share of the rows cannot be met on the grid
        return float(len(met))
    # Many histograms explain the counts about as well; the one with the fewest buckets claims least.
    fewest = np.concatenate([np.ones(size), np.zeros(2 * width)])
    near = solve(fewest, objective[None], [closest.fun + SLACK], equal, right, bounds=(0, None), method="highs")
    chosen = closest if near.x is None else near
    return float(np.count_nonzero(frequent) + chosen.x[:size].sum())

"""An estimate with its uncertainty, from a few independent repetitions (seeds).

Intervals have the confidence :data:`CONFIDENCE`, or another within :func:`confidence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy import special  # scipy.stats takes a second to import, in each worker

from sparsact_papers.results import MissingRowsError

CONFIDENCE: Final = 0.95


@dataclass
class Level:
    """The confidence of the intervals made under it, and how many of these were estimates."""

    confidence: float = CONFIDENCE
    n_estimates: int = 0


_LEVEL: Final[ContextVar[Level]] = ContextVar("level")


def _level() -> Level:
    return _LEVEL.get(Level())


@contextmanager
def confidence(level: float) -> Iterator[Level]:
    """Intervals made within have another confidence; the value counts them.

    >>> with confidence(0.999):
    ...     print(mean_of([1.0, 2.0, 3.0]))
    2 [−16.2, 20.2]
    """
    within = Level(level)
    token = _LEVEL.set(within)
    try:
        yield within
    finally:
        _LEVEL.reset(token)


def tail() -> float:
    """Probability on either side of an estimate's interval, which this call counts."""
    level = _level()
    level.n_estimates += 1
    return (1 - level.confidence) / 2


def percent() -> str:
    """What an interval is called, by its confidence."""
    return f"{100 * _level().confidence:.6g} % interval"


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval that it lies in, from ``n`` repetitions; ``kind`` says in words what the limits are.

    They are ``exact`` if they are values that occurred, so that one beyond a bound refutes it, and not an estimate's.
    ``floor`` is the half-width that would be left after endlessly many repetitions.
    """

    estimate: float
    low: float
    high: float
    n: int
    kind: str
    exact: bool = field(default=False, repr=False)
    floor: float = field(default=0.0, repr=False)

    def __str__(self) -> str:
        return f"{self.estimate:.3g} [{self.low:.3g}, {self.high:.3g}]".replace("-", "−")


def mean_of(values: ArrayLike) -> Interval:
    """The mean of independent repetitions with Student's 95 % interval; infinite with fewer than two.

    Parameters
    ----------
    values : array-like of shape (n,)
        One a repetition.

    Returns
    -------
    interval : Interval

    Examples
    --------
    >>> mean_of([1.0, 2.0, 3.0]).estimate
    2.0
    """
    sample = _sample(values)
    mean = float(sample.mean())
    if len(sample) < 2:
        return Interval(mean, -np.inf, np.inf, len(sample), f"{percent()} of the mean")
    half = float(special.stdtrit(len(sample) - 1, 1 - tail()) * sample.std(ddof=1) / np.sqrt(len(sample)))
    return Interval(mean, mean - half, mean + half, len(sample), f"{percent()} of the mean")


def normal_of(value: float, standard_error: float) -> Interval:
    """An estimate of known standard error with its 95 % interval, if its error is normal.

    Parameters
    ----------
    value, standard_error : float

    Returns
    -------
    interval : Interval
    """
    half = float(special.ndtri(1 - tail())) * standard_error
    return Interval(value, value - half, value + half, 1, f"{percent()} by the standard error")


def mean_of_splits(values: ArrayLike, held_out: float) -> Interval:
    r"""The mean over random splits of one table, with an interval for tables that might have been drawn in its place.

    Splits share rows, so that their mean varies more from table to table than Student's interval says. If values of two
    splits have the correlation h, the share of test rows that they have in common,

    .. math:: \operatorname{Var}(\bar v) = \Big(\frac 1 J + \frac h {1 - h}\Big) \operatorname{E}[S^2],

    with :math:`S^2` the sample variance over J splits (Nadeau and Bengio, "Inference for the generalization error",
    2003, whose ratio of test to training rows this is where each row is in one of the two).

    Parameters
    ----------
    values : array-like of shape (n,)
        One a split.
    held_out : float
        Share h of the rows on which each split tests.

    Returns
    -------
    interval : Interval
        However many the splits, not narrower than its floor.

    Examples
    --------
    >>> print(mean_of([1.0, 2.0, 3.0]), mean_of_splits([1.0, 2.0, 3.0], 0.25))
    2 [−0.484, 4.48] 2 [−1.51, 5.51]
    """
    plain = mean_of(values)
    if plain.n < 2:
        return plain
    shared = held_out / (1 - held_out)
    half = (plain.high - plain.estimate) * float(np.sqrt(1 + plain.n * shared))
    beyond = (1 - _level().confidence) / 2
    floor = float(special.ndtri(1 - beyond) * _sample(values).std(ddof=1) * np.sqrt(shared))
    kind = f"{percent()} of the mean over splits, corrected for shared rows"
    return Interval(plain.estimate, plain.estimate - half, plain.estimate + half, plain.n, kind, floor=floor)


def median_of(values: ArrayLike) -> Interval:
    """The median with its order-statistic interval, of at least 95 % where there are 6 values or more.

    With fewer the limits are the least and the greatest value, of confidence 1 - 2^(1-n); of one they are infinite, and
    of any number that does not reach a confidence of more than 95 % that was asked for.

    Parameters
    ----------
    values : array-like of shape (n,)
        One a repetition.

    Returns
    -------
    interval : Interval

    Examples
    --------
    >>> median_of(range(9))
    Interval(estimate=4.0, low=1.0, high=7.0, n=9, kind='interval of the median (96 %)')
    """
    sample = np.sort(_sample(values))
    n = len(sample)
    beyond, tails = tail(), special.bdtr(np.arange(n), n, 0.5)
    below = int(np.sum(tails <= beyond))  # how many order statistics may be left out
    if n == 1 or (not below and _level().confidence > CONFIDENCE):
        return Interval(float(np.median(sample)), -np.inf, np.inf, n, "interval of the median")
    below = max(below, 1)
    sure = 1 - 2 * tails[below - 1]
    kind = f"interval of the median ({100 * sure:.0f} %)"
    return Interval(float(np.median(sample)), float(sample[below - 1]), float(sample[n - below]), n, kind)


def range_of(values: ArrayLike) -> Interval:
    """The median with the least and the greatest value, exact: for claims about *every* repetition.

    Parameters
    ----------
    values : array-like of shape (n,)
        One a repetition.

    Returns
    -------
    interval : Interval
    """
    sample = _sample(values)
    least, middle, greatest = (float(np.quantile(sample, share)) for share in (0, 0.5, 1))
    return Interval(middle, least, greatest, len(sample), "least and greatest", exact=True)


def share_of(successes: int, trials: int) -> Interval:
    """The share of successes with the 95 % interval of Clopper and Pearson.

    Parameters
    ----------
    successes, trials : int

    Returns
    -------
    interval : Interval

    Examples
    --------
    >>> print(share_of(9, 10))
    0.9 [0.555, 0.997]
    """
    if not trials:
        raise MissingRowsError("a share needs at least one trial, there is none")
    beyond, misses = tail(), trials - successes
    low = float(special.betaincinv(successes, misses + 1, beyond)) if successes else 0.0
    high = float(special.betaincinv(successes + 1, misses, 1 - beyond)) if misses else 1.0
    return Interval(successes / trials, low, high, trials, f"{percent()} of the share")


def slope_of(curves: Iterable[tuple[Sequence[float], Sequence[float]]]) -> Interval:
    """Slope of log y in log x, fitted to the curve of each repetition alone; the mean of these with its 95 % interval.

    Parameters
    ----------
    curves : iterable of (x, y)
        Positive numbers, a curve a repetition.

    Returns
    -------
    interval : Interval

    Examples
    --------
    >>> slope_of([([1, 2, 4], [1, 4, 16]), ([1, 2, 4], [3, 12, 48])]).estimate
    2.0
    """
    slopes = [float(np.polyfit(np.log(x), np.log(y), 1)[0]) for x, y in curves]
    return mean_of(np.round(slopes, 12))


def _sample(values: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    sample = np.asarray(values, dtype=np.float64).ravel()
    if not len(sample):
        raise MissingRowsError("an interval needs at least one value, there is none")
    return sample

r"""Monte Carlo estimates for a function that can only be called, on any number of coordinates.

A function takes an (m, n) array of signs (float64) and returns m values. Every estimate is the mean of independent
samples with the right expectation, so it is unbiased, and its standard error is that of the mean. Memory is bounded:
the function is called with at most ``batch_size`` rows, by default about four million signs.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 2.1.
.. [H] W. Hoeffding, "Probability inequalities for sums of bounded random variables", 1963, Theorem 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.checks import checked_correlation, checked_reals, checked_subset
from sparsact.hypercube import bits_to_signs, masks_of

Function = Callable[[NDArray[np.float64]], Any]
SIGNS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Estimate:
    """Mean of ``n_samples`` independent samples with its standard error: numbers, or arrays of one shape."""

    value: Any
    standard_error: Any
    n_samples: int

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Two-sided interval from the normal approximation to the mean.

        Good when many samples differ. It has no width when all of them are equal, as for an event too rare to have been
        seen: :meth:`bounded_interval` then still holds.
        """
        half = NormalDist().inv_cdf((1 + _checked_confidence(confidence)) / 2) * self.standard_error
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
            Probability that each number (not all numbers of an array at once) lies in its interval, at least.
        """
        half = spread * sqrt(log(2 / (1 - _checked_confidence(confidence))) / (2 * self.n_samples))
        return self.value - half, self.value + half


def estimate_average_sensitivity(
    f: Function,
    n: int,
    *,
    n_samples: int,
    rng: np.random.Generator,
    n_flips: int = 1,
    batch_size: int | None = None,
) -> Estimate:
    r"""Estimate of the average sensitivity.

    .. math:: \mathrm{AS}(f) = \mathbb{E}_x\, \tfrac14 \sum_i (f(x) - f(x^{\oplus i}))^2

    Each sample draws a point and ``r = n_flips`` distinct coordinates, uniformly, and is
    :math:`\frac{n}{r} \sum_i q_i(x)` over these, where :math:`q_i(x) = \frac14 (f(x) - f(x^{\oplus i}))^2`.

    Parameters
    ----------
    f : callable
        Takes signs (m, n), returns m values.
    n : int
        Number of coordinates.
    n_samples : int
        Number of points, at least 2.
    rng : numpy.random.Generator
        Source of randomness.
    n_flips : int
        Coordinates flipped at each point, from 1 to n; n gives the sensitivity of the point itself.
    batch_size : int, optional
        Most rows in one call of ``f``.

    Notes
    -----
    Costs ``n_samples * (1 + n_flips)`` evaluations. A sample has variance
    :math:`\mathrm{Var}_x[\mathrm{sen}_f(x)] + \frac{n^2}{r} \frac{n - r}{n - 1} \mathbb{E}_x \mathrm{Var}_i[q_i(x)]`;
    at r = 1 and values +-1 this is ``AS * (n - AS)``. More flips help most when they are cheap beside a new point.

    Examples
    --------
    Each flip changes a parity, so that nothing is left to chance:

    >>> parity = lambda X: X.prod(axis=1)
    >>> estimate_average_sensitivity(parity, 100, n_samples=10, rng=np.random.default_rng(0))
    Estimate(value=100.0, standard_error=0.0, n_samples=10)
    """
    rows = _checked_rows(n, n_samples, batch_size)
    if not 1 <= n_flips <= n:
        raise ValueError(f"`n_flips` must lie between 1 and n = {n}; got {n_flips}.")

    def samples() -> Iterator[NDArray[Any]]:
        for X in _random_points(n, n_samples, rows, rng):
            flipped = _random_coordinates(len(X), n, n_flips, rng)
            yield n * _quarter_squares(f, X, flipped, rows).mean(axis=1)

    return _estimate(samples())


def estimate_influences(
    f: Function,
    n: int,
    *,
    n_samples: int,
    rng: np.random.Generator,
    batch_size: int | None = None,
) -> Estimate:
    r"""Estimates of all influences :math:`\mathbb{E}\,\frac14 (f(x) - f(x^{\oplus i}))^2`, arrays of shape (n,).

    Parameters as in :func:`estimate_average_sensitivity`. Every sample flips all coordinates of one point in turn:
    ``n_samples * (n + 1)`` evaluations. Estimates of different coordinates share points, hence are not independent.
    """
    rows = _checked_rows(n, n_samples, batch_size)
    return _estimate(
        _quarter_squares(f, X, np.broadcast_to(np.arange(n), X.shape), rows)
        for X in _random_points(n, n_samples, min(rows, max(1, SIGNS_AT_ONCE // n)), rng)
    )


def estimate_noise_sensitivity(
    f: Function,
    n: int,
    rho: float,
    *,
    n_samples: int,
    rng: np.random.Generator,
    batch_size: int | None = None,
) -> Estimate:
    r"""Estimate of the noise sensitivity :math:`\mathrm{NS}_\rho(f) = \mathbb{E}\,\frac14 (f(x) - f(y))^2`.

    ``y`` is ``x`` with every coordinate flipped with probability ``(1 - rho) / 2``. Parameters as in
    :func:`estimate_average_sensitivity`; ``2 * n_samples`` evaluations. For values +-1 a sample has variance
    ``NS * (1 - NS)``.
    """
    flip_probability = (1 - checked_correlation(rho)) / 2
    rows = _checked_rows(n, n_samples, batch_size)

    def samples() -> Iterator[NDArray[Any]]:
        for X in _random_points(n, n_samples, rows, rng):
            Y = np.where(rng.random(X.shape) < flip_probability, -X, X)
            yield ((_values(f, X) - _values(f, Y)) / 2) ** 2

    return _estimate(samples())


def estimate_coefficient(
    f: Function,
    subset: Iterable[int],
    n: int,
    *,
    n_samples: int,
    rng: np.random.Generator,
    batch_size: int | None = None,
) -> Estimate:
    r"""Estimate of the Fourier coefficient :math:`\hat f(S) = \mathbb{E}[f(x) \chi_S(x)]` of one subset.

    Parameters as in :func:`estimate_average_sensitivity`; ``n_samples`` evaluations. A sample has variance
    :math:`\|f\|_2^2 - \hat f(S)^2`.

    Examples
    --------
    >>> product = lambda X: 3 * X[:, 2] * X[:, 7]
    >>> estimate_coefficient(product, (2, 7), 50, n_samples=10, rng=np.random.default_rng(0)).value
    3.0
    """
    members = checked_subset(subset)
    rows = _checked_rows(n, n_samples, batch_size)
    masks_of([members], n)  # refuses strange coordinates
    return _estimate(X[:, list(members)].prod(axis=1) * _values(f, X) for X in _random_points(n, n_samples, rows, rng))


def _estimate(batches: Iterable[NDArray[Any]]) -> Estimate:
    """Mean and standard error over the rows of all batches, by the pairwise update of Chan, Golub and LeVeque."""
    count, mean, squares = 0, np.float64(0.0), np.float64(0.0)
    for batch in batches:
        total = count + len(batch)
        step = batch.mean(axis=0) - mean
        squares = squares + ((batch - batch.mean(axis=0)) ** 2).sum(axis=0) + step**2 * (count * len(batch) / total)
        count, mean = total, mean + step * (len(batch) / total)
    error = np.sqrt(squares / (count - 1) / count)
    return Estimate(mean, error, count) if np.ndim(mean) else Estimate(float(mean), float(error), count)


def _quarter_squares(f: Function, X: NDArray[np.float64], flipped: NDArray[np.intp], rows: int) -> NDArray[np.float64]:
    """Quarter squares of f(x) - f(x^i) for the coordinates ``flipped`` (m, r) of every point, shape (m, r)."""
    values = _values(f, X)
    point, coordinate = np.repeat(np.arange(len(X)), flipped.shape[1]), flipped.ravel()
    squares = np.empty(len(point))
    for start in range(0, len(point), rows):
        block = slice(start, start + rows)
        Y = X[point[block]]
        Y[np.arange(len(Y)), coordinate[block]] *= -1
        squares[block] = ((values[point[block]] - _values(f, Y)) / 2) ** 2
    return squares.reshape(flipped.shape)


def _values(f: Function, X: NDArray[np.float64]) -> NDArray[np.float64]:
    values = checked_reals(f(X), "values of the function")
    if values.shape != (len(X),):
        raise ValueError(f"the function must return one value a row, shape ({len(X)},); it returned {values.shape}.")
    return values


def _random_points(n: int, n_samples: int, rows: int, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    for start in range(0, n_samples, rows):
        bits = rng.integers(2, size=(min(rows, n_samples - start), n), dtype=np.int8)
        yield bits_to_signs(bits).astype(np.float64)


def _random_coordinates(m: int, n: int, r: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``r`` distinct coordinates for each of m points, (m, r)."""
    if r == 1:
        return rng.integers(n, size=(m, 1), dtype=np.intp)
    if r == n:
        return np.broadcast_to(np.arange(n), (m, n))
    return np.argpartition(rng.random((m, n)), r, axis=1)[:, :r]


def _checked_rows(n: int, n_samples: int, batch_size: int | None) -> int:
    """Rows of one batch."""
    if n < 1:
        raise ValueError(f"`n` must be at least 1; got {n}.")
    if n_samples < 2:
        raise ValueError(f"`n_samples` must be at least 2, or there is no standard error; got {n_samples}.")
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1; got {batch_size}.")
    return batch_size or max(1, SIGNS_AT_ONCE // n)


def _checked_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"`confidence` must lie between 0 and 1; got {confidence}.")
    return confidence

r"""A scalar for each bucket: the closed forms, and RMSProp on one-hot features.

A step of RMSProp changes only the scalars whose buckets are in the batch: elsewhere the gradient is 0, so the scalar
stays and the velocity is multiplied by :math:`\rho`. That is made up for when the bucket is next met, after k steps, by
:math:`\rho^k`: the result is that of the dense optimiser, at a cost that does not depend on the number of buckets.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.dsm.training import RMSProp

Array = NDArray[np.float64]
Places = NDArray[np.intp]

SHRINKAGES: Final = (0.0, *2.0 ** np.arange(-4, 11))


def bucket_means(bucket: Places, y: Array, n_buckets: int, *, empty: float) -> Array:
    """The least-squares scalars: the mean of each bucket, and ``empty`` where no row fell."""
    counts = np.bincount(bucket, minlength=n_buckets)
    return np.where(counts > 0, _sums(bucket, y, n_buckets) / np.maximum(counts, 1), empty)


def _sums(bucket: Places, values: Array, n_buckets: int) -> Array:
    return np.bincount(bucket, values, minlength=n_buckets).astype(np.float64, copy=False)


def bucket_lines(bucket: Places, x: Array, y: Array, n_buckets: int) -> tuple[Array, Array]:
    """The least-squares line of each bucket: height at x = 0, and slope; flat where x takes one value only."""
    counts = np.maximum(np.bincount(bucket, minlength=n_buckets), 1)
    middle, height = _sums(bucket, x, n_buckets) / counts, _sums(bucket, y, n_buckets) / counts
    apart = x - middle[bucket]
    spread, rise = _sums(bucket, apart**2, n_buckets), _sums(bucket, apart * (y - height[bucket]), n_buckets)
    slopes = rise / np.where(spread > 0, spread, 1.0)
    return height - slopes * middle, slopes


def shrunken_means(bucket: Places, y: Array, n_buckets: int) -> tuple[Array, float]:
    r"""Bucket means drawn towards the mean of all rows, and by how much.

    The scalar of a bucket with n rows is the overall mean plus :math:`\sum_i d_i / (n + \alpha)`, over deviations
    :math:`d_i` from it: ridge regression. Of :data:`SHRINKAGES` the alpha with the least leave-one-out error is taken
    (the overall mean is not taken anew for each row left out).
    """
    mean = float(y.mean())
    counts = np.bincount(bucket, minlength=n_buckets)
    totals = _sums(bucket, y - mean, n_buckets)
    squares = _sums(bucket, (y - mean) ** 2, n_buckets)
    errors = [_left_out(counts, totals, squares, alpha) for alpha in SHRINKAGES]
    alpha = float(SHRINKAGES[int(np.argmin(errors))])
    return mean + totals / np.where(counts + alpha > 0, counts + alpha, 1.0), alpha


def _left_out(counts: Places, totals: Array, squares: Array, alpha: float) -> float:
    r"""Sum of squared errors when each row's bucket is asked for it without it.

    A row's error is :math:`((n + \alpha) d_i - \sum d) / (n - 1 + \alpha)`; a row alone is told the overall mean.
    """
    rest = counts - 1 + alpha
    known = (counts > 1) | ((counts == 1) & (alpha > 0))
    n, total, square, rest = (part[known] for part in (counts, totals, squares, rest))
    errors = ((n + alpha) ** 2 * square - (n + 2 * alpha) * total**2) / rest**2
    return float(errors.sum() + squares[~known].sum())


@dataclass(frozen=True)
class ScalarTraining:
    """How scalars are trained."""

    optimiser: RMSProp
    batch_size: int
    epochs: int


def trained_scalars(
    bucket: Places, y: Array, n_buckets: int, training: ScalarTraining, *, rng: np.random.Generator
) -> Array:
    """Scalars that start at 0 and are trained by RMSProp on the mean squared error of shuffled mini-batches."""
    scalars, velocity = np.zeros(n_buckets), np.zeros(n_buckets)
    last = np.zeros(n_buckets, dtype=np.int64)  # the step at which a bucket was last met
    rho, step = training.optimiser.rho, 0
    for _ in range(training.epochs):
        for met, slope, shift in _epoch(bucket, y, n_buckets, training.batch_size, rng.permutation(len(y))):
            step += 1
            weights, momentum = scalars[met], velocity[met]
            momentum *= rho ** (step - 1 - last[met])
            training.optimiser.step(weights, slope * weights - shift, momentum)
            scalars[met], velocity[met], last[met] = weights, momentum, step
    return scalars


def _epoch(
    bucket: Places, y: Array, n_buckets: int, batch_size: int, order: Places
) -> list[tuple[Places, Array, Array]]:
    """For each batch its buckets, and for each of them the gradient's slope and minus its value at 0."""
    batch = np.arange(len(order)) // batch_size
    pairs, of = np.unique(batch * n_buckets + bucket[order], return_inverse=True)
    share = 2 / np.bincount(batch)[pairs // n_buckets]
    slopes, shifts = share * np.bincount(of), share * np.bincount(of, y[order])
    starts = np.searchsorted(pairs, np.arange(batch[-1] + 2) * n_buckets)
    return [(pairs[a:b] % n_buckets, slopes[a:b], shifts[a:b]) for a, b in pairwise(starts)]

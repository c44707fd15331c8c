"""Whether the logarithm of a target is the better target: by the likelihood of rows that were not seen."""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets.columns import Encoding, Real
from sparsact.fit.fold_sums import FoldSums
from sparsact.learners.latent.targets import pinned
from sparsact.statistics.folds import out_of_fold

LEAST_RATIO: Final = 10.0  # of the largest to the smallest target: of closer ones logarithms are nearly linear
MOST_ROWS: Final = 1_000  # whose linear models take a second at most
ERRORS: Final = 2.0  # standard errors by which logarithms must be ahead
PENALTIES: Final = tuple(10.0**power for power in range(-2, 5))
DECADES: Final = 100.0  # large over small targets from where its size, not its errors, would decide about most rows
OUTERMOST: Final = 50  # one row in this many, at each end, may be an outlier
EXACT: Final = 1e-9  # of the deviation: smaller errors are none


def gain_of_logarithm(X: NDArray[Any], y: NDArray[np.float64], folds: NDArray[np.intp]) -> float:
    r"""Log-likelihood that a held-out row gains where linear models learn log y in place of y.

    .. math:: \frac1m \sum_i \log \frac{N(\log y_i;\, g(x_i),\, t^2) / y_i}{N(y_i;\, f(x_i),\, s^2)},

    with the ridge regressions f of y and g of log y on the other folds, and their root mean squared errors s and t:
    both are densities of y, so that the scales do not matter. It is 0 below two standard errors, where targets are not
    all positive or span a factor of less than 10, and where many rows are pinned at a bound. The cost is a singular
    value decomposition for each fold.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 6))
    >>> f = X @ [1.0, 2, 1, 2, 1, 2] + rng.normal(size=200)
    >>> folds = np.arange(200) % 5
    >>> gain_of_logarithm(X, np.exp(f), folds) > 1, gain_of_logarithm(X, f - f.min() + 0.1, folds)
    (True, 0.0)
    """
    if not 0 < LEAST_RATIO * y.min() < y.max() or np.isfinite(pinned(y, np.ones(len(y)))).any():
        return 0.0
    from sklearn.linear_model import RidgeCV  # loads slowly

    rows, both = np.asarray(X, dtype=np.float64), np.stack([y, np.log(y)], axis=1)
    if len(np.unique(folds)) < 2 or not np.isfinite(rows).all():
        return 0.0
    scale = both.std(axis=0)
    scaled = (both - both.mean(axis=0)) / scale

    def predicted(_: int, left: NDArray[np.bool_]) -> NDArray[np.float64]:
        ridge = RidgeCV(PENALTIES, alpha_per_target=True).fit(rows[~left], scaled[~left])
        return np.asarray(ridge.predict(rows[left]))

    errors = scale * (scaled - out_of_fold(folds, predicted))
    roots = np.maximum(np.sqrt(np.mean(errors**2, axis=0)), EXACT * scale)
    densities = -np.log(roots) - (errors / roots) ** 2 / 2
    gains = densities[:, 1] - both[:, 1] - densities[:, 0]
    return float(gains.mean()) if gains.mean() > ERRORS * gains.std() / sqrt(len(y)) else 0.0


def spans_decades(y: NDArray[np.float64]) -> bool:
    """Whether targets (m,) are positive and span a factor of 100, without the largest and the smallest 2 % of them."""
    y, outer = np.sort(y), 1 + len(y) // OUTERMOST
    return bool(len(y) > 2 * outer and y[0] > 0 and y[outer] * DECADES <= y[-1 - outer])


def gains_of_logarithms(encoding: Encoding, sums: FoldSums) -> tuple[float, ...]:
    """What the logarithm of each target gains, by :func:`gain_of_logarithm`; 0 for classes and logarithms."""
    X, y, folds = sums.sample.at_most(MOST_ROWS)
    found = []
    for each, low, values in zip(encoding.targets, np.atleast_1d(sums.low), y.reshape(len(y), -1).T, strict=True):
        found.append(gain_of_logarithm(X, values, folds) if type(each) is Real and low > 0 else 0.0)
    return tuple(found)

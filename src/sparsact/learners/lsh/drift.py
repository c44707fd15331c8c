"""Test whether new rows differ from the rows of an LSH model, and whether it still predicts them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr

from sparsact.kernels.hashing import BucketPlaces
from sparsact.learners.lsh.layout import Array
from sparsact.statistics.column_scales import exponents_of

MOST_GROUPS: Final = 8
ROWS_A_GROUP: Final = 10
MIN_ROWS: Final = 2 * ROWS_A_GROUP
EPSILON: Final = 1e-12  # of shares


@dataclass(frozen=True)
class Drift:
    r"""Comparison of a batch of rows with the rows of a model.

    The rows of the model and of the batch are pooled. Their buckets are divided by position into groups of about equal
    weight; buckets with a single row form one more group. Each row falls into a group in some share of the tables, and
    the test compares the mean shares of the batch with the mean shares of the model's rows.

    Attributes
    ----------
    n_rows : int
        Number of rows in the batch.
    p_value : float
        p-value of the hypothesis that the mean shares are equal: small if the inputs have moved. The groups depend on
        the pooled rows alone, so without a move the batch is a random part of them, for any distribution. Dempster's
        test [1]_ compares the sum of squared differences over pooled shares with its mean, without an inverse matrix.
    stability_index : float
        Population stability index of the mean shares, :math:`\sum_g (o_g - e_g) \ln (o_g / e_g)`. By convention, a
        value below 0.1 means little drift, and a value above 0.25 means much.
    misses, expected_misses : float
        Share of look-ups that found an empty bucket, and the share that Good and Turing's estimate predicts.
    bias, bias_p_value : float or None
        Mean residual of the batch in the units of the target, and the p-value of a t test that its expectation is zero,
        with Bonferroni's correction; for several targets, the one with the smallest p-value. None without targets.
    rmse : float or None
        Root mean squared residual.
    coverage : float or None
        Share of the targets in their 90 % prediction intervals; far below 0.9 if predictions have become worse.

    Notes
    -----
    Call it before the model learns the batch: a row that the model holds never finds an empty bucket, which looks like
    drift. The tests assume independent rows: for dependent rows, such as a time series, p-values are too small.

    References
    ----------
    .. [1] A. P. Dempster, "A high dimensional two sample significance test", Ann. Math. Stat. 29, 1958.

    Examples
    --------
    >>> from sparsact import LSHRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    >>> model = LSHRegressor(random_state=0).fit(X[:800], X[:800].sum(axis=1))
    >>> model.drift(X[800:]).p_value > 0.001 > model.drift(X[800:] + 0.3).p_value
    True
    """

    n_rows: int
    p_value: float
    stability_index: float
    misses: float
    expected_misses: float
    bias: float | None = None
    bias_p_value: float | None = None
    rmse: float | None = None
    coverage: float | None = None

    def __str__(self) -> str:
        """One line for a log."""
        line = (
            f"{self.n_rows:,} rows against the model's rows: p-value {self.p_value:.2g} for no drift of the inputs, "
            f"stability index {self.stability_index:.2g}, {self.misses:.2%} of look-ups in empty buckets "
            f"({self.expected_misses:.2%} expected)"
        ).replace("%", " %")
        if self.bias is None or self.coverage is None:
            return line
        line += f"; residuals: mean {self.bias:.3g} (p-value {self.bias_p_value:.2g} for 0), RMSE {self.rmse:.3g}"
        return f"{line}, {100 * self.coverage:.0f} % of targets in their 90 % intervals"


def drift_of(
    found: BucketPlaces, ids: NDArray[np.int64], counts: NDArray[np.int64], positions: Array, *residuals: Array
) -> Drift:
    """Drift of rows in these places, in buckets ``ids`` (m, T), -1 where there is none, of counts and mean positions.

    ``residuals`` (m, targets), if there are targets, come with the half widths of their 90 % intervals.
    """
    m, n_tables = ids.shape
    if m < MIN_ROWS:
        raise ValueError(f"drift needs at least {MIN_ROWS} rows; got {m}: pass more rows.")
    n, missed = counts.sum() / n_tables, ids < 0
    new, places = np.unique(found.keys[missed], return_inverse=True)
    ids = ids.copy()
    ids[missed] = len(counts) + places
    held = np.append(counts, np.zeros(len(new), dtype=np.int64))
    pooled = held + np.bincount(ids.ravel(), minlength=len(held))
    centres = np.concatenate([positions * counts[:, None], np.zeros((len(new), positions.shape[1]))])
    np.add.at(centres, ids, found.Z[:, None])
    most = min(MOST_GROUPS, int(min(m, n)) // ROWS_A_GROUP)
    group = groups(centres / pooled[:, None], pooled, most, ROWS_A_GROUP / m)
    expected = np.bincount(group, held) / counts.sum()
    shares = np.stack([(group[ids] == g).mean(axis=1) for g in range(len(expected))], axis=1)
    mean = shares.mean(axis=0)
    tested = dempster(shares, mean - expected, (m * mean + n * expected) / (m + n), 1 / m + 1 / n)
    smoothed = [(each * m + 0.5) / (m + 0.5 * len(each)) for each in (mean, expected)]
    index = float(((smoothed[0] - smoothed[1]) * np.log(smoothed[0] / smoothed[1])).sum())
    alone = float((counts == 1).sum() / counts.sum())
    return Drift(m, tested, index, float(missed.mean()), alone, *(_of_residuals(*residuals) if residuals else ()))


def groups(positions: Array, counts: NDArray[np.int64], most: int, least: float = 0.0) -> NDArray[np.int64]:
    """Group (B,) of each bucket: halves of equal weight along the widest coordinate, as often as there is room.

    Buckets of one row are a group of their own if this holds a share ``least`` of all.
    """
    group, alone = np.zeros(len(counts), dtype=np.int64), counts == 1
    weights = np.where(alone, 0, counts)
    for level in range(int(np.log2(max(most, 1)))):
        for g in range(1 << level):
            inside = np.flatnonzero(group == g)
            if len(inside) < 2:
                continue
            widest = int(np.argmax(positions[inside].std(axis=0)))
            order = inside[np.argsort(positions[inside, widest], kind="stable")]
            weight = np.cumsum(weights[order])
            group[order[weight > weight[-1] / 2]] += 1 << level
    if alone.sum() >= least * counts.sum():
        group[alone] = group.max() + 1
    return np.unique(group, return_inverse=True)[1]


def dempster(shares: Array, difference: Array, pooled: Array, scale: float) -> float:
    """p-value that a difference of means (g,) has expectation zero, by rows (m, g) of ``scale`` times its variance."""
    m = len(shares)
    covariance = np.atleast_2d(np.cov(shares / np.sqrt(pooled), rowvar=False))
    trace = float(np.trace(covariance))
    total = float((difference**2 / pooled).sum())
    if trace <= EPSILON:  # every row of the batch is alike
        return float(total <= EPSILON)
    squares = (m - 1) ** 2 / ((m - 2) * (m + 1)) * ((covariance**2).sum() - trace**2 / (m - 1))  # without bias
    freedom = min(max(trace**2 / max(squares, EPSILON), 1.0), len(pooled) - 1.0)
    return float(fdtrc(freedom, freedom * (m - 1), total / (trace * scale)))


def _of_residuals(residuals: Array, reach: Array) -> tuple[float, float, float, float]:
    m, n_targets = residuals.shape
    coverage = float((np.abs(residuals) <= reach).mean())
    exponent = int(exponents_of(residuals.ravel()))
    residuals = np.ldexp(residuals, -exponent)
    means, errors = residuals.mean(axis=0), residuals.std(axis=0, ddof=1) / sqrt(m)
    p_values = 2 * stdtr(m - 1, -np.abs(means) / np.maximum(errors, 1e-300))
    worst = int(np.argmin(p_values))
    rmse = float(np.sqrt(np.mean(residuals**2)))
    bias, rmse = np.ldexp([means[worst], rmse], exponent).tolist()
    return bias, min(1.0, n_targets * float(p_values[worst])), rmse, coverage

"""Whether new rows come from where the rows of an LSH model came from, and whether it still predicts them."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtr

from sparsact.learners.lsh.layout import Array

MOST_GROUPS: Final = 8
ROWS_A_GROUP: Final = 10
MIN_ROWS: Final = 2 * ROWS_A_GROUP


@dataclass(frozen=True)
class Drift:
    r"""How a batch of rows differs from the rows that a model holds.

    The buckets are parted by position into groups of about equal weight; buckets that hold no row are one more. A row
    falls into each group in a share of the tables, and the means of the shares over the batch are compared with those
    of the model's rows, each left out of its own bucket.

    Attributes
    ----------
    n_rows : int
        Rows of the batch.
    p_value : float
        Of Hotelling's :math:`T^2` test that the mean shares are the same: small when inputs have moved.
    stability_index : float
        Population stability index of the mean shares, :math:`\sum_g (o_g - e_g) \ln (o_g / e_g)`. By custom, below 0.1
        little has moved, and above 0.25 much.
    misses, expected_misses : float
        Share of the look-ups that met no bucket, and what Good and Turing's estimate lets expect.
    bias, bias_p_value : float or None
        Mean residual of the batch, in the units of the target (of several, of the one with the smallest p-value), and
        the p-value, by a t test and Bonferroni's correction, that its expectation is zero. None without targets.
    rmse : float or None
        Root mean squared residual.

    Notes
    -----
    Tests look at means over a batch: rows that depend on each other, such as a time series, make p-values too small.

    Examples
    --------
    >>> from sparsact import LSHRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    >>> model = LSHRegressor(random_state=0).fit(X[:800], X[:800].sum(axis=1))
    >>> model.drift(X[800:]).p_value > 0.01 > model.drift(X[800:] + 0.3).p_value
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

    def __str__(self) -> str:
        """One line for a log."""
        line = (
            f"drift of {self.n_rows:,} rows: inputs p = {self.p_value:.2g}, stability index "
            f"{self.stability_index:.2g}, misses {self.misses:.2%} (expected {self.expected_misses:.2%})"
        )
        if self.bias is None:
            return line
        return f"{line}; residuals: mean {self.bias:.3g} (p = {self.bias_p_value:.2g}), RMSE {self.rmse:.3g}"


def drift_of(ids: NDArray[np.int64], counts: NDArray[np.int64], positions: Array, residuals: Array | None) -> Drift:
    """Drift of rows that fall into buckets ``ids`` (m, T), -1 where there is none, of these counts and positions.

    ``residuals`` are (m, targets) or None.
    """
    m, n_tables = ids.shape
    if m < MIN_ROWS:
        raise ValueError(f"drift is a property of many rows; got {m}, and needs {MIN_ROWS} or more.")
    n_rows = counts.sum() / n_tables
    alone = counts == 1
    group = groups(positions, counts, min(MOST_GROUPS, m // ROWS_A_GROUP))
    expected = np.bincount(group, np.where(alone, 0, counts), minlength=group.max() + 1)
    expected = np.append(expected, alone.sum()) / counts.sum()
    found = np.append(group, len(expected) - 1)[ids]  # of -1, the last
    shares = np.stack([(found == g).mean(axis=1) for g in range(len(expected))], axis=1)
    tested = hotelling(shares[:, :-1] - expected[:-1], 1 / m + 1 / n_rows)
    smoothed = [(each * m + 0.5) / (m + 0.5 * len(each)) for each in (shares.mean(axis=0), expected)]
    index = float(((smoothed[0] - smoothed[1]) * np.log(smoothed[0] / smoothed[1])).sum())
    return Drift(m, tested, index, float(shares[:, -1].mean()), float(expected[-1]), *_of_residuals(residuals))


def groups(positions: Array, counts: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Group (B,) of each bucket: halves of equal weight along the widest coordinate, as often as there is room."""
    group = np.zeros(len(counts), dtype=np.int64)
    for level in range(int(np.log2(most))):
        for g in range(1 << level):
            inside = np.flatnonzero(group == g)
            if len(inside) < 2:
                continue
            widest = int(np.argmax(positions[inside].std(axis=0)))
            order = inside[np.argsort(positions[inside, widest], kind="stable")]
            weight = np.cumsum(counts[order])
            group[order[weight > weight[-1] / 2]] += 1 << level
    return np.unique(group, return_inverse=True)[1]


def hotelling(differences: Array, scale: float) -> float:
    """p-value of Hotelling's test that differences (m, g) have mean zero, whose variance is their own times scale."""
    m = len(differences)
    covariance = np.atleast_2d(np.cov(differences, rowvar=False))
    sizes, directions = np.linalg.eigh(covariance)
    kept = sizes > 1e-10 * max(sizes[-1], 1e-300)
    g = int(kept.sum())
    mean = differences.mean(axis=0)
    if not g or g >= m:
        return float(np.allclose(mean, 0))
    statistic = float(((mean @ directions[:, kept]) ** 2 / sizes[kept]).sum() / scale)
    return float(fdtrc(g, m - g, statistic * (m - g) / (g * (m - 1))))


def _of_residuals(residuals: Array | None) -> tuple[float, float, float] | tuple[()]:
    if residuals is None:
        return ()
    m, n_targets = residuals.shape
    means, errors = residuals.mean(axis=0), residuals.std(axis=0, ddof=1) / sqrt(m)
    p_values = 2 * stdtr(m - 1, -np.abs(means) / np.maximum(errors, 1e-300))
    worst = int(np.argmin(p_values))
    rmse = float(np.sqrt(np.mean(residuals**2)))
    return float(means[worst]), min(1.0, n_targets * float(p_values[worst])), rmse

r"""How much of a target no polynomial of low degree explains, estimated from uniform rows before any is fitted.

For two rows, :math:`\mathbb{E}[y\, y'\, K_j(|x - x'|)] = W_j`, the Fourier weight at degree j, where
:math:`K_j(h) = \sum_{|S| = j} \chi_S(x) \chi_S(x')` depends on the Hamming distance h alone. The mean over all pairs of
rows is unbiased, so the variance less the weights of degree 1 to d estimates what is above d, noise of the labels
included. Its error is about :math:`\sqrt{D} / m` of the variance for D monomials: about :math:`\sqrt D`
rows show how much degree d would explain, whereas fitting it takes more than D rows [K]_.

Noise sensitivity cannot be measured so: its pair kernel :math:`\prod_i (1 + \rho x_i x'_i)` has the variance
:math:`(1 + \rho^2)^n`, and labels at the neighbours of a row are unknown.

References
----------
.. [K] W. Kong and G. Valiant, "Estimating learnability in the sublinear data regime", 2018.
.. [E] B. Efron and C. Stein, "The jackknife estimate of variance", 1981.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import n_subsets
from sparsact.validation.arrays import checked_reals, checked_signs
from sparsact.validation.parameters import checked_generator, checked_size

MOST_PAIRED_ROWS: Final = 8192
MOST_TABLE_N: Final = 20
_PAIRS_AT_ONCE: Final = 2**22


@dataclass(frozen=True, eq=False)
class UnexplainedVariance:
    r"""Estimated variance of a target that polynomials of degree 0, 1, ... leave unexplained.

    Attributes
    ----------
    n, n_rows : int
        Number of coordinates, and of rows used.
    values, standard_errors : ndarray of shape (D + 1,)
        At degree d, the estimate of :math:`\sum_{|S| > d} \hat f(S)^2 + \text{noise}` and its standard error, by the
        jackknife, which errs on the large side (Efron and Stein, 1981). The first value is the variance.
    weight_errors : ndarray of shape (D,)
        Standard errors of :meth:`weights`, likewise.
    bias : float
        Length of the vector of all means of columns and of products of two, as estimated: 0 for uniform rows.
    bias_score : float
        Square of ``bias`` in standard deviations; uniform rows stay below 4.
    """

    n: int
    n_rows: int
    values: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    weight_errors: NDArray[np.float64]
    bias: float
    bias_score: float

    @property
    def uniform(self) -> bool:
        """Whether the rows may pass for uniform: no visible bias, or none that matters."""
        return self.bias_score < 4 or self.bias < 0.05

    def weights(self) -> NDArray[np.float64]:
        """Estimated Fourier weight at degree 1, 2, ..., shape (D,); unbiased, so that it may be negative."""
        return np.asarray(-np.diff(self.values))

    def predicted_errors(self, n_rows: int) -> NDArray[np.float64]:
        """Mean squared error on new rows of least squares on m rows, degree by degree; infinite for m <= D + 1.

        What is unexplained, times m / (m - D): the price of D coefficients and a mean. Weights of less than two
        standard errors count as 0, so that chance does not speak for a higher degree.
        """
        visible = np.where(self.weights() > 2 * self.weight_errors, self.weights(), 0.0)
        return self._priced(self.values[0] - np.concatenate([[0.0], np.cumsum(visible)]), n_rows)

    def rivals(self, degree: int, n_rows: int) -> NDArray[np.intp]:
        """Higher degrees of less predicted error, should their weights be two standard errors above the estimates."""
        least = max(self.values[degree], self.standard_errors[degree])
        possible = np.maximum(self.weights() + 2 * self.weight_errors, 0.0)[degree:]
        left = np.concatenate([np.full(degree + 1, least), least - np.cumsum(possible)])
        errors = self._priced(left, n_rows)
        return np.asarray(degree + 1 + np.flatnonzero(errors[degree + 1 :] < errors[degree]))

    def _priced(self, left: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
        """What is left at each degree, at least 0, times m / (m - D); infinite where no rows are left."""
        free = np.array([n_rows - n_subsets(self.n, d) for d in range(len(left))], dtype=np.float64)
        return np.where(free > 0, np.maximum(left, 0.0) * n_rows / np.where(free > 0, free, 1.0), np.inf)


def unexplained_variance(
    X: ArrayLike, y: ArrayLike, *, rng: np.random.Generator, max_rows: int = MOST_PAIRED_ROWS
) -> UnexplainedVariance:
    r"""Variance of y that polynomials of each degree leave unexplained, for rows drawn uniformly.

    Parameters
    ----------
    X : array-like of shape (m, n)
        Signs. Rows drawn independently, or distinct rows of the cube, up to all of them; then the tail is exact.
    y : array-like of shape (m,)
        Targets.
    rng : numpy.random.Generator
        Chooses ``max_rows`` rows where there are more and n > 20.
    max_rows : int, default=8192
        Up to as many rows, all pairs are formed.

    Returns
    -------
    unexplained : UnexplainedVariance
        For the degrees whose monomials number at most a sixteenth of m squared: beyond, nothing can be seen.

    Raises
    ------
    ValueError
        If there are fewer than 4 rows, or X holds other values than signs.

    Notes
    -----
    All pairs of rows, in ``m**2 * n`` operations, or for n <= 20 and many rows one transform of ``2**n`` a degree.
    Unbiased for uniform rows only; for others the squares of correlated monomials count twice: see ``uniform``.

    Examples
    --------
    All points of a parity of two bits: degree 1 explains nothing, degree 2 everything.

    >>> from sparsact.hypercube import points
    >>> unexplained_variance(points(2), [1, -1, -1, 1], rng=np.random.default_rng(0)).values
    array([1., 1., 0.])
    """
    targets = checked_reals(y, "`y`")
    rows = np.asarray(X)
    signs = checked_signs(rows, rows.shape[1] if rows.ndim == 2 else 0)
    if targets.shape != (len(signs),):
        raise ValueError(f"`y` must hold one target per row, shape ({len(signs)},); got shape {targets.shape}.")
    if len(signs) < 4:
        raise ValueError(f"the estimate from pairs of rows needs at least 4 rows; got {len(signs)}.")
    checked_generator(rng)
    n = signs.shape[1]
    paired = len(signs) <= checked_size(max_rows, "`max_rows`", 4) or n > MOST_TABLE_N
    if paired and len(signs) > max_rows:
        chosen = rng.choice(len(signs), max_rows, replace=False)
        signs, targets = signs[chosen], targets[chosen]
    m = len(signs)
    centred = targets - targets.mean()
    largest = n if m == 2**n else _largest_visible(n, m)
    sums = _sums_over_pairs(signs, centred, largest) if paired else _sums_over_table(signs, centred, largest)
    return _estimated(n, centred, *sums)


def _largest_visible(n: int, m: int) -> int:
    """Largest degree whose monomials number at most a sixteenth of m squared (or 16)."""
    count, degree = 1, 0
    while degree < n and count + comb(n, degree + 1) <= max(16, m * m // 16):
        degree += 1
        count += comb(n, degree)
    return degree


def _estimated(
    n: int, y: NDArray[np.float64], others: NDArray[np.float64], bias: NDArray[np.float64], repeated: bool
) -> UnexplainedVariance:
    """From what the other rows say of each, (m, D + 1) cumulated over degrees, the estimates and their errors."""
    m = len(y)
    squares = y * y
    variance = float(squares.sum() / (m - 1))
    paired = y[:, None] * others / (m - 1)
    explained = paired.mean(axis=0)
    errors = (squares[:, None] - 2 * paired).std(axis=0) / sqrt(m)
    share = 0.0 if repeated else 0.5**n  # of distinct rows in all points of the cube, as if drawn without replacement
    members = np.array([n_subsets(n, d, 1) for d in range(len(explained))], dtype=np.float64)
    variance *= 1 - share
    explained *= 1 + 2 / (m - 2) * (1 - m * share)  # y less the mean of the same rows: each factor of a pair lost 1 / m
    explained = explained * (1 - share) + members * share * variance
    seen = sqrt(max(0.0, 1 - m * share))
    weight_errors = 2 * np.diff(paired, axis=1).std(axis=0) / sqrt(m)
    length = float(sqrt(max(0.0, bias.sum())))
    score = float(bias.sum() / sqrt(2 * max(1, n + comb(n, 2)) / (m * (m - 1))))
    return UnexplainedVariance(n, m, variance - explained, seen * errors, seen * weight_errors, length, score)


def _sums_over_pairs(
    signs: NDArray[np.float64], y: NDArray[np.float64], largest: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """By the Hamming distances of all pairs: sums over the other rows, bias by degree, whether a row is repeated."""
    m, n = signs.shape
    kernels = krawtchouk(n, max(largest, min(2, n))).astype(np.float64)
    cumulated = np.cumsum(kernels, axis=0) - kernels[0]
    single = np.float32 if n < 2**20 else np.float64  # whole numbers up to n are exact in either
    columns: NDArray[Any] = signs.astype(single)
    sums, total = np.empty((m, largest + 1)), np.zeros(n + 1, dtype=np.intp)
    step = max(1, _PAIRS_AT_ONCE // m)
    for start in range(0, m, step):
        block = columns[start : start + step]
        distances = ((n - block @ columns.T) / 2).astype(np.intp)
        places = (distances + (n + 1) * np.arange(len(block))[:, None]).ravel()
        by_distance: NDArray[Any] = np.bincount(places, np.tile(y, len(block)), len(block) * (n + 1))
        by_distance = by_distance.reshape(len(block), n + 1)
        by_distance[:, 0] -= y[start : start + step]  # a row is no pair of its own
        sums[start : start + step] = by_distance @ cumulated[: largest + 1].T
        total += np.bincount(distances.ravel(), minlength=n + 1)
    total[0] -= m
    bias = kernels[1 : min(2, n) + 1] @ total / (m * (m - 1))
    return sums, bias, bool(total[0] > 0)


def _sums_over_table(
    signs: NDArray[np.float64], y: NDArray[np.float64], largest: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """The same by transforms of 2**n cells."""
    m, n = signs.shape
    codes = (signs < 0) @ (1 << np.arange(n))
    counts = np.bincount(codes, minlength=2**n)
    size = np.bitwise_count(np.arange(2**n))
    correlations = walsh_hadamard(np.bincount(codes, y, 2**n)) * 2**n
    moments = (walsh_hadamard(counts) * 2**n) ** 2 - m
    sums = np.zeros((m, largest + 1))
    for d in range(1, largest + 1):
        table = walsh_hadamard(np.where((size > 0) & (size <= d), correlations, 0.0)) * 2**n
        sums[:, d] = table[codes] - y * n_subsets(n, d, 1)
    bias = np.array([moments[size == j].sum() for j in range(1, min(2, n) + 1)]) / (m * (m - 1))
    return sums, bias, bool((counts > 1).any())


def krawtchouk(n: int, degree: int) -> NDArray[Any]:
    r"""Sums of characters by distance, :math:`K_j(h) = \sum_i (-1)^i \binom h i \binom{n-h}{j-i}`, (d + 1, n + 1).

    >>> krawtchouk(2, 2).tolist()  # whole numbers of any size
    [[1, 1, 1], [2, 0, -2], [1, -1, 1]]
    """
    h = np.arange(n + 1, dtype=object)
    rows = [h * 0 + 1, n - 2 * h]
    for j in range(1, degree):
        rows.append(((n - 2 * h) * rows[j] - (n - j + 1) * rows[j - 1]) // (j + 1))
    return np.array(rows[: degree + 1], dtype=object)

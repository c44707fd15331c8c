r"""One component of a covariance over the cube: log-linear prior variances of the Walsh coefficients.

.. math:: \log p_S = a_{|S|} + \sum_{i \in S} b_i + \sum_{i < j \in S} c_{ij}, \qquad
          k(x, x') = \sum_S p_S\, \chi_S(x)\, \chi_S(x').

With :math:`a_{|S|} = a` and no c it is the product kernel :math:`v \prod_i \rho_i^{[x_i \ne x_i']}` (ARD over Hamming
distance), where :math:`b_i = \log \frac{1 - \rho_i}{1 + \rho_i}` and :math:`v = e^a \prod_i (1 + e^{b_i})`; with
b = c = 0 it depends on the Hamming distance alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sparsact.hypercube import Subset
from sparsact.kernels.threads import in_threads
from sparsact.learners.gp.kernel import Array
from sparsact.statistics.solved import Product

LARGEST_CUBE: Final = 20  # coordinates, n: all 2**n prior variances are computed
LARGEST_LOG: Final = 690.0  # of a prior variance: sums of them stay floats
NEAR_ZERO: Final = 1e-12
TILE: Final = 512  # rows and columns: a megabyte, which fits into the cache of a core
_TASKS: Final = 4  # which share the tiles; sums do not depend on the number of threads


@dataclass(frozen=True, eq=False)
class Component:
    """Log-linear prior variances; each block of parameters is there or has length 0.

    Attributes
    ----------
    n : int
        Coordinates of the cube.
    by_degree : ndarray of shape (n + 1,) or (1,)
        a, for each size of S or one for all.
    by_site : ndarray of shape (n,) or (0,)
        b.
    by_pair : ndarray of shape (n (n - 1) / 2,) or (0,)
        c of the pairs (1, 0), (2, 0), (2, 1), (3, 0), ...
    """

    n: int
    by_degree: Array
    by_site: Array
    by_pair: Array

    def __post_init__(self) -> None:
        if self.n > LARGEST_CUBE and self.needs_table:
            raise ValueError(
                f"a kernel of degrees and sites together needs a table of all 2**n subsets, so n up to {LARGEST_CUBE}; "
                f"got n = {self.n}: use a product kernel, a kernel of degrees, or their sum."
            )

    @property
    def needs_table(self) -> bool:
        """Whether a covariance takes the prior variances of all subsets."""
        return bool(self.by_pair.size or (self.by_site.size and len(self.by_degree) > 1))

    @property
    def variance(self) -> float:
        """Prior variance of the function at any point: the sum of all others."""
        if self.needs_table:
            return float(self.spectrum.sum())
        return float(self.covariance(np.zeros((1, self.n)), np.zeros((1, self.n)))[0, 0])

    @property
    def theta(self) -> Array:
        """All parameters, (k,)."""
        return np.concatenate([self.by_degree, self.by_site, self.by_pair])

    def with_theta(self, theta: Array) -> Self:
        """The same component with other parameters."""
        ends = np.cumsum([self.by_degree.size, self.by_site.size])
        a, b, c = np.split(np.asarray(theta, dtype=np.float64), ends)
        return replace(self, by_degree=a, by_site=b, by_pair=c)

    def times(self, number: float) -> Self:
        """The component of the function times a positive number, whose square need not be a float."""
        return replace(self, by_degree=self.by_degree + np.log(number) + np.log(number))

    @property
    def is_product(self) -> bool:
        """Whether it is a product kernel."""
        return len(self.by_degree) == 1 and not self.by_pair.size

    @property
    def correlations(self) -> Array:
        r"""Factors :math:`\rho_i` of a product kernel, (n,)."""
        return np.asarray(np.tanh(-self.by_site / 2))

    @cached_property
    def spectrum(self) -> Array:
        """Prior variances of all coefficients, (2**n,), in table order."""
        low, high = _halves(self.n)
        b = self.by_site if self.by_site.size else np.zeros(self.n)
        pairs = np.zeros((self.n, self.n))
        pairs[np.tril_indices(self.n, -1)] = self.by_pair if self.by_pair.size else 0.0
        of_low, of_high = b[: low.n], b[low.n :]
        own_low = low.bits @ of_low + low.pair_sums(pairs[: low.n, : low.n])
        own_high = high.bits @ of_high + high.pair_sums(pairs[low.n :, low.n :])
        degrees = self.by_degree if len(self.by_degree) > 1 else np.repeat(self.by_degree, self.n + 1)
        by_size = degrees[np.arange(high.n + 1)[:, None] + low.sizes] + own_low
        left = np.column_stack([high.of_size, high.bits, own_high])
        right = np.vstack([by_size, pairs[low.n :, : low.n] @ low.bits.T, np.ones(len(low.bits))])
        logs: Array = (left @ right).ravel()
        np.exp(np.minimum(logs, LARGEST_LOG, out=logs), out=logs)
        return logs

    def log_variances_of(self, subsets: list[Subset]) -> Array:
        """Logarithms of the prior variances of some subsets, (N,), for any n."""
        held = np.zeros((len(subsets), self.n))
        for row, subset in zip(held, subsets, strict=True):
            row[list(subset)] = 1.0
        return np.asarray(self._features(held) @ self.theta)

    def spectrum_pullback(self, gradient: Array) -> Array:
        """Derivatives by ``theta`` (k,) of a function whose derivatives by the spectrum are ``gradient``, (2**n,)."""
        low, high = _halves(self.n)
        weights = (gradient * self.spectrum).reshape(len(high.bits), len(low.bits))
        by_low, by_high = weights.sum(axis=0), weights.sum(axis=1)
        parts = [by_low.sum(keepdims=True)]
        if len(self.by_degree) > 1:
            sizes = np.add.outer(np.arange(high.n + 1), np.arange(low.n + 1))
            parts = [np.bincount(sizes.ravel(), (high.of_size.T @ (weights @ low.of_size)).ravel())]
        if self.by_site.size:
            parts += [by_low @ low.bits, by_high @ high.bits]
        if self.by_pair.size:
            pairs = np.zeros((self.n, self.n))
            pairs[: low.n, : low.n] = (low.bits.T * by_low) @ low.bits
            pairs[low.n :, low.n :] = (high.bits.T * by_high) @ high.bits
            pairs[low.n :, : low.n] = high.bits.T @ (weights @ low.bits)
            parts.append(pairs[np.tril_indices(self.n, -1)])
        return np.concatenate(parts)

    def derivatives(self, numbers: NDArray[np.intp]) -> Array:
        """Derivatives (N, k) of the prior variances of numbered subsets by ``theta``."""
        held = (numbers[:, None] >> np.arange(self.n) & 1).astype(np.float64)
        return self._features(held) * self.spectrum[numbers, None]

    def _features(self, held: Array) -> Array:
        """Derivatives (N, k) of the logarithms by ``theta``, of subsets that hold some coordinates (N, n)."""
        parts = [np.ones((len(held), 1))]
        if len(self.by_degree) > 1:
            parts = [held.sum(axis=1)[:, None] == np.arange(self.n + 1)]
        if self.by_site.size:
            parts.append(held)
        if self.by_pair.size:
            one, other = np.tril_indices(self.n, -1)
            parts.append(held[:, one] * held[:, other])
        return np.concatenate(parts, axis=1)

    def covariance(self, one: Array, other: Array) -> Array:
        """Covariance (m, m') between points of bits (m, n) and (m', n), without a table of subsets."""
        weights, constant, character, of_products = self.of_signs()
        ours, theirs = 1 - 2 * one, 1 - 2 * other
        found = of_products(constant + (weights * ours) @ theirs.T)
        return np.asarray(ours[:, character].prod(axis=1)[:, None] * theirs[:, character].prod(axis=1) * found)

    def of_signs(self) -> tuple[Array, float, NDArray[np.bool_], Product]:
        """Weights w (n,), a constant c, columns, and a function f, in place or not, of single or double precision.

        The covariance of points of signs s and s' is ``f(c + sum(w * s * s'))`` times the columns' character at both.
        """
        if not self.is_product:
            table = np.asarray(np.exp(self.by_degree) @ _krawtchouk(self.n))  # at each Hamming distance
            weights = np.full(self.n, -0.5)
            return weights, self.n / 2 + 0.25, weights > 0, lambda d: table.astype(d.dtype)[d.astype(np.intp)]
        # log |k| = log v + sum_i [x_i != x'_i] log |rho_i|, and rho < 0 contributes a character to the sign
        logs = np.log(np.maximum(np.abs(self.correlations), NEAR_ZERO))
        variance = self.by_degree[0] + np.logaddexp(0, self.by_site).sum()
        weights = -logs / 2
        constant = float(variance - weights.sum())
        return weights, constant, self.correlations < 0, lambda t: np.exp(np.minimum(t, LARGEST_LOG, out=t), out=t)

    def products(self, bits: Array, tile: int = TILE) -> Product:
        """The covariances (m, m) of points of bits (m, n) as a function of vectors (k, m), which never holds them.

        Each computes the :math:`m (m + 1) / 2` covariances, ``tile`` rows and columns at a time in single precision,
        for all vectors.
        """
        signs, ones = 1 - 2 * bits, np.ones((len(bits), 1))
        weights, constant, character, of_products = self.of_signs()
        left = np.hstack([signs * weights, constant * ones]).astype(np.float32)
        right = np.hstack([signs, ones]).astype(np.float32)
        flipped = signs[:, character].prod(axis=1)

        def products(vectors: Array) -> Array:
            numbers = np.ascontiguousarray((flipped * vectors).T, dtype=np.float32)

            def part(task: int) -> Array:
                sums = np.zeros(numbers.shape)
                for start in range(task * tile, len(numbers), _TASKS * tile):
                    rows = slice(start, start + tile)
                    for other in range(start, len(numbers), tile):
                        columns = slice(other, other + tile)
                        covariances = of_products(left[rows] @ right[columns].T)
                        sums[rows] += covariances @ numbers[columns]
                        if other > start:
                            sums[columns] += covariances.T @ numbers[rows]
                return sums

            return np.asarray(flipped * np.sum(list(in_threads(part, range(_TASKS))), axis=0).T)

        return products

    def covariance_pullback(self, bits: Array, gradient: Array) -> Array:
        """Derivatives by ``theta`` (k,) of a function whose derivatives by :meth:`covariance` (m, m) are given."""
        if not self.is_product:
            by_distance = np.bincount(_distances(bits, bits).ravel(), gradient.ravel(), self.n + 1)
            return np.asarray(np.exp(self.by_degree) * (_krawtchouk(self.n) @ by_distance))
        weights = gradient * self.covariance(bits, bits)
        total = weights.sum()
        differing = 2 * np.einsum("ji,ji->i", bits, weights @ (1 - bits))
        # d log k / d b_i is e^b / (1 + e^b) where x_i = x'_i, else -e^b / (1 - e^b)
        grown = np.exp(self.by_site)
        left = 1 - grown
        left = np.where(np.abs(left) < NEAR_ZERO, NEAR_ZERO, left)
        by_site = grown / (1 + grown) * (total - differing) - grown / left * differing
        return np.concatenate([[total], by_site])


@dataclass(frozen=True, eq=False)
class _Half:
    """All subsets of half of the coordinates: which coordinate each holds (2**k, k), and its size (2**k,)."""

    bits: Array
    sizes: NDArray[np.intp]
    of_size: Array  # (2**k, k + 1), 1 at the size

    @property
    def n(self) -> int:
        """Number of coordinates of the half."""
        return int(self.bits.shape[1])

    def pair_sums(self, pairs: Array) -> Array:
        """Sums (2**k,) of the entries below the diagonal of a matrix (k, k) over the pairs that a subset holds."""
        return np.asarray(((self.bits @ pairs) * self.bits).sum(axis=1))


@cache
def _halves(n: int) -> tuple[_Half, _Half]:
    """The first coordinates and the others: a table of all subsets is a matrix of one half by the other."""
    halves = []
    for k in ((n + 1) // 2, n // 2):
        bits = (np.arange(1 << k)[:, None] >> np.arange(k) & 1).astype(np.float64)
        sizes = bits.sum(axis=1).astype(np.intp)
        halves.append(_Half(bits, sizes, np.eye(k + 1)[sizes]))
    return halves[0], halves[1]


def _distances(one: Array, other: Array) -> NDArray[np.intp]:
    """Hamming distances between rows of bits, (m, m')."""
    return np.asarray(np.rint(one.sum(1)[:, None] + other.sum(1) - 2 * one @ other.T), dtype=np.intp)


def _krawtchouk(n: int) -> Array:
    r"""Krawtchouk polynomials :math:`K_d(h) = \sum_{|S| = d} \chi_S` at distance h, (n + 1, n + 1).

    By :math:`(n - d) k_{d + 1} = (n - 2h) k_d - d k_{d - 1}` of :math:`k_d = K_d / \binom{n}{d}` up to d = n / 2, and
    :math:`K_{n - d}(h) = (-1)^h K_d(h)`.
    """
    distance = np.arange(n + 1)
    k = np.ones((n + 1, n + 1))
    for d in range(n // 2):
        k[d + 1] = ((n - 2 * distance) * k[d] - d * k[d - 1]) / (n - d)
    upper = np.arange(n // 2 + 1, n + 1)
    k[upper] = k[n - upper] * (1 - 2 * (distance % 2))
    log_binomial = gammaln(n + 1) - gammaln(distance + 1) - gammaln(n - distance + 1)
    return np.asarray(k * np.exp(log_binomial)[:, None])

"""Sums of each bucket, the polynomial that fits them, and its values at rows left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.hashing import BucketPlaces

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Counts = NDArray[np.int64]
ROUNDING = 1e-9  # far above epsilon: a pivot that is kept has digits to spare


def n_features(p: int, degree: int) -> int:
    """Monomials of at most ``degree`` in p coordinates."""
    return (1, 1 + p, 1 + p + p * (p + 1) // 2)[degree]


def n_sums(p: int, degree: int, n_targets: int) -> int:
    """Sums that a bucket keeps: p positions, products of features, features with targets, squares of targets."""
    D = n_features(p, degree)
    return p + D * (D + 1) // 2 + (D + 1) * n_targets


def features(V: Array, degree: int) -> Array:
    """Monomials (..., D) of at most ``degree`` (0, 1 or 2) of the last axis of V: 1, v_i, v_i v_j with i <= j."""
    p = V.shape[-1]
    parts = [np.ones((*V.shape[:-1], 1))]
    if degree >= 1:
        parts.append(V)
    if degree >= 2:
        i, j = np.triu_indices(p)
        parts.append(V[..., i] * V[..., j])
    return np.concatenate(parts, axis=-1)


class Visited(NamedTuple):
    """Counts (T * m,) and sums (T * m, n_sums) of buckets before each visit: all rows of a table, then the next."""

    counts: Counts
    sums: Array

    @classmethod
    def unfilled(cls, n_visits: int, n_sums: int) -> Visited:
        """Memory for so many visits; counts of -1 where there was none."""
        return cls(np.full(n_visits, -1, dtype=np.int64), np.empty((n_visits, n_sums)))


def accumulate(
    found: BucketPlaces,
    ids: Ids,
    Y: Array,
    weights: Array,
    sign: int,
    degree: int,
    counts: Counts,
    sums: Array,
    before: Visited | None = None,
) -> None:
    """Add (``sign`` 1) or subtract (-1) rows in buckets ``ids`` (m, T): ``counts`` (B,) and ``sums`` (B, n_sums).

    A bucket sums w z, then w phi_a phi_b (a <= b), w phi_a y_t, w y_t**2. An id that is no bucket's is ignored. What
    buckets held is written to ``before``, if there is one.
    """
    kept = Visited.unfilled(0, sums.shape[1]) if before is None else before
    dispatch.chosen.accumulate(ids, found.Z, found.V, Y, weights, sign, degree, counts, sums, *kept)


@dispatch.kernel
def _accumulate(
    ids: Ids,
    Z: Array,
    V: Array,
    Y: Array,
    weights: Array,
    sign: int,
    degree: int,
    counts: Counts,
    sums: Array,
    *before: Any,
) -> None:
    signed, kept = sign * weights, Visited(*before)
    for t in range(ids.shape[1]):
        known = (ids[:, t] >= 0) & (ids[:, t] < len(sums))
        own = _contributions(Z, features(V[:, t % V.shape[1]], degree), Y, signed)
        if not len(kept.sums):
            np.add.at(counts, ids[known, t], sign)
            np.add.at(sums, ids[known, t], own[known])
            continue
        for row in np.flatnonzero(known):
            bucket, visit = ids[row, t], t * len(ids) + row
            kept.counts[visit], kept.sums[visit] = counts[bucket], sums[bucket]
            counts[bucket] += sign
            sums[bucket] += own[row]


def _contributions(Z: Array, phi: Array, Y: Array, weights: Array) -> Array:
    a, b = np.triu_indices(phi.shape[1])
    weighted = weights[:, None] * phi
    cross = (weighted[:, :, None] * Y[:, None, :]).reshape(len(Y), phi.shape[1] * Y.shape[1])
    return np.concatenate([weights[:, None] * Z, weighted[:, a] * phi[:, b], cross, (weights[:, None] * Y) * Y], axis=1)


def solve(sums: Array, p: int, degree: int, n_targets: int, alpha: float, *, n_threads: int = 1) -> tuple[Array, Array]:
    """Ridge coefficients (B, D, targets) of each bucket's polynomial, and residual sums of squares (B, targets).

    The constant is not penalised. A pivot that is lost to rounding is left out: its coefficient is 0.
    """
    coefficients = np.empty((len(sums), n_features(p, degree), n_targets))
    residual = np.empty((len(sums), n_targets))
    dispatch.chosen.solve(sums, p, degree, alpha, coefficients, residual, n_threads)
    return coefficients, residual


@dispatch.kernel
def _solve(
    sums: Array, p: int, degree: int, alpha: float, coefficients: Array, residual: Array, n_threads: int = 1
) -> None:
    D, n_targets = coefficients.shape[1:]
    G = np.zeros((len(sums), D, D))
    a, b = np.triu_indices(D)
    n_gram = len(a)
    G[:, a, b] = G[:, b, a] = sums[:, p : p + n_gram]
    C = sums[:, p + n_gram : p + n_gram + D * n_targets].reshape(len(sums), D, n_targets)
    squares = sums[:, p + n_gram + D * n_targets :]
    total = G[:, 0, 0]
    scale = 1.0 / np.where(total > 0, total, np.inf)
    mean, level = G[:, 0] * scale[:, None], C[:, 0] * scale[:, None]
    gram = G[:, 1:, 1:] - G[:, 0, 1:, None] * mean[:, None, 1:]
    cross = C[:, 1:] - G[:, 0, 1:, None] * level[:, None, :]
    factor, kept = _cholesky(gram, alpha, np.einsum("bii->bi", G)[:, 1:])
    slopes = _solved(factor, kept, cross)
    coefficients[:, 1:] = slopes
    coefficients[:, 0] = level
    residual[:] = squares - C[:, 0] * level
    for i in range(D - 1):
        coefficients[:, 0] -= mean[:, i + 1, None] * slopes[:, i]
        residual -= slopes[:, i] * (cross[:, i] + alpha * slopes[:, i])
    np.maximum(residual, 0.0, out=residual)


def _cholesky(gram: Array, alpha: float, diagonal: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Lower factor of ``gram + alpha I`` and which pivots were kept, column by column.

    Rounding moves a pivot by about epsilon / lambda of its diagonal entry, lambda the least eigenvalue of the
    correlations before it: at least about the product of the pivots' shares, and at least the penalty's.
    """
    n = gram.shape[1]
    shares, largest = np.ones(len(gram)), diagonal.max(axis=1, initial=0.0)
    penalty = alpha / (largest + alpha) if alpha > 0 else np.zeros(len(gram))
    L, kept = np.zeros_like(gram), np.zeros(gram.shape[:2], dtype=bool)
    for j in range(n):
        pivot = gram[:, j, j] + alpha
        for i in range(j):
            pivot = pivot - L[:, j, i] * L[:, j, i]
        whole = diagonal[:, j] + alpha
        kept[:, j] = pivot * np.maximum(shares, penalty) > np.maximum(ROUNDING * whole, 0.0)
        shares = shares * np.where(kept[:, j], pivot / np.where(kept[:, j], whole, 1.0), 1.0)
        root = np.sqrt(np.where(kept[:, j], pivot, 1.0))
        L[:, j, j] = root
        for r in range(j + 1, n):
            entry = gram[:, r, j]
            for i in range(j):
                entry = entry - L[:, r, i] * L[:, j, i]
            L[:, r, j] = np.where(kept[:, j], entry / root, 0.0)
    return L, kept


def _solved(L: Array, kept: NDArray[np.bool_], right: Array) -> Array:
    n = L.shape[1]
    x = right.copy()
    for j in range(n):
        for i in range(j):
            x[:, j] -= L[:, j, i, None] * x[:, i]
        x[:, j] = np.where(kept[:, j, None], x[:, j] / L[:, j, j, None], 0.0)
    for j in reversed(range(n)):
        for i in range(j + 1, n):
            x[:, j] -= L[:, i, j, None] * x[:, i]
        x[:, j] = np.where(kept[:, j, None], x[:, j] / L[:, j, j, None], 0.0)
    return x


def leave_one_out(
    found: BucketPlaces,
    ids: Ids,
    Y: Array,
    weights: Array,
    degree: int,
    alpha: float,
    least: int,
    counts: Counts,
    sums: Array,
    *,
    n_threads: int = 1,
) -> tuple[Array, Array]:
    """Leave-one-out predictions of each row: values (m, targets), and the weight (m,) behind each.

    Exact: the row is removed from its buckets, and they are solved again. Buckets left with fewer than ``least`` rows
    are empty.
    """
    values, total = np.empty(Y.shape), np.empty(len(Y))
    dispatch.chosen.leave_one_out(
        ids, found.Z, found.V, Y, weights, degree, alpha, least, counts, sums, values, total, n_threads
    )
    return values, total


@dispatch.kernel
def _leave_one_out(ids: Ids, Z: Array, V: Array, Y: Array, weights: Array, *arguments: Any) -> None:
    degree, alpha, least, counts, sums, values, total, _ = arguments
    values[:], total[:] = 0.0, 0.0
    held, rows = np.concatenate([sums, np.zeros((1, sums.shape[1]))]), np.append(counts[: len(sums)], 0)
    for t in range(ids.shape[1]):
        phi = features(V[:, t % V.shape[1]], degree)
        known = (ids[:, t] >= 0) & (ids[:, t] < len(sums))
        at = np.where(known, ids[:, t], len(sums))
        left = held[at] - _contributions(Z, phi, Y, weights)
        coefficients, residual = np.empty((len(Y), phi.shape[1], Y.shape[1])), np.empty(Y.shape)
        _solve(left, Z.shape[1], degree, alpha, coefficients, residual)
        weight = np.where(known & (rows[at] > least), left[:, Z.shape[1]], 0.0)
        add_polynomials(values, phi, coefficients, weight)
        total += np.maximum(weight, 0.0)
    average_over_weights(values, total)


def add_polynomials(values: Array, phi: Array, coefficients: Array, weight: Array) -> None:
    """Add each row's polynomial times a weight to its value, where that weight is positive."""
    value = np.zeros_like(values)
    for a in range(phi.shape[1]):
        value += phi[:, a, None] * coefficients[:, a]
    values += np.where(weight[:, None] > 0, weight[:, None] * value, 0.0)


def average_over_weights(values: Array, total: Array) -> None:
    """Divide sums by the weight behind them, where there is any."""
    values /= np.where(total > 0, total, 1.0)[:, None]

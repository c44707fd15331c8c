"""Sums of each bucket, the polynomial that fits them, and its values at rows left out."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.hashing import BucketPlaces

Array = NDArray[np.float64]
Ids = NDArray[np.int32]
Counts = NDArray[np.int64]
ROUNDING: Final = 1e-9  # far above epsilon: a pivot that is kept has digits to spare


def n_features(p: int, degree: int) -> int:
    """Monomials of at most ``degree`` in p coordinates."""
    return (1, 1 + p, 1 + p + p * (p + 1) // 2)[degree]


def n_sums(p: int, degree: int, n_targets: int) -> int:
    """Sums that a bucket keeps: p positions, products of features, and two words for each sum of targets.

    These are features with targets, then squares of targets.
    """
    return p + comb(p + 2 * degree, 2 * degree) + 2 * n_target_sums(p, degree, n_targets)


def n_target_sums(p: int, degree: int, n_targets: int) -> int:
    """Sums of features with targets, and of squares of targets."""
    return (n_features(p, degree) + 1) * n_targets


def add_sums(sums: Array, others: Array, n_twofold: int) -> None:
    """Add others (B, n_sums), or (B, n_sums - n_twofold) without low words, to sums (B, n_sums), in place.

    The low words, the last ``n_twofold``, keep what is too small for the sums before them: a large number that is added
    and subtracted leaves them as they were.
    """
    first, last = sums.shape[1] - 2 * n_twofold, sums.shape[1] - n_twofold
    sums[:, :first] += others[:, :first]
    for own in (others[:, first:last], others[:, last:]):
        if own.shape[1]:
            high, low = sums[:, first:last], sums[:, last:]
            total = high + own
            part = total - high
            rest = low + ((high - (total - part)) + (own - part))
            sums[:, first:last] = total + rest
            sums[:, last:] = rest - (sums[:, first:last] - total)


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


def monomials(p: int, degree: int) -> list[tuple[int, ...]]:
    """Coordinates of the monomials of at most ``degree``, ascending in each: as :func:`features` has them, and on."""
    return [each for k in range(degree + 1) for each in combinations_with_replacement(range(p), k)]


def products(p: int, degree: int) -> NDArray[np.int64]:
    """Number of the monomial that is the product of features a <= b, (D (D + 1) / 2,)."""
    place = {each: k for k, each in enumerate(monomials(p, 2 * degree))}
    own = monomials(p, degree)
    pairs = ((own[a], own[b]) for a, b in zip(*np.triu_indices(len(own)), strict=True))
    return np.array([place[tuple(sorted(one + other))] for one, other in pairs], dtype=np.int64)


def accumulate(
    found: BucketPlaces, ids: Ids, Y: Array, weights: Array, sign: int, degree: int, counts: Counts, sums: Array
) -> int:
    """Add (``sign`` 1) or subtract (-1) rows in buckets ``ids`` (m, T): ``counts`` (B,) and ``sums`` (B, n_sums).

    A bucket sums w z, then w times each monomial of at most twice the degree, each product of two features among them
    once, then w phi_a y_t and w y_t**2, as sums of two words (see :func:`add_sums`). An id that is no bucket's is
    ignored. The sums of a bucket whose last row is taken away are 0. Returns by how many there are more buckets that
    hold rows.
    """
    filled: int = dispatch.chosen.accumulate(ids, found.Z, found.V, Y, weights, sign, degree, counts, sums)
    return filled


@dispatch.kernel
def _accumulate(
    ids: Ids, Z: Array, V: Array, Y: Array, weights: Array, sign: int, degree: int, counts: Counts, sums: Array
) -> int:
    n_held = np.count_nonzero(counts)
    for t in range(ids.shape[1]):
        known = (ids[:, t] >= 0) & (ids[:, t] < len(sums))
        np.add.at(counts, ids[known, t], sign)
        own, met = _contributions(Z, V[:, t % V.shape[1]], Y, sign * weights, degree)[known], ids[known, t]
        n_twofold, before = sums.shape[1] - own.shape[1], occurrences(met)
        for turn in range(before.max(initial=-1) + 1):  # rows of a bucket come in order
            now = before == turn
            held = sums[met[now]]
            add_sums(held, own[now], n_twofold)
            sums[met[now]] = held
    if sign < 0:
        met = ids[(ids >= 0) & (ids < len(sums))]
        sums[met[counts[met] == 0]] = 0.0
    return int(np.count_nonzero(counts) - n_held)


def occurrences(numbers: Ids) -> NDArray[np.int64]:
    """Count the equal numbers before each one, (m,)."""
    order = np.argsort(numbers, kind="stable")
    places = np.arange(len(numbers))
    new = np.diff(numbers[order], prepend=numbers[order[:1]] - 1) != 0
    before = np.empty(len(numbers), dtype=np.int64)
    before[order] = places - np.maximum.accumulate(np.where(new, places, 0))
    return before


def _contributions(Z: Array, V: Array, Y: Array, weights: Array, degree: int) -> Array:
    own: dict[tuple[int, ...], Array] = {(): weights}
    for each in monomials(V.shape[1], 2 * degree)[1:]:
        own[each] = V[:, each[0]] * own[each[1:]]
    phi, weighted = np.stack(list(own.values()), axis=1), weights[:, None]
    D = n_features(V.shape[1], degree)
    cross = (phi[:, :D, None] * Y[:, None, :]).reshape(len(Y), D * Y.shape[1])
    return np.concatenate([weighted * Z, phi, cross, (weighted * Y) * Y], axis=1)


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
    G[:, a, b] = G[:, b, a] = sums[:, p + products(p, degree)]
    first = p + comb(p + 2 * degree, 2 * degree)
    end = first + D * n_targets
    C, squares = sums[:, first:end].reshape(len(sums), D, n_targets), sums[:, end : end + n_targets]
    total = G[:, 0, 0]
    scale = 1.0 / np.where(total > 0, total, np.inf)
    mean, level = G[:, 0] * scale[:, None], C[:, 0] * scale[:, None]
    gram = G[:, 1:, 1:] - G[:, 0, 1:, None] * mean[:, None, 1:]
    cross = C[:, 1:] - G[:, 0, 1:, None] * level[:, None, :]
    slopes = _solved(_cholesky(gram, alpha, np.einsum("bii->bi", G)[:, 1:]), cross)
    coefficients[:, 1:] = slopes
    coefficients[:, 0] = level
    residual[:] = squares - C[:, 0] * level
    for i in range(D - 1):
        coefficients[:, 0] -= mean[:, i + 1, None] * slopes[:, i]
        residual -= slopes[:, i] * (cross[:, i] + alpha * slopes[:, i])
    np.maximum(residual, 0.0, out=residual)


def _cholesky(gram: Array, alpha: float, diagonal: Array) -> Array:
    """Lower factor of ``gram + alpha I``, its diagonal inverted, column by column; 0 for a pivot that is left out.

    Rounding moves a pivot by about epsilon / lambda of its diagonal entry, lambda the least eigenvalue of the
    correlations before it: at least about the product of the pivots' shares, and at least the penalty's.
    """
    n = gram.shape[1]
    shares, largest = np.ones(len(gram)), diagonal.max(axis=1, initial=0.0)
    penalty = alpha / (largest + alpha) if alpha > 0 else np.zeros(len(gram))
    L = np.zeros_like(gram)
    for j in range(n):
        pivot = gram[:, j, j] + alpha
        for i in range(j):
            pivot = pivot - L[:, j, i] * L[:, j, i]
        whole = diagonal[:, j] + alpha
        kept = pivot * np.maximum(shares, penalty) > np.maximum(ROUNDING * whole, 0.0)
        shares = shares * np.where(kept, pivot / np.where(kept, whole, 1.0), 1.0)
        L[:, j, j] = np.where(kept, 1.0 / np.sqrt(np.where(kept, pivot, 1.0)), 0.0)
        for r in range(j + 1, n):
            entry = gram[:, r, j]
            for i in range(j):
                entry = entry - L[:, r, i] * L[:, j, i]
            L[:, r, j] = np.where(kept, entry * L[:, j, j], 0.0)
    return L


def _solved(L: Array, right: Array) -> Array:
    n = L.shape[1]
    x = right.copy()
    for i in range(n):
        x[:, i] *= L[:, i, i, None]
        for j in range(i + 1, n):
            x[:, j] -= L[:, j, i, None] * x[:, i]
    for i in reversed(range(n)):
        x[:, i] *= L[:, i, i, None]
        for j in range(i):
            x[:, j] -= L[:, i, j, None] * x[:, i]
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
        own = _contributions(Z, V[:, t % V.shape[1]], Y, weights, degree)
        left = held[at, : own.shape[1]] - own
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
    """Divide sums by their total weights, where these are positive."""
    values /= np.where(total > 0, total, 1.0)[:, None]

"""Kernels of tables of buckets: keys of rows, an index of the keys, additive sums, polynomials and their values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch
from sparsact.kernels.reference.bucket_index import NOWHERE
from sparsact.kernels.reference.bucket_statistics import features as features  # small: NumPy alone serves it

Array = NDArray[np.float64]
MOST_KEYS = 1 << 31  # numbers of buckets are int32


class Hashes(NamedTuple):
    """T hash functions of q codes each, and the local coordinates of the polynomials.

    With ``grid`` a row's codes are the cells of ``z @ directions + offsets``, z its local coordinates, q = p, and
    features are places within a cell, -1/2 to 1/2. Else codes are those of ``(x - centre) @ directions + offsets``,
    and features are z. Codes are integers below, or, with ``signs``, whether the projection is positive.
    """

    centre: Array  # (d,)
    local: Array  # (d, p)
    directions: Array  # (p or d, T * q)
    offsets: Array  # (T * q,)
    seeds: NDArray[np.uint64]  # (T,)
    grid: bool
    signs: bool


class BucketPlaces(NamedTuple):
    """Where rows fall: local coordinates (m, p), features (m, T or 1, p) and keys of buckets (m, T)."""

    Z: Array
    V: Array
    keys: NDArray[np.uint64]


def places(X: Array, hashes: Hashes, *, n_threads: int = 1) -> BucketPlaces:
    """Local coordinates, features and keys of rows; X (m, d) float64, C-contiguous.

    The same bits on every kernel, and for a row whatever rows stand beside it: sums run column by column.
    """
    p, n_tables = hashes.local.shape[1], len(hashes.seeds)
    m = len(X)
    found = BucketPlaces(
        np.empty((m, p)), np.empty((m, n_tables if hashes.grid else 1, p)), np.empty((m, n_tables), dtype=np.uint64)
    )
    dispatch.chosen().places(X, *hashes, *found, n_threads)
    return found


def row_keys(rows: Array) -> NDArray[np.uint64]:
    """A 64-bit key (m,) of each row's bits; rows (m, n) float64, C-contiguous."""
    keys = np.empty(len(rows), dtype=np.uint64)
    dispatch.chosen().row_keys(rows.view(np.uint64), keys)
    return keys


class BucketIndex:
    """Numbers of buckets by key: an open-addressing table that grows.

    A key is 64 well-mixed bits: among B buckets two share one with probability below :math:`B^2 / 2^{65}`.
    """

    def __init__(self, keys: NDArray[np.uint64] | None = None, most: int = MOST_KEYS) -> None:
        self.most = most
        n = 0 if keys is None else len(keys)
        self._keys = np.empty(max(16, n), dtype=np.uint64)
        self._n = n
        if keys is not None:
            self._keys[:n] = keys
        self._rebuild(2 * len(self._keys))

    def __len__(self) -> int:
        return self._n

    @property
    def keys(self) -> NDArray[np.uint64]:
        """Key of each bucket, by number."""
        return self._keys[: self._n]

    @property
    def slots(self) -> NDArray[np.uint64]:
        """Slots (2**c, 2), as :func:`bucket_values` reads them."""
        return self._slots

    def find(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Number of each key's bucket, or -1; of the shape of ``keys``."""
        ids = np.empty(keys.size, dtype=np.int32)
        dispatch.chosen().find(self._slots, keys.ravel(), ids)
        return ids.reshape(keys.shape)

    def insert(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Number of each key's bucket; new keys get the next numbers, in order of appearance.

        Raises
        ------
        ValueError
            If there are more than ``most`` keys then; none of them is taken in.
        """
        flat = keys.ravel()
        if self._n + len(flat) > self.most and self._n + (n_new := self.n_new(flat)) > self.most:
            raise ValueError(
                f"{self._n:,} keys and {n_new:,} new ones are more than have numbers of 32 bits, {self.most:,}; hash "
                "into fewer buckets."
            )
        ids = np.empty(len(flat), dtype=np.int32)
        step = 1 << 16
        for start in range(0, len(flat), step):
            part = slice(start, start + step)
            self._make_room(len(flat[part]))
            self._n = dispatch.chosen().insert(self._slots, self._keys, self._n, flat[part], ids[part])
        return ids.reshape(keys.shape)

    def truncate(self, n: int) -> None:
        """Forget the buckets from number n on, whatever an insertion that was cut short has left in the slots."""
        self._n = n
        self._rebuild(2 * len(self._keys))

    def n_new(self, keys: NDArray[np.uint64]) -> int:
        """How many different keys there are that have no number."""
        return len(np.unique(keys[self.find(keys) < 0]))

    def _make_room(self, n_new: int) -> None:
        needed = self._n + n_new
        if needed > len(self._keys):
            self._keys = np.concatenate([self.keys, np.empty(max(needed, 2 * self._n) - self._n, dtype=np.uint64)])
        if 2 * needed > len(self._slots):
            self._rebuild(2 * needed)

    def _rebuild(self, least: int) -> None:
        n_slots = 1 << (least - 1).bit_length()
        self._slots = np.full((n_slots, 2), NOWHERE, dtype=np.uint64)
        dispatch.chosen().fill(self._slots, self._keys, 0, self._n)


def n_features(p: int, degree: int) -> int:
    """Monomials of at most ``degree`` in p coordinates."""
    return (1, 1 + p, 1 + p + p * (p + 1) // 2)[degree]


def n_sums(p: int, degree: int, n_targets: int) -> int:
    """Sums that a bucket keeps: p positions, products of features, features with targets, squares of targets."""
    D = n_features(p, degree)
    return p + D * (D + 1) // 2 + (D + 1) * n_targets


def accumulate(
    found: BucketPlaces,
    ids: NDArray[np.int32],
    Y: Array,
    weights: Array,
    sign: int,
    degree: int,
    counts: NDArray[np.int64],
    sums: Array,
) -> None:
    """Add (``sign`` 1) or take away (-1) rows in buckets ``ids`` (m, T): ``counts`` (B,) and ``sums`` (B, n_sums)."""
    dispatch.chosen().accumulate(ids, found.Z, found.V, Y, weights, sign, degree, counts, sums)


def solve(sums: Array, p: int, degree: int, n_targets: int, alpha: float, *, n_threads: int = 1) -> tuple[Array, Array]:
    """Ridge coefficients (B, D, targets) of each bucket's polynomial, and residual sums of squares (B, targets)."""
    coefficients = np.empty((len(sums), n_features(p, degree), n_targets))
    residual = np.empty((len(sums), n_targets))
    dispatch.chosen().solve(sums, p, degree, alpha, coefficients, residual, n_threads)
    return coefficients, residual


def leave_one_out(
    found: BucketPlaces,
    ids: NDArray[np.int32],
    Y: Array,
    weights: Array,
    degree: int,
    alpha: float,
    least: int,
    counts: NDArray[np.int64],
    sums: Array,
    *,
    n_threads: int = 1,
) -> tuple[Array, Array]:
    """What the tables would say of each row had they never seen it: values (m, targets), and the weight (m,) behind.

    Exact: the row is taken out of its buckets and they are solved again. Buckets left with fewer than ``least`` rows
    are empty.
    """
    values, total = np.empty(Y.shape), np.empty(len(Y))
    dispatch.chosen().leave_one_out(
        ids, found.Z, found.V, Y, weights, degree, alpha, least, counts, sums, values, total, n_threads
    )
    return values, total


def bucket_values(
    X: Array,
    hashes: Hashes,
    slots: NDArray[np.uint64],
    degree: int,
    coefficients: Array,
    weights: Array,
    trend: Array,
    *,
    average: bool = True,
    n_threads: int = 1,
) -> tuple[Array, Array]:
    """Values (m, targets) at rows: the trend (d, targets), and the weighted average (or sum) over tables.

    ``weights`` (B,) are those of buckets; at 0 a bucket is empty. The second result (m,) is the weight behind each
    value: 0 where every table misses.
    """
    values, total = np.empty((len(X), trend.shape[1])), np.empty(len(X))
    dispatch.chosen().bucket_values(
        X, *hashes, slots, degree, coefficients, weights, trend, average, values, total, n_threads
    )
    return values, total


def predictor(
    hashes: Hashes,
    slots: NDArray[np.uint64],
    degree: int,
    coefficients: Array,
    weights: Array,
    trend: Array,
    *,
    average: bool = True,
) -> Any:
    """:func:`bucket_values` that holds all but the rows: half the time of a single query.

    It is called with ``(X, values, total, n_threads)`` and fills ``values`` (m, targets) and ``total`` (m,). Arrays are
    held, not copied; the kernels are those chosen when it was made.
    """
    return dispatch.chosen().BucketPredictor(*hashes, slots, degree, coefficients, weights, trend, average)

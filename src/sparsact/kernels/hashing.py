"""Hash functions of rows: local coordinates, codes, and 64-bit keys of buckets."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch

Array = NDArray[np.float64]
Keys = NDArray[np.uint64]

STEP, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
FARTHEST: Final = 2.0**62
HASHING: Final = 0x5A5  # a branch of the seed's tree that no caller's own generator uses


class Hashes(NamedTuple):
    """T hash functions of q codes each, and the local coordinates of the polynomials.

    With ``grid`` a row's codes are the cells of ``z @ directions + offsets``, z its local coordinates, q = p, and
    features are places within a cell, -1/2 to 1/2. Else codes come from ``(x - centre) @ directions + offsets``,
    and features are z. Codes are integers below, or, with ``signs``, whether the projection is positive.
    """

    centre: Array  # (d,)
    local: Array  # (d, p)
    directions: Array  # (p or d, T * q)
    offsets: Array  # (T * q,)
    seeds: Keys  # (T,)
    grid: bool
    signs: bool

    def of_all(self, columns: NDArray[np.int64], n_columns: int) -> Hashes:
        """The same hashes for rows with further columns, which get weight 0."""
        centre, local = (spread(each, columns, n_columns) for each in (self.centre, self.local))
        directions = self.directions if self.grid else spread(self.directions, columns, n_columns)
        return self._replace(centre=centre, local=local, directions=directions)


def spread(values: Array, columns: NDArray[np.int64], n_columns: int) -> Array:
    """Values (c, ...) of some columns as values (n_columns, ...) of all, 0 for the others."""
    whole = np.zeros((n_columns, *values.shape[1:]))
    whole[columns] = values
    return whole


class BucketPlaces(NamedTuple):
    """Where rows fall: local coordinates (m, p), features (m, T or 1, p) and keys of buckets (m, T)."""

    Z: Array
    V: Array
    keys: Keys


def places(X: Array, hashes: Hashes, *, n_threads: int = 1) -> BucketPlaces:
    """Local coordinates, features and keys of rows; X (m, d) float64, C-contiguous.

    The same bits on every kernel, and for a row whatever the other rows are: sums run column by column.
    """
    found = unfilled_places(len(X), hashes)
    dispatch.chosen.places(X, *hashes, *found, n_threads)
    return found


@dispatch.kernel
def _places(X: Array, *arguments: Any) -> None:
    hashes, (Z, V, keys) = Hashes(*arguments[:7]), arguments[7:10]
    p, n_tables = hashes.local.shape[1], len(hashes.seeds)
    Z[:] = project(X, hashes.centre, hashes.local, np.zeros(p))
    points, centre = (Z, np.zeros(p)) if hashes.grid else (X, hashes.centre)
    U = project(points, centre, hashes.directions, hashes.offsets)
    cells = codes(U, hashes.signs)
    V[:] = (U - cells - 0.5).reshape(len(X), n_tables, p) if hashes.grid else Z[:, None]
    cells = cells.reshape(len(X), n_tables, hashes.directions.shape[1] // n_tables)
    keys[:] = hashes.seeds
    for j in range(cells.shape[2]):
        keys[:] = mixed(keys, cells[:, :, j])
    keys[:] = finished(keys)


def unfilled_places(m: int, hashes: Hashes) -> BucketPlaces:
    """Memory for the places of m rows."""
    p, n_tables = hashes.local.shape[1], len(hashes.seeds)
    V = np.empty((m, n_tables if hashes.grid else 1, p))
    return BucketPlaces(np.empty((m, p)), V, np.empty((m, n_tables), dtype=np.uint64))


def row_keys(rows: Array) -> Keys:
    """A 64-bit key (m,) of each row's bits; rows (m, n) float64, C-contiguous."""
    keys = np.empty(len(rows), dtype=np.uint64)
    dispatch.chosen.row_keys(rows.view(np.uint64), keys)
    return keys


@dispatch.kernel
def _row_keys(rows: Keys, keys: Keys) -> None:
    """Fill ``keys`` (m,) with the mixture of each row's words, one by one."""
    keys[:] = STEP
    for j in range(rows.shape[1]):
        keys[:] = mixed(keys, rows[:, j].view(np.int64))
    keys[:] = finished(keys)


def project(X: Array, centre: Array, directions: Array, offsets: Array) -> Any:
    """``(X - centre) @ directions + offsets``, added column by column of X, so that a row's bits are its own."""
    total = np.zeros((len(X), directions.shape[1]))
    for i in range(X.shape[1]):
        total += (X[:, i] - centre[i])[:, None] * directions[i]
    return total + offsets


def codes(U: Array, signs: bool) -> NDArray[np.int64]:
    """Cells of projections: the integer below, or 1 where positive; far ones are all alike, and NaN counts as 0."""
    if signs:
        return (U > 0).astype(np.int64)
    return np.floor(np.clip(np.nan_to_num(U, nan=0.0, posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST)).astype(
        np.int64
    )


def mixed(keys: Keys, code: NDArray[np.int64]) -> Keys:
    """Keys with one more code mixed in."""
    keys = (keys ^ code.astype(np.uint64)) * STEP
    return keys ^ (keys >> np.uint64(32))


def finished(keys: Keys) -> Keys:
    """The finaliser of splitmix64: every bit of a key depends on every bit that went in."""
    keys = (keys ^ (keys >> np.uint64(30))) * FIRST
    keys = (keys ^ (keys >> np.uint64(27))) * SECOND
    return keys ^ (keys >> np.uint64(31))


def hash_generator(random_state: int) -> np.random.Generator:
    """A generator for hash functions, independent of ``numpy.random.default_rng(random_state)``, which data may use.

    Parameters
    ----------
    random_state : int
        Any whole number from 0.

    Returns
    -------
    rng : numpy.random.Generator
        The same for the same seed.

    Examples
    --------
    >>> float(hash_generator(0).normal()) == float(np.random.default_rng(0).normal())
    False
    """
    return np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(HASHING,)))

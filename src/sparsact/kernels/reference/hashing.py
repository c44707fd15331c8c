"""Projections, integer codes and 64-bit keys of buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP, FIRST, SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
FARTHEST = 2.0**62


def project(X: NDArray[np.float64], centre: NDArray[Any], directions: NDArray[Any], offsets: NDArray[Any]) -> Any:
    """``(X - centre) @ directions + offsets``, added column by column of X, so that a row's bits are its own."""
    total = np.zeros((len(X), directions.shape[1]))
    for i in range(X.shape[1]):
        total += (X[:, i] - centre[i])[:, None] * directions[i]
    return total + offsets


def codes(U: NDArray[np.float64], signs: bool) -> NDArray[np.int64]:
    """Cells of projections: the integer below, or 1 where positive; far ones are all alike, and NaN counts as 0."""
    if signs:
        return (U > 0).astype(np.int64)
    return np.floor(np.clip(np.nan_to_num(U, nan=0.0, posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST)).astype(
        np.int64
    )


def mixed(keys: NDArray[np.uint64], code: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Keys with one more code mixed in."""
    keys = (keys ^ code.astype(np.uint64)) * STEP
    return keys ^ (keys >> np.uint64(32))


def finished(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of a key depends on every bit that went in."""
    keys = (keys ^ (keys >> np.uint64(30))) * FIRST
    keys = (keys ^ (keys >> np.uint64(27))) * SECOND
    return keys ^ (keys >> np.uint64(31))


def row_keys(rows: NDArray[np.uint64], keys: NDArray[np.uint64]) -> None:
    """Fill ``keys`` (m,) with the mixture of each row's words, one by one."""
    keys[:] = STEP
    for j in range(rows.shape[1]):
        keys[:] = mixed(keys, rows[:, j].view(np.int64))
    keys[:] = finished(keys)


def places(
    X: NDArray[np.float64],
    centre: NDArray[Any],
    local: NDArray[Any],
    directions: NDArray[Any],
    offsets: NDArray[Any],
    seeds: NDArray[np.uint64],
    grid: bool,
    signs: bool,
    Z: NDArray[np.float64],
    V: NDArray[np.float64],
    keys: NDArray[np.uint64],
    n_threads: int = 1,
) -> None:
    """Fill local coordinates Z (m, p), features V (m, T or 1, p) and keys (m, T) of rows."""
    p, n_tables = local.shape[1], len(seeds)
    Z[:] = project(X, centre, local, np.zeros(p))
    U = project(Z, np.zeros(p), directions, offsets) if grid else project(X, centre, directions, offsets)
    cells = codes(U, signs)
    V[:] = (U - cells - 0.5).reshape(len(X), n_tables, p) if grid else Z[:, None]
    cells = cells.reshape(len(X), n_tables, cells.shape[1] // n_tables)
    keys[:] = seeds
    for j in range(cells.shape[2]):
        keys[:] = mixed(keys, cells[:, :, j])
    keys[:] = finished(keys)

"""Products with the few rows of a matrix that each input selects, in the native kernels' order of additions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

PARTIAL_BYTES = 128


def gather_dot(
    X: NDArray[Any], W: NDArray[Any], indices: NDArray[np.int64], dots: NDArray[Any], n_threads: int
) -> None:
    """Fill ``dots`` (m, k); see :func:`sparsact.kernels.gather_dot`."""
    X, W = widened(X), widened(W)
    for i, places in enumerate(indices):
        taken = places >= 0
        row = np.zeros(len(places), dtype=X.dtype)
        row[taken] = row_dots(X[i], W[places[taken]])
        dots[i] = narrowed(row, dots.dtype)


def row_dots(x: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Products of x (n,) with rows (k, n): PARTIAL_BYTES of partial sums side by side, then added in halves."""
    partials = PARTIAL_BYTES // x.dtype.itemsize
    blocks = -(-len(x) // partials)
    padding = (0, blocks * partials - len(x))
    x = np.pad(x, padding).reshape(blocks, partials)
    rows = np.pad(rows, [(0, 0), padding]).reshape(len(rows), blocks, partials)
    sums = np.zeros((len(rows), partials), dtype=x.dtype)
    for block in range(blocks):
        sums += x[block] * rows[:, block]
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0]


def gather_sum(
    A: NDArray[Any], V: NDArray[Any], indices: NDArray[np.int64], sums: NDArray[Any], n_threads: int
) -> None:
    """Fill ``sums`` (m, n); see :func:`sparsact.kernels.gather_sum`."""
    A, V = widened(A), widened(V)
    for i, places in enumerate(indices):
        row = np.zeros(V.shape[1], dtype=V.dtype)
        for j, unit in enumerate(places):
            if unit >= 0:
                row += A[i, j] * V[unit]
        sums[i] = narrowed(row, sums.dtype)


def scatter_outer(
    A: NDArray[Any], X: NDArray[Any], indices: NDArray[np.int64], sums: NDArray[Any], n_threads: int
) -> None:
    """Fill the rows of ``sums`` (t, n) that ``indices`` name; see :func:`sparsact.kernels.scatter_outer`."""
    A, X = widened(A), widened(X)
    rows: dict[int, NDArray[Any]] = {}
    for (i, j), unit in np.ndenumerate(indices):
        if unit >= 0:
            rows.setdefault(int(unit), np.zeros(X.shape[1], dtype=X.dtype))[:] += A[i, j] * X[i]
    for chosen, row in rows.items():
        sums[chosen] = narrowed(row, sums.dtype)


def widened(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers to add with: bfloat16, which comes as uint16, is the upper half of a float32."""
    return (values.astype(np.uint32) << 16).view(np.float32) if values.dtype == np.uint16 else values


def narrowed(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """``values`` as they are stored: float32 becomes the nearest bfloat16, ties to even, and a NaN stays one."""
    if dtype != np.uint16:
        return values
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> 16 & 1)
    return (np.where(np.isnan(values), bits | np.uint32(0x400000), rounded) >> 16).astype(np.uint16)

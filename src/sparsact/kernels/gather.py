"""Kernels of sparse layers: products with the few rows of a matrix that each input selects.

Numbers are float64, float32, or bfloat16 given as uint16; bfloat16 is added in float32 and rounded at the end.
``indices`` (m, k) names a row at each place, or -1 where a place is not taken. The order of every sum is fixed, so
that every kernel, instruction set and number of threads gives the same bits. The three are each other's derivatives.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sparsact.kernels import dispatch

Array = NDArray[Any]
Integers = NDArray[np.int64]

PARTIAL_BYTES: Final = 128


def gather_dot(X: Array, W: Array, indices: Integers, *, n_threads: int = 1) -> Array:
    r"""Products :math:`\langle x_i, w_{r_{ij}} \rangle` of each input with the rows that it selects, (m, k).

    ``2 m k n`` operations; reads each selected row. Where places outnumber the rows, the rows are read in order, once.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Inputs, C-contiguous.
    W : ndarray of shape (t, n), of the dtype of ``X``
        Rows to select from, C-contiguous.
    indices : ndarray of shape (m, k), int64
        The rows r, C-contiguous, each in ``range(t)``; the product is 0 where it is -1.
    """
    dots = np.empty(indices.shape, dtype=X.dtype)
    dispatch.chosen.gather_dot(X, W, indices, dots, n_threads)
    return dots


@dispatch.kernel
def _gather_dot(X: Array, W: Array, indices: Integers, dots: Array, n_threads: int) -> None:
    X, W = widened(X), widened(W)
    for i, places in enumerate(indices):
        taken = places >= 0
        row = np.zeros(len(places), dtype=X.dtype)
        row[taken] = row_dots(X[i], W[places[taken]])
        dots[i] = narrowed(row, dots.dtype)


def gather_sum(A: Array, V: Array, indices: Integers, *, n_threads: int = 1) -> Array:
    r"""Sums :math:`\sum_j a_{ij} v_{r_{ij}}` of the rows that each input selects, (m, n), in order from 0.

    ``A`` is (m, k) and ``V`` (t, n); else as in :func:`gather_dot`.
    """
    sums = np.empty((len(A), V.shape[1]), dtype=V.dtype)
    dispatch.chosen.gather_sum(A, V, indices, sums, n_threads)
    return sums


@dispatch.kernel
def _gather_sum(A: Array, V: Array, indices: Integers, sums: Array, n_threads: int) -> None:
    A, V = widened(A), widened(V)
    for i, places in enumerate(indices):
        row = np.zeros(V.shape[1], dtype=V.dtype)
        for j, unit in enumerate(places):
            if unit >= 0:
                row += A[i, j] * V[unit]
        sums[i] = narrowed(row, sums.dtype)


def scatter_outer(A: Array, X: Array, indices: Integers, rows: int, *, n_threads: int = 1) -> Array:
    r"""Sums :math:`\sum_{(i, j):\, r_{ij} = r} a_{ij} x_i` for each row r, (rows, n); 0 for rows that none selects.

    ``A`` is (m, k) and ``X`` (m, n); else as in :func:`gather_dot`. Only rows that are selected are written to; the
    zeros of the others come from the operating system, which leaves the pages that hold nothing else untouched.
    """
    sums = np.zeros((rows, X.shape[1]), dtype=X.dtype)
    dispatch.chosen.scatter_outer(A, X, indices, sums, n_threads)
    return sums


@dispatch.kernel
def _scatter_outer(A: Array, X: Array, indices: Integers, sums: Array, n_threads: int) -> None:
    A, X = widened(A), widened(X)
    rows: dict[int, Array] = {}
    for (i, j), unit in np.ndenumerate(indices):
        if unit >= 0:
            rows.setdefault(int(unit), np.zeros(X.shape[1], dtype=X.dtype))[:] += A[i, j] * X[i]
    for chosen, row in rows.items():
        sums[chosen] = narrowed(row, sums.dtype)


def row_dots(x: Array, rows: Array) -> Array:
    """Products of x (n,) with rows (k, n), through PARTIAL_BYTES of partial sums."""
    return ordered_sum(x * rows, PARTIAL_BYTES // x.dtype.itemsize)


def ordered_sum(terms: Array, partials: int) -> Array:
    """Sum along the last axis: ``partials`` interleaved sums from 0, which are then added in halves."""
    *rows, n = terms.shape
    blocks = -(-n // partials) + 1
    padded = np.zeros((*rows, blocks * partials), dtype=terms.dtype)
    padded[..., partials : partials + n] = terms
    sums: Array = np.add.accumulate(padded.reshape(*rows, blocks, partials), axis=-2)[..., -1, :]
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    total: Array = sums[..., 0]
    return total


def widened(values: Array) -> Array:
    """``values``; bfloat16 (given as uint16), the upper half of a float32, and float16 as float32."""
    if values.dtype == np.float16:
        return values.astype(np.float32)
    return (values.astype(np.uint32) << 16).view(np.float32) if values.dtype == np.uint16 else values


def narrowed(values: Array, dtype: DTypeLike) -> Array:
    """``values`` in the stored dtype: float32 becomes the nearest half, ties to even, and a NaN stays one."""
    if dtype != np.uint16:
        return values.astype(dtype) if dtype == np.float16 else values
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> 16 & 1)
    return (np.where(np.isnan(values), bits | np.uint32(0x400000), rounded) >> 16).astype(np.uint16)

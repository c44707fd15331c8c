"""Bits of a table as one packed column per coordinate: packing, transposing, counting parities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import WORD, Masks, subsets_of
from sparsact.kernels import dispatch

Words = NDArray[np.uint64]


def pack_columns(X: NDArray[Any], zero: float, one: float) -> tuple[Words, int]:
    """Pack a table of two values into bits, a packed column per coordinate; find the first element that is neither.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Any strides; bool, int8, uint8, int32, int64, float32 or float64.
    zero, one : float
        The values that stand for bit 0 and bit 1.

    Returns
    -------
    columns : ndarray of shape (n, ceil(m / 64)), uint64
        Bit ``r % 64`` of word ``r // 64`` of column ``j`` is ``X[r, j] == one``; padding bits are 0.
    bad : int
        Flat index ``r * n + j`` of the first element (row by row) that equals neither value, or -1.
    """
    m, n = X.shape
    columns = np.empty((n, _n_words(m)), dtype=np.uint64)
    bad = dispatch.chosen.pack_columns(X.view(np.uint8) if X.dtype == np.bool_ else X, zero, one, columns)
    return columns, bad


@dispatch.kernel
def _pack_columns(X: NDArray[Any], zero: float, one: float, columns: Words) -> int:
    bits = np.equal(X, one)
    columns[...] = packed_rows(bits.T)
    bad = ~(bits | np.equal(X, zero))
    return int(np.argmax(bad)) if bad.any() else -1


def transpose_bits(columns: Words, n_rows: int) -> Words:
    """Transpose packed columns (n, ceil(n_rows / 64)) to packed rows (n_rows, ceil(n / 64)), or rows to columns.

    Parameters
    ----------
    columns : ndarray of shape (n, ceil(n_rows / 64)), uint64
        Packed columns.
    n_rows : int
        Rows that count.

    Returns
    -------
    rows : ndarray of shape (n_rows, ceil(n / 64)), uint64
        Packed rows.
    """
    rows = np.empty((n_rows, _n_words(len(columns))), dtype=np.uint64)
    dispatch.chosen.transpose_bits(columns, rows)
    return rows


@dispatch.kernel
def _transpose_bits(columns: Words, rows: Words) -> None:
    rows[...] = packed_rows(unpacked_rows(columns, len(rows)).T)


def parity_counts(columns: Words, planes: Words, masks: Masks, *, n_threads: int = 1) -> NDArray[np.int64]:
    """Count the rows of each plane where a subset's bits have odd parity: popcount of ``plane & xor of columns``.

    Parameters
    ----------
    columns : ndarray of shape (n, words), uint64
        Packed columns, C-contiguous.
    planes : ndarray of shape (P, words), uint64
        Sets of rows, C-contiguous.
    masks : ndarray of shape (N, W), uint64
        Subsets, C-contiguous, in any order. Fastest when neighbours share their highest (or their lowest) coordinates.
    n_threads : int
        Threads over the subsets.

    Returns
    -------
    counts : ndarray of shape (P, N), int64
    """
    counts = np.empty((len(planes), len(masks)), dtype=np.int64)
    dispatch.chosen.parity_counts(columns, planes, masks, counts, n_threads)
    return counts


@dispatch.kernel
def _parity_counts(columns: Words, planes: Words, masks: Masks, counts: NDArray[np.int64], n_threads: int) -> None:
    for k, subset in enumerate(subsets_of(masks)):
        parity = np.bitwise_xor.reduce(columns[list(subset)], axis=0)
        counts[:, k] = np.bitwise_count(planes & parity).sum(axis=1, dtype=np.int64)


def packed_rows(bits: NDArray[Any]) -> Words:
    """Words (N, ceil(m / 64)) of rows of m bits, bit ``r % 64`` of word ``r // 64``; padding bits are 0."""
    n, m = bits.shape
    padded = np.zeros((n, -(-m // WORD) * WORD), dtype=np.uint8)
    padded[:, :m] = bits
    # Bytes are read as little-endian words, so that the order of bits does not depend on the machine.
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def unpacked_rows(words: Words, m: int) -> NDArray[np.uint8]:
    """Bits (N, m) of rows of packed words."""
    little = np.ascontiguousarray(words.astype("<u8", copy=False))
    if not little.size:
        return np.zeros((len(words), m), dtype=np.uint8)
    return np.unpackbits(little.view(np.uint8), axis=1, count=m, bitorder="little")


def _n_words(m: int) -> int:
    return -(-m // WORD)

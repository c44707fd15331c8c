"""Bits of a table, one packed column a coordinate: packing, transposing, counting parities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.hypercube import WORD, Masks, subsets_of


def pack_columns(X: NDArray[Any], zero: float, one: float, columns: NDArray[np.uint64]) -> int:
    """Fill ``columns`` with the bits ``X == one``; flat index of the first value that is neither, or -1."""
    bits = np.equal(X, one)
    columns[...] = packed_rows(bits.T)
    bad = ~(bits | np.equal(X, zero))
    return int(np.argmax(bad)) if bad.any() else -1


def transpose_bits(columns: NDArray[np.uint64], rows: NDArray[np.uint64]) -> None:
    """Fill ``rows`` (m, n words) from ``columns`` (n, m words)."""
    rows[...] = packed_rows(unpacked_rows(columns, len(rows)).T)


def parity_counts(
    columns: NDArray[np.uint64], planes: NDArray[np.uint64], masks: Masks, counts: NDArray[np.int64], n_threads: int
) -> None:
    """Fill ``counts`` (P, N): rows of each plane at which an odd number of the subset's bits is set."""
    for k, subset in enumerate(subsets_of(masks)):
        parity = np.bitwise_xor.reduce(columns[list(subset)], axis=0)
        counts[:, k] = np.bitwise_count(planes & parity).sum(axis=1, dtype=np.int64)


def packed_rows(bits: NDArray[Any]) -> NDArray[np.uint64]:
    """Words (N, ceil(m / 64)) of rows of m bits, bit ``r % 64`` of word ``r // 64``; padding bits are 0."""
    n, m = bits.shape
    padded = np.zeros((n, -(-m // WORD) * WORD), dtype=np.uint8)
    padded[:, :m] = bits
    # Bytes are read as little-endian words, so that the order of bits does not depend on the machine.
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def unpacked_rows(words: NDArray[np.uint64], m: int) -> NDArray[np.uint8]:
    """Bits (N, m) of rows of packed words."""
    little = np.ascontiguousarray(words.astype("<u8", copy=False))
    if not little.size:
        return np.zeros((len(words), m), dtype=np.uint8)
    return np.unpackbits(little.view(np.uint8), axis=1, count=m, bitorder="little")

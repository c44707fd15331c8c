"""Digests of sets of rows: equal sets have equal digests, others do not (but for chance, 2**-64 a pair).

Every row of a table has a fixed random number of 64 bits; the digest of a set is their sum modulo 2**64. It does not
depend on how the rows are cut into batches, and digests of disjoint sets add up to that of their union.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MODULUS = 1 << 64
MOST_ROWS = 1 << 21  # of a batch: sums of halves of that many numbers are exact in float64
_ENTRIES = 1 << 20  # of a block of bits
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


@dataclass(frozen=True)
class RowNumbers:
    """Random numbers of consecutive rows, (m,) uint64, and their halves as float64, (2, m)."""

    numbers: NDArray[np.uint64]
    halves: NDArray[np.float64]

    @classmethod
    def of(cls, first_row: int, m: int) -> RowNumbers:
        """Those of rows ``first_row`` to ``first_row + m - 1`` of the table."""
        numbers = mixed(np.arange(first_row, first_row + m, dtype=np.uint64))
        return cls(numbers, np.stack([numbers & _LOW, numbers >> _HALF]).astype(np.float64))

    def of_groups(self, group: NDArray[np.intp], n_groups: int) -> list[int]:
        """Digest of each group of rows, where row i is in ``group[i]``."""
        low, high = (np.bincount(group, weights=half, minlength=n_groups) for half in self.halves)
        return [(int(a) + (int(b) << 32)) % MODULUS for a, b in zip(low, high, strict=True)]

    def of_bits(self, bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Digest of the rows that have each bit, (n,), from bits (m, n)."""
        sums = np.zeros((2, bits.shape[1]))
        step = max(1, _ENTRIES // bits.shape[1])
        for row in range(0, len(bits), step):
            sums += self.halves[:, row : row + step] @ bits[row : row + step].astype(np.float64)
        low, high = sums.astype(np.uint64)
        return np.asarray(low + (high << _HALF))

    def of_values(self, keys: NDArray[np.uint64]) -> int:
        """Digest of a column of values, each given by a key."""
        with np.errstate(over="ignore"):
            return int((self.numbers * mixed(keys)).sum())


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 of each key (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014)."""
    with np.errstate(over="ignore"):
        z = (keys + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def number_keys(values: NDArray[np.float64], rest: NDArray[np.float64] | None = None) -> NDArray[np.uint64]:
    """A key for each number ``values + rest``; equal numbers have equal keys."""
    keys = (values + 0.0).view(np.uint64)  # -0 becomes 0
    return keys if rest is None else keys + rest.astype(np.int64).view(np.uint64)

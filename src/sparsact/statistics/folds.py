"""Folds of the rows of a stream, by the number of a row and a seed alone."""

from __future__ import annotations

from itertools import count
from math import gcd
from typing import Final

import numpy as np
from numpy.typing import NDArray

_MAX_SHUFFLED: Final = 1 << 16


def assign_folds(first: int, n_rows: int, n_folds: int, seed: int) -> NDArray[np.intp]:
    """Folds of rows first..first + n_rows - 1 of a stream: each block of ``n_folds`` rows is a random permutation.

    Depends on the row's number and the seed alone, not on how the stream was cut. Blocks of very many folds are never
    written out: their permutations are affine, with a random multiplier and shift.
    """
    if n_folds > _MAX_SHUFFLED:
        return np.array([_affine(row // n_folds, row % n_folds, n_folds, seed) for row in range(first, first + n_rows)])
    block = np.arange(first // n_folds, (first + n_rows - 1) // n_folds + 1)
    numbers = block[:, None] * n_folds + np.arange(n_folds)
    keys = mixed(numbers.astype(np.uint64), seed)
    folds = keys.argsort(axis=1, kind="stable").ravel()
    return folds[first % n_folds :][:n_rows]


def _affine(block: int, place: int, n_folds: int, seed: int) -> int:
    """Where a permutation that depends on the block and the seed takes a place."""
    for draw in count():
        shift, factor = (int(word) for word in mixed(np.array([block, draw + 1], dtype=np.uint64), seed))
        if gcd(factor, n_folds) == 1:
            return (factor * place + shift) % n_folds
    raise AssertionError  # some odd number in 64 bits is prime to n_folds


def mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea, Flood 2014): random-looking words that depend on the number and the seed alone."""
    with np.errstate(over="ignore"):
        z = (numbers + np.uint64(int(seed) % 2**64)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))

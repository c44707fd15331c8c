from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsact.hypercube import n_words
from sparsact.kernels.subset_ranks import character_sums

pytestmark = pytest.mark.usefixtures("backend")

# (n, size, rows, limbs): a block and several, of one width and of two, one to three words, no subset but the empty one.
SHAPES = [
    (3, 2, 50, 1),
    (5, 0, 70, 2),
    (7, 3, 1009, 3),
    (11, 11, 333, 1),
    (12, 4, 65 * 64, 2),
    (23, 2, 700, 4),
    (70, 2, 257, 1),
    (131, 1, 90, 2),
    (9, 3, 0, 2),
]


def packed(bits: np.ndarray) -> np.ndarray:
    codes = np.zeros((len(bits), n_words(bits.shape[1])), dtype=np.uint64)
    for i, column in enumerate(bits.T.astype(np.uint64)):
        codes[:, i // 64] |= column << np.uint64(i % 64)
    return codes


def by_definition(bits: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """Subsets by the numbers that they spell; each character is a product of signs."""
    signs, n = 1 - 2 * bits.astype(np.int64), bits.shape[1]
    subsets = [members for k in range(size + 1) for members in combinations(range(n), k)]
    subsets.sort(key=lambda members: sum(1 << i for i in members))
    return np.stack([values @ signs[:, list(members)].prod(axis=1) for members in subsets], axis=1)


@pytest.mark.parametrize(("n", "size", "m", "limbs"), SHAPES)
@pytest.mark.parametrize("n_threads", [1, 3])
def test_sums_match_the_definition(n, size, m, limbs, n_threads):
    rng = np.random.default_rng([n, size, m])
    bits = rng.random((m, n)) < rng.random(n)  # some cells hold many rows, some none
    values = rng.integers(-(2**32), 2**32, (limbs, m)) >> rng.integers(0, 34, (limbs, 1))
    codes = packed(bits)
    before = codes.copy(), values.copy()
    sums = character_sums(codes, values, n, size, n_threads=n_threads)
    assert sums.dtype == np.int64
    np.testing.assert_array_equal(sums, by_definition(bits, values, size))
    np.testing.assert_array_equal(codes, before[0])
    np.testing.assert_array_equal(values, before[1])


@pytest.mark.parametrize("value", [0, 1, -1, 2**31, -(2**32), 2**32 - 1])
def test_every_digit_of_a_value_counts(value):
    bits = np.random.default_rng(4).integers(0, 2, (301, 13))
    values = np.full((1, 301), value)
    np.testing.assert_array_equal(character_sums(packed(bits), values, 13, 2), by_definition(bits, values, 2))


def test_equal_rows_stand_in_one_cell():
    bits = np.repeat(np.random.default_rng(5).integers(0, 2, (1, 17)), 5003, axis=0)
    values = np.arange(-2, 5001)[None]
    sums = character_sums(packed(bits), values, 17, 3)
    np.testing.assert_array_equal(np.abs(sums), np.full(sums.shape, values.sum()))

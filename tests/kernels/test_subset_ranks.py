from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.hypercube import n_subsets, n_words, subset_masks
from sparsact.kernels.dispatch import reference

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

# (n, size): none and one member, more members than coordinates, one to three words.
SHAPES = [(0, 0), (0, 2), (1, 1), (7, 0), (7, 1), (6, 3), (5, 5), (3, 8), (64, 2), (65, 2), (70, 3), (131, 2), (300, 1)]


def numbers(masks: np.ndarray) -> list[int]:
    return [sum(int(word) << 64 * w for w, word in enumerate(mask)) for mask in masks]


@pytest.mark.parametrize(("n", "size"), SHAPES)
def test_subsets_are_all_small_ones_in_numeric_order(n, size):
    subsets = kernels.subsets_in_order(n, size)
    assert (subsets.dtype, subsets.shape) == (np.uint64, (n_subsets(n, size), n_words(n)))
    expected = np.empty_like(subsets)
    reference.subsets_in_order(n, size, expected)
    np.testing.assert_array_equal(subsets, expected)
    small = [sum(1 << i for i in members) for k in range(size + 1) for members in combinations(range(n), k)]
    assert numbers(subsets) == sorted(small)


@pytest.mark.parametrize(
    ("n", "degree"),
    [
        (0, 0),
        (5, 0),
        (4, 1),
        (3, 2),
        (5, 3),
        (23, 2),
        (66, 1),
        pytest.param(70, 2, marks=pytest.mark.slow),
        (131, 1),
        (300, 1),
    ],
)
def test_differences_of_a_full_family_by_rank_match_a_search(n, degree):
    masks, size = subset_masks(n, degree), min(2 * degree, n)
    unique, position = kernels.symmetric_differences(masks)
    np.testing.assert_array_equal(kernels.subsets_in_order(n, size), unique)
    ranks = kernels.ranked_gram(masks, np.arange(float(len(unique))), n, size)
    np.testing.assert_array_equal(ranks, position)


@pytest.mark.parametrize(("n", "size"), SHAPES)
def test_the_rank_of_a_subset_is_its_place(n, size):
    subsets = kernels.subsets_in_order(n, size)
    for place in range(0, len(subsets), 1 + len(subsets) // 50):
        pair = np.concatenate([subsets[:1], subsets[place : place + 1]])  # the empty subset and this one
        ranks = kernels.ranked_gram(pair, np.arange(float(len(subsets))), n, size)
        np.testing.assert_array_equal(ranks, [[0, place], [place, 0]])


@properties
@given(
    shape=st.sampled_from([(1, 1), (7, 3), (9, 8), (23, 2), (66, 1), (67, 2), (150, 1)]),
    D=st.integers(0, 150),
    n_threads=st.sampled_from([0, 1, 3]),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_backend_gathers_the_same_moments(shape, D, n_threads, seed):
    n, degree = shape
    size = min(2 * degree, n)
    rng = np.random.default_rng(seed)
    masks = rng.choice(subset_masks(n, degree), D)  # in any order, some of them twice
    moments = rng.normal(size=n_subsets(n, size))
    before = masks.copy(), moments.copy()
    gram = kernels.ranked_gram(masks, moments, n, size, n_threads=n_threads)
    expected = np.empty_like(gram)
    reference.ranked_gram(masks, moments, n, size, expected, 1)
    np.testing.assert_array_equal(gram, expected)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(masks, before[0])
    np.testing.assert_array_equal(moments, before[1])

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.hypercube import characters, n_words, subset_masks, subsets_of
from sparsact.kernels.dispatch import reference

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 2**32 - 1)


def words(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, 2**64, size=shape, dtype=np.uint64)


def random_masks(rng: np.random.Generator, n: int, N: int, density: float) -> np.ndarray:
    """Subsets in any order, some of them repeated, some of them prefixes of others."""
    members = rng.random((N, n)) < density
    masks = np.zeros((N, n_words(n)), dtype=np.uint64)
    for k, i in np.argwhere(members):
        masks[k, i // 64] |= np.uint64(1) << np.uint64(i % 64)
    return masks[rng.integers(0, N, size=N)] if N else masks


def expected(columns, planes, masks):
    counts = np.empty((len(planes), len(masks)), dtype=np.int64)
    reference.parity_counts(columns, planes, masks, counts, 1)
    return counts


@properties
@given(
    n=st.integers(0, 140),
    N=st.integers(0, 60),
    n_planes=st.integers(0, 4),
    n_words_of_rows=st.one_of(st.integers(0, 40), st.integers(500, 530), st.just(1050)),
    density=st.sampled_from([0.02, 0.3, 0.9]),
    ordered=st.booleans(),
    n_threads=st.integers(0, 3),
    seed=seeds,
)
def test_equals_the_reference(n, N, n_planes, n_words_of_rows, density, ordered, n_threads, seed):
    rng = np.random.default_rng(seed)
    columns, planes = words(rng, n, n_words_of_rows), words(rng, n_planes, n_words_of_rows)
    masks = random_masks(rng, n, N, density)
    if ordered:
        masks = masks[np.lexsort(masks.T)]
    before = [array.copy() for array in (columns, planes, masks)]
    counts = kernels.parity_counts(columns, planes, masks, n_threads=n_threads)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, expected(columns, planes, masks))
    for array, copy in zip((columns, planes, masks), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(("numeric_order", "n_threads"), [(False, 0), (True, 1), (False, 2), (True, 3)])
def test_all_small_subsets(numeric_order, n_threads):
    """Thousands of masks: more than one chunk, and long runs of leaves under one parent."""
    rng = np.random.default_rng(3)
    n, m = 67, 83
    masks = subset_masks(n, 3)[:9001]
    if numeric_order:
        masks = masks[np.lexsort(masks.T)]
    signs = 1 - 2 * rng.integers(0, 2, size=(m, n))
    columns, _ = kernels.pack_columns(signs, 1, -1)
    planes = words(rng, 2, columns.shape[1])
    inside = planes[:, np.arange(m) // 64] >> (np.arange(m) % 64).astype(np.uint64) & np.uint64(1)
    odd = characters(signs, subsets_of(masks)) < 0
    counts = kernels.parity_counts(columns, planes, masks, n_threads=n_threads)
    np.testing.assert_array_equal(counts, inside.astype(np.int64) @ odd.astype(np.int64))


def test_large_masks_fill_the_plan_more_than_once():
    rng = np.random.default_rng(5)
    columns, planes = words(rng, 130, 3), words(rng, 1, 3)
    masks = words(rng, 400, 3)
    masks[:, 2] &= np.uint64(3)
    np.testing.assert_array_equal(kernels.parity_counts(columns, planes, masks), expected(columns, planes, masks))


def test_the_empty_subset_counts_nothing():
    rng = np.random.default_rng(7)
    counts = kernels.parity_counts(words(rng, 5, 2), words(rng, 3, 2), np.zeros((2, 1), dtype=np.uint64))
    np.testing.assert_array_equal(counts, np.zeros((3, 2)))

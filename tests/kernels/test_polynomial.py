from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.hypercube import bits_to_signs, n_words, subset_masks, subsets_of
from sparsact.kernels.dispatch import reference

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 2**32 - 1)
sizes = {
    "m": st.one_of(st.integers(0, 20), st.integers(60, 200)),
    "n": st.integers(0, 90),
    "N": st.integers(0, 40),
    "T": st.integers(0, 11),
    "density": st.sampled_from([0.02, 0.2, 0.9]),
    "ordered": st.booleans(),
    "n_threads": st.integers(0, 3),
    "seed": seeds,
}


def random_masks(rng: np.random.Generator, n: int, N: int, density: float, ordered: bool) -> np.ndarray:
    masks = np.zeros((N, n_words(n)), dtype=np.uint64)
    for k, i in np.argwhere(rng.random((N, n)) < density):
        masks[k, i // 64] |= np.uint64(1) << np.uint64(i % 64)
    return masks[np.lexsort(masks.T)] if ordered else masks


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype == np.float64
    assert a.shape == b.shape
    np.testing.assert_array_equal(a.view(np.uint64), b.view(np.uint64))


@properties
@given(**sizes)
def test_real_points_have_the_bits_of_the_reference(m, n, N, T, density, ordered, n_threads, seed):
    rng = np.random.default_rng(seed)
    X, coefficients = rng.normal(size=(m, n)), rng.normal(size=(N, T))
    masks = random_masks(rng, n, N, density, ordered)
    expected = np.empty((m, T))
    reference.evaluate(X, masks, coefficients, expected, 1)
    before = [array.copy() for array in (X, masks, coefficients)]
    same_bits(kernels.evaluate(X, masks, coefficients, n_threads=n_threads), expected)
    for array, copy in zip((X, masks, coefficients), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@properties
@given(**sizes)
def test_packed_points_have_the_bits_of_their_signs(m, n, N, T, density, ordered, n_threads, seed):
    rng = np.random.default_rng(seed)
    bits, coefficients = rng.integers(0, 2, size=(m, n)), rng.normal(size=(N, T))
    masks = random_masks(rng, n, N, density, ordered)
    columns, _ = kernels.pack_columns(bits, 0, 1)
    signs = bits_to_signs(bits).astype(np.float64)
    expected = np.empty((m, T))
    reference.evaluate(signs, masks, coefficients, expected, 1)
    before = columns.copy()
    same_bits(kernels.evaluate_packed(columns, m, masks, coefficients, n_threads=n_threads), expected)
    np.testing.assert_array_equal(columns, before)


@pytest.mark.parametrize(("T", "numeric_order"), [(1, True), (3, False)])
def test_more_monomials_than_one_plan_holds(T, numeric_order):
    rng = np.random.default_rng(11)
    m, n = 77, 41
    masks = subset_masks(n, 3)[::-1].copy()
    if numeric_order:
        masks = masks[np.lexsort(masks.T)]
    X, coefficients = rng.normal(size=(m, n)), rng.normal(size=(len(masks), T))
    expected = np.empty((m, T))
    reference.evaluate(X, masks, coefficients, expected, 1)
    same_bits(kernels.evaluate(X, masks, coefficients, n_threads=2), expected)


def test_the_sum_is_the_polynomial():
    rng = np.random.default_rng(13)
    X, masks = rng.normal(size=(70, 6)), subset_masks(6, 4)
    coefficients = rng.normal(size=(len(masks), 2))
    monomials = np.stack([X[:, list(subset)].prod(axis=1) for subset in subsets_of(masks)], axis=1)
    np.testing.assert_allclose(kernels.evaluate(X, masks, coefficients), monomials @ coefficients, rtol=1e-12)


def test_infinite_values_stay_where_they_are():
    """Products that belong to no mask, and rows that fill up a block, touch no result."""
    X = np.full((3, 2), [np.inf, 0.0])
    masks = np.array([[0], [1]], dtype=np.uint64)
    np.testing.assert_array_equal(kernels.evaluate(X, masks, np.array([[1.0], [2.0]])), np.full((3, 1), np.inf))

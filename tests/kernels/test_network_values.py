from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.kernels.dispatch import reference

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
sizes = {
    "m": st.one_of(st.integers(0, 20), st.integers(60, 200)),
    "n": st.integers(1, 90),
    "s": st.integers(0, 40),
    "density": st.sampled_from([0.0, 0.05, 0.9]),
    "dtype": st.sampled_from([np.float64, np.float32, np.int8, np.int64]),
    "n_threads": st.integers(0, 3),
    "seed": st.integers(0, 2**32 - 1),
}


def network(rng: np.random.Generator, s: int, n: int, density: float) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    W = sp.csr_array(rng.normal(size=(s, n)) * (rng.random((s, n)) < density))
    return W, rng.normal(size=s), rng.normal(size=s)


def rows(rng: np.random.Generator, m: int, n: int, dtype: type) -> np.ndarray:
    return (10 * rng.normal(size=(m, n))).astype(dtype)


def expected_values(X: np.ndarray, W: sp.csr_array, u: np.ndarray, b: np.ndarray) -> np.ndarray:
    values = np.empty(len(X))
    reference.sparse_network_values(X, W.indptr, W.indices, W.data, u, b, values, 1)
    return values


@properties
@given(**sizes)
def test_sparse_values_have_the_bits_of_the_reference(m, n, s, density, dtype, n_threads, seed):
    rng = np.random.default_rng(seed)
    (W, u, b), X = network(rng, s, n, density), rows(rng, m, n, dtype)
    before = [array.copy() for array in (X, W.data, W.indices, u, b)]
    values = kernels.network_values(X, W, u, b, n_threads=n_threads)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values.view(np.uint64), expected_values(X, W, u, b).view(np.uint64))
    for array, copy in zip((X, W.data, W.indices, u, b), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@properties
@given(**sizes)
def test_active_units_match_the_reference(m, n, s, density, dtype, n_threads, seed):
    rng = np.random.default_rng(seed)
    (W, _, b), X = network(rng, s, n, density), rows(rng, m, n, dtype)
    tolerance = rng.choice([0.0, 3.0], size=s)
    expected = np.empty((2, m), dtype=np.int64)
    reference.sparse_active_units(X, W.indptr, W.indices, W.data, b, tolerance, *expected, 1)
    np.testing.assert_array_equal(kernels.active_units(X, W, b, tolerance, n_threads=n_threads), expected)


@grid(sparse=[False, True], dtype=[np.float64, np.float32, np.int8])
def test_values_match_the_formula(sparse, dtype):
    rng = np.random.default_rng(29)
    (W, u, b), X = network(rng, 37, 21, 0.3), rows(rng, 143, 21, dtype)
    expected = np.maximum(X @ W.toarray().T - b, 0) @ u
    found = kernels.network_values(X, W if sparse else W.toarray(), u, b)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_active_units_of_the_formula():
    rng = np.random.default_rng(31)
    (W, _, b), X = network(rng, 37, 21, 0.3), rows(rng, 143, 21, np.int8)
    lower, upper = kernels.active_units(X, W, b, np.zeros(37))
    np.testing.assert_array_equal(lower, np.count_nonzero(X @ W.toarray().T - b > 0, axis=1))
    np.testing.assert_array_equal(upper, lower)


def test_any_layout_and_any_width_of_index():
    rng = np.random.default_rng(37)
    (W, u, b), X = network(rng, 11, 70, 0.2), rows(rng, 83, 70, np.float64)
    expected = expected_values(X, W, u, b)
    wide = sp.csr_array((W.data, W.indices.astype(np.int64), W.indptr.astype(np.int64)), shape=W.shape)
    for points, weights in ((np.asfortranarray(X), W), (np.repeat(X, 2, axis=0)[::2], W), (X, wide)):
        np.testing.assert_array_equal(kernels.network_values(points, weights, u, b), expected)


def test_what_overflows_stays_in_its_row():
    X = np.array([[1e308, 1e308], [1.0, -1.0], [-1e308, 1.0]])
    W = sp.csr_array(np.array([[10.0, 0.0], [0.0, 1.0]]))
    with np.errstate(over="ignore"):
        found = kernels.network_values(X, W, np.ones(2), np.zeros(2))
    np.testing.assert_array_equal(found, [np.inf, 10.0, 1.0])


def test_a_unit_at_its_tolerance_is_not_above_it():
    rng = np.random.default_rng(43)
    m, n, s = 150, 11, 23
    W, b, X = rng.integers(-2, 3, size=(s, n)), rng.integers(-2, 3, size=s), rng.choice([-1, 1], size=(m, n))
    tolerance, z = rng.integers(0, 3, size=s), X @ W.T - b
    lower, upper = kernels.active_units(X, sp.csr_array(W.astype(float)), b.astype(float), tolerance.astype(float))
    np.testing.assert_array_equal(lower, np.count_nonzero(z > tolerance, axis=1))
    np.testing.assert_array_equal(upper, np.count_nonzero(z > -tolerance, axis=1))
    assert (z == tolerance).any()
    assert (z == -tolerance).any()

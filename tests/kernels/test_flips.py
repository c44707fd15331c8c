from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.fourier import sensitivity
from sparsact.hypercube import points

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def network(rng: np.random.Generator, s: int, n: int, density: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    W = rng.normal(size=(s, n)) * (rng.random((s, n)) < density)
    return W, rng.normal(size=s), rng.normal(size=s) * rng.choice([0.1, 1.0, 10.0], size=s)


def signs(rng: np.random.Generator, m: int, n: int, dtype: type = np.int8) -> np.ndarray:
    return (1 - 2 * rng.integers(0, 2, size=(m, n))).astype(dtype)


def values(X: np.ndarray, W: np.ndarray, u: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(X @ W.T - b, 0) @ u


@properties
@given(
    m=st.integers(0, 40),
    n=st.integers(1, 150),
    s=st.integers(0, 40),
    density=st.sampled_from([0.0, 0.05, 0.9]),
    sparse=st.booleans(),
    dtype=st.sampled_from([np.int8, np.int64, np.float32, np.float64]),
    n_threads=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_differences_and_squares_have_the_bits_of_the_reference(m, n, s, density, sparse, dtype, n_threads, seed):
    rng = np.random.default_rng(seed)
    W, u, b = network(rng, s, n, density)
    X, weights = signs(rng, m, n, dtype), sp.csr_array(W) if sparse else W
    before = [array.copy() for array in (X, W, u, b)]
    with kernels.using("reference"):
        expected = kernels.flip_differences(X, weights, u, b), kernels.flip_squares(X, weights, u, b)
    found = (
        kernels.flip_differences(X, weights, u, b, n_threads=n_threads),
        kernels.flip_squares(X, weights, u, b, n_threads=n_threads),
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == np.float64
        np.testing.assert_array_equal(ours.view(np.uint64), theirs.view(np.uint64))
    for array, copy in zip((X, W, u, b), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("sparse", [False, True])
def test_differences_match_values(sparse):
    rng = np.random.default_rng(41)
    m, n, s = 13, 70, 29
    W, u, b = network(rng, s, n, 0.3)
    X = signs(rng, m, n)
    flipped = X[:, None, :] * (1 - 2 * np.eye(n))
    expected = values(X, W, u, b)[:, None] - values(flipped.reshape(-1, n), W, u, b).reshape(m, n)
    found = kernels.flip_differences(X, sp.csr_array(W) if sparse else W, u, b)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("sparse", [False, True])
def test_squares_are_the_sensitivity_of_the_table(sparse):
    rng = np.random.default_rng(43)
    n, s = 7, 11
    W, u, b = network(rng, s, n, 0.6)
    found = kernels.flip_squares(points(n), sp.csr_array(W) if sparse else W, u, b)
    np.testing.assert_allclose(found, sensitivity(values(points(n), W, u, b)), rtol=1e-11)


def test_units_at_the_edge_of_one_flip():
    """relu(x_0 + x_1 - 1) is on at (1, 1) alone; relu(x_0 + x_1 + 2) is off at (-1, -1) alone, where it is a tie."""
    X, W = np.array([[1, 1], [1, -1], [-1, -1]]), np.array([[1.0, 1.0]])
    found = kernels.flip_differences(X, W, np.array([3.0]), np.array([1.0]))
    np.testing.assert_array_equal(found, [[3.0, 3.0], [0.0, -3.0], [0.0, 0.0]])
    found = kernels.flip_differences(X, W, np.array([3.0]), np.array([-2.0]))
    np.testing.assert_array_equal(found, [[6.0, 6.0], [6.0, -6.0], [-6.0, -6.0]])


def test_blocks_of_rows(monkeypatch):
    rng = np.random.default_rng(47)
    W, u, b = network(rng, 17, 31, 0.5)
    X = signs(rng, 23, 31)
    expected = kernels.flip_differences(X, W, u, b)
    monkeypatch.setattr(import_module("sparsact.kernels.network_values"), "DIFFERENCES_AT_ONCE", 5 * 31)
    np.testing.assert_allclose(kernels.flip_differences(X, W, u, b), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(kernels.flip_squares(X, W, u, b), (expected**2).sum(axis=1) / 4, rtol=1e-12)

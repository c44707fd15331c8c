from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels

pytestmark = pytest.mark.usefixtures("backend")
# The backend is chosen once a test, not once an example: that is what is meant.
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float32", "float64"]
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every third column": lambda X: np.repeat(X, 3, axis=1)[:, ::3],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "transposed slice": lambda X: np.repeat(X.T, 2, axis=1).copy()[:, ::2].T,
}
shapes = st.tuples(st.integers(0, 200), st.integers(0, 140))
seeds = st.integers(0, 2**32 - 1)


def random_words(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Packed columns with zero padding, by a way that shares nothing with the kernels."""
    words = np.zeros((n, -(-m // 64)), dtype=np.uint64)
    for j, r in np.argwhere(rng.integers(0, 2, size=(n, m))):
        words[j, r // 64] |= np.uint64(1) << np.uint64(r % 64)
    return words


@pytest.mark.parametrize("dtype", DTYPES)
@properties
@given(layout=st.sampled_from(list(LAYOUTS)), shape=shapes, seed=seeds)
def test_a_bit_is_where_the_value_is_one(dtype, layout, shape, seed):
    bits = np.random.default_rng(seed).integers(0, 2, size=shape)
    signed = dtype not in ("bool", "uint8")
    zero, one = (1, -1) if signed else (0, 1)
    X = LAYOUTS[layout]((1 - 2 * bits if signed else bits).astype(dtype))
    before = X.copy()
    columns, bad = kernels.pack_columns(X, zero, one)
    assert bad == -1
    assert columns.shape == (shape[1], -(-shape[0] // 64))
    assert columns.dtype == np.uint64
    np.testing.assert_array_equal(X, before)
    r = np.arange(shape[0])
    unpacked = columns[:, r // 64] >> (r % 64).astype(np.uint64) & np.uint64(1)
    np.testing.assert_array_equal(unpacked.T, bits)
    assert np.bitwise_count(columns).sum() == bits.sum()  # padding bits are 0


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32", "float64"])
@properties
@given(
    layout=st.sampled_from(list(LAYOUTS)),
    m=st.integers(1, 150),
    n=st.integers(1, 90),
    n_bad=st.integers(1, 4),
    seed=seeds,
)
def test_the_first_bad_element_is_named(dtype, layout, m, n, n_bad, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(m, n)).astype(dtype)
    wrong = rng.integers(0, m * n, size=n_bad)
    X.ravel()[wrong] = rng.choice([2.0, -1.0, 0.5, np.nan] if X.dtype.kind == "f" else [2, -1, 3])
    columns, bad = kernels.pack_columns(LAYOUTS[layout](X), 0, 1)
    assert bad == wrong.min()
    np.testing.assert_array_equal(columns, kernels.pack_columns(X == 1, 0, 1)[0])


def test_minus_zero_is_zero():
    assert kernels.pack_columns(np.array([[-0.0, 1.0, 0.0]]), 0, 1)[1] == -1


@pytest.mark.parametrize("dtype", ["uint8", "bool"])
def test_a_value_that_the_dtype_cannot_hold_is_nowhere(dtype):
    X = np.array([[1, 0], [1, 1]], dtype=dtype)
    columns, bad = kernels.pack_columns(X, 1, -1)
    assert bad == 1
    np.testing.assert_array_equal(columns, [[0], [0]])
    if dtype == "uint8":
        assert kernels.pack_columns(np.full((3, 2), 255, dtype=dtype), 1, -1)[1] == 0


@properties
@given(n=st.integers(0, 150), m=st.integers(0, 700), seed=seeds)
def test_transposed_bits_are_the_rows(n, m, seed):
    rng = np.random.default_rng(seed)
    columns = random_words(rng, n, m)
    before = columns.copy()
    rows = kernels.transpose_bits(columns, m)
    assert rows.shape == (m, -(-n // 64))
    for j, r in zip(rng.integers(0, max(n, 1), 20), rng.integers(0, max(m, 1), 20), strict=True):
        if n and m:
            at_row = int(rows[r, j // 64]) >> int(j % 64) & 1
            assert at_row == int(columns[j, r // 64]) >> int(r % 64) & 1
    assert np.bitwise_count(rows).sum() == np.bitwise_count(columns).sum()
    np.testing.assert_array_equal(columns, before)
    np.testing.assert_array_equal(kernels.transpose_bits(rows, n), columns)

from __future__ import annotations

import numpy as np
import pytest
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.kernels.dispatch import reference
from sparsact.kernels.gather import narrowed, widened

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = {"float64": np.float64, "float32": np.float32, "bfloat16": np.uint16}
sizes = {
    "m": st.integers(0, 7),
    "n": st.one_of(st.integers(0, 40), st.integers(60, 140)),
    "t": st.integers(1, 19),
    "k": st.integers(0, 11),
    "dtype": st.sampled_from(list(DTYPES)),
    "n_threads": st.integers(0, 3),
    "seed": st.integers(0, 2**32 - 1),
}


def stored(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers of very different sizes, so that another order of additions would show."""
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, size=shape)
    return narrowed(values.astype(np.float32), np.uint16) if dtype == "bfloat16" else values.astype(dtype)


def places(rng: np.random.Generator, m: int, k: int, t: int) -> np.ndarray:
    """Rows, -1 among them, and some twice."""
    return rng.integers(-1, t, size=(m, k))


def bits(values: np.ndarray) -> np.ndarray:
    return values.view(f"u{values.dtype.itemsize}")


@properties
@given(**sizes)
def test_every_kernel_has_the_bits_of_the_reference(m, n, t, k, dtype, n_threads, seed):
    rng = np.random.default_rng(seed)
    X, W, A = stored(rng, (m, n), dtype), stored(rng, (t, n), dtype), stored(rng, (m, k), dtype)
    indices = places(rng, m, k, t)
    before = [array.copy() for array in (X, W, A, indices)]
    expected = np.empty_like(A), np.empty_like(X), np.zeros_like(W)
    reference.gather_dot(X, W, indices, expected[0], 1)
    reference.gather_sum(A, W, indices, expected[1], 1)
    reference.scatter_outer(A, X, indices, expected[2], 1)
    found = (
        kernels.gather_dot(X, W, indices, n_threads=n_threads),
        kernels.gather_sum(A, W, indices, n_threads=n_threads),
        kernels.scatter_outer(A, X, indices, t, n_threads=n_threads),
    )
    for array, expectation in zip(found, expected, strict=True):
        assert array.dtype == DTYPES[dtype]
        np.testing.assert_array_equal(bits(array), bits(expectation))
    for array, copy in zip((X, W, A, indices), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@grid(dtype=list(DTYPES))
def test_the_formulas(dtype):
    """Against whole matrices: exact for small integers, which every dtype holds."""
    rng = np.random.default_rng(5)
    m, n, t, k = 6, 77, 23, 9
    X, W, A = (rng.integers(-3, 4, size=shape).astype(np.float32) for shape in ((m, n), (t, n), (m, k)))
    indices = places(rng, m, k, t)
    mask = np.zeros((m, k, t))
    mask[(*np.nonzero(indices >= 0), indices[indices >= 0])] = 1
    kept = [narrowed(array, np.uint16) if dtype == "bfloat16" else array.astype(dtype) for array in (X, W, A)]
    dots = widened(kernels.gather_dot(kept[0], kept[1], indices))
    sums = widened(kernels.gather_sum(kept[2], kept[1], indices))
    outer = widened(kernels.scatter_outer(kept[2], kept[0], indices, t))
    exact = (
        np.einsum("in,tn,ijt->ij", X, W, mask),
        np.einsum("ij,tn,ijt->in", A, W, mask),
        np.einsum("ij,in,ijt->tn", A, X, mask),
    )
    for found, expected in zip((dots, sums, outer), exact, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_more_places_than_rows_and_fewer():
    """Either road of the products, by places or by rows, gives the same."""
    rng = np.random.default_rng(7)
    X, W = stored(rng, (3, 70), "float32"), stored(rng, (50, 70), "float32")
    few = rng.integers(-1, 5, size=(3, 40))
    by_place, by_row = kernels.gather_dot(X, W, few), kernels.gather_dot(X, W[:5].copy(), few)
    np.testing.assert_array_equal(bits(by_place), bits(by_row))


@grid(dtype=list(DTYPES), strange=[np.inf, -np.inf, np.nan])
def test_what_is_not_finite_reaches_only_those_that_select_it(dtype, strange):
    rng = np.random.default_rng(11)
    X, W, A = (np.abs(rng.normal(size=shape)).astype(np.float32) for shape in ((3, 37), (5, 37), (3, 2)))
    W[4] = strange
    kept = [narrowed(array, np.uint16) if dtype == "bfloat16" else array.astype(dtype) for array in (X, W, A)]
    indices = np.array([[0, 4], [-1, 2], [3, 1]])
    dots = widened(kernels.gather_dot(kept[0], kept[1], indices))
    np.testing.assert_array_equal(dots[0, 1], strange)
    assert np.isfinite(np.delete(dots.ravel(), 1)).all()
    sums = widened(kernels.gather_sum(kept[2], kept[1], indices))
    np.testing.assert_array_equal(sums[0], np.full(37, strange))
    assert np.isfinite(sums[1:]).all()


def test_bfloat16_is_rounded_as_torch_rounds_it():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(13)
    ties = (rng.integers(0x3F00, 0x4100, size=500, dtype=np.uint32) << 16 | 0x8000).view(np.float32)
    edges = np.array([np.inf, -np.inf, 0.0, -0.0, 3.4e38, -3.4e38, 1e-40, 1e-45], dtype=np.float32)
    values = np.concatenate([ties, -ties, edges, rng.normal(size=1000).astype(np.float32)])
    expected = torch.from_numpy(values).to(torch.bfloat16).view(torch.uint16).numpy()
    np.testing.assert_array_equal(narrowed(values, np.uint16), expected)
    # The kernels round a sum of two: 1 * high + 1 * low.
    high = rng.normal(size=1000).astype(np.float32)
    pair = narrowed(
        np.stack([high, high * rng.choice([2.0**-8, 2.0**-9, 3e-3], size=1000).astype(np.float32)]), np.uint16
    )
    sums = kernels.gather_sum(np.full((1, 2), 0x3F80, dtype=np.uint16), pair, np.array([[0, 1]]))
    exact = torch.from_numpy(widened(pair).sum(axis=0)).to(torch.bfloat16).view(torch.uint16).numpy()
    np.testing.assert_array_equal(sums[0], exact)


def test_rows_that_none_selects_are_zero():
    A, X = np.ones((2, 1), dtype=np.float32), np.ones((2, 3), dtype=np.float32)
    sums = kernels.scatter_outer(A, X, np.array([[4], [-1]]), 6)
    np.testing.assert_array_equal(np.nonzero(sums.any(axis=1))[0], [4])
    np.testing.assert_array_equal(sums[4], 1)

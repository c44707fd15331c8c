from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.kernels.dispatch import reference
from sparsact.kernels.int4_linear import (
    INT4_GROUP,
    Int4Linear,
    pack_int4,
    quantize_rows,
    tiled_multipliers,
    unpack_int4,
    untiled_multipliers,
)
from sparsact.kernels.int8_linear import Int8Linear, tiled

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def inputs(rng: np.random.Generator, m: int, n: int, zeros: float = 0.3) -> np.ndarray:
    X = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-7, 5, size=(m, 1))
    return np.where(rng.random((m, n)) < zeros, 0, X).astype(np.float32)


class Layer:
    """Integers and scales of a layer with t rows and n columns, outputs along the rows or across them."""

    def __init__(self, rng: np.random.Generator, t: int, n: int, outputs: int) -> None:
        self.W = rng.integers(-8, 8, size=(t, n)).astype(np.int8)
        self.W[rng.random((t, n)) < 0.2] = -8
        self.a = rng.choice([-127, 127, 1, 0, 63], size=(t, -(-n // INT4_GROUP))).astype(np.int8)
        self.scale = np.abs(rng.normal(size=outputs)).astype(np.float32)
        self.bias = rng.normal(size=outputs).astype(np.float32)
        self.integers = self.W.astype(np.int64) * self.a.astype(np.int64).repeat(INT4_GROUP, axis=1)[:, :n]

    def made(self) -> Int4Linear:
        return Int4Linear(pack_int4(self.W), self.a, self.scale, self.bias, self.W.shape[1])

    def in_tiles(self) -> Int4Linear:
        packed = pack_int4(self.W)
        multipliers = tiled_multipliers(self.a, packed.shape[1])
        np.testing.assert_array_equal(untiled_multipliers(multipliers, len(self.W))[:, : self.a.shape[1]], self.a)
        return Int4Linear(tiled(packed), multipliers, self.scale, self.bias, self.W.shape[1])


def rows(layer: Layer, X: np.ndarray, n_threads: int = 1) -> np.ndarray:
    out = np.full((len(X), len(layer.W)), 7, dtype=np.float32)
    layer.made().rows(X.ctypes.data, len(X), out.ctypes.data, n_threads)
    return out


def rows_at(layer: Layer, X: np.ndarray, mask: np.ndarray, n_threads: int = 1) -> np.ndarray:
    out = np.full(mask.shape, 7, dtype=np.float32)
    layer.made().rows_at(X.ctypes.data, mask.ctypes.data, len(X), out.ctypes.data, n_threads)
    return out


def columns(layer: Layer, H: np.ndarray, n_threads: int = 1) -> tuple[np.ndarray, int]:
    out = np.full((len(H), layer.W.shape[1]), 7, dtype=np.float32)
    entries = layer.made().columns(H.ctypes.data, len(H), out.ctypes.data, n_threads)
    return out, entries


@properties
@given(
    m=st.one_of(st.integers(0, 9), st.sampled_from([16, 17, 48])),
    t=st.one_of(st.integers(1, 12), st.integers(30, 200)),
    n=st.one_of(st.integers(1, 40), st.integers(100, 400)),
    zeros=st.sampled_from([0.0, 0.3, 0.95]),
    n_threads=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_kernel_has_the_bits_of_the_reference(m, t, n, zeros, n_threads, seed):
    rng = np.random.default_rng(seed)
    X, H = inputs(rng, m, n, zeros), inputs(rng, m, t, zeros)
    of_rows, across = Layer(rng, t, n, t), Layer(rng, t, n, n)
    mask = rng.integers(0, 2, size=(m, t), dtype=np.uint8)
    before = X.copy(), H.copy(), mask.copy()
    with kernels.using("reference"):
        expected, sums, codes = rows(of_rows, X), columns(across, H), quantize_rows(X)
    for found, by_definition in zip(quantize_rows(X), codes, strict=True):
        np.testing.assert_array_equal(found, by_definition)
    np.testing.assert_array_equal(rows(of_rows, X, n_threads), expected)
    out = np.full((m, t), 7, dtype=np.float32)
    of_rows.in_tiles().rows(X.ctypes.data, m, out.ctypes.data, n_threads)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(rows_at(of_rows, X, mask, n_threads), np.where(mask, expected, 0))
    found_sums, entries = columns(across, H, n_threads)
    np.testing.assert_array_equal(found_sums, sums[0])
    assert entries == sums[1] == np.count_nonzero(quantize_rows(H)[0])
    for array, copy in zip((X, H, mask), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_the_formula():
    """Codes and exact sums, computed one by one in Python's integers and fractions."""
    rng = np.random.default_rng(3)
    m, t, n = 2, 5, 139
    X, layer = inputs(rng, m, n), Layer(rng, t, n, t)
    codes, scales = quantize_rows(X)
    assert np.abs(codes).max(axis=1).tolist() == [127, 127]
    np.testing.assert_allclose(scales[:, None] * codes, X, rtol=0, atol=float(scales.max()) * 0.5001)
    out = rows(layer, X)
    for i in range(m):
        for j in range(t):
            raw = sum(int(codes[i, k]) * int(layer.a[j, k // 32]) * int(layer.W[j, k]) for k in range(n))
            exact = Fraction(raw) * Fraction(float(scales[i] * layer.scale[j])) + Fraction(float(layer.bias[j]))
            assert abs(Fraction(float(out[i, j])) - exact) <= abs(exact) * Fraction(2, 2**24)  # the sum is rounded too
    H, across = inputs(rng, m, t), Layer(rng, t, n, n)
    codes, scales = quantize_rows(H)
    exact = (codes.astype(np.int64) @ across.integers) * (scales[:, None] * across.scale).astype(float) + across.bias
    np.testing.assert_allclose(columns(across, H)[0], exact, rtol=2e-7, atol=1e-12)


@pytest.mark.parametrize("m", [1, 4, 13])
def test_the_largest_sums_do_not_overflow(m):
    """As many inputs as the bound of the class allows, all at the ends of their ranges."""
    n = (2**31 - 1) // (8 * 127 * 127)
    layer = Layer(np.random.default_rng(0), 2, n, 2)
    layer.W[:] = -8
    layer.a[:] = [[127], [-127]]
    layer.scale, layer.bias = np.ones(2, dtype=np.float32), np.zeros(2, dtype=np.float32)
    X = np.full((m, n), 127, dtype=np.float32)
    exact = np.float32(8 * 127 * 127 * n)
    np.testing.assert_array_equal(rows(layer, X), np.tile([-exact, exact], (m, 1)))
    across = Layer(np.random.default_rng(0), n, 3, 3)
    across.W[:], across.a[:] = -8, 127
    across.scale, across.bias = np.ones(3, dtype=np.float32), np.zeros(3, dtype=np.float32)
    np.testing.assert_array_equal(columns(across, X)[0], np.full((m, 3), -exact))


@grid(strange=[np.nan, np.inf, -np.inf], place=[0, 37, 70])
def test_what_is_not_finite_shows_in_its_own_row(strange, place):
    rng = np.random.default_rng(5)
    X = inputs(rng, 3, 71)
    X[1, place] = strange
    layer, across = Layer(rng, 5, 71, 5), Layer(rng, 71, 9, 9)
    mask = np.ones((3, 5), dtype=np.uint8)
    for out in (rows(layer, X), rows_at(layer, X, mask), columns(across, X)[0]):
        assert np.isnan(out[1]).all()
        assert np.isfinite(out[[0, 2]]).all()
    assert np.isnan(rows_at(layer, X, 0 * mask)[1]).all()


@grid(size=[0.0, 1e-42, 3.7e-37, 3.8e-37, 1e-31, 3e38])
def test_the_smallest_and_largest_inputs(size):
    X = np.array([[size, -size, 0.0]], dtype=np.float32)
    codes, scales = quantize_rows(X)
    assert codes.tolist() == [[127, -127, 0] if size >= 2.0**-121 else [0, 0, 0]]
    assert np.isfinite(scales).all()


def test_packed_weights_are_the_weights():
    W = np.random.default_rng(2).integers(-8, 8, size=(7, 331)).astype(np.int8)
    packed = pack_int4(W)
    assert packed.shape == (7, 192)
    np.testing.assert_array_equal(unpack_int4(packed, 331), W)
    np.testing.assert_array_equal(unpack_int4(packed, 384)[:, 331:], 0)


def test_some_of_the_weights_are_not_read_from_tiles():
    if kernels.backend() == "reference":
        pytest.skip("the reference keeps rows")
    layer = Layer(np.random.default_rng(1), 3, 40, 3)
    tiles = Int8Linear(tiled(np.zeros((3, 64), dtype=np.int8)), layer.scale, layer.bias, 40)
    X, out, mask = np.zeros((1, 40), dtype=np.float32), np.empty((1, 40), dtype=np.float32), np.ones(3, dtype=np.uint8)
    x, m, o = X.ctypes.data, mask.ctypes.data, out.ctypes.data
    for made in (layer.in_tiles(), tiles):
        with pytest.raises(ValueError, match="tiles are read whole: pass rows to read some of them"):
            made.rows_at(x, m, 1, o, 1)
        with pytest.raises(ValueError, match="tiles are read whole"):
            made.columns(x, 1, o, 1)


def test_the_kernel_is_that_which_was_chosen():
    made = Layer(np.random.default_rng(1), 2, 3, 2).made()
    assert isinstance(getattr(made.rows, "__self__", None), reference.Int4Linear) == (kernels.backend() == "reference")

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.kernels.dispatch import reference
from sparsact.kernels.int8_linear import INT8_BLOCK, MAX_ADDED, Int8Linear, fused, quantize_inputs, tiled, untiled

pytestmark = pytest.mark.usefixtures("backend")
KINDS = ("both", "positive", "negative", "shifted", "sparse")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def inputs(rng: np.random.Generator, m: int, n: int, kind: str) -> np.ndarray:
    X = rng.normal(size=(m, n)) * 10.0 ** rng.integers(-7, 5)
    largest = np.abs(X).max(initial=0)
    kinds = {
        "both": X,
        "positive": X.clip(0),
        "negative": X.clip(max=0),
        "shifted": X + 2 * largest,
        "sparse": np.where(np.abs(X) > 0.4 * largest, X, 0),
    }
    return kinds[kind].astype(np.float32)


def weights(rng: np.random.Generator, t: int, n: int) -> np.ndarray:
    """All of int8, both ends often."""
    W = rng.integers(-128, 128, size=(t, n))
    W[rng.random((t, n)) < 0.2] = -128
    return W.astype(np.int8)


def rows(layer: Int8Linear, X: np.ndarray, t: int, n_threads: int = 1) -> np.ndarray:
    out = np.full((len(X), t), 7, dtype=np.float32)
    layer.rows(X.ctypes.data, len(X), out.ctypes.data, n_threads)
    return out


def rows_at(layer: Int8Linear, X: np.ndarray, mask: np.ndarray, n_threads: int = 1) -> np.ndarray:
    out = np.full(mask.shape, 7, dtype=np.float32)
    layer.rows_at(X.ctypes.data, mask.ctypes.data, len(X), out.ctypes.data, n_threads)
    return out


def columns(layer: Int8Linear, H: np.ndarray, n: int, n_threads: int = 1) -> tuple[np.ndarray, int]:
    out = np.full((len(H), n), 7, dtype=np.float32)
    entries = layer.columns(H.ctypes.data, len(H), out.ctypes.data, n_threads)
    return out, entries


@properties
@given(
    m=st.one_of(st.integers(0, 9), st.integers(10, 70)),
    t=st.one_of(st.integers(1, 12), st.integers(30, 400)),
    n=st.one_of(st.integers(1, 20), st.integers(60, 700)),
    kind=st.sampled_from(KINDS),
    n_threads=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_kernel_has_the_bits_of_the_reference(m, t, n, kind, n_threads, seed):
    rng = np.random.default_rng(seed)
    X, W = inputs(rng, m, n, kind), weights(rng, t, n)
    scale, bias = np.abs(rng.normal(size=t)).astype(np.float32), rng.normal(size=t).astype(np.float32)
    mask = rng.integers(0, 2, size=(m, t), dtype=np.uint8)
    before = [array.copy() for array in (X, W, scale, bias, mask)]
    with kernels.using("reference"):
        expected = rows(Int8Linear(W, scale, bias), X, t)
        codes, *by = quantize_inputs(X)
    for found, wanted in zip(quantize_inputs(X), (codes, *by), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert codes.max(initial=0) <= 128
    layer, across = Int8Linear(W, scale, bias), Int8Linear(np.ascontiguousarray(W.T), scale, bias)
    np.testing.assert_array_equal(rows(layer, X, t, n_threads), expected)
    tiles = Int8Linear(tiled(layer.filled), scale, bias, n)
    np.testing.assert_array_equal(rows(tiles, X, t, n_threads), expected)
    np.testing.assert_array_equal(rows_at(layer, X, mask, n_threads), np.where(mask, expected, 0))
    sums, entries = columns(across, X, t, n_threads)
    np.testing.assert_array_equal(sums, expected)
    assert entries == np.count_nonzero(codes != by[1][:, None])
    for array, copy in zip((X, W, scale, bias, mask), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_the_formula():
    """Codes and exact sums, computed one by one in Python's integers and fractions."""
    rng = np.random.default_rng(3)
    m, t, n = 2, 5, 83
    X, W = inputs(rng, m, n, "both"), weights(rng, t, n)
    scale, bias = (np.abs(rng.normal(size=t)).astype(np.float32) for _ in range(2))
    codes, scales, zero_points = quantize_inputs(X)
    out = rows(Int8Linear(W, scale, bias), X, t)
    for i, (s, z) in enumerate(zip(scales, zero_points.tolist(), strict=True)):
        assert abs(float(s) * 127 - (float(X[i].max()) - float(X[i].min()))) < 1e-6 * float(s) * 127
        np.testing.assert_allclose(s * (codes[i].astype(int) - z), X[i], atol=float(s))
        for j in range(t):
            raw = sum((int(codes[i, k]) - z) * int(W[j, k]) for k in range(n))
            exact = Fraction(raw) * Fraction(float(s * scale[j])) + Fraction(float(bias[j]))
            assert abs(Fraction(float(out[i, j])) - exact) <= abs(exact) * Fraction(1, 2**24)


def test_tiles_are_the_rows():
    W = weights(np.random.default_rng(8), 37, 128)
    tiles = tiled(W)
    assert tiles.shape == (3, 32, 16, 4)
    assert tiles[1, 5, 2].tolist() == W[18, 20:24].tolist()
    assert not tiles[2, :, 5:].any()
    np.testing.assert_array_equal(untiled(tiles, 37), W)
    assert untiled(W, 37) is W


def test_a_fused_product_is_rounded_once():
    rng = np.random.default_rng(4)
    a, b, c = (rng.normal(size=4000).astype(np.float32) for _ in range(3))
    c[:2000] = -(a[:2000] * b[:2000])  # cancels but for the rounding of the product
    c[2000:3000] *= np.float32(2.0**-25)
    for found, *terms in zip(fused(a, b, c), a, b, c, strict=True):
        x, y, z = (Fraction(float(term)) for term in terms)
        exact = x * y + z
        if abs(exact) < Fraction(2) ** -126:
            continue
        other = np.nextafter(found, np.float32(np.inf)), np.nextafter(found, np.float32(-np.inf))
        assert all(abs(Fraction(float(found)) - exact) <= abs(Fraction(float(near)) - exact) for near in other)


@pytest.mark.parametrize("n", [MAX_ADDED, 70_001])
def test_the_largest_sums_do_not_overflow(n):
    """The largest code or the smallest, everywhere, with weights at both ends."""
    W = np.stack([np.full(n, -128), np.full(n, 127)]).astype(np.int8)
    one = np.ones(2, dtype=np.float32)
    for value in (127.0, -127.0):
        exact = (W.astype(np.float64).sum(axis=1) * value).astype(np.float32)
        for m in (1, 3, 6):
            X = np.full((m, n), value, dtype=np.float32)
            np.testing.assert_array_equal(rows(Int8Linear(W, one), X, 2), [exact] * m)
            np.testing.assert_array_equal(columns(Int8Linear(np.ascontiguousarray(W.T), one), X, 2)[0], [exact] * m)


def test_neighbouring_products_do_not_saturate():
    """The largest code is 128, where both ends of the range are rounded up; times -128, two fill 16 bits."""
    X = np.array([[-1.5, *[125.5] * INT8_BLOCK]], dtype=np.float32)
    codes, scale, zero_point = quantize_inputs(X)
    assert (codes.max(), *scale, *zero_point) == (128, 1, 2)
    W = np.full((1, X.shape[1]), -128, dtype=np.int8)
    exact = -128 * int((codes.astype(int) - zero_point[:, None]).sum())
    np.testing.assert_array_equal(rows(Int8Linear(W, np.ones(1, dtype=np.float32)), X, 1), [[exact]])


@grid(strange=[np.nan, np.inf, -np.inf], place=[0, 37, 70], m=[3, 40])
def test_what_is_not_finite_shows_in_every_output_of_its_row(strange, place, m):
    rng = np.random.default_rng(5)
    X, W = inputs(rng, m, 71, "both"), weights(rng, 5, 71)
    X[1, place] = strange
    scale, mask = np.ones(5, dtype=np.float32), rng.integers(0, 2, size=(m, 5), dtype=np.uint8)
    layer, across = Int8Linear(W, scale), Int8Linear(np.ascontiguousarray(W.T), scale)
    for outputs in (
        rows(layer, X, 5),
        rows_at(layer, X, mask),
        columns(across, X, 5)[0],
        quantize_inputs(X)[1][:, None],
    ):
        assert np.isnan(outputs[1]).all()
        assert not np.isnan(np.delete(outputs, 1, axis=0)).any()


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch calls its quantised tensors deprecated
@pytest.mark.parametrize(("t", "n"), [(37, 211), (5, 64), (130, 67), (257, 530)])
def test_the_outputs_of_a_row_match_torch(t, n):
    """For 1 to 70 inputs: rows read side by side, rows packed, and rows of units alone or packed."""
    torch = pytest.importorskip("torch")
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        pytest.skip("this torch has no engine fbgemm")
    rng = np.random.default_rng(6)
    bias = rng.normal(size=t).astype(np.float32)
    W = torch.from_numpy(rng.normal(size=(t, n)).astype(np.float32))
    quantized = torch.quantize_per_channel(W, W.abs().amax(1).double() / 127.5, torch.zeros(t).long(), 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(quantized, torch.from_numpy(bias))
    scale = quantized.q_per_channel_scales().float().numpy()
    layer = Int8Linear(quantized.int_repr().numpy(), scale, bias)
    across = Int8Linear(np.ascontiguousarray(quantized.int_repr().numpy().T), scale, bias)
    for m in (*range(1, 18), 31, 32, 33, 63, 64, 65, 70):
        X, n_threads = inputs(rng, m, n, KINDS[m % len(KINDS)]), 1 + m % 2
        alone = torch.from_numpy(X).split(1)
        expected = torch.cat([torch.ops.quantized.linear_dynamic(row, packed, reduce_range=True) for row in alone])
        np.testing.assert_array_equal(rows(layer, X, t, n_threads), expected.numpy())
        np.testing.assert_array_equal(columns(across, X, t, n_threads)[0], expected.numpy())


def test_the_kernel_is_that_which_was_chosen():
    made = Int8Linear(np.ones((2, 3), dtype=np.int8), np.ones(2, dtype=np.float32))
    assert isinstance(getattr(made.rows, "__self__", None), reference.Int8Linear) == (kernels.backend() == "reference")

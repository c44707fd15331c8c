"""Products that read only the weights of active units."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.kernels.gather import narrowed, widened

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
KINDS = ("float64", "float32", "float16", "bfloat16", "bfloat16, float32 numbers")
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-8}
EPS["bfloat16, float32 numbers"] = EPS["float32"]
sizes = {
    "m": st.sampled_from([0, 1, 2, 3, 17]),
    "s": st.one_of(st.integers(0, 3), st.integers(14, 75)),
    "n": st.one_of(st.integers(0, 40), st.integers(60, 300)),
    "density": st.sampled_from([0.0, 0.03, 0.5, 1.0]),
    "kind": st.sampled_from(KINDS),
    "bias": st.booleans(),
    "seed": st.integers(0, 2**32 - 1),
}


class Block(NamedTuple):
    """Weights (s, n) of both layers, activations H (m, s), some of them 0 or -0, inputs X (m, n), biases."""

    kind: str
    W: np.ndarray
    V: np.ndarray
    H: np.ndarray
    X: np.ndarray
    b: np.ndarray | None
    c: np.ndarray | None

    @property
    def numbers(self) -> np.dtype:
        return self.H.dtype

    def sparse_product(self, **how: int) -> tuple[np.ndarray, int]:
        out = np.full((len(self.H), self.V.shape[1]), 7, dtype=self.numbers)
        product = kernels.SparseProduct(self.V, self.c, numbers=self.numbers)
        return out, product(self.H, out, **how)

    def active_dot(self, on: np.ndarray | None = None, **how: int) -> tuple[np.ndarray, int]:
        out = np.full(self.H.shape, 7, dtype=self.numbers)
        dot = kernels.ActiveDot(self.W, self.b, numbers=self.numbers)
        return out, dot(self.X, self.H if on is None else on, out, **how)


def random_block(kind: str, m: int, s: int, n: int, density: float, bias: bool, seed: int) -> Block:
    """Numbers of very different sizes, so that another order of additions would show."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int, stored: str = kind.replace("bfloat16, ", "").removesuffix(" numbers")) -> np.ndarray:
        values = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 2 if stored == "float16" else 4, size=shape)
        return narrowed(values.astype(np.float32), np.uint16) if stored == "bfloat16" else values.astype(stored)

    weights = kind.split(",")[0]
    H = draw(m, s)
    zero = np.where(rng.random((m, s)) < 0.5, 0.0, -0.0)
    off = rng.random((m, s)) >= density
    H[off] = narrowed(zero.astype(np.float32), np.uint16)[off] if H.dtype == np.uint16 else zero[off]
    W, V = draw(s, n, stored=weights), draw(s, n, stored=weights)
    return Block(kind, W, V, H, draw(m, n), draw(s) if bias else None, draw(n) if bias else None)


def on(H: np.ndarray) -> np.ndarray:
    return widened(H) != 0


def assert_same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    """Bit by bit, but for what is no number: which of them a processor makes is its own affair."""
    assert found.dtype == expected.dtype
    strange = np.isnan(widened(expected))
    np.testing.assert_array_equal(np.isnan(widened(found)), strange)
    unsigned = f"u{found.dtype.itemsize}"
    np.testing.assert_array_equal(found.view(unsigned)[~strange], expected.view(unsigned)[~strange])


@properties
@given(**sizes, n_threads=st.integers(0, 5))
def test_every_kernel_and_number_of_threads_has_the_bits_of_the_reference(n_threads, **shape):
    block = random_block(**shape)
    before = [None if array is None else array.copy() for array in block[1:]]
    found = block.sparse_product(n_threads=n_threads), block.active_dot(n_threads=n_threads)
    masked = block.active_dot(on(block.H), n_threads=n_threads)
    with kernels.using("reference"):
        expected = block.sparse_product(), block.active_dot()
    for (ours, entries), (reference, _) in zip((*found, masked), (*expected, expected[1]), strict=True):
        assert_same_bits(ours, reference)
        assert entries == on(block.H).sum()
    for array, copy in zip(block[1:], before, strict=True):
        np.testing.assert_array_equal(array, copy)


@properties
@given(**sizes)
def test_the_formulas_in_float64(**shape):
    """Within (terms + 2) eps of the sum of magnitudes, of the dense product in float64."""
    block = random_block(**shape)
    W, V, H, X, b, c = (np.zeros(1) if array is None else widened(array).astype(np.float64) for array in block[1:])
    eps, least = EPS[block.kind], 2.0**-24 if block.kind == "float16" else 0  # that is its smallest number
    out, _ = block.sparse_product()
    bound = (V.shape[0] + 2) * eps * (np.abs(H) @ np.abs(V) + np.abs(c)) + least
    assert (np.abs(widened(out) - (H @ V + c)) <= bound).all()
    dots, _ = block.active_dot()
    bound = (W.shape[1] + 2) * eps * (np.abs(X) @ np.abs(W).T + np.abs(b)) + least
    assert (np.abs(widened(dots) - np.where(H != 0, X @ W.T + b, 0)) <= bound).all()


@grid(kind=KINDS, density=[0.03, 0.5])
def test_an_input_has_the_same_bits_alone_and_in_a_batch(kind, density):
    """Also where a tile of sums does not hold all columns, and where the batch is computed in parts."""
    block = random_block(kind, 70, 41, 333, density, True, 3)
    out, _ = block.sparse_product()
    dots, _ = block.active_dot()
    for i in (0, 33, 69):
        alone = block._replace(H=block.H[i : i + 1], X=block.X[i : i + 1])
        assert_same_bits(alone.sparse_product(n_threads=3)[0], out[i : i + 1])
        assert_same_bits(alone.active_dot(n_threads=2)[0], dots[i : i + 1])


@grid(kind=KINDS, m=[1, 3], strange=[np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_active_and_shows(kind, m, strange):
    block = random_block(kind, m, 37, 21, 0.2, True, 5)
    bits = narrowed(np.full(1, strange, dtype=np.float32), np.uint16)[0]
    block.H[m - 1, 30] = bits if block.numbers == np.uint16 else strange
    out, entries = block.sparse_product()
    assert entries == on(block.H).sum()
    assert not np.isfinite(widened(out)[m - 1]).any()
    assert np.isfinite(widened(out)[: m - 1]).all()
    block.X[0, 2] = bits if block.numbers == np.uint16 else strange
    dots, _ = block.active_dot()
    np.testing.assert_array_equal(np.isfinite(widened(dots)[0]), ~on(block.H)[0])
    assert np.isfinite(widened(dots)[1:]).all()
    with kernels.using("reference"):
        assert_same_bits(dots, block.active_dot()[0])
        assert_same_bits(out, block.sparse_product()[0])


@grid(kind=KINDS, m=[1, 5])
def test_weights_of_units_that_no_input_has_are_not_read(kind, m):
    """They are no numbers, and nothing of them shows."""
    block = random_block(kind, m, 53, 19, 0.1, True, 7)
    off = ~on(block.H).any(axis=0)
    assert off.any()
    for weights in (block.W, block.V):
        weights[off] = 0x7FC0 if weights.dtype == np.uint16 else np.nan
    assert np.isfinite(widened(block.sparse_product()[0])).all()
    assert np.isfinite(widened(block.active_dot()[0])).all()


@grid(m=[1, 4, 67])
def test_more_numbers_than_the_most_are_counted_and_nothing_is_written(m):
    block = random_block("float32", m, 50, 23, 0.4, False, 11)
    entries = int(on(block.H).sum())
    for run in (block.sparse_product, block.active_dot):
        untouched, found = run(most=entries - 1)
        assert found == entries
        assert (untouched == 7).all()
        assert_same_bits(run(most=entries)[0], run()[0])


def test_every_bit_of_a_magnitude_counts_and_a_sign_does_not():
    for dtype, bits in (("f8", 64), ("f4", 32), ("u2", 16)):
        words = np.uint64(1) << np.arange(bits, dtype=np.uint64)
        H = words.astype(f"u{bits // 8}").view(dtype)[None]
        out = np.zeros_like(H)
        ones = np.full((bits, 3), 0x3F80 if dtype == "u2" else 1, dtype)
        assert kernels.ActiveDot(ones)(ones[:1], H, out) == bits - 1
        np.testing.assert_array_equal(out[0] != 0, np.arange(bits) < bits - 1)
    mask = np.arange(256, dtype=np.uint8)[None]
    assert kernels.ActiveDot(np.ones((256, 1)))(np.ones((1, 1)), mask, np.zeros((1, 256))) == 255


def test_weights_are_kept_alive_and_memory_may_stand_anywhere():
    block = random_block("float32", 3, 41, 37, 0.3, True, 13)
    expected, _ = block.sparse_product()
    product = kernels.SparseProduct(block.V.copy(), block.c.copy())
    memory = np.zeros(expected.size + 1, dtype=np.float32)[1:].reshape(expected.shape)
    product(block.H, memory)
    assert_same_bits(memory, expected)


def test_arrays_that_do_not_fit_are_refused():
    block = random_block("float32", 3, 11, 7, 0.3, True, 17)
    out = np.empty((3, 7), dtype=np.float32)
    product = kernels.SparseProduct(block.V)
    for H in (block.H[:, :-1].copy(), block.H.astype(np.float64), np.asfortranarray(block.H)):
        with pytest.raises(ValueError, match="`H` is C-contiguous, float32 of shape"):
            product(H, out)
    with pytest.raises(ValueError, match="`out` is C-contiguous"):
        product(block.H, out[:2])
    with pytest.raises(ValueError, match="`on` is C-contiguous"):
        kernels.ActiveDot(block.W)(block.X, block.H[:2], np.empty_like(block.H))
    with pytest.raises(ValueError, match="weights are a C-contiguous matrix"):
        kernels.SparseProduct(block.V.T)
    with pytest.raises(ValueError, match="weights are a C-contiguous matrix"):
        kernels.ActiveDot(block.W.astype(int))
    with pytest.raises(ValueError, match="`bias` is C-contiguous, float32 of shape"):
        kernels.SparseProduct(block.V, block.b)
    with pytest.raises(ValueError, match="leave `numbers` out"):
        kernels.SparseProduct(block.V, numbers=np.float64)

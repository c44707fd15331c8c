from __future__ import annotations

import numpy as np
import pytest
from grids import grid
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.kernels.dispatch import reference
from sparsact.kernels.gather import narrowed, widened
from sparsact.kernels.neurons import INPUTS
from sparsact.kernels.screen import MAX_INPUTS, SCREEN_BLOCK, screen

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def arrays(rng: np.random.Generator, s: int, d: int, k: int) -> list[np.ndarray]:
    """What a screen holds, in any proportion: the kernel only evaluates bounds."""
    rows = np.full((s, -(-d // SCREEN_BLOCK) * SCREEN_BLOCK), 128, dtype=np.uint8)
    rows[:, :d] = rng.integers(1, 256, size=(s, d))
    a, Q, R = (10.0 ** rng.integers(-4, 3, size=s) for _ in range(3))
    along, directions = (rng.normal(size=shape).astype(np.float32) for shape in ((s, k), (k, d)))
    return [rows, a, Q, R, rng.normal(size=s) * 1e6, along, 2.0 ** rng.integers(-9, 9, size=d), directions]


def inputs(rng: np.random.Generator, m: int, d: int, kind: int) -> np.ndarray:
    X = (rng.normal(size=(m, d)) * 10.0 ** rng.integers(-4, 4, size=(m, 1))).astype(np.float32)
    return narrowed(X, INPUTS[kind])


def answers(made: object, X: np.ndarray, s: int, n_threads: int) -> list[np.ndarray]:
    """Mask, counts, bounds and estimates."""
    m, where = len(X), (X.ctypes.data, INPUTS.index(X.dtype.type), len(X))
    mask, counts = np.full((m, s), 7, dtype=np.uint8), np.full(m, -1, dtype=np.int64)
    bounds, estimates = np.zeros((m, s)), np.zeros((m, s), dtype=np.float32)
    made.survivors(*where, mask.ctypes.data, counts.ctypes.data, n_threads)
    made.bounds(*where, bounds.ctypes.data, n_threads)
    made.estimates(*where, estimates.ctypes.data, n_threads)
    return [mask, counts, bounds, estimates]


@properties
@given(
    m=st.integers(0, 9),
    s=st.one_of(st.integers(0, 5), st.integers(30, 70)),
    d=st.one_of(st.integers(1, 20), st.integers(60, 150)),
    k=st.integers(0, 3),
    kind=st.integers(0, 2),
    n_threads=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_kernel_has_the_bits_of_the_reference(m, s, d, k, kind, n_threads, seed):
    rng = np.random.default_rng(seed)
    held, X = arrays(rng, s, d, k), inputs(rng, m, d, kind)
    before = [array.copy() for array in (*held, X)]
    expected = answers(reference.Screen(*held, 1e-3), X, s, 1)
    for found, expectation in zip(answers(screen(*held, 1e-3), X, s, n_threads), expected, strict=True):
        np.testing.assert_array_equal(found, expectation)
    mask, counts, bounds, _ = expected
    np.testing.assert_array_equal(mask, ~(bounds <= 0))
    np.testing.assert_array_equal(counts, mask.sum(axis=1))
    for array, copy in zip((*held, X), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@grid(d=[131, 4099, MAX_INPUTS], value=[32639, -32639, 32513, -32640 + 256])
def test_the_largest_integers_do_not_overflow(d, value):
    """All weights at an end of their range, all inputs at one: the product is exact."""
    q = np.array([127, -127, 0])
    rows = np.full((3, -(-d // SCREEN_BLOCK) * SCREEN_BLOCK), 128, dtype=np.uint8)
    rows[:, :d] += q[:, None].astype(np.int8).view(np.uint8)
    ones, none = np.ones(3), np.zeros(3)
    made = screen(
        rows, ones, none, none, none, np.zeros((3, 0), np.float32), np.ones(d), np.zeros((0, d), np.float32), 0.0
    )
    bounds = answers(made, np.full((1, d), value, dtype=np.float32), 3, 1)[2]
    exact = (q * value * d).astype(np.float64)
    assert (bounds >= exact).all()
    np.testing.assert_allclose(bounds[0], exact, rtol=2.0**-44, atol=0)


@grid(strange=[np.nan, np.inf, -np.inf], kind=range(3))
def test_an_input_that_is_not_finite_proves_nothing_and_disturbs_no_other(strange, kind):
    rng = np.random.default_rng(5)
    held, X = arrays(rng, 37, 70, 2), inputs(rng, 6, 70, kind)
    held[4][:] = -1e300  # all are proved off
    X[2, 69] = narrowed(np.array([strange], dtype=np.float32), X.dtype)[0]
    mask, counts, bounds, estimates = answers(screen(*held, 0.0), X, 37, 2)
    np.testing.assert_array_equal(counts, [0, 0, 37, 0, 0, 0])
    np.testing.assert_array_equal(mask.sum(axis=1), counts)
    assert np.isnan(bounds[2]).all()
    assert np.isnan(estimates[2]).all()
    assert np.isfinite(np.delete(bounds, 2, axis=0)).all()


@grid(place=["a", "Q", "R", "offset", "along"])
def test_a_row_that_is_not_finite_is_never_proved_off(place):
    rng = np.random.default_rng(6)
    held, X = arrays(rng, 41, 33, 2), inputs(rng, 3, 33, 0)
    held[4][:] = -1e300
    held[["rows", "a", "Q", "R", "offset", "along"].index(place)][17] = np.nan
    mask = answers(screen(*held, 0.0), X, 41, 1)[0]
    np.testing.assert_array_equal(np.nonzero(mask.any(axis=0))[0], [17])
    assert mask[:, 17].all()


@pytest.mark.parametrize("kind", [1, 2])
def test_halves_are_the_float32_that_they_stand_for(kind):
    rng = np.random.default_rng(7)
    held, X = arrays(rng, 29, 67, 3), inputs(rng, 5, 67, kind)
    made = screen(*held, 1e-3)
    for narrow, wide in zip(answers(made, X, 29, 1), answers(made, widened(X), 29, 1), strict=True):
        np.testing.assert_array_equal(narrow, wide)


def test_the_kernel_is_that_which_was_chosen():
    assert isinstance(screen(*arrays(np.random.default_rng(8), 2, 3, 1), 0.0), reference.Screen) == (
        kernels.backend() == "reference"
    )

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
sizes = {
    "m": st.integers(0, 5),
    "t": st.one_of(st.integers(1, 200), st.sampled_from([1023, 1024, 1087, 4096])),
    "share": st.floats(0, 1),
    "kind": st.sampled_from(["normal", "ties", "relu", "constant", "sorted", "heavy", "extreme", "hidden"]),
    "dtype": st.sampled_from([np.float32, np.float64]),
    "absolute": st.booleans(),
    "n_threads": st.integers(0, 3),
    "seed": st.integers(0, 2**32 - 1),
}


def table(kind: str, m: int, t: int, dtype: type, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(m, t))
    if kind == "ties":
        values = np.round(values)
    elif kind == "relu":
        values = np.maximum(values, 0) * rng.choice([-1.0, 1.0], size=(m, t))  # zeros of both signs
    elif kind == "constant":
        values = np.full((m, t), values[:, :1] if m else 0.0)
    elif kind == "sorted":
        values = np.sort(values, axis=1)
    elif kind == "heavy":
        values = rng.standard_cauchy((m, t)) ** 3
    elif kind == "extreme":
        values = rng.choice([np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-45, 1e38, -1e38], size=(m, t))
    elif kind == "hidden":  # what a sample of every so-many-th value never sees
        values = np.where(np.arange(t) % max(1, t // 256) == 0, 100.0, values)
    return np.ascontiguousarray(values.astype(dtype))


def expected_places(values: np.ndarray, k: int, absolute: bool) -> np.ndarray:
    """By Python's own sort, a stable one."""
    ranked = np.abs(values) if absolute else values
    each = [sorted(sorted(range(len(row)), key=lambda i: -row[i])[:k]) for row in ranked.tolist()]
    return np.array(each, dtype=np.int64).reshape(len(values), k)


@properties
@given(**sizes)
def test_places_match_a_stable_sort(m, t, share, kind, dtype, absolute, n_threads, seed):
    values, k = table(kind, m, t, dtype, seed), 1 + int(share * (t - 1))
    before = values.copy()
    places = kernels.top_k(values, k, absolute=absolute, n_threads=n_threads)
    assert places.dtype == np.int64
    np.testing.assert_array_equal(places, expected_places(values, k, absolute))
    np.testing.assert_array_equal(values.view(np.uint8), before.view(np.uint8))


@properties
@given(**sizes)
def test_masked_values_are_the_chosen_ones(m, t, share, kind, dtype, absolute, n_threads, seed):
    values, k = table(kind, m, t, dtype, seed), 1 + int(share * (t - 1))
    places = expected_places(values, k, absolute)
    expected = np.zeros_like(values)
    np.put_along_axis(expected, places, np.take_along_axis(values, places, axis=1), axis=1)
    masked = kernels.top_k_masked(values, k, absolute=absolute, n_threads=n_threads)
    assert masked.dtype == dtype
    np.testing.assert_array_equal(masked, expected)


@properties
@given(**{**sizes, "kind": st.sampled_from(["normal", "ties", "relu", "sorted", "hidden"])}, targets=st.integers(0, 3))
def test_dots_match_the_masked_values(m, t, share, kind, dtype, absolute, n_threads, seed, targets):
    values, k = table(kind, m, t, dtype, seed), 1 + int(share * (t - 1))
    A = np.random.default_rng(seed + 1).normal(size=(targets, t)).astype(dtype)
    dots = kernels.top_k_dot(values, A, k, absolute=absolute, n_threads=n_threads)
    places = expected_places(values, k, absolute)
    chosen = np.take_along_axis(values, places, axis=1).astype(np.float64)
    products = chosen[:, None, :] * A.astype(np.float64)[:, places].swapaxes(0, 1)
    assert dots.dtype == dtype
    # A part of the sum has at most t / 64 + 1 terms, and parts join in 6 steps.
    bound = (t / 64 + 8) * np.finfo(dtype).eps * np.abs(products).sum(axis=2)
    if kernels.backend() == "reference":
        bound *= 8  # NumPy's own order
    assert (np.abs(dots - products.sum(axis=2)) <= bound).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dots_have_the_same_bits_on_every_instruction_set_and_number_of_threads(dtype, backend):
    if backend[0] == "reference":
        pytest.skip("the reference sums in NumPy's own order")
    values, A = table("normal", 7, 1087, dtype, 5), table("normal", 3, 1087, dtype, 6)
    with kernels.using("native", "portable"):
        expected = kernels.top_k_dot(values, A, 300)
    for n_threads in (1, 2, 3):
        found = kernels.top_k_dot(values, A, 300, n_threads=n_threads)
        np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


def test_a_value_left_out_does_not_count_even_if_infinite():
    values, A = np.array([[1.0, -np.inf, 3.0, 2.0]]), np.array([[1.0, 0.0, 10.0, np.inf]])
    np.testing.assert_array_equal(kernels.top_k_dot(values[:, :3].copy(), A[:, :3].copy(), 2), [[31.0]])
    np.testing.assert_array_equal(kernels.top_k_dot(values, A, 1), [[30.0]])

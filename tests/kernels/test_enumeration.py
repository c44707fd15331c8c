from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.hypercube import points
from sparsact.kernels import dispatch, enumeration
from sparsact.kernels.dispatch import reference

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(W: np.ndarray, b: np.ndarray, tolerance: np.ndarray, n_threads: int) -> kernels.ActiveCounts:
    before = [array.copy() for array in (W, b, tolerance)]
    expected = np.zeros((2, len(b) + 1), dtype=np.int64)
    witnesses = reference.count_active(W, b, tolerance, expected, 1)
    found = kernels.count_active(W, b, tolerance, n_threads=n_threads)
    for array, copy in zip((W, b, tolerance), before, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(found.lower_histogram, expected[0])
    np.testing.assert_array_equal(found.upper_histogram, expected[1])
    assert (found.lower_witness, found.upper_witness) == witnesses
    return found


@properties
@given(
    s=st.integers(0, 80),
    n=st.integers(1, 13),
    exact=st.booleans(),
    doubt=st.sampled_from([0.0, 1e-15, 0.3]),
    n_threads=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_histograms_and_witnesses_of_the_reference(s, n, exact, doubt, n_threads, seed):
    rng = np.random.default_rng(seed)
    W = rng.integers(-3, 4, size=(s, n)) / 2 if exact else rng.normal(size=(s, n)).round(1)
    b = rng.integers(-4, 9, size=s) / 2 if exact else rng.normal(size=s).round(1)
    check(W, b, rng.choice([0.0, doubt], size=s), n_threads)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_tiles_and_threads_of_a_larger_cube(n_threads):
    rng = np.random.default_rng(17)
    s, n = 23, 17
    check(rng.normal(size=(s, n)), rng.normal(size=s) * 3, np.full(s, 1e-3), n_threads)


def test_exact_units_are_counted_at_every_point():
    rng = np.random.default_rng(19)
    s, n = 31, 11
    W, b = rng.integers(-2, 3, size=(s, n)).astype(float), rng.integers(-2, 6, size=s).astype(float)
    found = kernels.count_active(W, b, np.zeros(s))
    active = np.count_nonzero(points(n) @ W.T > b, axis=1)
    np.testing.assert_array_equal(found.lower_histogram, np.bincount(active, minlength=s + 1))
    np.testing.assert_array_equal(found.upper_histogram, found.lower_histogram)
    assert found.lower_witness == found.upper_witness == np.argmax(active)


def test_ties_are_off_unless_they_are_in_doubt():
    """x_0 + x_1 > 0 at one point of four, and x_0 + x_1 > -tolerance at three."""
    found = kernels.count_active(np.array([[1.0, 1.0]]), np.zeros(1), np.zeros(1))
    assert (found.upper_histogram.tolist(), found.upper_witness) == ([3, 1], 0)
    found = kernels.count_active(np.array([[1.0, 1.0], [-1.0, -1.0]]), np.zeros(2), np.array([0.5, 0.0]))
    assert (found.lower_histogram.tolist(), found.lower_witness) == ([2, 2, 0], 0)
    assert (found.upper_histogram.tolist(), found.upper_witness) == ([0, 4, 0], 0)


def test_the_tolerance_covers_the_rounding():
    """The true count, by integers, lies between the two: tenths are exact in decimals alone."""
    rng = np.random.default_rng(23)
    s, n = 29, 12
    tenths, threshold = rng.integers(-9, 10, size=(s, n)), rng.integers(-9, 10, size=s)
    W, b = tenths / 10, threshold / 10
    eps = np.finfo(np.float64).eps
    stored = eps * (np.abs(W).sum(axis=1) + np.abs(b))  # of the decimals
    found = kernels.count_active(W, b, (enumeration.ROUNDING_STEPS + 1) * stored)
    active = np.bincount(np.count_nonzero(points(n) @ tenths.T > threshold, axis=1), minlength=s + 1)
    tails = [counts[::-1].cumsum() for counts in (found.lower_histogram, active, found.upper_histogram)]
    assert (tails[0] <= tails[1]).all()
    assert (tails[1] <= tails[2]).all()
    assert (tails[0] < tails[2]).any()


@pytest.mark.grid
def test_places_of_the_largest_half():
    """A half of 15 coordinates has 2**15 sums, whose places take every number that 16 bits hold: none, one, all on."""
    if dispatch.chosen is reference:
        pytest.skip("2**29 points take the reference minutes")
    n = 29
    found = kernels.count_active(np.ones((3, n)), np.array([n, n - 1.0, -n - 1.0]), np.zeros(3))
    assert found.lower_histogram.tolist() == [0, 2**n - 1, 1, 0]
    assert found.lower_witness == 0


@pytest.mark.parametrize(("s", "n"), [(2**15, 2), (1, 31)])
def test_what_16_bits_cannot_count_is_refused(s, n):
    with pytest.raises(ValueError, match=f"got {s} units on {n} inputs"):
        kernels.count_active(np.ones((s, n)), np.zeros(s), np.zeros(s))


def test_as_many_units_as_16_bits_count():
    s = 2**15 - 1
    found = kernels.count_active(np.ones((s, 2)), np.full(s, -3.0), np.zeros(s))
    assert found.lower_histogram[-1] == found.lower_histogram.sum() == 4

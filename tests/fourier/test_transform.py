import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import hadamard

from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import characters, points, subset_masks, subsets_of

finite = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def tables(draw, elements=finite, dtype=np.float64, most=7):
    n = draw(st.integers(0, most))
    return draw(arrays(dtype, (3, 2**n), elements=elements))


@given(tables())
def test_equals_the_hadamard_matrix(f):
    length = f.shape[-1]
    np.testing.assert_allclose(walsh_hadamard(f), f @ hadamard(length) / length, atol=1e-9)


def test_coefficient_is_the_mean_of_value_times_character():
    n = 5
    f = np.random.default_rng(1).standard_normal(2**n)
    subsets = subsets_of(subset_masks(n, n))
    numbers = [sum(1 << i for i in subset) for subset in subsets]
    expected = f @ characters(points(n), subsets) / 2**n
    np.testing.assert_allclose(walsh_hadamard(f)[numbers], expected, atol=1e-14)


@given(tables(elements=st.integers(-(2**40), 2**40), dtype=np.int64))
def test_twice_is_two_to_the_n_exactly(f):
    once = walsh_hadamard(f, normalize=False)
    assert once.dtype == np.int64
    np.testing.assert_array_equal(walsh_hadamard(once, normalize=False), f * f.shape[-1])


@given(tables())
def test_unnormalised_is_the_inverse(f):
    np.testing.assert_allclose(walsh_hadamard(walsh_hadamard(f), normalize=False), f, atol=1e-8)


@given(tables())
def test_parseval(f):
    np.testing.assert_allclose((walsh_hadamard(f) ** 2).sum(axis=-1), (f**2).mean(axis=-1), rtol=1e-9, atol=1e-12)


@given(tables(), finite, finite)
def test_linear(f, a, b):
    g = np.flip(f, axis=-1)
    both = walsh_hadamard(a * f + b * g)
    np.testing.assert_allclose(both, a * walsh_hadamard(f) + b * walsh_hadamard(g), rtol=1e-9, atol=1e-2)


@pytest.mark.parametrize(
    ("dtype", "normalised", "plain"),
    [
        (np.bool_, np.float64, np.int64),
        (np.int8, np.float64, np.int64),
        (np.uint16, np.float64, np.int64),
        (np.int32, np.float64, np.int32),
        (np.uint64, np.float64, np.int64),
        (np.float16, np.float64, np.float64),
        (np.float32, np.float32, np.float32),
        (np.float64, np.float64, np.float64),
    ],
)
def test_dtype_of_result(dtype, normalised, plain):
    f = np.array([[1, 0, 1, 1]], dtype=dtype)
    for normalize, expected in ((True, normalised), (False, plain)):
        coefficients = walsh_hadamard(f, normalize=normalize)
        assert coefficients.dtype == expected
        np.testing.assert_array_equal(coefficients * (4 if normalize else 1), [[3, 1, -1, 1]])


@pytest.mark.parametrize("axis", [0, 1, 2, -3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_axis(axis, order):
    shape = [3, 5, 7]
    shape[axis] = 16
    f = np.asarray(np.random.default_rng(2).standard_normal(shape), order=order)
    before = f.copy()
    expected = np.apply_along_axis(lambda row: row @ hadamard(16) / 16, axis, f)
    np.testing.assert_allclose(walsh_hadamard(f, axis), expected, atol=1e-14)
    np.testing.assert_array_equal(f, before)
    np.testing.assert_allclose(walsh_hadamard(f, axis, overwrite=True), expected, atol=1e-14)


def test_overwrite_uses_the_memory_it_may():
    f = np.random.default_rng(3).standard_normal((3, 32))
    expected = walsh_hadamard(f)
    coefficients = walsh_hadamard(f, overwrite=True)
    assert np.shares_memory(f, coefficients)
    np.testing.assert_array_equal(f, expected)
    np.testing.assert_array_equal(coefficients, expected)


@pytest.mark.parametrize("f", [np.ones((8, 3)).T, np.ones(16)[::2], np.ones(8, dtype=np.int64)])
def test_overwrite_leaves_what_does_not_fit(f):
    walsh_hadamard(f, overwrite=True)
    np.testing.assert_array_equal(f, np.ones_like(f))


def test_overwrite_leaves_a_read_only_array():
    f = np.arange(8.0)
    f.flags.writeable = False
    assert walsh_hadamard(f, overwrite=True)[0] == 3.5


def test_n_jobs_changes_no_bit():
    f = np.random.default_rng(4).standard_normal((3, 2**16))
    expected = walsh_hadamard(f, n_threads=1).tobytes()
    assert all(walsh_hadamard(f, n_threads=n_jobs).tobytes() == expected for n_jobs in (None, 2, 3, -1))


def test_large_values_do_not_overflow():
    np.testing.assert_array_equal(walsh_hadamard(np.full(8, 1e308)), [1e308] + 7 * [0.0])


def test_nan_stays_in_its_table():
    coefficients = walsh_hadamard([[1.0, np.nan], [1.0, 3.0]])
    assert np.isnan(coefficients[0]).all()
    np.testing.assert_array_equal(coefficients[1], [2.0, -1.0])


@pytest.mark.parametrize(("dtype", "largest"), [(np.int32, 2**31 - 1), (np.int64, 2**63 - 1), (np.uint64, 2**63 - 1)])
def test_integers_fit_or_are_refused(dtype, largest):
    f = np.full(4, largest // 4, dtype=dtype)
    assert walsh_hadamard(f, normalize=False)[0] == largest // 4 * 4
    with pytest.raises(OverflowError, match="must fit int"):
        walsh_hadamard(f + dtype(1), normalize=False)


def test_the_most_negative_integer_is_refused():
    with pytest.raises(OverflowError):
        walsh_hadamard(np.array([-(2**63)]), normalize=False)


@pytest.mark.parametrize("f", [[1j, 0], np.array([1, 2], dtype=object), ["a", "b"]])
def test_only_real_numbers(f):
    with pytest.raises(TypeError, match="`values` must be"):
        walsh_hadamard(f)


@pytest.mark.parametrize("f", [np.zeros(3), np.zeros((4, 6)), [], np.zeros((0, 4)), 1.0])
def test_only_tables_of_two_to_the_n(f):
    with pytest.raises(ValueError, match=r"2\*\*n values"):
        walsh_hadamard(f)


def test_no_such_axis():
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        walsh_hadamard(np.zeros((4, 4)), axis=2)

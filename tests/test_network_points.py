"""Points of every dtype at a network's door, and counts of active units that rounding could spoil."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from sparsact import SparselyActivatedNetwork
from sparsact.exact_sign import tolerances
from sparsact.validation.arrays import checked_columns, checked_points


def exact_counts(X, W, b):
    def active(w, threshold, x):
        return (
            sum((Fraction(float(p)) * Fraction(float(q)) for p, q in zip(w, x, strict=True)), -Fraction(threshold)) > 0
        )

    return [sum(active(w, float(threshold), x) for w, threshold in zip(W, b, strict=True)) for x in X]


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("step", [2, 10])  # halves are exact in floating point; tenths are not, and tie when rounded
def test_active_units_are_counted_exactly(dtype, step):
    rng = np.random.default_rng(53)
    for s, n, m in ((7, 5, 37), (1, 3, 11), (6, 1, 2), (3, 2, 0)):
        W, b = rng.integers(-3, 4, size=(s, n)) / step, rng.integers(-3, 4, size=s) / step
        for X in (1 - 2 * rng.integers(0, 2, size=(m, n)), rng.integers(-3, 4, size=(m, n))):
            points = X.astype(dtype)
            for weights in (W, sp.csr_array(W)):
                net = SparselyActivatedNetwork(np.ones(s), weights, b)
                np.testing.assert_array_equal(net.n_active(points), exact_counts(points, W, b))


@pytest.mark.parametrize("sparse", [False, True])
def test_values_do_not_depend_on_the_dtype_of_signs(sparse):
    rng = np.random.default_rng(59)
    s, n, m = 13, 9, 41
    W = rng.normal(size=(s, n)) * (rng.random((s, n)) < 0.4)
    net = SparselyActivatedNetwork(rng.normal(size=s), sp.csr_array(W) if sparse else W, rng.normal(size=s))
    X = 1 - 2 * rng.integers(0, 2, size=(m, n), dtype=np.int8)
    expected = net(X.astype(np.float64))
    for dtype in (np.int8, np.int16, np.float32):
        np.testing.assert_array_equal(net(X.astype(dtype)), expected)


def test_points_keep_a_dtype_that_kernels_read():
    for dtype, kept in ((np.int8, np.int8), (np.float32, np.float32), (np.int64, np.float64), (np.float64, np.float64)):
        X = np.ones((3, 2), dtype=dtype)
        assert checked_points(X, 2).dtype == kept
        assert checked_columns(X, 2).dtype == np.float64
        assert np.shares_memory(checked_points(X, 2), X) == (dtype == kept)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named(dtype, bad):
    X = np.zeros((3, 2), dtype=dtype)
    X[2, 1] = bad
    with pytest.raises(ValueError, match=r"`X` must be finite; the value at \(2, 1\)"):
        checked_points(X, 2)


def test_a_sum_that_overflows_is_of_finite_numbers():
    for dtype in (np.float32, np.float64):
        X = np.full((3, 2), np.finfo(dtype).max, dtype=dtype)
        np.testing.assert_array_equal(checked_points(X, 2), X)


def test_tolerances_are_zero_for_exact_sums_alone():
    W, b, signs = np.array([[0.5, 1.0], [0.1, 0.2]]), np.zeros(2), np.array([[1, -1]])
    assert (tolerances(signs, W, b) > 0).tolist() == [False, True]
    assert (tolerances(signs.astype(np.float64), W, b) > 0).tolist() == [False, True]
    assert (tolerances(0.3 * signs, W, b) > 0).all()
    assert (tolerances(3 * signs, W, b) > 0).all()


def test_tolerances_know_no_sign():
    W, b, X = np.array([[0.1, 0.2]]), np.array([0.3]), np.array([[3, 1], [2, 1]])
    for points in (X, X.astype(np.int8), X.astype(np.float32)):
        np.testing.assert_array_equal(tolerances(-points, W, b), tolerances(points, W, b))
    assert tolerances(-10 * X, W, b) > 5 * tolerances(X, W, b)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_products_that_underflow_keep_their_sign(form):
    net = SparselyActivatedNetwork([1.0, 1.0], form(np.array([[1e-200, 0], [-1e-200, 0]])), [0, 0])
    X = np.array([[1e-200, 1], [-1e-200, 1]])
    np.testing.assert_array_equal(net.active(X), [[True, False], [False, True]])
    np.testing.assert_array_equal(net.n_active(X), [1, 1])
    small = 2.0**-537  # one product is 2**-1074; each of four others, minus half of that, rounds to 0
    net = SparselyActivatedNetwork([1.0], form(np.array([[small] * 5])), [0])
    X = np.array([[small] + [-small / 2] * 4, [small] + [-small / 2] * 1 + [0] * 3])
    np.testing.assert_array_equal(net.active(X), [[False], [True]])
    np.testing.assert_array_equal(net.n_active(X), [0, 1])


def test_more_units_than_a_block_holds():
    s = 2**20 + 3
    net = SparselyActivatedNetwork(np.ones(s), np.full((s, 1), 0.5), np.zeros(s))
    X = np.array([[1], [-1], [1]])
    assert net.n_active(X).tolist() == [s, 0, s]
    assert net(X).tolist() == [s / 2, 0, s / 2]


def test_one_point_is_a_row():
    net = SparselyActivatedNetwork([1.0, 2.0], [[1, 1, 1], [1, -1, 0]], [0.5, 1.0])
    with pytest.raises(ValueError, match=r"shape \(3,\): pass X\[None\]"):
        net([1, 1, -1])
    with pytest.raises(ValueError, match=r"`x` must be one point, shape \(3,\); got shape \(2,\)"):
        net.linear_piece([1, 1])

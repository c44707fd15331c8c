"""Sums of buckets, the polynomials that fit them, and their values without a row."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from bucket_tables import FAMILIES, assert_same_bits, monomials, random_table, tables, values_at
from grids import grid
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from sparsact import kernels
from sparsact.kernels import bucket_statistics, hashing
from sparsact.kernels.hashing import BucketPlaces

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
alphas = st.sampled_from([0.0, 1e-9, 0.01, 3.0])


def part(found: BucketPlaces, rows) -> BucketPlaces:
    return BucketPlaces(*(np.ascontiguousarray(array[rows]) for array in found))


@properties
@given(table=tables, unknown=st.booleans())
@example(table={"seed": 1, "m": 9, "d": 9, "p": 8, "degree": 2}, unknown=False)
@example(table={"seed": 2, "m": 11, "d": 64, "p": 64, "family": "cells"}, unknown=False)
def test_sums_have_the_bits_of_the_reference(table, unknown):
    t = random_table(**table)
    ids, rng = t.ids.copy(), np.random.default_rng(0)
    if unknown:  # ids that are no bucket's: passed over
        ids[rng.random(ids.shape) < 0.3] = rng.choice([-1, len(t.counts), 2**31 - 1, -(2**31)])
    inputs = [array.copy() for array in (*t.found, ids, t.Y, t.weights)]
    both = []
    for backend in (kernels.backend(), "reference"):
        counts, sums = np.zeros_like(t.counts), np.zeros_like(t.sums)
        with kernels.using(backend):
            bucket_statistics.accumulate(t.found, ids, t.Y, t.weights, 1, t.degree, counts, sums)
            bucket_statistics.accumulate(
                part(t.found, slice(0, 3)), ids[:3], t.Y[:3], t.weights[:3], -1, t.degree, counts, sums
            )
        both.append((counts, sums))
    for ours, reference in zip(*both, strict=True):
        assert_same_bits(ours, reference)
    for array, before in zip((*t.found, ids, t.Y, t.weights), inputs, strict=True):
        assert_same_bits(array, before)


@pytest.mark.grid
@grid(family=FAMILIES, degree=[0, 1, 2])
def test_sums_match_the_rows_of_each_bucket(family, degree):
    t = random_table(3, m=61, family=family, degree=degree)
    counts, sums = np.zeros_like(t.counts), np.zeros_like(t.sums)
    bucket_statistics.accumulate(t.found, t.ids, t.Y, t.weights, 1, degree, counts, sums)
    for number in range(len(counts)):
        own = np.argwhere(t.ids == number)
        assert counts[number] == len(own)
        expected = np.zeros(sums.shape[1])
        for row, table in own:
            v, w, y = t.found.V[row, table % t.found.V.shape[1]], t.weights[row], t.Y[row]
            powers = [
                np.prod(v[list(each)])
                for k in range(2 * degree + 1)
                for each in combinations_with_replacement(range(t.p), k)
            ]
            phi = np.array(monomials(v, degree))
            own = np.concatenate([t.found.Z[row], powers, np.outer(phi, y).ravel(), y * y])
            expected[: len(own)] += w * own
        np.testing.assert_allclose(sums[number], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("p", "degree"), [(1, 2), (3, 1), (5, 2), (7, 0)])
def test_a_product_of_features_is_one_of_the_monomials(p, degree):
    v = np.random.default_rng(p).normal(size=p)
    one = hashing.BucketPlaces(v[None], v[None, None], np.zeros((1, 1), np.uint64))
    sums = np.zeros((1, bucket_statistics.n_sums(p, degree, 1)))
    bucket_statistics.accumulate(
        one, np.zeros((1, 1), np.int32), np.ones((1, 1)), np.ones(1), 1, degree, np.zeros(1, np.int64), sums
    )
    phi = np.array(monomials(v, degree))
    gram = np.outer(phi, phi)[np.triu_indices(len(phi))]
    np.testing.assert_allclose(sums[0, p + bucket_statistics.products(p, degree)], gram, rtol=1e-12)


@properties
@given(table=tables, seed=st.integers(0, 99))
def test_how_many_buckets_hold_rows(table, seed):
    """Buckets that rows fill, minus buckets that they leave: the sums there are 0."""
    t = random_table(**table)
    counts, sums = np.zeros_like(t.counts), np.zeros_like(t.sums)
    order = np.random.default_rng(seed).permutation(len(t.X))
    held = 0
    for rows, sign in ((order[:20], 1), (order[20:], 1), (order[:30], -1)):
        held += bucket_statistics.accumulate(
            part(t.found, rows), t.ids[rows], t.Y[rows], t.weights[rows], sign, t.degree, counts, sums
        )
        assert held == np.count_nonzero(counts)
    assert not sums[counts == 0].any()


def test_rows_that_come_and_go_leave_nothing():
    t = random_table(5, m=53, degree=2)
    counts, sums = t.counts.copy(), t.sums.copy()
    order = np.random.default_rng(0).permutation(53)
    for rows in (order[:20], order[20:]):
        bucket_statistics.accumulate(part(t.found, rows), t.ids[rows], t.Y[rows], t.weights[rows], -1, 2, counts, sums)
    assert not counts.any()
    assert not sums.any()


@properties
@given(table=tables, alpha=alphas, n_threads=st.integers(0, 3))
@example(table={"seed": 1, "m": 30, "d": 9, "p": 8, "degree": 2, "n_tables": 1, "q": 1}, alpha=0.0, n_threads=1)
def test_polynomials_have_the_bits_of_the_reference(table, alpha, n_threads):
    t = random_table(**table)
    sums = np.concatenate([t.sums, np.zeros((1, t.sums.shape[1])), -t.sums])  # and buckets that no rows make
    before = sums.copy()
    solved = bucket_statistics.solve(sums, t.p, t.degree, t.Y.shape[1], alpha, n_threads=n_threads)
    with kernels.using("reference"), np.errstate(all="ignore"):
        expected = bucket_statistics.solve(sums, t.p, t.degree, t.Y.shape[1], alpha)
    for ours, reference in zip(solved, expected, strict=True):
        assert_same_bits(ours, reference)
        assert np.isfinite(ours[: len(t.sums)]).all()
    assert_same_bits(sums, before)


@pytest.mark.grid
@grid(degree=[0, 1, 2], alpha=[0.03, 2.0])
def test_polynomials_match_ridge_regression(degree, alpha):
    t = random_table(7, m=83, p=2, n_tables=3, degree=degree)
    coefficients, residual = bucket_statistics.solve(t.sums, t.p, degree, 2, alpha)
    for number in range(len(t.counts)):
        rows, at = np.nonzero(t.ids == number)
        Phi = np.array([monomials(v, degree) for v in t.found.V[rows, at]])
        if degree:
            ridge = Ridge(alpha=alpha, solver="svd").fit(Phi[:, 1:], t.Y[rows], sample_weight=t.weights[rows])
            expected = np.vstack([ridge.intercept_, ridge.coef_.T])
        else:
            expected = np.average(t.Y[rows], axis=0, weights=t.weights[rows])[None]
        np.testing.assert_allclose(coefficients[number], expected, rtol=1e-7, atol=1e-9)
        squares = t.weights[rows] @ (t.Y[rows] - Phi @ expected) ** 2
        np.testing.assert_allclose(residual[number], squares, rtol=1e-7, atol=1e-9)


def test_without_penalty_as_many_coefficients_as_rows_can_tell():
    """A bucket of one row, and of copies of one row, is a constant; an empty bucket is 0."""
    t = random_table(9, m=1, n_tables=1)
    for copies in (1, 5):
        coefficients, residual = bucket_statistics.solve(copies * t.sums, t.p, 1, 2, 0.0)
        np.testing.assert_allclose(coefficients[0, 0], t.Y[0], rtol=1e-12)
        assert not coefficients[0, 1:].any()
        assert (residual < 1e-12).all()
    coefficients, residual = bucket_statistics.solve(np.zeros_like(t.sums), t.p, 1, 2, 0.0)
    assert not coefficients.any()
    assert not residual.any()


@pytest.mark.grid
@properties
@given(table=tables, alpha=alphas, least=st.integers(1, 3), n_threads=st.integers(0, 3))
def test_values_without_a_row_have_the_bits_of_the_reference(table, alpha, least, n_threads):
    t = random_table(**table)
    ids = t.ids.copy()
    ids[np.random.default_rng(1).random(ids.shape) < 0.2] = -1
    arguments = (t.found, ids, t.Y, t.weights, t.degree, alpha, least, t.counts, t.sums)
    before = t.sums.copy()
    ours = bucket_statistics.leave_one_out(*arguments, n_threads=n_threads)
    with kernels.using("reference"), np.errstate(all="ignore"):
        expected = bucket_statistics.leave_one_out(*arguments)
    for found, reference in zip(ours, expected, strict=True):
        assert_same_bits(found, reference)
    assert_same_bits(t.sums, before)


@grid(family=FAMILIES, degree=[0, 1, 2], least=[1, 4])
def test_values_without_a_row_match_a_table_that_never_saw_it(family, degree, least):
    t = random_table(11, m=47, p=2, family=family, degree=degree)
    values, total = bucket_statistics.leave_one_out(
        t.found, t.ids, t.Y, t.weights, degree, 0.1, least, t.counts, t.sums
    )
    no_trend = np.zeros((5, 2))
    for row in range(0, 47, 3):
        rest = np.delete(np.arange(47), row)
        counts, sums = np.zeros_like(t.counts), np.zeros_like(t.sums)
        bucket_statistics.accumulate(
            part(t.found, rest), t.ids[rest], t.Y[rest], t.weights[rest], 1, degree, counts, sums
        )
        coefficients, _ = bucket_statistics.solve(sums, t.p, degree, 2, 0.1)
        weights = np.where(counts >= least, sums[:, t.p], 0.0)
        x = t.X[row : row + 1]
        value, behind = values_at(x, t.hashes, t.index.slots, degree, coefficients, weights, no_trend)
        np.testing.assert_allclose(total[row], behind[0], rtol=1e-9)
        np.testing.assert_allclose(values[row], value[0], rtol=1e-7, atol=1e-9)
    assert (total > 0).any()


@pytest.mark.parametrize("size", [1e9, 1e12])
def test_large_targets_come_and_go_without_a_trace(size):
    """Sums of targets against rational arithmetic: what is left is below 1e-30 of the largest square."""
    t = random_table(3, m=40, p=2, degree=1, n_targets=2, n_tables=3)
    counts, sums, rng = t.counts.copy(), t.sums.copy(), np.random.default_rng(0)
    rows = [part(t.found, slice(0, 15)), t.ids[:15], size * rng.normal(size=(15, 2)), t.weights[:15]]
    for sign in (1, -1):
        bucket_statistics.accumulate(*rows, sign, 1, counts, sums)
    n = bucket_statistics.n_target_sums(2, 1, 2)
    left = sums[:, -2 * n : -n] - t.sums[:, -2 * n : -n]
    assert np.abs(left).max() < 1e-29 * size**2 + 1e-14
    np.testing.assert_array_equal(counts, t.counts)
    exact = [Fraction(0)] * 2
    for row in np.flatnonzero(t.ids[:, 0] == t.ids[0, 0]):
        exact = [e + Fraction(t.weights[row] * y * y) for e, y in zip(exact, t.Y[row], strict=True)]
    for k, due in enumerate(exact):
        high, low = sums[t.ids[0, 0], [-n - 2 + k, -2 + k]]
        assert abs(Fraction(high) + Fraction(low) - due) < 1e-29 * size**2 + 1e-28
        assert high + low == high


def test_sums_of_two_words_add_up_as_rows_do():
    t = random_table(4, m=60, p=3, degree=2, n_targets=1, n_tables=2)
    halves = []
    for rows in (slice(0, 25), slice(25, None)):
        counts, sums = np.zeros_like(t.counts), np.zeros_like(t.sums)
        arguments = part(t.found, rows), t.ids[rows], 1e8 * t.Y[rows], t.weights[rows]
        bucket_statistics.accumulate(*arguments, 1, 2, counts, sums)
        halves.append(sums)
    whole = np.zeros_like(t.sums)
    bucket_statistics.accumulate(t.found, t.ids, 1e8 * t.Y, t.weights, 1, 2, np.zeros_like(t.counts), whole)
    n = bucket_statistics.n_target_sums(3, 2, 1)
    bucket_statistics.add_sums(halves[0], halves[1], n)
    np.testing.assert_allclose(halves[0][:, :-n], whole[:, :-n], rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(halves[0][:, -2 * n : -n], whole[:, -2 * n : -n])


def test_occurrences_count_equal_numbers_before():
    numbers = np.array([3, 1, 3, 3, 0, 1], dtype=np.int32)
    np.testing.assert_array_equal(bucket_statistics.occurrences(numbers), [0, 0, 1, 2, 0, 1])
    assert len(bucket_statistics.occurrences(numbers[:0])) == 0

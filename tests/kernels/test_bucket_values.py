"""Values of tables of buckets at rows."""

from __future__ import annotations

import numpy as np
import pytest
from bucket_tables import FAMILIES, Table, assert_same_bits, monomials, random_table, tables
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.kernels import bucket_statistics, bucket_values, hashing

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def predictor_parts(t: Table, least: int = 2) -> tuple:
    """All that :func:`bucket_values` takes but the rows and what stands behind the star."""
    with kernels.using("reference"):
        coefficients, _ = bucket_statistics.solve(t.sums, t.p, t.degree, t.Y.shape[1], 0.01)
    weights = np.where(t.counts >= least, t.sums[:, t.p], 0.0)
    trend = np.random.default_rng(2).normal(size=(t.X.shape[1], t.Y.shape[1]))
    return t.hashes, t.index.slots, t.degree, coefficients, weights, trend


def queries(t: Table, m: int = 71) -> np.ndarray:
    """Rows of the table, rows like them, and rows far away, where every table misses."""
    rng = np.random.default_rng(1)
    new, far = rng.normal(size=(m, t.X.shape[1])), 1e3 * rng.normal(size=(3, t.X.shape[1]))
    return np.concatenate([t.X, new, far])


@properties
@given(table=tables, average=st.booleans(), n_threads=st.integers(0, 3))
@example(table={"seed": 1, "m": 33, "n_tables": 256, "p": 2}, average=True, n_threads=2)
@example(table={"seed": 2, "m": 9, "d": 70, "p": 64}, average=True, n_threads=1)
@example(table={"seed": 3, "m": 40, "family": "cells", "q": 150, "n_tables": 3}, average=False, n_threads=1)
@example(table={"seed": 4, "m": 40, "d": 12, "p": 12, "degree": 2, "n_targets": 5}, average=True, n_threads=1)
def test_values_have_the_bits_of_the_reference(table, average, n_threads):
    t = random_table(**table)
    X, parts = queries(t), predictor_parts(t)
    before = [array.copy() for array in (X, *parts[0][:5], parts[1], *parts[3:])]
    found = bucket_values.bucket_values(X, *parts, average=average, n_threads=n_threads)
    with kernels.using("reference"):
        expected = bucket_values.bucket_values(X, *parts, average=average)
    for ours, reference in zip(found, expected, strict=True):
        assert_same_bits(ours, reference)
    for array, copy in zip((X, *parts[0][:5], parts[1], *parts[3:]), before, strict=True):
        assert_same_bits(array, copy)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_values_are_those_of_a_loop_over_rows_and_tables(family, degree, average):
    t = random_table(13, m=67, p=2, family=family, degree=degree)
    hashes, slots, _, coefficients, weights, trend = predictor_parts(t)
    X = queries(t)
    places, numbers = hashing.places(X, hashes), {int(key): number for number, key in enumerate(t.index.keys)}
    values, total = bucket_values.bucket_values(X, hashes, slots, degree, coefficients, weights, trend, average=average)
    for x, v, keys, value, behind in zip(X, places.V, places.keys, values, total, strict=True):
        own = [(numbers[int(key)], v[table % len(v)]) for table, key in enumerate(keys) if int(key) in numbers]
        whole = sum(weights[number] for number, _ in own)
        sums = sum((weights[i] * (monomials(place, degree) @ coefficients[i]) for i, place in own), start=np.zeros(2))
        np.testing.assert_allclose(behind, whole, rtol=1e-12)
        expected = sums / whole if average and whole else sums
        np.testing.assert_allclose(value, expected + (x - hashes.centre) @ trend, rtol=1e-9, atol=1e-9)
    assert (total > 0).any()
    assert family != "grid" or (total == 0).any()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_single_query_is_its_row_in_a_batch_and_a_predictor_agrees(family):
    t = random_table(17, m=45, d=11, q=70, family=family)
    X, parts = queries(t), predictor_parts(t, least=1)
    values, total = bucket_values.bucket_values(X, *parts)
    predict = bucket_values.predictor(*parts)
    for row in range(len(X)):
        x = X[row : row + 1].copy()
        value, behind = bucket_values.bucket_values(x, *parts)
        assert_same_bits(value, values[row : row + 1])
        assert_same_bits(behind, total[row : row + 1])
        again, whole = np.empty((1, 2)), np.empty(1)
        predict(x, again, whole, 1)
        assert_same_bits(again, value)
        assert_same_bits(whole, behind)
    again, whole = np.empty_like(values), np.empty_like(total)
    predict(X, again, whole, 2)
    assert_same_bits(again, values)
    assert_same_bits(whole, total)


def test_a_predictor_keeps_its_arrays_alive():
    t = random_table(19, m=45)
    X, parts = queries(t), predictor_parts(t)
    expected, _ = bucket_values.bucket_values(X, *parts)
    predict = bucket_values.predictor(*parts[:3], *(array.copy() for array in parts[3:]))
    again, total = np.empty_like(expected), np.empty(len(X))
    predict(X, again, total, 1)
    assert_same_bits(again, expected)


def test_without_buckets_and_without_rows():
    t = random_table(23, m=0)
    parts, X = predictor_parts(t), np.random.default_rng(0).normal(size=(5, 5))
    values, total = bucket_values.bucket_values(X, *parts)
    assert not total.any()
    np.testing.assert_allclose(values, (X - t.hashes.centre) @ parts[-1], rtol=1e-12)
    values, total = bucket_values.bucket_values(X[:0], *parts)
    assert values.shape == (0, 2)
    assert total.shape == (0,)


def test_a_slot_that_names_no_bucket_is_a_miss():
    t = random_table(29, m=45)
    hashes, slots, *rest = predictor_parts(t, least=1)
    X, bad = queries(t), slots.copy()
    taken = np.flatnonzero(bad[:, 1] < len(t.index))
    bad[taken[::3], 1] = np.resize(
        np.array([len(t.index), 2**31, 2**32 + 1, 2**63, 2**64 - 2], np.uint64), len(taken[::3])
    )
    found = bucket_values.bucket_values(X, hashes, bad, *rest)
    known = rest[2].copy()
    known[slots[taken[::3], 1].astype(int)] = 0.0
    expected = bucket_values.bucket_values(X, hashes, slots, rest[0], rest[1], known, rest[3])
    for ours, right in zip(found, expected, strict=True):
        assert_same_bits(ours, right)
    assert found[1].any()


def test_buckets_without_weight_add_nothing_and_one_that_is_no_number_shows():
    t = random_table(31, m=45, n_tables=3)
    hashes, slots, degree, coefficients, weights, trend = predictor_parts(t, least=1)
    weights[::2] = -1.0
    weights[t.ids[4, 1]] = np.nan
    found = bucket_values.bucket_values(t.X, hashes, slots, degree, coefficients, weights, trend)
    with kernels.using("reference"), np.errstate(invalid="ignore"):
        expected = bucket_values.bucket_values(t.X, hashes, slots, degree, coefficients, weights, trend)
    for ours, reference in zip(found, expected, strict=True):
        assert_same_bits(ours, reference)
    assert np.isnan(found[1][4])

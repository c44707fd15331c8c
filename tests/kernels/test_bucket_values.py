"""Values of tables of buckets at rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from bucket_tables import FAMILIES, Table, assert_same_bits, monomials, random_table, tables, values_at
from grids import grid
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from instruction_sets import against_reference

from sparsact import kernels
from sparsact.kernels import bucket_statistics, bucket_values, hashing

pytestmark = pytest.mark.usefixtures("backend")
COMBINATIONS = ("average", "first")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def predictor_parts(t: Table, least: int = 2) -> tuple:
    """All that `values_at` takes but the rows and what stands behind the star."""
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


@pytest.mark.grid
@against_reference
@properties
@given(table=tables, combine=st.sampled_from(COMBINATIONS), n_threads=st.integers(0, 3))
@example(table={"seed": 1, "m": 33, "n_tables": 256, "p": 2}, combine="average", n_threads=2)
@example(table={"seed": 2, "m": 9, "d": 70, "p": 64}, combine="average", n_threads=1)
@example(table={"seed": 3, "m": 40, "family": "cells", "q": 150, "n_tables": 3}, combine="first", n_threads=1)
@example(table={"seed": 4, "m": 40, "d": 12, "p": 12, "degree": 2, "n_targets": 5}, combine="average", n_threads=1)
def test_values_have_the_bits_of_the_reference(table, combine, n_threads):
    t = random_table(**table)
    X, parts = queries(t), predictor_parts(t)
    before = [array.copy() for array in (X, *parts[0][:5], parts[1], *parts[3:])]
    found = values_at(X, *parts, combine=combine, n_threads=n_threads)
    with kernels.using("reference"):
        expected = values_at(X, *parts, combine=combine)
    for ours, reference in zip(found, expected, strict=True):
        assert_same_bits(ours, reference)
    for array, copy in zip((X, *parts[0][:5], parts[1], *parts[3:]), before, strict=True):
        assert_same_bits(array, copy)


@pytest.mark.grid
@grid(family=FAMILIES, degree=[0, 1, 2], combine=COMBINATIONS)
def test_values_match_a_loop_over_rows_and_tables(family, degree, combine):
    t = random_table(13, m=67, p=2, family=family, degree=degree)
    hashes, slots, _, coefficients, weights, trend = predictor_parts(t)
    X = queries(t)
    places, numbers = hashing.places(X, hashes), {int(key): number for number, key in enumerate(t.index.keys)}
    values, total = values_at(X, hashes, slots, degree, coefficients, weights, trend, combine=combine)
    for x, v, keys, value, behind in zip(X, places.V, places.keys, values, total, strict=True):
        own = [(numbers[int(key)], v[table % len(v)]) for table, key in enumerate(keys) if int(key) in numbers]
        if combine == "first":
            own = [(i, place) for i, place in own if weights[i] > 0][:1]
        whole = sum(weights[number] for number, _ in own)
        sums = sum((weights[i] * (monomials(place, degree) @ coefficients[i]) for i, place in own), start=np.zeros(2))
        np.testing.assert_allclose(behind, whole, rtol=1e-12)
        expected = sums / whole if whole else sums
        np.testing.assert_allclose(value, expected + (x - hashes.centre) @ trend, rtol=1e-9, atol=1e-9)
    assert (total > 0).any()
    assert family != "grid" or (total == 0).any()


@grid(family=FAMILIES)
def test_a_single_query_is_its_row_in_a_batch_and_a_predictor_agrees(family):
    t = random_table(17, m=45, d=11, q=70, family=family)
    X, parts = queries(t), predictor_parts(t, least=1)
    values, total = values_at(X, *parts)
    predict = bucket_values.predictor(*parts[:3], bucket_values.packed(*parts[3:5]), parts[5])
    for row in range(len(X)):
        x = X[row : row + 1].copy()
        value, behind = values_at(x, *parts)
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
    expected, _ = values_at(X, *parts)
    predict = bucket_values.predictor(*parts[:3], bucket_values.packed(*parts[3:5]), parts[5].copy())
    again, total = np.empty_like(expected), np.empty(len(X))
    predict(X, again, total, 1)
    assert_same_bits(again, expected)


def test_without_buckets_and_without_rows():
    t = random_table(23, m=0)
    parts, X = predictor_parts(t), np.random.default_rng(0).normal(size=(5, 5))
    values, total = values_at(X, *parts)
    assert not total.any()
    np.testing.assert_allclose(values, (X - t.hashes.centre) @ parts[-1], rtol=1e-12)
    values, total = values_at(X[:0], *parts)
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
    found = values_at(X, hashes, bad, *rest)
    known = rest[2].copy()
    known[slots[taken[::3], 1].astype(int)] = 0.0
    expected = values_at(X, hashes, slots, rest[0], rest[1], known, rest[3])
    for ours, right in zip(found, expected, strict=True):
        assert_same_bits(ours, right)
    assert found[1].any()


def test_buckets_without_weight_add_nothing_and_one_that_is_no_number_shows():
    t = random_table(31, m=45, n_tables=3)
    hashes, slots, degree, coefficients, weights, trend = predictor_parts(t, least=1)
    weights[::2] = -1.0
    weights[t.ids[4, 1]] = np.nan
    found = values_at(t.X, hashes, slots, degree, coefficients, weights, trend)
    with kernels.using("reference"), np.errstate(invalid="ignore"):
        expected = values_at(t.X, hashes, slots, degree, coefficients, weights, trend)
    for ours, reference in zip(found, expected, strict=True):
        assert_same_bits(ours, reference)
    assert np.isnan(found[1][4])


def unsolved(t: Table, least: int = 2) -> bucket_values.Unsolved:
    """Buckets of a table that are all to be solved."""
    n, n_targets = len(t.counts), t.Y.shape[1]
    unit = np.linspace(0.5, 2.0, n_targets)
    return bucket_values.Unsolved(np.ones(n, np.uint8), t.counts, t.sums, unit, least, 0.01)


@pytest.mark.grid
@properties
@given(table=tables, n_threads=st.integers(1, 3))
@example(table={"seed": 5, "m": 300, "d": 12, "p": 8, "n_targets": 3}, n_threads=2)
@example(table={"seed": 6, "m": 90, "n_tables": 300, "p": 2, "degree": 2}, n_threads=2)
def test_buckets_that_rows_meet_are_solved_with_the_bits_of_solving_all(table, n_threads):
    """And no others; a second call finds them solved."""
    t = random_table(**table)
    given, n = unsolved(t), len(t.counts)
    with kernels.using("reference"):
        coefficients, _ = bucket_statistics.solve(t.sums, t.p, t.degree, t.Y.shape[1], given.alpha)
    coefficients *= given.unit
    weights = np.where(t.counts >= given.least, t.sums[:, t.p], 0.0)
    X, trend = queries(t, m=5)[-9:], np.zeros((t.X.shape[1], t.Y.shape[1]))
    expected = values_at(X, t.hashes, t.index.slots, t.degree, coefficients, weights, trend)
    records = np.full((n, coefficients.shape[1] * coefficients.shape[2] + 1), np.nan)
    predict = bucket_values.predictor(t.hashes, t.index.slots, t.degree, records, trend, "average", given)
    met = np.unique(t.index.find(hashing.places(X, t.hashes).keys))
    met = met[met >= 0]
    for _ in range(2):
        values, total = np.empty((len(X), t.Y.shape[1])), np.empty(len(X))
        predict(X, values, total, n_threads)
        assert_same_bits(values, expected[0])
        assert_same_bits(total, expected[1])
        np.testing.assert_array_equal(np.flatnonzero(given.stale == 0), met)
        assert_same_bits(records[met], bucket_values.packed(coefficients, weights)[met])
        assert np.isnan(np.delete(records, met, axis=0)).all()


def test_threads_that_meet_one_bucket_wait_for_it():
    """Calls side by side, each with two threads of its own, on buckets that all of them are the first to meet."""
    t = random_table(11, m=400, p=3, degree=2, n_tables=8)
    X, trend, given = np.tile(t.X, (8, 1)), np.zeros((t.X.shape[1], 2)), unsolved(t, least=1)
    coefficients, _ = bucket_statistics.solve(t.sums, t.p, t.degree, 2, given.alpha)
    parts = t.hashes, t.index.slots, t.degree
    expected, _ = values_at(X, *parts, coefficients * given.unit, t.sums[:, t.p].copy(), trend)

    def ask(predict) -> np.ndarray:
        values = np.empty_like(expected)
        predict(X, values, np.empty(len(X)), 2)
        return values

    for _ in range(20 if kernels.backend() == "native" else 2):  # the reference has no threads of its own
        given.stale[:] = 1
        records = np.full((len(t.counts), coefficients[0].size + 1), np.nan)
        predict = bucket_values.predictor(*parts, records, trend, "average", given)
        with ThreadPoolExecutor(4) as pool:
            for values in pool.map(ask, [predict] * 4):
                assert_same_bits(values, expected)


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_a_bucket_whose_solver_never_ends_is_solved_by_others(backend):
    """A child finds one if it was forked while a thread of its parent solved the bucket."""
    t = random_table(13, m=60, p=3, degree=1, n_tables=3)
    given, trend, taken = unsolved(t, least=1), np.zeros((t.X.shape[1], t.Y.shape[1])), 2
    coefficients, _ = bucket_statistics.solve(t.sums, t.p, t.degree, t.Y.shape[1], given.alpha)
    parts = t.hashes, t.index.slots, t.degree
    expected, _ = values_at(t.X, *parts, coefficients * given.unit, t.sums[:, t.p].copy(), trend)
    given.stale[::2] = taken
    values, records = np.empty_like(expected), np.full((len(t.counts), coefficients[0].size + 1), np.nan)
    with kernels.using(backend):
        predict = bucket_values.predictor(*parts, records, trend, "average", given)
    predict(t.X, values, np.empty(len(t.X)), 2)
    assert_same_bits(values, expected)
    assert not given.stale.any()


@grid(family=FAMILIES)
def test_a_row_predictor_has_the_bits_of_its_parts(family):
    """Two tables and a level, a backup where the second misses, limits; None for what is no row."""
    t = random_table(37, m=60, d=6, n_targets=1, family=family)
    rng = np.random.default_rng(0)
    hashes, slots, degree, coefficients, weights, trend = predictor_parts(t, least=1)
    tables = [
        bucket_values.predictor(hashes, slots, degree, bucket_values.packed(c, w), trend)
        for c, w in (
            (coefficients, weights),
            (coefficients * 0.5, np.where(rng.random(len(weights)) < 0.4, weights, 0)),
        )
    ]
    constants = bucket_values.packed(rng.normal(size=(len(weights), 1, 1)), weights)
    backup = bucket_values.predictor(hashes, slots, 0, constants, np.zeros_like(trend), "first")
    predict = bucket_values.row_predictor(tables, backup, 0.25, -1.0, 1.5)
    bare = bucket_values.row_predictor(tables, None, 0.25, -1.0, 1.5)
    seen = set()
    for x in queries(t)[::3]:
        parts = []
        for part in (*tables, backup):
            value, behind = np.empty((1, 1)), np.empty(1)
            part(x[None], value, behind, 1)
            parts.append((value[0, 0], behind[0]))
        missed = parts[1][1] == 0
        value = parts[0][0] + parts[1][0] + 0.25
        value = value + parts[2][0] if missed else value
        for row in (x, x[None]):
            assert predict(row) == min(max(value, -1.0), 1.5)
            assert bare(row) == (None if missed else predict(row))
        seen.add((missed, -1.0 < value < 1.5))
    assert len(seen) > 2
    x = t.X[0]
    for wrong in (
        x[:5],
        x.astype(np.float32),
        x.astype(np.int64),
        x[::-1],
        x.tolist(),
        np.stack([x, x]),
        3.0,
        x * np.nan,
    ):
        if not (
            isinstance(wrong, np.ndarray) and wrong.shape == x.shape and wrong.dtype == float and np.isfinite(x @ wrong)
        ):
            assert predict(wrong) is None

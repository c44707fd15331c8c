"""Places and keys of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bucket_tables import FAMILIES, assert_same_bits, random_hashes, random_table, tables
from grids import grid
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.kernels import hashing
from sparsact.kernels.hashing import Hashes

pytestmark = pytest.mark.usefixtures("backend")
properties = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
WORD = 2**64


def mixed(key: int, code: int) -> int:
    """One more code in a key, in Python's integers."""
    key = (key ^ code % WORD) * 0x9E3779B97F4A7C15 % WORD
    return key ^ key >> 32


def finished(key: int) -> int:
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9 % WORD
    key = (key ^ key >> 27) * 0x94D049BB133111EB % WORD
    return key ^ key >> 31


@properties
@given(table=tables, n_threads=st.integers(0, 3))
@example(table={"seed": 1, "m": 35, "n_tables": 256, "p": 2}, n_threads=2)
@example(table={"seed": 2, "m": 9, "d": 70, "p": 64, "degree": 0}, n_threads=1)
@example(table={"seed": 3, "m": 33, "family": "cells", "q": 300, "n_tables": 2}, n_threads=1)
@example(table={"seed": 4, "m": 1, "family": "signs", "q": 77}, n_threads=1)
def test_places_have_the_bits_of_the_reference(table, n_threads):
    expected = random_table(**table)
    X = expected.X.copy()
    for part, reference in zip(hashing.places(X, expected.hashes, n_threads=n_threads), expected.found, strict=True):
        assert_same_bits(part, reference)
    assert_same_bits(X, expected.X)


@grid(family=FAMILIES)
def test_places_match_a_loop_in_python(family):
    rng = np.random.default_rng(3)
    p, n_tables = 3, 4
    q = p if family == "grid" else 7
    hashes, X = random_hashes(rng, 5, p, q, n_tables, family), 3 * rng.normal(size=(37, 5))
    found = hashing.places(X, hashes)
    for x, z, v, keys in zip(X, *found, strict=True):
        local = [sum(float(a) for a in (x - hashes.centre) * column) for column in hashes.local.T]
        np.testing.assert_array_equal(z, local)
        inputs = np.array(local) if family == "grid" else x - hashes.centre
        for t, seed in enumerate(hashes.seeds.tolist()):
            own = range(t * q, (t + 1) * q)
            U = [sum(float(a) for a in inputs * hashes.directions[:, j]) + float(hashes.offsets[j]) for j in own]
            codes = [int(u > 0) if family == "signs" else math.floor(u) for u in U]
            for code in codes:
                seed = mixed(seed, code)
            assert int(keys[t]) == finished(seed)
            if family == "grid":
                np.testing.assert_array_equal(v[t], np.array(U) - codes - 0.5)
                assert (np.abs(v[t]) <= 0.5).all()
            else:
                np.testing.assert_array_equal(v[0], z)


@grid(family=FAMILIES)
def test_a_row_falls_where_it_falls_whatever_stands_beside_it(family):
    table = random_table(5, m=83, d=7, q=40, family=family)
    for rows in (slice(0, 1), slice(50, 51), slice(13, 46), np.random.default_rng(0).permutation(83)):
        for part, whole in zip(hashing.places(table.X[rows].copy(), table.hashes), table.found, strict=True):
            assert_same_bits(part, whole[rows].copy())


FAR = [2.0**51, 2.0**51 + 1, 2.0**52, 2.0**53 + 2, 2.0**62, 2.0**63, 1e300, np.inf]
NEAR = [0.0, -0.0, 0.5, 1.5, 2.5, 1.0, 5e-324, np.nextafter(1.0, 0.0), 2.0**51 - 0.5, 2.0**51 - 1]


@grid(grid=[False, True], signs=[False, True])
def test_integers_and_what_is_far_or_not_a_number(grid, signs):
    numbers = np.array([sign * u for u in (*NEAR, *FAR) for sign in (1, -1)] + [np.nan])
    one, seeds = np.ones((1, 1)), np.array([7, 2**64 - 1], dtype=np.uint64)
    hashes = Hashes(np.zeros(1), one, np.ones((1, 2)), np.zeros(2), seeds, grid, signs)
    X = np.random.default_rng(0).permutation(np.tile(numbers, 3))[:, None]
    with np.errstate(invalid="ignore"):
        found = hashing.places(X, hashes)
        with kernels.using("reference"):
            expected = hashing.places(X, hashes)
    for part, reference in zip(found, expected, strict=True):
        assert_same_bits(part, reference)
    for x, keys in zip(X[:, 0].tolist(), found.keys.tolist(), strict=True):
        code = 0 if math.isnan(x) else int(x > 0) if signs else math.floor(min(max(x, -(2.0**62)), 2.0**62))
        assert keys == [finished(mixed(seed, code)) for seed in seeds.tolist()]


@pytest.mark.parametrize(("m", "n"), [(0, 3), (1, 1), (7, 5), (8, 2), (21, 4), (5, 0)])
def test_keys_of_rows_match_python(m, n):
    rows = np.random.default_rng(m).normal(size=(m, n))
    rows.flags.writeable = False
    expected = []
    for row in rows.view(np.uint64).tolist():
        key = 0x9E3779B97F4A7C15
        for word in row:
            key = mixed(key, word)
        expected.append(finished(key))
    assert hashing.row_keys(rows).tolist() == expected

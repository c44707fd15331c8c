"""Random tables of buckets, small, for the tests of their kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from sparsact import kernels
from sparsact.kernels import bucket_statistics, hashing
from sparsact.kernels.bucket_index import BucketIndex
from sparsact.kernels.bucket_values import packed, predictor
from sparsact.kernels.hashing import BucketPlaces, Hashes

FAMILIES = ("grid", "cells", "signs")
Array = np.ndarray[Any, Any]

# What hypothesis draws of a table; `q` counts outside grids alone.
tables = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "m": st.one_of(st.sampled_from([0, 1, 2, 31, 32, 33]), st.integers(0, 90)),
        "d": st.integers(1, 9),
        "p": st.integers(1, 4),
        "q": st.integers(1, 11),
        "n_tables": st.integers(1, 19),
        "family": st.sampled_from(FAMILIES),
        "degree": st.integers(0, 2),
        "n_targets": st.integers(1, 3),
    }
)


@dataclass
class Table:
    """Rows with targets and weights, their places and buckets, and the sums of those."""

    X: Array
    Y: Array
    weights: Array
    hashes: Hashes
    degree: int
    found: BucketPlaces
    index: BucketIndex
    ids: Array
    counts: Array
    sums: Array

    @property
    def p(self) -> int:
        return self.found.Z.shape[1]


def random_hashes(rng: np.random.Generator, d: int, p: int, q: int, n_tables: int, family: str) -> Hashes:
    grid = family == "grid"
    inputs, codes = (p, p) if grid else (d, q)
    return Hashes(
        rng.normal(size=d),
        rng.normal(size=(d, p)) / np.sqrt(d),
        rng.normal(size=(inputs, n_tables * codes)),
        rng.random(n_tables * codes),
        rng.integers(0, 2**64, n_tables, dtype=np.uint64),
        grid,
        family == "signs",
    )


def random_table(
    seed: int,
    m: int = 37,
    d: int = 5,
    p: int = 3,
    q: int = 2,
    n_tables: int = 4,
    family: str = "grid",
    degree: int = 1,
    n_targets: int = 2,
) -> Table:
    """A table whose every part comes from the reference."""
    rng = np.random.default_rng(seed)
    hashes = random_hashes(rng, d, p, q, n_tables, family)
    X, Y, weights = rng.normal(size=(m, d)), rng.normal(size=(m, n_targets)), rng.uniform(0.5, 2.0, m)
    with kernels.using("reference"):
        found, index = hashing.places(X, hashes), BucketIndex()
        ids = index.insert(found.keys)
        counts = np.zeros(len(index), dtype=np.int64)
        sums = np.zeros((len(index), bucket_statistics.n_sums(p, degree, n_targets)))
        bucket_statistics.accumulate(found, ids, Y, weights, 1, degree, counts, sums)
    return Table(X, Y, weights, hashes, degree, found, index, ids, counts, sums)


def values_at(
    X: Array, hashes: Hashes, slots: Array, degree: int, *parts: Array, combine: str = "average", n_threads: int = 1
) -> tuple[Array, Array]:
    """Values (m, targets) at rows and the weights behind them, of coefficients, weights and a trend."""
    coefficients, weights, trend = parts
    values, total = np.empty((len(X), trend.shape[1])), np.empty(len(X))
    records = np.ascontiguousarray(packed(coefficients, weights))
    predictor(hashes, slots, degree, records, trend, combine)(X, values, total, n_threads)
    return values, total


def monomials(v: Array, degree: int) -> list[float]:
    """1, v_i, then v_i v_j with i <= j, as far as the degree goes."""
    p = len(v)
    quadratic = [v[i] * v[j] for i in range(p) for j in range(i, p)]
    return [1.0, *(v if degree >= 1 else []), *(quadratic if degree >= 2 else [])]


def assert_same_bits(found: Array, expected: Array) -> None:
    """Equal shapes, types and bits; of a NaN its place counts alone."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if found.dtype == np.float64:
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        found, expected = (np.where(np.isnan(a), 0.0, a).view(np.uint64) for a in (found, expected))
    np.testing.assert_array_equal(found, expected)

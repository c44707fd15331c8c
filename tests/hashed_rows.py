"""Rows and models for the tests of the LSH learners."""

from __future__ import annotations

import numpy as np
import pytest
from grids import few_of

from sparsact import LSHRegressor


def rows(m=211, d=5, seed=3):
    """Rows in a three-dimensional subspace of R^d, and a target with a kink."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 3)) @ rng.normal(size=(3, d))
    return X, np.abs(X[:, 0]) + X[:, 1] ** 2 - 0.5 * X[:, 2]


def state(model):
    """Everything that updates may change, as arrays in an order of their own."""
    table = model.table_
    buckets = np.argsort(table.index.keys)
    known = np.argsort(table.rows.keys)
    known = known[table.rows.copies[known] > 0]
    arrays = [table.index.keys[buckets], table.counts[buckets], table.sums[buckets], table.totals]
    arrays += [table.rows.keys[known], table.rows.copies[known]]
    return [array.copy() for array in arrays]


def same(ours, theirs, tolerance=0.0):
    """Whether two states are equal, sums up to a tolerance."""
    return all(
        a.shape == b.shape and np.allclose(a, b, rtol=tolerance, atol=tolerance)
        for a, b in zip(ours, theirs, strict=True)
    )


FAMILIES = [
    {"family": "pca_grid", "degree": "auto", "directions": "auto"},
    {"family": "pca_grid", "degree": 2, "n_hashes": 2},
    {"family": "pca_grid", "directions": "gradients"},
    {"family": "euclidean", "degree": 0},
    {"family": "euclidean", "degree": 1, "n_hashes": 4},
    {"family": "hyperplane", "n_hashes": 3},
]


families = pytest.mark.parametrize(
    "options", few_of(FAMILIES, [FAMILIES[i] for i in (0, 4, 5)]), ids=lambda o: "-".join(map(str, o.values()))
)


def model(**options):
    """A small model of fixed hashes; of what is chosen automatically, only widths and penalties are."""
    return LSHRegressor(
        **{"n_tables": 3, "degree": 1, "directions": "principal", "n_stages": 1, "random_state": 7, **options}
    )

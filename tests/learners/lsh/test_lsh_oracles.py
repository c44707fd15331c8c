"""What is predicted, computed a second time from the hash functions alone, in plain NumPy and scikit-learn."""

from itertools import pairwise

import numpy as np
import pytest
from hashed_rows import families, model, rows
from sklearn.linear_model import Ridge

from sparsact import LSHRegressor

X, Y = rows()
QUERIES = rows(m=400, seed=4)[0]


def cells(learner, X):
    """Codes (m, T, q) of rows, from the definition of the family."""
    hashes = learner.table_.layout.hashes
    Z = (X - hashes.centre) @ hashes.local if hashes.grid else X - hashes.centre
    codes = Z @ hashes.directions + hashes.offsets
    codes = codes > 0 if hashes.signs else np.floor(codes)
    return codes.reshape(len(X), learner.n_tables, -1)


def same_cell(learner, Q, X):
    """Whether query and row share a bucket, (queries, T, rows)."""
    return (cells(learner, Q)[:, :, None] == cells(learner, X).transpose(1, 0, 2)[None]).all(axis=-1)


def test_the_literal_euclidean_table_is_the_mean_of_a_bucket(kernels_in_use):
    learner = model(family="euclidean", degree=0, n_tables=1, n_hashes=4, bucket_width=2.0, fallback="nan").fit(X, Y)
    shared = same_cell(learner, QUERIES, X)[:, 0]
    counts = shared.sum(axis=1)
    expected = np.where(counts > 0, shared @ Y / np.maximum(counts, 1), np.nan)
    assert 50 < np.isnan(expected).sum() < 350
    np.testing.assert_allclose(learner.predict(QUERIES), expected, rtol=1e-12, atol=1e-12)


def test_euclidean_directions_are_normal_and_offsets_uniform():
    """Datar et al. (2004). 4,000 draws: mean and variance lie within 5 standard errors but with probability 1e-6."""
    learner = LSHRegressor(50, 8, 0.5, 0, "euclidean", random_state=3).fit(*rows(d=10))
    directions = learner.table_.layout.hashes.directions * 0.5
    assert directions.shape == (10, 400)
    assert abs(directions.mean()) < 5 / np.sqrt(4000)
    assert abs(directions.var() - 1) < 5 * np.sqrt(2 / 4000)
    offsets = learner.table_.layout.hashes.offsets
    assert offsets.min() >= 0
    assert offsets.max() < 1
    assert abs(offsets.mean() - 0.5) < 5 / np.sqrt(12 * 400)


def test_hyperplanes_give_sign_patterns_about_the_mean(kernels_in_use):
    learner = model(family="hyperplane", degree=0, n_hashes=4, fallback="nan").fit(X + 0.3, Y)
    directions = learner.table_.layout.hashes.directions
    patterns = [((rows - X.mean(axis=0)) @ directions > 0).reshape(-1, 3, 4) for rows in (QUERIES, X)]
    shared = (patterns[0][:, :, None] == patterns[1].transpose(1, 0, 2)[None]).all(axis=-1)
    counts = shared.sum(axis=(1, 2))
    expected = np.where(counts > 0, np.einsum("qtr,r->q", shared, Y) / np.maximum(counts, 1), np.nan)
    np.testing.assert_allclose(learner.predict(QUERIES + 0.3), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.grid
@pytest.mark.parametrize(("degree", "weighted"), [(1, False), (2, True)])
def test_a_bucket_is_a_ridge_regression(degree, weighted, kernels_in_use):
    """scikit-learn's Ridge, bucket by bucket, on monomials of the place within the cell; averages by weight."""
    fixed = {"n_hashes": 2, "bucket_width": 1.2, "alpha": 0.3, "directions": "principal"}
    weights = np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else np.ones(len(X))
    learner = model(degree=degree, fallback="nan", extrapolate="linear", **fixed).fit(X, Y, weights)
    layout = learner.table_.layout

    def monomials(rows, table):
        U = (rows - layout.hashes.centre) @ layout.hashes.local @ layout.hashes.directions + layout.hashes.offsets
        V = (U - np.floor(U) - 0.5)[:, 2 * table : 2 * table + 2]
        squares = [V[:, 0] ** 2, V[:, 0] * V[:, 1], V[:, 1] ** 2]
        return np.column_stack([V, *squares]) if degree == 2 else V

    residual = layout.residual(X, Y[:, None])[:, 0] * layout.unit
    queries = QUERIES[:61]
    shared = same_cell(learner, queries, X)
    expected = np.full(len(queries), np.nan)
    for q in range(len(queries)):
        found = []
        for table in range(3):
            inside = shared[q, table]
            if inside.any():
                ridge = Ridge(0.3).fit(monomials(X[inside], table), residual[inside], weights[inside])
                value = ridge.predict(monomials(queries[[q]], table))[0]
                found.append((weights[inside].sum(), value))
        if found:
            expected[q] = np.average([value for _, value in found], weights=[weight for weight, _ in found])
    expected += layout.level + ((queries - layout.hashes.centre) @ layout.trend)[:, 0]
    assert np.isfinite(expected).sum() > 40
    np.testing.assert_allclose(learner.predict(queries), expected, rtol=1e-7, atol=1e-7)


@families
def test_several_targets_are_as_many_fits(options):
    """The layout is given and the same, because the choice looks at all targets together."""
    targets = np.column_stack([Y, X[:, 1] ** 3, np.full(len(X), 2.0)])
    given = {name: value for name, value in options.items() if value not in ("auto", "gradients")}
    fixed = {"alpha": 0.1, "directions": "principal", "bucket_width": 0.9, "degree": 1} | given
    together = model(**fixed).fit(X, targets)
    for j, column in enumerate(targets.T):
        alone = model(**fixed).fit(X, column)
        np.testing.assert_allclose(together.predict(QUERIES)[:, j], alone.predict(QUERIES), rtol=1e-6, atol=1e-6)
    assert together.predict(QUERIES).shape == (400, 3)
    assert model(**fixed).fit(X, Y[:, None]).predict(QUERIES).shape == (400, 1)


@families
def test_buckets_counts_and_numbers_agree(options):
    learner = model(**options).fit(X, Y)
    numbers = learner.apply(X)
    assert numbers.shape == (211, 3)
    assert numbers.min() >= 0
    np.testing.assert_array_equal(np.bincount(numbers.ravel()), learner.bucket_counts_)
    assert learner.bucket_counts_.shape == (learner.n_buckets_,)
    for one, other in pairwise(range(3)):  # tables have buckets of their own
        assert not np.intersect1d(numbers[:, one], numbers[:, other]).size
    shared = same_cell(learner, X[:40], X[:40])
    equal = (numbers[:40, None] == numbers[None, :40]).transpose(0, 2, 1)
    np.testing.assert_array_equal(shared, equal)


def test_the_tables_are_as_fine_as_was_asked():
    learner = model(n_hashes=3, bucket_width=0.5, directions="principal").fit(X, Y)
    assert (learner.n_hashes_, learner.bucket_width_) == (3, 0.5)
    hashes = learner.table_.layout.hashes
    for table in range(3):
        rotation = hashes.directions[:, 3 * table : 3 * table + 3] * 0.5
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-12)
    leading = (X - X.mean(axis=0)) @ hashes.local
    assert leading[:, 0].std() == pytest.approx(1)
    np.testing.assert_allclose(np.cov(leading.T), np.diag(np.diag(np.cov(leading.T))), atol=1e-9)

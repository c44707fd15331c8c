"""What an input gets whose buckets are all empty."""

import numpy as np
import pytest
from hashed_rows import families, model, rows

from sparsact.learners.lsh.nearest import nearest_index

X, Y = rows()
FAR = np.concatenate([rows(m=23, seed=9)[0] * 3 + 20, np.full((1, 5), -1e12)])
FIXED = {"bucket_width": 0.5, "alpha": 0.1, "directions": "principal", "n_hashes": 3}


def test_the_mean_of_all_rows():
    weights = np.random.default_rng(0).uniform(1, 2, len(X))
    learner = model(fallback="mean", **FIXED).fit(X, Y, weights)
    np.testing.assert_allclose(learner.predict(FAR), np.average(Y, weights=weights))
    learner.remove(X[:100], Y[:100], weights[:100])
    np.testing.assert_allclose(learner.predict(FAR), np.average(Y[100:], weights=weights[100:]))


def test_nan_and_an_error():
    assert np.isnan(model(fallback="nan", **FIXED).fit(X, Y).predict(FAR)).all()
    learner = model(fallback="raise", **FIXED).fit(X, Y)
    mixed = np.concatenate([X[:2], FAR])
    with pytest.raises(ValueError, match=r"every bucket is empty for row 2 and 23 more; learn"):
        learner.predict(mixed)
    assert np.isfinite(learner.predict(X)).all()


@families
def test_the_nearest_bucket_by_brute_force(options):
    finer = {"n_hashes": 16} if options["family"] == "hyperplane" else {}  # cells reach to infinity: many, of few rows
    asked = rows(m=211, seed=9)[0] * 3 if finer else FAR
    unbounded = {"fallback": "nearest", "extrapolate": "linear"}
    learner = model(**{"bucket_width": 0.5, "alpha": 0.1, **unbounded, **options, **finer}).fit(X, Y)
    layout = learner.table_.layout
    missed = asked[(learner.apply(asked) < 0).all(axis=1)]
    assert len(missed) > (2 if finer else 15)

    def local(rows):
        return (rows - layout.hashes.centre) @ layout.hashes.local

    numbers = learner.apply(X)
    residual = layout.residual(X, Y[:, None])[:, 0] * layout.unit
    positions, means = [], []
    for bucket in range(learner.n_buckets_):
        inside = (numbers == bucket).any(axis=1)
        positions.append(local(X[inside]).mean(axis=0))
        means.append(residual[inside].mean())
    closest = np.linalg.norm(local(missed)[:, None] - np.array(positions)[None], axis=2).argmin(axis=1)
    trend = ((missed - layout.hashes.centre) @ layout.trend)[:, 0]
    expected = np.array(means)[closest] + layout.level[0] + trend
    np.testing.assert_allclose(learner.predict(missed), expected, rtol=1e-7)


def test_buckets_of_few_rows_count_as_empty():
    learner = model(min_count=4, fallback="nan", **FIXED).fit(X, Y)
    counts = learner.bucket_counts_[learner.apply(X)]
    np.testing.assert_array_equal(np.isnan(learner.predict(X)), (counts < 4).all(axis=1))
    assert np.isfinite(learner.set_params(fallback="nearest").blank().partial_fit(X, Y).predict(X)).all()


def test_every_bucket_of_too_few_rows():
    options = {"min_count": 999, **FIXED}
    np.testing.assert_allclose(model(fallback="mean", **options).fit(X, Y).predict(X), Y.mean())
    assert np.isnan(model(fallback="nan", **options).fit(X, Y).predict(X)).all()
    for name in ("nearest", "raise"):
        with pytest.raises(ValueError, match="min_count"):
            model(fallback=name, **options).fit(X, Y).predict(X)


def test_the_error_names_the_row_of_the_query():
    learner = model(fallback="raise", **FIXED).fit(X, Y).predictor()
    with pytest.raises(ValueError, match="empty for row 0; learn"):
        learner(FAR[3])


@pytest.mark.parametrize("queries", [FAR * 1e280, -FAR * 1e290])
def test_queries_at_the_end_of_the_floats_find_a_nearest_bucket(queries):
    assert np.isfinite(model(degree=0, **FIXED).fit(X, Y).predict(queries)).all()


@pytest.mark.parametrize("p", [3, 24])
def test_the_nearest_point_in_few_dimensions_and_in_many(p):
    rng = np.random.default_rng(p)
    table, queries = rng.normal(size=(150, p)), rng.normal(size=(31, p))
    expected = np.linalg.norm(queries[:, None] - table[None], axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest_index(table, 1000)(queries), expected)
    far = 2.0**30  # from the origin
    np.testing.assert_array_equal(nearest_index(table + far, 1000)(queries + far), expected)
    assert nearest_index(table)(queries[:0]).shape == (0,)

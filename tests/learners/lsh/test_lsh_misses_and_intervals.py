"""Estimated shares of misses, and intervals, against new points that were really drawn."""

from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from grids import few_of
from hashed_rows import model, rows
from scipy.special import stdtrit

from sparsact import LSHRegressor, load

FIXED = {"alpha": 0.1, "directions": "principal", "n_hashes": 3}


@pytest.mark.parametrize("width", [0.1, 0.2, 0.4])
def test_the_miss_rate_matches_new_points(width):
    """Good-Turing with m = 4,000 rows: within 0.03.

    By Good (1953) bias and deviation are below 1/m and about sqrt(2/m) = 0.022 for one table, three tables of one
    sample being little better; the share among 20,000 new points adds 0.004. The seed is fixed: it does not flicker.
    """
    whole, y = rows(m=24_000)
    learner = model(bucket_width=width, **FIXED).fit(whole[:4000], y[:4000])
    missed = (learner.apply(whole[4000:]) < 0).mean()
    assert abs(learner.miss_rate_ - missed) < 0.03
    assert 0.005 < missed < 0.9


def noisy(m, seed):
    """A kink, with noise that grows fivefold from left to right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (m, 2))
    return X, np.abs(X[:, 0]) + (0.3 + 0.2 * X[:, 1]) * rng.normal(size=m)


@pytest.fixture(scope="module")
def learner():
    return LSHRegressor(n_tables=16, n_stages=1, random_state=0).fit(*noisy(3000, 0))


@pytest.mark.grid
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_intervals_hold_what_they_promise_everywhere(learner, confidence):
    """Noise of deviation 0.1 to 0.5, by 4,000 new points in the left and the right half.

    The share covered in a half of 2,000 points has deviation below 0.0112, so chance alone moves it by 0.05 with
    probability below 1e-5; intervals themselves may be off by as much, for their variances are estimates.
    """
    X, y = noisy(4000, 1)
    low, high = learner.predict_interval(X, confidence).T
    covered = (low <= y) & (y <= high)
    for half in (X[:, 1] < 0, X[:, 1] > 0):
        assert abs(covered[half].mean() - confidence) < 0.1
    assert abs(covered.mean() - confidence) < 0.06


@pytest.mark.grid
def test_intervals_are_wider_where_there_is_more_noise(learner):
    intervals = learner.predict_interval([[0.0, -0.8], [0.0, 0.8]])
    left, right = intervals[:, 1] - intervals[:, 0]
    assert 2 < right / left < 5.5  # 0.46 / 0.14 = 3.3
    np.testing.assert_allclose(intervals.mean(axis=1), learner.predict([[0.0, -0.8], [0.0, 0.8]]))


def test_intervals_scale_with_the_quantile_and_the_target():
    X, y = noisy(600, 0)
    learner = model(**FIXED | {"n_hashes": 2}).fit(X, y)
    half, most = (np.diff(learner.predict_interval(X, level), axis=1) for level in (0.5, 0.99))
    np.testing.assert_allclose(most / half, stdtrit(599, 0.995) / stdtrit(599, 0.75))
    for scale in (1e-200, 1e200):
        scaled = model(**FIXED | {"n_hashes": 2}).fit(X, y * scale).predict_interval(X, 0.5)
        np.testing.assert_allclose(np.diff(scaled, axis=1), half * scale, rtol=1e-6)


def test_two_rows_tell_nothing_of_the_noise():
    """Then the interval is as wide as targets vary about their trend; not of width zero. One row tells no width."""
    X, y = noisy(2, 0)
    low, high = model(bucket_width=9.0, **FIXED | {"n_hashes": 2}).fit(X, y).predict_interval(X, 0.9).T
    assert (high - low > 0).all()
    assert np.isfinite(high).all()
    alone = model(bucket_width=9.0, **FIXED | {"n_hashes": 2}).fit(X[:1], y[:1]).predict_interval(X, 0.9)
    assert np.isinf(alone).all()


SETTINGS = {
    "lines": {"bucket_width": 1.0, "degree": 1},
    "parabolas": {"bucket_width": 2.0, "degree": 2, "alpha": 0.1},
    "constants": {"bucket_width": 1.0, "degree": 0, "base": "constant"},
    "many columns": {"bucket_width": 1.0, "degree": 1, "n_hashes": 3},
}


QUICK = [(9, "lines"), (9, "constants"), (50, "many columns")]


@pytest.mark.grid
@pytest.mark.parametrize(("m", "setting"), few_of(product([9, 12, 20, 50], SETTINGS), QUICK))
def test_intervals_of_few_rows_hold_what_they_promise(m, setting):
    """Four kinds of target and 8 samples each: shares of 100 new rows of deviation below .13, so their mean is below
    .82 with a probability below 3e-4 if intervals hold 90 %."""
    n_columns, held = 7 if setting == "many columns" else 2, []
    options = {"n_tables": 6, "alpha": 1.0, "directions": "principal", "n_stages": 1, "columns": "all"}
    for seed in range(32):
        rng = np.random.default_rng(seed)
        X, noise = rng.normal(size=(m + 100, n_columns)), rng.normal(size=m + 100)
        heavy = X[:, 1] + rng.standard_t(3, m + 100)
        targets = X[:, 0] + noise / 2, np.sin(2 * X[:, 0]) + noise / 3, heavy, (0.2 + np.abs(X[:, 1])) * noise
        y = targets[seed % 4]
        learner = LSHRegressor(**options | SETTINGS[setting], random_state=0).fit(X[:m], y[:m])
        low, high = learner.predict_interval(X[m:]).T
        held.append(np.mean((low <= y[m:]) & (y[m:] <= high)))
    assert np.mean(held) > 0.82
    assert m < 50 or np.mean(held) < 0.97


def test_scores_come_with_files_copies_and_blank_models(tmp_path):
    X, y = noisy(60, 3)
    learner = model(bucket_width=1.0, **FIXED).fit(X, y)
    expected = learner.predict_interval(X[:9], 0.8)
    learner.save(tmp_path / "m")
    for other in (load(tmp_path / "m"), deepcopy(learner), learner.blank().partial_fit(X, y)):
        np.testing.assert_allclose(other.predict_interval(X[:9], 0.8), expected, rtol=1e-9)
    width = {level: np.diff(learner.predict_interval(X[:1], level)).item() for level in (0.98, 0.99, 0.999)}
    assert 0 < width[0.98] < width[0.99] < width[0.999] < np.inf  # beyond 60 of 61


def test_intervals_of_several_targets_and_of_misses():
    X, y = noisy(400, 0)
    both = model(bucket_width=0.4, **FIXED | {"n_hashes": 2}).fit(X, np.column_stack([y, 10 * y]))
    intervals = both.predict_interval(X[:7])
    assert intervals.shape == (7, 2, 2)
    np.testing.assert_allclose(intervals[:, 1], 10 * intervals[:, 0])
    far = both.predict_interval([[50.0, 50.0]])
    assert np.isfinite(far).all()
    assert (far[..., 1] > far[..., 0]).all()
    assert np.isnan(both.set_params(fallback="nan").predict_interval([[50.0, 50.0]])).all()
    for confidence in (0, 1, -0.1, np.nan):
        with pytest.raises(ValueError, match="confidence"):
            both.predict_interval(X, confidence)


def test_a_predictor_equals_predict_to_the_bit_and_stays_as_it_was():
    X, y = rows()
    for targets in (y, np.column_stack([y, -y])):
        learner = model().fit(X, targets)
        compiled = learner.predictor()
        queries = np.concatenate([rows(m=37, seed=4)[0], np.full((1, 5), 1e6)])
        before = learner.predict(queries)
        np.testing.assert_array_equal(compiled(queries), before)
        for query, value in zip(queries, before, strict=True):
            np.testing.assert_array_equal(compiled(query), value)
            np.testing.assert_array_equal(compiled(query.tolist()), value)
        learner.remove(X[:200], targets[:200])
        learner.partial_fit(X[:9] * 2, targets[:9])
        assert not np.array_equal(learner.predict(queries), before)
        np.testing.assert_array_equal(compiled(queries), before)
    assert np.ndim(model().fit(X, y).predictor()(X[0])) == 0
    assert model().fit(X, y).predictor()(X[:0]).shape == (0,)


def test_a_predictor_refuses_what_is_no_query():
    X, y = rows()
    compiled = model().fit(X, y).predictor()
    for query in (X[0, :4], X[:, :4], X[None], 3.0, np.zeros(0)):
        with pytest.raises(ValueError, match="5 numbers"):
            compiled(query)
    for fallback in ("nearest", "nan", "mean", "raise"):
        compiled = model(fallback=fallback, **FIXED).fit(X, y).predictor()
        for wrong in (np.inf, -np.inf):
            query = X[:3].copy()
            query[1, 2] = wrong
            for given in (query, query[1]):
                with pytest.raises(ValueError, match="finite"):
                    compiled(given)

"""The closed form: additive, and equal to what scikit-learn finds from the features."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge

from sparsact import DSMRegressor
from sparsact.learners.dsm.training import RidgeStatistic
from sparsact.statistics.statistic import Batch

rng = np.random.default_rng(23)
X, Y = rng.normal(size=(211, 4)), rng.normal(size=(211, 2))
WEIGHTS = rng.integers(0, 4, size=211).astype(float)


def model(**changes):
    return DSMRegressor(**({"n_units": 31, "n_active": 9, "alpha": 1e-3, "random_state": 1} | changes))


def features(fitted, rows):
    return fitted.layer_.features(rows)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 10.0])
def test_it_is_the_ridge_of_the_masked_features(fit_intercept, alpha):
    fitted = model(alpha=alpha, fit_intercept=fit_intercept).fit(X, Y, WEIGHTS)
    phi = features(fitted, X)
    centred = phi - np.average(phi, axis=0, weights=WEIGHTS) * fit_intercept
    penalty = alpha * (WEIGHTS @ centred**2).mean()
    peer = Ridge(penalty, fit_intercept=fit_intercept).fit(phi, Y, WEIGHTS)
    np.testing.assert_allclose(fitted.predict(X), peer.predict(phi), rtol=1e-7, atol=1e-9)
    if alpha:
        np.testing.assert_allclose(fitted.coefficients_, peer.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fitted.intercept_, peer.intercept_, rtol=1e-6, atol=1e-9)


@given(cuts=st.lists(st.integers(1, 210), max_size=4), merged=st.booleans())
def test_rows_may_come_in_any_pieces(cuts, merged):
    whole = model().fit(X, Y, WEIGHTS)
    pieces = np.split(np.arange(211), sorted(set(cuts)))
    parts = [part for part in pieces if WEIGHTS[part].any()]
    if merged:
        each = [whole.blank().partial_fit(X[part], Y[part], WEIGHTS[part]) for part in parts]
        found = each[0]
        for other in each[1:]:
            assert found.merge(other) is found
    else:
        found = whole.blank()
        for part in parts:
            assert found.partial_fit(X[part], Y[part], WEIGHTS[part]) is found
    np.testing.assert_allclose(found.predict(X), whole.predict(X), rtol=1e-8, atol=1e-9)
    assert found.n_rows_ == whole.n_rows_ == np.count_nonzero(WEIGHTS)


def test_sums_do_not_cancel_far_from_zero():
    """A bias of 1e6 in every feature: two-pass sums keep what raw products would lose."""
    phi, y = rng.normal(size=(90, 6)), rng.normal(size=(90, 1))
    near, far = RidgeStatistic(6, 1), RidgeStatistic(6, 1)
    for start in range(0, 90, 20):
        part = slice(start, start + 20)
        near.add(Batch(phi[part].copy(), y[part]))
        far.add(Batch(phi[part] + 1e6, y[part] - 1e6))
    np.testing.assert_allclose(far.gram, near.gram, rtol=1e-7, atol=1e-6)
    np.testing.assert_allclose(
        far.solve(0, fit_intercept=True)[0], near.solve(0, fit_intercept=True)[0], rtol=1e-6, atol=1e-8
    )


def test_a_singular_system_has_its_solution_of_least_norm():
    fitted = model(n_units=64, n_active=48, alpha=0.0).fit(X[:20], Y[:20])
    phi = features(fitted, X[:20])
    np.testing.assert_allclose(fitted.predict(X[:20]), Y[:20], atol=1e-6)
    expected = np.linalg.lstsq(phi - phi.mean(axis=0), Y[:20] - Y[:20].mean(axis=0), rcond=None)[0].T
    np.testing.assert_allclose(fitted.coefficients_, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_weights_count_rows_and_their_scale_does_not_matter():
    counts = WEIGHTS.astype(int)
    repeated = model().fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    for scale in (1.0, 1e-6, 1e9):
        weighted = model().fit(X, Y, scale * WEIGHTS)
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-8, atol=1e-10)


def test_linear_units_that_are_all_on_are_a_linear_predictor():
    fitted = model(n_active=31, alpha=0.0, bias=True).fit(X, Y)
    np.testing.assert_allclose(fitted.predict(X), LinearRegression().fit(X, Y).predict(X), atol=1e-8)


def test_the_solution_waits_until_it_is_asked_for():
    found = model().partial_fit(X, Y)
    assert "_solution" not in vars(found)
    first, solution = found.coefficients_, found._solution
    np.testing.assert_array_equal(found.coefficients_, first)
    assert found._solution is solution
    found.partial_fit(X[:50], -Y[:50])
    assert not np.allclose(found.coefficients_, first)


@pytest.mark.grid
def test_rows_are_blocked():
    """With 1,024 units, 4,096 rows are summed at once, and 256 predicted."""
    many, targets = np.tile(X, (20, 1)), np.tile(Y, (20, 1))
    tiled = model(n_units=1_024).fit(many, targets)
    statistic, phi = tiled.statistic_, features(tiled, many)
    np.testing.assert_allclose(statistic.feature_mean, phi.mean(axis=0), rtol=1e-8, atol=1e-12)
    centred = phi - phi.mean(axis=0)
    np.testing.assert_allclose(statistic.gram, centred.T @ centred, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(tiled.predict(many), np.tile(tiled.predict(X), (20, 1)), rtol=1e-10, atol=1e-12)


def test_a_merge_leaves_the_other_as_it_was():
    one = model().fit(X[:100], Y[:100])
    other = one.blank().partial_fit(X[100:], Y[100:])
    before = copy.deepcopy(other)
    one.merge(other)
    one.partial_fit(X[:9], Y[:9])
    np.testing.assert_array_equal(other.predict(X), before.predict(X))
    np.testing.assert_array_equal(other.statistic_.gram, before.statistic_.gram)


@pytest.mark.slow
def test_half_of_the_units_by_value_are_a_relu_layer():
    """Hypercube target of 8 inputs: within 3 % in error; and a quarter of the units do better than both."""
    generator = np.random.default_rng(2)
    corners = 1 - 2 * (np.arange(256)[:, None] >> np.arange(8) & 1)
    signs = generator.choice([-1.0, 1.0], size=256)
    rows = generator.uniform(-1, 1, size=(24_000, 8))
    target = np.prod((1 + corners * rows[:, None]) / 2, axis=2) @ signs
    train, test = slice(20_000), slice(20_000, None)

    def error(**parameters):
        fitted = DSMRegressor(512, random_state=0, **parameters).fit(rows[train], target[train])
        return np.mean((fitted.predict(rows[test]) - target[test]) ** 2) / target[test].var()

    half, relu = error(n_active=256), error(n_active=512, activation="relu")
    quarter, dense = error(n_active=128), error(n_active=512)
    linear = LinearRegression().fit(rows[train], target[train])
    best_linear = np.mean((linear.predict(rows[test]) - target[test]) ** 2) / target[test].var()
    assert abs(half / relu - 1) < 0.03
    assert quarter < 0.85 * half
    assert abs(dense / best_linear - 1) < 1e-4

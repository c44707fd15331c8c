"""Total effects of columns by brute force, in every form of the sums; scikit-learn's selectors of columns use them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance

import sparsact as sa
from sparsact import DSMRegressor, LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.hypercube import points
from sparsact.learners.low_degree.solvers.solver import MomentSolver, solvers

RNG = np.random.default_rng(5)
BITS = RNG.random((90, 6)) < [0.5, 0.1, 0.5, 0.8, 0.5, 0.3]
SIGNS = 1 - 2 * BITS.astype(int)
Y = np.column_stack([SIGNS[:, 0] + 2 * SIGNS[:, 1] * SIGNS[:, 3], SIGNS[:, 5]]) + RNG.normal(scale=0.3, size=(90, 2))
WEIGHTS = RNG.integers(0, 4, 90).astype(float)


def brute_force(model, X, weights, f=None):
    """Each row keeps its other columns and takes the value of every row in turn."""
    f = f or model.predict
    share = weights / weights.sum()
    values = f(X).reshape(len(X), -1)
    variance = share @ (values - share @ values) ** 2
    effects = np.zeros((X.shape[1], values.shape[1]))
    for i in range(X.shape[1]):
        for value in np.unique(X[:, i]):
            other = X.copy()
            other[:, i] = value
            effects[i] += share[X[:, i] == value].sum() * (share @ (values - f(other).reshape(values.shape)) ** 2) / 2
    return (effects / variance).mean(axis=1)


REAL = RNG.normal(loc=[0, 30, -5, 1], scale=[1, 2, 0.1, 3], size=(53, 4))
OF_REALS = REAL[:, 0] * REAL[:, 1] + REAL[:, 3] ** 2
MODELS = {
    "points": (LowDegreeRegressor(2, 0.1, "kernel"), SIGNS, Y),
    "cells": (LowDegreeRegressor(3, alpha=0.1, solver="cells"), SIGNS, Y),
    "moments": (LowDegreeRegressor(2, alpha=0.1, solver="moments"), SIGNS, Y),
    "few coefficients": (LowDegreeRegressor(3, 0.05, "lasso"), SIGNS, Y),
    "bits": (LowDegreeRegressor(2), BITS.astype(int), Y[:, 0]),
    "of products alone": (LowDegreeRegressor(3, alpha=0.1, min_degree=2), SIGNS, Y),
    "numbers": (LowDegreeRegressor(2), REAL, OF_REALS),
    "numbers, listed": (LowDegreeRegressor(subsets=[(0,), (1,), (0, 1), (3,)]), REAL, OF_REALS),
    "cross-validated": (LowDegreeRegressorCV((1, 2), (0.1, 9.0), cv=3), SIGNS, Y),
}
FORMS = {"points": "rows", "moments": "moments", "numbers": "real", "numbers, listed": "real"}


@pytest.mark.parametrize("name", MODELS)
def test_it_is_half_the_mean_squared_change_by_another_draw_of_the_column(name, monkeypatch):
    model, X, y = MODELS[name]
    monkeypatch.setitem(solvers(), "moments", MomentSolver(min_rows=0, rows_a_monomial=0))
    weights = WEIGHTS[: len(X)]
    model.fit(X, y, weights)
    assert model.accumulator_.statistics[0].kind == FORMS.get(name, "cells")
    found = model.feature_importances_
    assert found.shape == (X.shape[1],)
    assert_allclose(found, brute_force(model, X, weights), rtol=1e-8, atol=1e-12)
    assert (found >= 0).all()


def test_from_the_dual_where_coefficients_are_too_many():
    """82,159 of them, of 21 columns, whose values make no table."""
    X = np.random.default_rng(6).choice([-1, 1], (90, 21))
    model = LowDegreeRegressor(6, 1.0, "kernel").fit(X, Y)
    assert_allclose(model.feature_importances_, brute_force(model, X, np.ones(90)), rtol=1e-6, atol=1e-9)
    assert "coef" not in vars(model._polynomial)


def test_over_the_whole_cube_it_is_the_influence_over_the_variance():
    X = points(5)
    y = 3 * X[:, 0] + X[:, 1] * X[:, 4] - 2 * X[:, 1] * X[:, 2] * X[:, 4]
    model = LowDegreeRegressor(3).fit(X, y)
    spectrum = model.spectrum_
    assert_allclose(model.feature_importances_, spectrum.influences() / spectrum.variance(), atol=1e-12)
    assert_allclose(model.feature_importances_, np.array([9, 5, 4, 0, 5]) / 14, atol=1e-12)


def test_of_classes_it_is_the_mean_over_the_functions():
    labels = np.where(SIGNS[:, 0] > 0, "a", np.where(SIGNS[:, 1] > 0, "b", "c"))
    model = LowDegreeClassifier(2, 0.1).fit(SIGNS, labels)
    assert_allclose(
        model.feature_importances_, brute_force(model, SIGNS, np.ones(90), model.decision_function), atol=1e-9
    )


def test_permutation_importance_agrees():
    """For the model's own values its expectation is twice as much, since a permutation changes both terms."""
    model = LowDegreeRegressor(2, 0.1).fit(SIGNS, Y[:, 0])
    found = permutation_importance(model, SIGNS, model.predict(SIGNS), n_repeats=15, random_state=0).importances_mean
    assert_allclose(found, 2 * model.feature_importances_, atol=0.1)
    assert_array_equal(np.argsort(found)[-3:], np.argsort(model.feature_importances_)[-3:])


def test_later_rows_change_it_and_a_file_without_the_statistic_has_none(tmp_path, monkeypatch):
    model = LowDegreeRegressor(2, 0.1).partial_fit(SIGNS[:50], Y[:50])
    assert not hasattr(LowDegreeRegressor(), "feature_importances_")
    _ = model.feature_importances_
    model.partial_fit(SIGNS[50:], Y[50:])
    expected = LowDegreeRegressor(2, 0.1).fit(SIGNS, Y).feature_importances_
    assert_array_equal(model.feature_importances_, expected)
    model.save(tmp_path / "kept", statistic=True)
    assert_array_equal(sa.load(tmp_path / "kept").feature_importances_, expected)
    model.save(tmp_path / "bare")
    with pytest.raises(AttributeError, match="save it with statistic=True"):
        _ = sa.load(tmp_path / "bare").feature_importances_
    monkeypatch.setitem(solvers(), "moments", MomentSolver(min_rows=0, rows_a_monomial=0))
    listed = LowDegreeRegressor(subsets=[(0, 1), (2,)], solver="moments").fit(SIGNS, Y)
    with pytest.raises(AttributeError, match="no sums of"):
        _ = listed.feature_importances_
    constant = LowDegreeRegressor(2).fit(SIGNS, np.full(90, 3.0))
    assert_array_equal(constant.feature_importances_, 0)


@pytest.mark.parametrize("degree", [1, 2])
def test_selectors_keep_the_columns_that_matter(degree):
    X = np.random.default_rng(1).integers(0, 2, (300, 9))
    y = 2.0 * X[:, 4] + (X[:, 1] ^ X[:, 7]) * (3.0 if degree == 2 else 0.0) + 0.5 * X[:, 1] + X[:, 7]
    y[::7] += 0.1
    assert_array_equal(RFE(LowDegreeRegressor(degree), n_features_to_select=3).fit(X, y).get_support(True), [1, 4, 7])
    selector = SelectFromModel(LowDegreeRegressor(degree), max_features=3, threshold=-np.inf).fit(X, y)
    assert_array_equal(selector.get_support(True), [1, 4, 7])
    labels = np.where(y > y.mean(), "high", "low")
    assert SelectFromModel(LowDegreeClassifier(degree)).fit(X, labels).transform(X).shape[1] < 9


@pytest.mark.parametrize(
    "model", [LowDegreeRegressor(), LowDegreeClassifier(), LowDegreeRegressorCV((1, 2)), DSMRegressor(9, 4)]
)
def test_the_name_that_promises_a_coefficient_for_each_column_is_gone(model):
    model.fit(SIGNS, SIGNS[:, 0] * SIGNS[:, 2])
    assert not hasattr(model, "coef_")
    assert model.coefficients_.shape[-1] != SIGNS.shape[1]

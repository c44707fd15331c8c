"""Taking folds away from one statistic gives what refitting on every fold gives."""

from __future__ import annotations

import numpy as np
import pytest
from explicit import centred, least_norm, monomials, subsets_of_size
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Lasso, Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from sparsact import LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.low_degree.solvers.cells import CellSolver
from sparsact.learners.low_degree.solvers.solver import solvers
from sparsact.statistics.folds import deal

rng = np.random.default_rng(0)
DEGREES, ALPHAS = [1, 2, 3], [1e-3, 0.5, 20.0]
SIGNS = rng.choice([1, -1], (149, 6))
Y = SIGNS[:, 1] * SIGNS[:, 4] * 2 + SIGNS[:, 0] + rng.normal(size=149) + 5
FOLDS = rng.permutation(np.arange(149) % 4)


def columns(route):
    return SIGNS + rng.normal(size=SIGNS.shape) / 9 if route == "real" else SIGNS


@pytest.mark.parametrize("route", ["auto", "cells", "moments", "kernel", "real", "conjugate gradients"])
def test_grid_search(monkeypatch, route):
    if route == "conjugate gradients":
        monkeypatch.setitem(solvers(), "cells", CellSolver(max_cholesky=3))
    X, split = columns(route), PredefinedSplit(FOLDS)
    expand = PolynomialFeatures(interaction_only=True, include_bias=False)
    grid = {"polynomialfeatures__degree": DEGREES, "ridge__alpha": ALPHAS}
    scoring = {"r2": "r2", "mse": "neg_mean_squared_error"}
    theirs = GridSearchCV(make_pipeline(expand, Ridge(solver="svd")), grid, scoring=scoring, refit="mse", cv=split)
    theirs.fit(X, Y)
    solver = route if route in ("cells", "moments", "kernel") else "cells" if "c" in route else "auto"
    ours = LowDegreeRegressorCV(DEGREES, ALPHAS, split, solver).fit(X, Y)
    for fold in range(4):
        for name, sign in (("r2", 1), ("mse", -1)):
            assert_allclose(
                ours.cv_results_[f"fold_{name}"][:, fold], sign * theirs.cv_results_[f"split{fold}_test_{name}"]
            )
    assert ours.degree_ == theirs.best_params_["polynomialfeatures__degree"] == 2
    assert ours.alpha_ == theirs.best_params_["ridge__alpha"]
    assert_allclose(ours.best_score_, theirs.cv_results_["mean_test_r2"][theirs.best_index_])
    assert_allclose(ours.cv_results_["std_mse"], theirs.cv_results_["std_test_mse"])
    assert ours.subsets_ == subsets_of_size(6, 2)
    assert_allclose(ours.coefficients_, theirs.best_estimator_[-1].coef_, atol=1e-9)
    assert_allclose(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("scale", [1.0, 1e-170, 3e150])
@pytest.mark.parametrize("route", ["signs", "real"])
def test_the_lasso_in_a_grid_search(route, scale):
    X, split, alphas = columns(route), PredefinedSplit(FOLDS), [0.03, 0.3]
    expand = PolynomialFeatures(interaction_only=True, include_bias=False)
    grid = {"polynomialfeatures__degree": DEGREES, "lasso__alpha": alphas}
    pipeline = make_pipeline(expand, Lasso(tol=1e-12, max_iter=100_000))
    theirs = GridSearchCV(pipeline, grid, scoring="r2", cv=split).fit(X, Y)
    ours = LowDegreeRegressorCV(DEGREES, [alpha * scale for alpha in alphas], split, "lasso").fit(X, scale * Y)
    found = {
        (d, a): r2 for d, a, r2 in zip(*(ours.cv_results_[k] for k in ("degree", "alpha", "fold_r2")), strict=True)
    }
    for i, setting in enumerate(theirs.cv_results_["params"]):
        of_folds = [theirs.cv_results_[f"split{fold}_test_score"][i] for fold in range(4)]
        at = setting["polynomialfeatures__degree"], scale * setting["lasso__alpha"]
        assert_allclose(found[at], of_folds, atol=1e-4)
    best = theirs.best_params_
    assert (ours.degree_, ours.alpha_) == (best["polynomialfeatures__degree"], scale * best["lasso__alpha"])
    assert_allclose(ours.coefficients_, scale * theirs.best_estimator_[-1].coef_, rtol=1e-5, atol=1e-6 * scale)


def test_penalties_of_the_lasso_belong_to_the_targets():
    """From none that is worth its name to one that leaves next to nothing, in the units of the targets."""
    ours = LowDegreeRegressorCV([2], solver="lasso").fit(SIGNS, 7 * Y)
    penalties = ours.cv_results_["alpha"]
    assert_allclose([penalties.min(), penalties.max()], 7 * Y.std() * np.array([1e-4, 0.5]))
    assert 0.7 < ours.best_score_ < LowDegreeRegressor(2).fit(SIGNS, Y).r2_


@pytest.mark.parametrize("route", ["cells", "moments", "kernel", "real"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_and_targets(route, fit_intercept):
    X, weights = columns(route), rng.random(149)
    y = np.stack([Y, Y**2, -Y], axis=1)
    model = LowDegreeRegressorCV(
        [2], [0.7], PredefinedSplit(FOLDS), "auto" if route == "real" else route, fit_intercept
    ).fit(X, y, weights)
    for fold in range(4):
        train, test = fold != FOLDS, fold == FOLDS
        features = monomials(X, subsets_of_size(6, 2))
        coef, intercept = least_norm(features[train], y[train], weights[train], alpha=0.7, fit_intercept=fit_intercept)
        share = weights[test] / weights[test].sum()
        mse = share @ (y[test] - features[test] @ coef - intercept) ** 2
        about = share @ centred(features[test], y[test], weights[test])[1] ** 2
        assert_allclose(model.cv_results_["fold_mse"][0, fold], mse.mean(), rtol=1e-8)
        assert_allclose(model.cv_results_["fold_r2"][0, fold], (1 - mse / about).mean(), rtol=1e-7)
    assert_allclose(
        model.coefficients_, LowDegreeRegressor(2, 0.7, fit_intercept=fit_intercept).fit(X, y, weights).coefficients_
    )


def test_more_monomials_than_rows():
    """Training rows are fewer than the monomials: the kernel, chosen by itself."""
    X, y = rng.choice([1, -1], (37, 19)), rng.normal(size=37)
    folds = np.arange(37) % 3
    model = LowDegreeRegressorCV([1, 2], [0.0, 1.5], PredefinedSplit(folds)).fit(X, y)
    for i, (degree, alpha) in enumerate(zip(model.cv_results_["degree"], model.cv_results_["alpha"], strict=True)):
        features = monomials(X, subsets_of_size(19, degree))
        for fold in range(3):
            coef, intercept = least_norm(features[folds != fold], y[folds != fold, None], alpha=alpha)
            error = y[folds == fold] - (features[folds == fold] @ coef + intercept)[:, 0]
            assert_allclose(model.cv_results_["fold_mse"][i, fold], (error**2).mean(), rtol=1e-6)


@pytest.mark.grid
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=7),
    st.integers(2, 7),
    st.integers(0, 99),
    st.sampled_from(["bits", "signs", "real"]),
)
@example([1, 2], 2, 0, "real")  # one training row: its Gram matrix is rounding alone
def test_a_stream_is_validated_as_it_comes(lengths, cv, seed, written):
    random = np.random.default_rng(seed)
    m = sum(lengths) + cv
    X = random.integers(0, 2, (m, 4))
    X[: m // 5] = 1
    X = {"bits": X, "signs": 1 - 2 * X, "real": X + 0.25}[written]
    y = random.normal(size=m)
    whole = LowDegreeRegressorCV([0, 1, 2], [0.1, 2.0], cv, random_state=seed).fit(X, y)
    streamed = LowDegreeRegressorCV([0, 1, 2], [0.1, 2.0], cv, random_state=seed)
    for rows in np.split(np.arange(m), np.cumsum(lengths)):
        streamed.partial_fit(X[rows], y[rows])
    for name, column in whole.cv_results_.items():
        if written == "real":
            assert_allclose(streamed.cv_results_[name], column, rtol=1e-6, atol=1e-9)
        else:
            assert_array_equal(streamed.cv_results_[name], column)
    if written != "real":
        assert_array_equal(streamed.coefficients_, whole.coefficients_)


@given(st.integers(0, 99), st.integers(0, 200), st.integers(2, 9), st.integers(0, 2**70))
def test_dealt(first, n_rows, n_folds, seed):
    folds = deal(0, first + n_rows, n_folds, seed)
    assert_array_equal(deal(first, n_rows, n_folds, seed), folds[first:])
    blocks = (first + n_rows) // n_folds
    whole = folds[: blocks * n_folds].reshape(blocks, n_folds)
    assert_array_equal(np.sort(whole, axis=1), np.broadcast_to(np.arange(n_folds), whole.shape))
    rest = folds[blocks * n_folds :]
    assert len(set(rest.tolist())) == len(rest)


def test_too_many_folds_are_refused():
    with pytest.raises(ValueError, match="2 to 65,536 folds; got cv=2,147,483,648"):
        LowDegreeRegressorCV(cv=2**31).partial_fit(SIGNS, Y)
    with pytest.raises(MemoryError, match="smaller cv"):
        LowDegreeRegressorCV(cv=60_000, max_memory=1e8).partial_fit(SIGNS, Y)


def test_dealing_looks_random():
    """Each fold stands at each place in 1/5 of 20,000 blocks; off by 0.02 (7 sigma) has a chance below 1e-9."""
    folds = deal(0, 100_000, 5, 1).reshape(-1, 5)
    for place in range(5):
        assert_allclose(np.bincount(folds[:, place]) / 20_000, 0.2, atol=0.02)
    assert (deal(0, 100, 5, 1) != deal(0, 100, 5, 2)).any()


def test_integer_folds_are_the_folds_dealt():
    numbered = LowDegreeRegressorCV([1], [0.3], 4, random_state=9).fit(SIGNS, Y)
    listed = LowDegreeRegressorCV([1], [0.3], PredefinedSplit(deal(0, 149, 4, 9))).fit(SIGNS, Y)
    assert_array_equal(numbered.cv_results_["fold_mse"], listed.cv_results_["fold_mse"])


def test_a_list_of_subsets_is_cut_to_each_degree():
    subsets = [(0,), (1, 4), (0, 1, 4), (2,)]
    model = LowDegreeRegressorCV([1, 2, 3], [0.1], PredefinedSplit(FOLDS), subsets=subsets).fit(SIGNS, Y)
    for i, kept in enumerate([[(0,), (2,)], [(0,), (2,), (1, 4)], [(0,), (2,), (1, 4), (0, 1, 4)]]):
        alone = LowDegreeRegressorCV([3], [0.1], PredefinedSplit(FOLDS), subsets=kept).fit(SIGNS, Y)
        assert_allclose(model.cv_results_["fold_mse"][i], alone.cv_results_["fold_mse"][0])
    assert model.degree_ == 2
    assert model.subsets_ == [(0,), (2,), (1, 4)]


def test_of_equals_the_lowest_degree_then_the_largest_penalty():
    X, y = rng.integers(0, 2, (40, 4)), np.ones(40)
    model = LowDegreeRegressorCV([2, 0, 1], [3.0, 0.5, 7.0]).fit(X, y)
    assert (model.degree_, model.alpha_) == (0, 7.0)


def test_a_fold_of_equal_targets_scores_as_in_scikit_learn():
    X, y = rng.integers(0, 2, (12, 3)), np.arange(12.0)
    y[:4] = 2.0
    model = LowDegreeRegressorCV([1], [0.5], PredefinedSplit(np.arange(12) // 4)).fit(X, y)
    assert not np.isnan(model.cv_results_["fold_r2"]).any()
    assert not np.isnan(model.best_score_)

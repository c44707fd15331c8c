"""Fits of every solver against the same fits over the rationals, on the tables where rounding bites.

Offsets up to 1e12 beside noise of 1, weights over six powers of ten, constant, repeated and one-hot columns, and few
distinct rows. Tolerances follow from float64 and the conditioning that such weights bring, relative to the spread of
the targets, not to their offset.
"""

from __future__ import annotations

import numpy as np
import pytest
from differential.exact_ridge import exact_ridge
from explicit import KINDS, monomials, subsets_of_size, tables
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit

from sparsact import LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.learners.low_degree.solvers.cells import CellSolver
from sparsact.learners.low_degree.solvers.solver import MomentSolver, solvers

SOLVERS = ["auto", "cells", "rows", "moments", "kernel", "conjugate gradients", "real", "pieces"]


def drawn(rng):
    """Bits (m, n), targets and weights of a random table, and how they were made."""
    kind, offset = rng.choice(KINDS), rng.choice([0.0, 1e6, 1.7e9, 1e12])
    m, n = int(rng.integers(4, 27)), int(rng.integers(3, 6))
    X = tables(rng, kind, m, n)
    y = X[:, 0] - 2 * X[:, 1] + rng.normal(0, 0.3, m) + offset
    weights = [
        np.ones(m),
        rng.random(m) + 1e-3,
        rng.integers(0, 3, m).astype(float),
        10 ** rng.uniform(-3, 3, m),
    ][rng.integers(4)]
    weights[0] = 1.0
    return X, y, weights, f"{kind}, {m} x {n}, offset {offset:g}, weights {weights.min():.1g} to {weights.max():.1g}"


def model_of(solver, parameters, X, y, weights, monkeypatch):
    """A model fitted by a solver or, for ``"pieces"``, from parts that came, went and were merged."""
    if solver == "conjugate gradients":
        monkeypatch.setitem(solvers(), "cells", CellSolver(max_cholesky=0))
    if solver == "moments":
        monkeypatch.setitem(solvers(), "moments", MomentSolver(min_rows=0, rows_a_monomial=0))
    name = {"rows": "moments", "conjugate gradients": "cells", "real": "auto", "pieces": "auto"}.get(solver, solver)
    make = LowDegreeRegressor(solver=name, domain="real" if solver == "real" else "auto", **parameters)
    if solver != "pieces":
        return make.fit(X, y, weights)
    half, other = len(y) // 2, LowDegreeRegressor(**parameters)
    make.partial_fit(X[:half], y[:half], weights[:half]).partial_fit(X[::-1], y / 3, weights)
    return make.remove(X[::-1], y / 3, weights).merge(other.partial_fit(X[half:], y[half:], weights[half:]))


def compare(rng, solver, monkeypatch):
    """One random fit against the rationals."""
    X, y, weights, made = drawn(rng)
    degree, fit_intercept = int(rng.integers(1, 3)), bool(rng.random() < 0.8)
    alpha = float(rng.choice([0.0, 0.0, 1e-6, 1e-2, 1.0, 30.0]))
    if not fit_intercept:
        y = y - np.round(y.mean())
    signs = 1 - 2 * X
    subsets = subsets_of_size(X.shape[1], degree)
    features = monomials(signs, subsets).astype(int)
    exact = exact_ridge(features, y, weights, alpha, fit_intercept=fit_intercept)
    parameters = {"degree": degree, "alpha": alpha, "fit_intercept": fit_intercept}
    near = 1e-5 if solver == "real" else 1e-7  # real columns are summed in floating point
    with monkeypatch.context() as patch:
        model = model_of(solver, parameters, signs, y, weights, patch)
        made = f"{solver} ({model.solver_}): {made}, {parameters}"
        size = (float(exact.total) / weights.sum()) ** 0.5 + np.spacing(abs(y).max())
        assert_allclose(model.coefficients_, np.float64(exact.coef), rtol=near, atol=near * size, err_msg=made)
        assert_allclose(model.intercept_, float(exact.intercept), rtol=4e-16, atol=near * size, err_msg=made)
        if exact.total > 0 and size > 1e-6:
            share = float(exact.squared_error / exact.total)
            assert_allclose(1 - model.r2_, share, rtol=near, atol=1e-10, err_msg=made)
        assert_array_equal(model.identified([(), *subsets]), exact.identified, err_msg=made)
        if solver != "conjugate gradients" and exact.freedom > 1e-3:
            variance = exact.squared_error / exact.freedom
            assert_allclose(model.residual_variance_, float(variance), rtol=near, atol=1e-10 * size**2, err_msg=made)
            if model.solver_ != "kernel":
                errors = np.array([float(variance * value) ** 0.5 for value in exact.unscaled])
                errors[~exact.identified] = np.nan
                least = 1e-6 * size * float(max(exact.unscaled)) ** 0.5
                assert_allclose(model.standard_errors([(), *subsets]), errors, rtol=1e-5, atol=least, err_msg=made)


@pytest.mark.parametrize("solver", SOLVERS)
def test_fits(solver, monkeypatch):
    rng = np.random.default_rng([15, SOLVERS.index(solver)])
    for _ in range(3):
        compare(rng, solver, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("solver", SOLVERS)
def test_many_fits(solver, seed, monkeypatch):
    rng = np.random.default_rng([16, seed, SOLVERS.index(solver)])
    for _ in range(50):
        compare(rng, solver, monkeypatch)


def compare_folds(rng, solver, monkeypatch):
    """Held-out errors of every candidate on random folds against the rationals."""
    X, y, weights, made = drawn(rng)
    m, fit_intercept = len(y), bool(rng.random() < 0.8)
    if not fit_intercept:
        y = y - np.round(y.mean())
    weights[weights == 0] = 0.5
    folds = rng.permutation(np.arange(m) % 3)
    signs, alphas = 1 - 2 * X, [1e-2, 3.0]
    with monkeypatch.context() as patch:
        if solver == "conjugate gradients":
            patch.setitem(solvers(), "cells", CellSolver(max_cholesky=0))
        name = {"conjugate gradients": "cells"}.get(solver, solver)
        cv = PredefinedSplit(folds)
        model = LowDegreeRegressorCV([1, 2], alphas, cv, name, fit_intercept).fit(signs, y, weights)
    results = model.cv_results_
    for i, (degree, alpha) in enumerate((d, a) for d in (1, 2) for a in alphas):
        features = monomials(signs, subsets_of_size(X.shape[1], degree)).astype(int)
        for fold in range(3):
            test = folds == fold
            exact = exact_ridge(features[~test], y[~test], weights[~test], alpha, fit_intercept=fit_intercept)
            error, weight = exact.squared_error_on(features[test], y[test], weights[test])
            assert (results["degree"][i], results["alpha"][i]) == (degree, alpha)
            near = np.spacing(abs(y).max()) * 2
            assert_allclose(results["fold_mse"][i, fold], float(error / weight), rtol=1e-6, atol=near**2, err_msg=made)


CV_SOLVERS = ["auto", "cells", "moments", "kernel", "conjugate gradients"]


@pytest.mark.parametrize("solver", CV_SOLVERS)
def test_held_out_errors(solver, monkeypatch):
    compare_folds(np.random.default_rng([18, CV_SOLVERS.index(solver)]), solver, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
@pytest.mark.parametrize("solver", CV_SOLVERS)
def test_many_held_out_errors(solver, seed, monkeypatch):
    compare_folds(np.random.default_rng([19, seed, CV_SOLVERS.index(solver)]), solver, monkeypatch)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("kind", ["uniform", "repeated"])
def test_the_grid_of_scikit_learn(kind, offset):
    """Errors of every fold, the choice and its score, as by GridSearchCV of Ridge on the matrix written out."""
    rng = np.random.default_rng(20)
    signs = 1 - 2 * tables(rng, kind, 83, 5)
    y = signs[:, 0] * signs[:, 3] + rng.normal(0, 0.5, 83) + offset
    cv, alphas = PredefinedSplit(rng.permutation(np.arange(83) % 4)), [0.1, 2.0, 50.0]
    ours = LowDegreeRegressorCV([2], alphas, cv).fit(signs, y)
    scoring = ["neg_mean_squared_error", "r2"]
    grid = GridSearchCV(Ridge(solver="svd"), {"alpha": alphas}, scoring=scoring, refit=scoring[0], cv=cv)
    grid.fit(monomials(signs, subsets_of_size(5, 2)), y)
    theirs = [grid.cv_results_[f"split{fold}_test_{scoring[0]}"] for fold in range(4)]
    assert_allclose(ours.cv_results_["fold_mse"], -np.transpose(theirs), rtol=1e-7)
    assert ours.alpha_ == grid.best_params_["alpha"]
    assert_allclose(ours.best_score_, grid.cv_results_["mean_test_r2"][grid.best_index_], rtol=1e-7)
    assert_allclose(ours.coefficients_, grid.best_estimator_.coef_, atol=1e-8)


@pytest.mark.parametrize("size", [1e304, 1e306])
@pytest.mark.parametrize("domain", ["cube", "real"])
def test_the_largest_targets(size, domain):
    """Targets near the end of the range of floats, in proportion to the same targets of size one, and by folds."""
    rng = np.random.default_rng(21)
    X = 1 - 2 * tables(rng, "uniform", 61, 4)
    y = rng.uniform(-1, 1, 61)
    one = LowDegreeRegressorCV([1, 2], [0.3], domain=domain).fit(X, y)
    large = LowDegreeRegressorCV([1, 2], [0.3], domain=domain).fit(X, y * size)
    assert_allclose(large.coefficients_ / size, one.coefficients_, rtol=1e-12, atol=1e-14)
    assert_allclose([large.r2_, large.best_score_], [one.r2_, one.best_score_], rtol=1e-9)
    assert large.degree_ == one.degree_
    assert_allclose(
        LowDegreeRegressor("auto", domain=domain).fit(X, y * size).coefficients_ / size,
        LowDegreeRegressor("auto", domain=domain).fit(X, y).coefficients_,
        rtol=1e-12,
        atol=1e-14,
    )


def test_the_lasso_meets_the_conditions_of_its_optimum():
    """Every product of a feature and the residual is within the penalty, and at it, of that sign, where it is used."""
    rng = np.random.default_rng(22)
    for trial in range(40):
        X, y, weights, made = drawn(rng)
        fit_intercept, alpha = bool(trial % 2), float(10 ** rng.uniform(-4, 0))
        if not fit_intercept:
            y = y - np.round(y.mean()) + rng.choice([0.0, 30.0])
        signs, W = 1 - 2 * X, weights.sum()
        model = LowDegreeRegressor(2, alpha, "lasso", fit_intercept).fit(signs, y, weights)
        features = monomials(signs, model.subsets_)
        share = weights / W * fit_intercept
        features, y = features - share @ features, y - share @ y  # the intercept is then 0
        slope = (features * weights[:, None]).T @ (y - features @ model.coefficients_) / W
        used = model.coefficients_ != 0
        near = 1e-9 * np.sqrt(weights @ y**2 / W)
        assert (np.abs(slope) <= alpha * (1 + 1e-5) + near).all(), made
        assert_allclose(slope[used], alpha * np.sign(model.coefficients_[used]), rtol=1e-5, atol=near, err_msg=made)

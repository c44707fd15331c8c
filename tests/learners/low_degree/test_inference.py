"""Standard errors and intervals equal the textbook's, computed from the matrix that the library never writes out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from explicit import centred, determined, monomials, subsets_of_size, tables
from grids import few_of
from numpy.testing import assert_allclose
from scipy.stats import binom, t

from sparsact import LowDegreeClassifier, LowDegreeRegressor
from sparsact.learners.low_degree.solvers.cells import CellSolver
from sparsact.learners.low_degree.solvers.solver import solvers


def textbook(features, y, weights, alpha, fit_intercept):
    """Covariances (D + 1, D + 1) per target of [intercept, coef], the residual variance and its freedom."""
    weights = np.ones(len(y)) if weights is None else weights
    F, Y, feature_mean, target_mean = centred(features, y, weights, fit_intercept=fit_intercept)
    gram = F.T @ (weights[:, None] * F)
    inverse = np.linalg.pinv(gram + alpha * np.eye(len(gram)), rcond=1e-10, hermitian=True)
    coef = inverse @ F.T @ (weights[:, None] * Y)
    residual = Y - F @ coef
    freedom = len(y) - np.trace(inverse @ gram) - fit_intercept
    variance = weights @ residual**2 / freedom
    smoother = inverse @ F.T * np.sqrt(weights)  # coefficients are this times independent targets of equal variance
    own = fit_intercept / weights.sum() + ((feature_mean @ smoother) ** 2).sum()
    unscaled = np.concatenate([[own], (smoother**2).sum(axis=1)])
    return np.sqrt(np.outer(variance, unscaled)), variance, freedom, target_mean - feature_mean @ coef, coef


CASES = [
    *product(
        ["uniform", "one-hot", "constant", "repeated", "skewed"], ["cells", "moments", "kernel", "conjugate gradients"]
    )
]
DEAR = [(kind, "conjugate gradients") for kind in ("one-hot", "constant", "skewed")]


@pytest.mark.parametrize(("kind", "solver"), few_of(CASES, [case for case in CASES if case not in DEAR]))
@pytest.mark.parametrize(("alpha", "fit_intercept"), [(0.0, True), (0.0, False), (2.5, True)])
def test_standard_errors(monkeypatch, kind, solver, alpha, fit_intercept):
    """NaN where the rows leave a choice, else right; the kernel has none."""
    rng = np.random.default_rng([1, len(kind)])
    X, y, weights = tables(rng, kind, 151, 5), rng.normal(size=(151, 2)), rng.random(151) + 0.2
    features = monomials(1 - 2 * X, subsets_of_size(5, 2))
    known = np.ones(16, dtype=bool)
    known[1 - fit_intercept :] = determined(np.column_stack([np.ones((151, int(fit_intercept))), features]))
    if solver == "conjugate gradients":
        monkeypatch.setitem(solvers(), "cells", CellSolver(max_cholesky=3))
    for w in (None, weights):
        model = LowDegreeRegressor(2, alpha, "cells" if "c" in solver else solver, fit_intercept).fit(X, y, w)
        errors, variance, freedom, _, _ = textbook(features, y, w, alpha, fit_intercept)
        errors[:, ~known] = np.nan
        everything = [(), *model.subsets_]
        # Conjugate gradients estimate the effective parameters, by Hutchinson's method, where they are not D.
        near = 0.02 if solver == "conjugate gradients" else 1e-6
        assert_allclose(model.residual_variance_, variance, rtol=near)
        if solver == "kernel":
            with pytest.raises(ValueError, match="no covariance"):
                model.standard_errors(everything)
            continue
        assert_allclose(model.standard_errors(everything), errors, rtol=near, atol=1e-9)
        if solver != "conjugate gradients":
            reach = t.ppf(0.95, freedom) * errors
            centre = np.concatenate([np.atleast_1d(model.intercept_)[:, None], model.coefficients_], axis=1)
            intervals = model.confidence_intervals(everything, confidence=0.9)
            assert_allclose(intervals, np.stack([centre - reach, centre + reach], axis=-1), rtol=1e-6, atol=1e-8)


def test_the_order_of_what_is_asked_is_kept():
    rng = np.random.default_rng(2)
    model = LowDegreeRegressor(2).fit(rng.integers(0, 2, (90, 4)), rng.normal(size=90))
    every = dict(zip(model.subsets_, model.standard_errors(), strict=True))
    asked = [(3,), (2, 0), (1,), (3,)]
    assert_allclose(model.standard_errors(asked), [every[tuple(sorted(S))] for S in asked])
    assert model.confidence_intervals(asked).shape == (4, 2)
    assert model.standard_errors([]).shape == (0,)


def test_shares_of_variance():
    rng = np.random.default_rng(3)
    X, y, weights = rng.integers(0, 2, (77, 5)), rng.normal(size=(77, 2)) + 4, rng.random(77)
    for w in (None, weights):
        for solver in ("cells", "moments", "kernel", "correlation"):
            model = LowDegreeRegressor(2, 0.3, solver).fit(X, y, w)
            share = np.ones(77) if w is None else w
            mean = share @ y / share.sum()
            expected = 1 - share @ (y - model.predict(X)) ** 2 / (share @ (y - mean) ** 2)
            assert_allclose(model.r2_, expected, rtol=1e-9, err_msg=solver)
            assert_allclose(model.r2_.mean(), model.score(X, y, w), rtol=1e-9)


def test_the_lasso_counts_what_it_kept():
    """Degrees of freedom of the lasso: the number of non-zero coefficients (Zou, Hastie, Tibshirani 2007)."""
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 2, (60, 5)), rng.normal(size=60)
    model = LowDegreeRegressor(2, 0.1, "lasso").fit(X, y)
    kept = np.count_nonzero(model.coefficients_)
    assert 0 < kept < 15
    assert_allclose(model.residual_variance_, ((y - model.predict(X)) ** 2).sum() / (60 - kept - 1), rtol=1e-9)


def test_errors_of_averages():
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 2, (400, 4)), rng.normal(size=400) + 2
    model = LowDegreeRegressor(2, solver="correlation").fit(X, y)
    products = y[:, None] * monomials(1 - 2 * X, model.subsets_)
    assert_allclose(model.standard_errors(), products.std(axis=0) / np.sqrt(400), rtol=1e-9)


@pytest.mark.parametrize("solver", ["cells", "moments"])
def test_intervals_cover(solver):
    """400 experiments of 17 coefficients. Within one they are nearly independent; if they were wholly dependent,
    the share covered would still lie within the bounds but for a chance below 1e-6 (binomial, 400 trials of 0.95)."""
    rng = np.random.default_rng(6)
    subsets = [(), *subsets_of_size(5, 2)]
    X = tables(rng, "skewed", 120, 5) ^ tables(rng, "uniform", 120, 5)
    truth = rng.normal(size=16)
    mean = monomials(1 - 2 * X, subsets) @ truth
    y = mean[:, None] + 0.7 * rng.normal(size=(120, 400))  # 400 targets are 400 experiments on the same points
    intervals = LowDegreeRegressor(2, solver=solver).fit(X, y).confidence_intervals(subsets)
    covered = ((intervals[..., 0] <= truth) & (truth <= intervals[..., 1])).mean(axis=0)  # of each coefficient
    low, high = binom.ppf([5e-7 / 16, 1 - 5e-7 / 16], 400, 0.95) / 400
    assert (covered >= low).all()
    assert (covered <= high).all()


def test_classifiers_have_errors_too():
    rng = np.random.default_rng(7)
    X, labels = rng.integers(0, 2, (90, 4)), rng.integers(0, 3, 90)
    model = LowDegreeClassifier(1).fit(X, labels)
    regression = LowDegreeRegressor(1).fit(X, np.eye(3)[labels])
    assert_allclose(model.standard_errors(), regression.standard_errors())
    assert model.confidence_intervals([(2,)]).shape == (3, 1, 2)
    two = LowDegreeClassifier(1).fit(X, labels > 0)
    assert two.standard_errors().shape == (4,)

"""Every route gives the least squares that one gets by writing the matrix out."""

from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np
import pytest
from explicit import KINDS, least_norm, monomials, subsets_of_size, tables
from grids import few_of, grid
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils._param_validation import StrOptions

from sparsact import LowDegreeRegressor, kernels
from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import points, subset_masks, subsets_of
from sparsact.learners.low_degree.solvers.cells import CellSolver
from sparsact.learners.low_degree.solvers.kernel import between, krawtchouk_sums
from sparsact.learners.low_degree.solvers.solver import Solver, SolverPlan, solvers

SOLVERS = sorted(name for name, one in solvers().items() if one.by_name and one.penalty == "ridge")
CLOSE = {"rtol": 1e-7, "atol": 1e-8}


def assert_is(model, X_signs, y, coef, intercept, **close):
    """The model has these coefficients, and predicts with them."""
    close = CLOSE | close
    Y = y.reshape(len(y), -1)
    assert_allclose(np.atleast_2d(model.coefficients_), coef.T, **close)
    assert_allclose(np.atleast_1d(model.intercept_), intercept, **close)
    values = monomials(X_signs, model.subsets_) @ coef + intercept
    assert_allclose(model.predict(X_signs).reshape(Y.shape), values, **close)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("m", "n", "degree", "min_degree"),
    [
        pytest.param(83, 6, 2, 1, marks=pytest.mark.slow),
        (29, 7, 3, 1),  # fewer rows than monomials
        (151, 5, 9, 2),  # more, of every degree but the first
        pytest.param(3, 8, 2, 1, marks=pytest.mark.slow),
    ],
)
def test_least_norm_of_any_table(solver, kind, m, n, degree, min_degree):
    rng = np.random.default_rng([m, n, len(kind)])
    X = 1 - 2 * tables(rng, kind, m, n)
    y, weights = rng.normal(size=(m, 2)) + 3, rng.integers(1, 5, m) / 4
    features = monomials(X, subsets_of_size(n, degree, min_degree))
    for fit_intercept in (True, False):
        for sample_weight in (None, weights):
            model = LowDegreeRegressor(degree, solver=solver, min_degree=min_degree, fit_intercept=fit_intercept)
            model.fit(X, y, sample_weight)
            assert model.solver_ == solver
            assert model.subsets_ == subsets_of_size(n, degree, min_degree)
            assert_is(model, X, y, *least_norm(features, y, sample_weight, fit_intercept=fit_intercept))


@pytest.mark.grid
@grid(solver=SOLVERS, kind=KINDS, alpha=[1e-3, 0.7, 300.0])
def test_ridge_of_any_table(solver, kind, alpha):
    rng = np.random.default_rng([7, len(kind)])
    X, y, weights = 1 - 2 * tables(rng, kind, 61, 6), rng.normal(size=61), rng.random(61) + 0.1
    expand = PolynomialFeatures(3, interaction_only=True, include_bias=False)
    for fit_intercept in (True, False):
        theirs = make_pipeline(expand, Ridge(alpha, fit_intercept=fit_intercept, solver="svd"))
        theirs.fit(X, y, ridge__sample_weight=weights)
        ours = LowDegreeRegressor(3, alpha, solver, fit_intercept).fit(X, y, weights)
        assert_allclose(ours.coefficients_, theirs[-1].coef_, **CLOSE)
        assert_allclose(ours.intercept_, theirs[-1].intercept_, **CLOSE)
        assert_allclose(ours.predict(X), theirs.predict(X), **CLOSE)
        assert_allclose(ours.score(X, y, weights), theirs.score(X, y, weights), **CLOSE)


@pytest.mark.parametrize("solver", ["cells", "moments"])
def test_a_list_of_subsets(solver):
    rng = np.random.default_rng(4)
    X, y = rng.choice([1, -1], (71, 6)), rng.normal(size=(71, 1))
    subsets = [(2, 0, 5), (1,), (3, 4), [4, 3], ()]
    model = LowDegreeRegressor(solver=solver, subsets=subsets).fit(X, y[:, 0])
    assert model.subsets_ == [(1,), (3, 4), (0, 2, 5)]
    assert_is(model, X, y, *least_norm(monomials(X, model.subsets_), y))


def test_the_kernel_of_a_list_is_right_or_refused():
    rng = np.random.default_rng(5)
    X, y = rng.choice([1, -1], (13, 9)), rng.normal(size=(13, 1))
    subsets = [S for S in subsets_of_size(9, 3) if 4 in S]
    expected = least_norm(monomials(X, subsets), y)
    assert_is(LowDegreeRegressor(subsets=subsets).fit(X, y[:, 0]), X, y, *expected)
    try:
        model = LowDegreeRegressor(subsets=subsets, solver="kernel").fit(X, y[:, 0])
    except ValueError as refusal:
        assert "subsets" in str(refusal)  # noqa: PT017 - a refusal is one of two right answers
    else:
        assert_is(model, X, y, *expected)


@pytest.mark.parametrize("solver", ["auto", *SOLVERS, "correlation", "lasso"])
@pytest.mark.parametrize("parameters", [{"degree": 0}, {"subsets": []}, {"degree": 1, "min_degree": 2}])
def test_no_monomials_at_all(solver, parameters):
    if solver == "kernel" and "subsets" in parameters:
        pytest.skip("the kernel serves whole degrees, see test_the_kernel_of_a_list_is_right_or_refused")
    X, y = tables(np.random.default_rng(6), "uniform", 17, 4), np.arange(17.0)
    model = LowDegreeRegressor(solver=solver, alpha=0.0 if solver != "lasso" else 0.1, **parameters).fit(X, y)
    assert model.coefficients_.shape == (0,)
    assert model.intercept_ == 8.0
    assert_array_equal(model.predict(X[:3]), [8.0, 8.0, 8.0])
    assert model.r2_ == 0.0


@grid(solver=["auto", *SOLVERS, "correlation", "lasso"], constant=[0.0, 3.0, -1e200])
def test_a_constant_target(solver, constant):
    X = tables(np.random.default_rng(7), "uniform", 19, 4)
    model = LowDegreeRegressor(1, solver=solver, alpha=0.1).fit(X, np.full(19, constant))
    if solver != "correlation":
        assert_allclose(model.coefficients_, 0, atol=abs(constant) * 1e-14)
        assert_allclose(model.predict(X), constant, rtol=1e-13)
    assert np.isfinite(model.coefficients_).all()


def test_degree_beyond_n_is_all_subsets():
    X, y = points(3), np.arange(8.0)
    for degree in (3, 4, 99):
        model = LowDegreeRegressor(degree).fit(X, y)
        assert len(model.subsets_) == 7
        assert_allclose(model.predict(X), y, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_complete_table_gives_its_spectrum(solver):
    values = np.random.default_rng(8).normal(size=(32, 3))
    model = LowDegreeRegressor(5, solver=solver).fit(points(5), values)
    spectrum = walsh_hadamard(values, axis=0)
    numbers = [sum(1 << i for i in S) for S in model.subsets_]
    assert_allclose(model.coefficients_, spectrum[numbers].T, atol=1e-13)
    assert_allclose(model.intercept_, spectrum[0], atol=1e-14)
    for t, f in enumerate(model.spectrum_):
        assert_allclose(f.values(), values[:, t], atol=1e-13)


def force_conjugate_gradients(monkeypatch):
    monkeypatch.setitem(solvers(), "cells", CellSolver(max_cholesky=4))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("alpha", "fit_intercept"), [(0.0, True), (0.0, False), (0.4, True)])
def test_conjugate_gradients(monkeypatch, kind, alpha, fit_intercept):
    rng = np.random.default_rng([9, len(kind)])
    X, y, weights = tables(rng, kind, 307, 6), rng.normal(size=(307, 2)) + 1, rng.integers(1, 4, 307)
    direct = LowDegreeRegressor(3, alpha, "cells", fit_intercept).fit(X, y, weights)
    force_conjugate_gradients(monkeypatch)
    iterated = LowDegreeRegressor(3, alpha, "cells", fit_intercept).fit(X, y, weights)
    assert "conjugate gradients" in iterated.solver_reason_
    assert "conjugate gradients" not in direct.solver_reason_
    assert_allclose(iterated.coefficients_, direct.coefficients_, atol=1e-9)
    assert_allclose(iterated.intercept_, direct.intercept_, atol=1e-9)
    assert_allclose(iterated.r2_, direct.r2_, atol=1e-9)


@pytest.mark.grid
@pytest.mark.parametrize(("n", "degree", "min_degree"), [(5, 2, 1), (7, 4, 2), (66, 3, 1), (6, 6, 1), (9, 1, 1)])
def test_krawtchouk_sums_are_the_gram_matrix_between_points(n, degree, min_degree):
    signs = np.random.default_rng(n).choice([1.0, -1.0], (23, n)).astype(np.float32)
    features = monomials(signs, subsets_of_size(n, degree, min_degree))
    assert_array_equal(
        between(signs, signs[:4], np.array(krawtchouk_sums(n, degree, min_degree))), features @ features[:4].T
    )


@pytest.mark.parametrize(("n", "m"), [(70, 19), (12, 31)])
def test_the_kernel_is_chosen_when_monomials_exceed_rows(n, m):
    rng = np.random.default_rng(n)
    X, y = rng.choice([1, -1], (m, n)), rng.normal(size=(m, 2))
    model = LowDegreeRegressor(2).fit(X, y)
    assert model.solver_ == "kernel"
    assert_is(model, X, y, *least_norm(monomials(X, subsets_of_size(n, 2)), y))
    assert_allclose(model.predict(X), y, atol=1e-9)  # more monomials than rows interpolate
    elsewhere = rng.choice([1, -1], (57, n))
    values = monomials(elsewhere, model.subsets_) @ model.coefficients_.T + model.intercept_
    assert_allclose(model.predict(elsewhere), values, atol=1e-9)


def test_the_average():
    rng = np.random.default_rng(11)
    X, y, weights = rng.choice([1, -1], (97, 5)), rng.normal(size=97), rng.random(97)
    features = monomials(X, subsets_of_size(5, 2))
    model = LowDegreeRegressor(2, solver="correlation").fit(X, y, weights)
    assert model.solver_ == "correlation"
    assert_allclose(model.coefficients_, (weights * y) @ features / weights.sum(), rtol=1e-12)
    assert_allclose(model.intercept_, weights @ y / weights.sum(), rtol=1e-12)
    shrunk = LowDegreeRegressor(2, 3.0, solver="correlation").fit(X, y, weights)
    assert_allclose(shrunk.coefficients_, (weights * y) @ features / (weights.sum() + 3), rtol=1e-12)


@grid(kind=["uniform", "one-hot", "few points", "skewed"], alpha=[0.003, 0.05, 5.0])
def test_lasso_of_scikit_learn(kind, alpha):
    rng = np.random.default_rng([12, len(kind)])
    X, y, weights = 1 - 2 * tables(rng, kind, 143, 5), rng.normal(size=143), rng.integers(1, 4, 143)
    features = monomials(X, subsets_of_size(5, 2))
    for fit_intercept in (True, False):
        theirs = Lasso(alpha, fit_intercept=fit_intercept, tol=1e-12, max_iter=10**6).fit(features, y, weights)
        ours = LowDegreeRegressor(2, alpha, "lasso", fit_intercept).fit(X, y, weights)
        assert ours.solver_ == "lasso"
        # Repeated columns share a coefficient in many ways, but the values and the objective are unique.
        assert_allclose(ours.predict(X), theirs.predict(features), atol=1e-5)
        assert_allclose(np.abs(ours.coefficients_).sum(), np.abs(theirs.coef_).sum(), atol=1e-5)
        if kind == "uniform":
            assert_allclose(ours.coefficients_, theirs.coef_, atol=1e-5)


def test_a_target_scaled_by_a_power_of_two_scales_the_bits():
    rng = np.random.default_rng(13)
    X, y = rng.choice([1, -1], (59, 5)), rng.normal(size=59)
    coef = LowDegreeRegressor(2).fit(X, y).coefficients_
    for power in (-900, -33, 7, 900):
        assert_array_equal(LowDegreeRegressor(2).fit(X, np.ldexp(y, power)).coefficients_, np.ldexp(coef, power))


def test_what_is_large_does_not_drown_what_is_small():
    """Sums are exact: a spike of 1e200 taken away again leaves no trace."""
    rng = np.random.default_rng(14)
    X, y = rng.choice([1, -1], (59, 5)), rng.normal(size=59)
    model = LowDegreeRegressor(2, solver="cells").partial_fit(X, y).partial_fit(X[:3], [1e200, -3e150, 1e-300])
    model.remove(X[:3], [1e200, -3e150, 1e-300])
    assert_array_equal(model.coefficients_, LowDegreeRegressor(2, solver="cells").fit(X, y).coefficients_)


def test_predictions_do_not_depend_on_the_batch():
    rng = np.random.default_rng(19)
    for n, degree in [(6, 2), (23, 1), (70, 2)]:
        X, y = rng.choice([1, -1], (41, n)), rng.normal(size=41)
        model = LowDegreeRegressor(degree, n_jobs=2).fit(X, y)
        together = model.predict(X)
        assert_array_equal(np.concatenate([model.predict(row[None]) for row in X]), together)
        assert_array_equal(model.predict(X[::-1])[::-1], together)


@pytest.mark.parametrize("solver", ["auto", *SOLVERS, "correlation", "lasso"])
def test_kernels_and_threads_do_not_show_in_the_bits(solver):
    rng = np.random.default_rng(20)
    X, y = rng.integers(0, 2, (301, 8)), rng.normal(size=(301, 2))
    found = []
    for name, n_jobs in [("native", 1), ("native", 2), ("native", -1), ("reference", 1)]:
        if name == "native" and kernels.dispatch.native is None:
            continue
        with kernels.using(name):
            model = LowDegreeRegressor(3, 0.1, solver, n_jobs=n_jobs).fit(X, y)
            found.append((model.coefficients_, model.predict(X)))
    for one, other in pairwise(found):
        assert_array_equal(one[0], other[0])
        assert_array_equal(one[1], other[1])


def test_linear_regression_of_scikit_learn():
    rng = np.random.default_rng(3)
    X, y = rng.choice([1, -1], (301, 9)), rng.normal(size=301)
    theirs = make_pipeline(PolynomialFeatures(2, interaction_only=True, include_bias=False), LinearRegression())
    theirs.fit(X, y)
    ours = LowDegreeRegressor(degree=2).fit(X, y)
    assert_allclose(ours.coefficients_, theirs[-1].coef_, rtol=1e-9, atol=1e-12)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)


def test_the_order_of_coefficients_matches_polynomial_features():
    expand = PolynomialFeatures(3, interaction_only=True, include_bias=False).fit(np.zeros((1, 6)))
    theirs = [tuple(np.flatnonzero(row)) for row in expand.powers_]
    X = tables(np.random.default_rng(21), "uniform", 40, 6)
    assert LowDegreeRegressor(3).fit(X, np.arange(40.0)).subsets_ == theirs
    assert subsets_of(subset_masks(6, 3, 1)) == theirs


def test_the_lasso_without_a_penalty_is_least_squares():
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 2, (61, 5)), rng.normal(size=61)
    lasso, least = (LowDegreeRegressor(2, solver=solver).fit(X, y) for solver in ("lasso", "auto"))
    np.testing.assert_allclose(lasso.coefficients_, least.coefficients_, rtol=1e-9, atol=1e-12)


@pytest.fixture
def added(monkeypatch):
    """The name of a solver of this file alone, which solves the normal equations in its own way; one file adds it."""

    class PseudoInverse(Solver):
        """Ridge by a pseudo-inverse."""

        name = "pseudo-inverse"

        def cost(self, size):
            return SolverPlan(self, size.nbytes + 16.0 * size.n_monomials**2, "it was named", None)

        def estimate(self, equations, penalty, plan):
            inverse = np.linalg.pinv(equations.gram + penalty.alpha * np.eye(len(equations.gram)), rcond=1e-11)
            return inverse @ equations.rhs, equations.feature_mean, f"{plan.reason}.", None

    solvers.cache_clear()
    monkeypatch.setitem(LowDegreeRegressor._parameter_constraints, "solver", [StrOptions(set(solvers()))])
    yield PseudoInverse.name
    del PseudoInverse
    solvers.cache_clear()
    gc.collect()  # classes know their subclasses while these live
    assert "pseudo-inverse" not in solvers()


@pytest.mark.grid
@pytest.mark.parametrize("kind", few_of(KINDS, ["uniform", "one-hot"]))
def test_an_added_solver_goes_through_the_matrix(added, kind):
    test_least_norm_of_any_table(added, kind, 83, 6, 2, 1)
    test_least_norm_of_any_table(added, kind, 29, 7, 3, 1)


@pytest.mark.grid
def test_an_added_solver_is_held_to_the_contract(added):
    test_a_list_of_subsets(added)
    test_a_complete_table_gives_its_spectrum(added)
    test_no_monomials_at_all(added, {"degree": 0})
    with pytest.raises(ValueError, match="needs points of the cube"):
        LowDegreeRegressor(solver=added).fit(np.arange(9.0)[:, None] / 7, np.arange(9.0))
    with pytest.raises(MemoryError, match="max_memory"):
        LowDegreeRegressor(solver=added, max_memory=10).fit(np.eye(5, dtype=int), np.arange(5.0))

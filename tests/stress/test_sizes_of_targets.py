"""Targets of size 1e-300 to 1e300: a fit of c * y is c times the fit of y, and ratios of squares stay as they are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from commands import run
from grids import few_of, grid
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsact
from sparsact import (
    DSMRegressor,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHRegressor,
    SparselyActivatedRegressor,
)

rng = np.random.default_rng(0)
m, n = 61, 5
SIGNS = 1 - 2 * rng.integers(0, 2, (m, n))
COLUMNS = rng.normal(size=(m, n))
Y = rng.normal(size=m) + 2 * SIGNS[:, 0] * SIGNS[:, 3]
POWERS = [-1000, -600, -100, 33, 600, 1000]
SOLVERS = ["cells", "moments", "kernel", "correlation", "lasso", "real"]


def fitted(solver, y, scale=1.0, **wish):
    if solver == "lasso":
        return LowDegreeRegressor(2, 0.05 * scale, solver="lasso").fit(SIGNS, y, **wish)
    if solver == "real":
        return LowDegreeRegressor(2).fit(COLUMNS, y, **wish)
    return LowDegreeRegressor(2, solver=solver).fit(SIGNS, y, **wish)


def same_but_for_scale(one, other, scale, rtol):
    np.testing.assert_allclose(other.coefficients_ / scale, one.coefficients_, rtol=rtol, atol=rtol)
    assert other.intercept_ / scale == pytest.approx(one.intercept_, rel=rtol)
    assert other.r2_ == pytest.approx(one.r2_, rel=rtol)
    try:
        errors = one.standard_errors()
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:20]):
            other.standard_errors()
        return
    np.testing.assert_allclose(other.standard_errors() / scale, errors, rtol=rtol)
    np.testing.assert_allclose(other.confidence_intervals() / scale, one.confidence_intervals(), rtol=1e3 * rtol)


@grid(solver=SOLVERS, power=POWERS)
def test_low_degree_fits_scale_with_the_targets(solver, power):
    one, other = fitted(solver, Y), fitted(solver, np.ldexp(Y, power), 2.0**power)
    same_but_for_scale(one, other, 2.0**power, 1e-9 if solver == "lasso" else 1e-12)
    if solver != "lasso":
        np.testing.assert_allclose(other.coefficients_, one.coefficients_ * 2.0**power, rtol=4e-15)
    with np.errstate(over="ignore"):
        assert other.residual_variance_ == pytest.approx(one.residual_variance_ * 2.0**power * 2.0**power, rel=1e-9)


@settings(max_examples=15)
@given(st.floats(-299, 299), st.sampled_from(["cells", "moments", "real"]))
def test_any_scale(power, solver):
    scale = 10.0**power
    same_but_for_scale(fitted(solver, Y), fitted(solver, Y * scale), scale, 1e-9)


@grid(solver=["cells", "moments", "kernel", "correlation", "real"], power=[-320, 320])
def test_whole_places_of_the_grid_leave_every_bit(solver, power):
    one, other = fitted(solver, Y), fitted(solver, np.ldexp(Y, power))
    np.testing.assert_array_equal(other.coefficients_, np.ldexp(one.coefficients_, power))
    np.testing.assert_array_equal(other.r2_, one.r2_)


@pytest.mark.parametrize("solver", ["cells", "moments", "kernel", "real"])
def test_subnormal_targets_are_fitted_to_their_last_digit(solver):
    tiny = np.round(Y * 100) * 5e-324
    model = fitted(solver, tiny)
    expected = fitted(solver, np.round(Y * 100))
    np.testing.assert_allclose(
        model.coefficients_ / 5e-324, expected.coefficients_, atol=0.5 + 1e-9
    )  # a coefficient is subnormal too
    assert model.r2_ == pytest.approx(expected.r2_, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "scale"),
    few_of(
        product(["signs", "numbers"], [1e-300, 1e-160, 1e160, 1e300]),
        [("signs", 1e-300), ("numbers", 1e-160), ("signs", 1e160), ("numbers", 1e300)],
    ),
)
def test_cross_validation_chooses_alike_at_every_scale(kind, scale):
    X = SIGNS if kind == "signs" else COLUMNS
    one, other = LowDegreeRegressorCV().fit(X, Y), LowDegreeRegressorCV().fit(X, Y * scale)
    assert (other.degree_, other.alpha_) == (one.degree_, one.alpha_)
    np.testing.assert_allclose(other.cv_results_["fold_r2"], one.cv_results_["fold_r2"], rtol=1e-9)
    expected = 0.0 if scale < 1e-200 else np.inf if scale > 1 else pytest.approx(one.cv_results_["mean_mse"] * 1e-320)
    if scale != 1e-160:
        assert (other.cv_results_["mean_mse"] == expected).all()


def test_automatic_degrees_are_alike_at_every_scale():
    X = 1 - 2 * rng.integers(0, 2, (600, 6))
    y = X[:, 0] * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=600)
    for scale in (1e-300, 1.0, 1e300):
        assert LowDegreeRegressor("auto").fit(X, y * scale).degree_ == 3


@pytest.mark.parametrize("X", [SIGNS, COLUMNS])
def test_several_targets_of_unlike_sizes(X):
    both = np.stack([Y, 1e60 * Y[::-1]], axis=1)
    model = LowDegreeRegressor(2).fit(X, both)
    for t in range(2):
        one = LowDegreeRegressor(2).fit(X, both[:, t])
        np.testing.assert_allclose(model.coefficients_[t], one.coefficients_, rtol=1e-11)
        np.testing.assert_allclose(model.standard_errors()[t], one.standard_errors(), rtol=1e-11)
    with pytest.raises(ValueError, match="targets 0 and 1 differ in size by more than 1e100"):
        LowDegreeRegressor(2).fit(X, np.stack([Y, 1e250 * Y], axis=1))
    zero = LowDegreeRegressor(2).fit(X, np.stack([0 * Y, 1e250 * Y], axis=1))
    assert not zero.coefficients_[0].any()


@pytest.mark.parametrize("solver", ["moments", "real"])
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_what_a_file_holds_is_at_its_scale(solver, scale, tmp_path):
    model = fitted(solver, Y * scale)
    model.save(tmp_path / "model", statistic=True)
    read = sparsact.load(tmp_path / "model")
    assert (read.r2_, read.residual_variance_) == (model.r2_, model.residual_variance_)
    np.testing.assert_array_equal(read.standard_errors(), model.standard_errors())
    X = SIGNS if solver == "moments" else COLUMNS
    np.testing.assert_array_equal(read.partial_fit(X, Y).coefficients_, model.partial_fit(X, Y).coefficients_)


@pytest.mark.parametrize(
    ("family", "degree"),
    few_of(
        product(["pca_grid", "euclidean", "hyperplane"], [0, 1, 2]),
        [("pca_grid", 1), ("euclidean", 0), ("hyperplane", 2)],
    ),
)
def test_lsh_fits_scale_with_the_targets(family, degree):
    def predictions(y):
        model = LSHRegressor(3, family=family, degree=degree, random_state=0, n_hashes=3, bucket_width=1.5, alpha=0.1)
        return model.fit(COLUMNS, y).predict(COLUMNS)

    expected = predictions(Y)
    for power in (-990, -600, 600, 990):
        np.testing.assert_allclose(np.ldexp(predictions(np.ldexp(Y, power)), -power), expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="no number above 1e-300"):
        predictions(Y * 1e-310)


@pytest.mark.parametrize("router", ["top_k", "random_hash", "nearest", "block_top1", "hyperplane_lsh"])
def test_sums_of_masked_features_scale_with_the_targets(router):
    def predictions(y):
        return DSMRegressor(16, 4, router, random_state=0).fit(COLUMNS, y).predict(COLUMNS)

    expected = predictions(Y)
    for scale in (1e-300, 1e-160, 1e90, 1e300):
        np.testing.assert_allclose(predictions(Y * scale) / scale, expected, rtol=1e-9)


@pytest.mark.grid
@pytest.mark.parametrize("scale", few_of([1e-300, 1e300], [1e-300]))
def test_networks_scale_with_the_targets(scale):
    def predictions(y):
        return SparselyActivatedRegressor(4, n_restarts=1, random_state=0).fit(SIGNS, y).predict(SIGNS)

    np.testing.assert_allclose(predictions(Y * scale) / scale, predictions(Y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e200])
def test_the_command_refuses_what_its_report_cannot_hold(scale, tmp_path, capsys):
    rows = np.column_stack([(1 - SIGNS) // 2, Y * scale]).tolist()
    lines = [",".join(f"{value!r}" if i == n else f"{value:.0f}" for i, value in enumerate(row)) for row in rows]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["a,b,c,d,e,y", *lines]))
    status, out, err = run(capsys, "fit", table, "--target", "y")
    assert (status, out) == (2, "")
    assert "target 'y' reaches a size of" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("X", [SIGNS, COLUMNS])
def test_networks_refuse_targets_whose_weights_are_no_floats(X):
    for scale in (1e302, 1e307):
        with pytest.raises(ValueError, match=r"`y` holds .*e\+30\d; targets go up to 1e\+301.*: scale `y` down"):
            SparselyActivatedRegressor(8, n_restarts=1, random_state=0).fit(X, Y / np.abs(Y).max() * scale)

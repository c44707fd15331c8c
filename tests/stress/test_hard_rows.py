"""Outliers, cancellation, constants, duplicates, more monomials than rows, weights of every size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from grids import grid
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsact import (
    DSMRegressor,
    LowDegreeClassifier,
    LowDegreeRegressor,
    LSHClassifier,
    LSHRegressor,
    SparselyActivatedRegressor,
    kernels,
)
from sparsact.kernels import dispatch

rng = np.random.default_rng(0)
m, n = 61, 5
SIGNS = 1 - 2 * rng.integers(0, 2, (m, n))
COLUMNS = rng.normal(size=(m, n))
Y = rng.normal(size=m) + 2 * SIGNS[:, 0] * SIGNS[:, 3]


def network():
    return SparselyActivatedRegressor(8, n_restarts=1, max_iter=8, random_state=0)


EXACT = ["cells", "moments", "kernel", "correlation"]


def exact_average(S, X, y):
    """E[y chi_S] in rationals."""
    signs = X[:, list(S)].prod(axis=1).tolist()
    return sum(Fraction(v) * s for v, s in zip(y.tolist(), signs, strict=True)) / len(y)


@pytest.mark.parametrize("outlier", [1e200, -1e300, 1e16])
@pytest.mark.parametrize("backend", ["native", "reference"])
def test_averages_beside_an_outlier_match_rationals(outlier, backend):
    if backend == "native" and dispatch.native is None:
        pytest.skip("the native kernels are not built")
    y = Y.copy()
    y[17] = outlier
    with kernels.using(backend):
        model = LowDegreeRegressor(2, solver="correlation").fit(SIGNS, y)
    for S, coefficient in zip(model.subsets_, model.coefficients_.tolist(), strict=True):
        assert coefficient == pytest.approx(float(exact_average(S, SIGNS, y)), rel=1e-14)
    assert np.isfinite(model.standard_errors()).all()
    assert 0 <= 1 - model.r2_ < 20


@pytest.mark.parametrize("solver", EXACT)
def test_an_outlier_and_its_opposite_leave_the_averages(solver):
    """1e200 and -1e200 at one point: what remains are the other digits, which floats would have lost."""
    X, y = np.concatenate([SIGNS, SIGNS[:1], SIGNS[:1]]), np.concatenate([Y, [1e200, -1e200]])
    found = LowDegreeRegressor(2, solver=solver).fit(X, y)
    at_ease = LowDegreeRegressor(2, solver=solver).fit(X, np.concatenate([Y, [0.0, 0.0]]))
    np.testing.assert_allclose(found.coefficients_, at_ease.coefficients_, rtol=1e-12, atol=1e-14)
    assert found.r2_ == pytest.approx(0.0, abs=1e-12)  # of all that varies, nothing
    order = rng.permutation(len(y))
    np.testing.assert_array_equal(
        LowDegreeRegressor(2, solver=solver).fit(X[order], y[order]).coefficients_, found.coefficients_
    )


@pytest.mark.parametrize(
    "make",
    [lambda: LowDegreeRegressor(2), lambda: LSHRegressor(3, random_state=0), network],
)
@pytest.mark.parametrize("X", [SIGNS, COLUMNS])
def test_predictions_beside_an_outlier_are_finite(make, X):
    y = Y.copy()
    y[17] = 1e200
    assert np.isfinite(make().fit(X, y).predict(X)).all()


def test_outliers_among_the_columns_are_refused_or_borne():
    X = COLUMNS.copy()
    X[7, 2] = 1e200
    with pytest.raises(ValueError, match=r"columns \(2,\) of `X` have a product of 1e\+200"):
        LowDegreeRegressor(2).fit(X, Y)
    with pytest.raises(ValueError, match="row 7 lies too far"):
        LSHRegressor(random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="scale its columns"):
        DSMRegressor(16, 4, random_state=0).fit(X, Y)
    assert np.isfinite(network().fit(X, Y).predict(X)).all()
    product = COLUMNS.copy()
    product[7, :2] = 1e60
    with pytest.raises(ValueError, match=r"columns \(0, 1\) of `X` have a product of 1e\+120"):
        LowDegreeRegressor(2).fit(product, Y)


@grid(value=[0.0, 0.1, -1e200, 1e-300, 2.0**-1060], solver=[*EXACT, "real"])
def test_a_constant_target(value, solver):
    X = COLUMNS if solver == "real" else SIGNS
    model = LowDegreeRegressor(2, solver="auto" if solver == "real" else solver).fit(X, np.full(m, value))
    if solver == "correlation":  # averages of a constant are averages of the characters
        return
    np.testing.assert_allclose(model.predict(X), value, rtol=1e-12)
    np.testing.assert_allclose(model.coefficients_, 0.0, atol=1e-14 * abs(value))


@pytest.mark.parametrize("column", [1, -1])
def test_constant_and_duplicate_columns(column):
    constant = np.column_stack([SIGNS, np.full(m, column)])
    plain = LowDegreeRegressor(1).fit(SIGNS, Y)
    np.testing.assert_allclose(
        LowDegreeRegressor(1).fit(constant, Y).predict(constant), plain.predict(SIGNS), rtol=1e-9
    )
    twice = np.column_stack([SIGNS, SIGNS[:, :2]])
    model = LowDegreeRegressor(1).fit(twice, Y)
    np.testing.assert_allclose(model.predict(twice), plain.predict(SIGNS), rtol=1e-9)
    np.testing.assert_allclose(
        model.coefficients_[:2], model.coefficients_[-2:], rtol=1e-9
    )  # of least norm: shared alike
    assert "least norm" in model.solver_reason_
    only = LowDegreeRegressor(2).fit(np.full((m, 3), column), Y)
    np.testing.assert_allclose(only.predict(np.full((2, 3), column)), Y.mean(), rtol=1e-12)


@pytest.mark.grid
@settings(max_examples=20)
@given(st.lists(st.integers(0, 3), min_size=m, max_size=m).filter(any))
def test_duplicated_rows_are_weights(times):
    repeats = np.array(times)
    rows = np.repeat(np.arange(m), repeats)
    for solver in EXACT:
        repeated = LowDegreeRegressor(1, 0.5, solver=solver).fit(SIGNS[rows], Y[rows])
        weighted = LowDegreeRegressor(1, 0.5, solver=solver).fit(SIGNS, Y, repeats.astype(float))
        np.testing.assert_array_equal(repeated.coefficients_, weighted.coefficients_)
        assert repeated.intercept_ == weighted.intercept_


@pytest.mark.parametrize("solver", ["cells", "moments", "kernel"])
def test_more_monomials_than_rows(solver):
    """The rows fitted exactly, by the least coefficients that do it: numpy's pseudo-inverse."""
    X, y = SIGNS[:7], Y[:7]
    model = LowDegreeRegressor(3, solver=solver, fit_intercept=False).fit(X, y)
    products = np.stack([X[:, list(S)].prod(axis=1) for S in model.subsets_], axis=1)
    np.testing.assert_allclose(model.coefficients_, np.linalg.pinv(products.astype(float)) @ y, atol=1e-12)


WEIGHTED = {
    "cells": lambda: LowDegreeRegressor(2, solver="cells"),
    "moments": lambda: LowDegreeRegressor(2, solver="moments"),
    "kernel": lambda: LowDegreeRegressor(2, solver="kernel"),
    "masks": lambda: DSMRegressor(16, 4, random_state=0),
    "trained": lambda: DSMRegressor(16, 4, solver="rmsprop", epochs=2, random_state=0),
}


@grid(name=WEIGHTED, power=[-330, -33, 33, 330])
def test_the_unit_of_weights_does_not_matter(name, power):
    weights = 1.0 + rng.integers(0, 3, m)
    one = WEIGHTED[name]().fit(SIGNS, Y, weights)
    other = WEIGHTED[name]().fit(SIGNS, Y, np.ldexp(weights, power))
    np.testing.assert_allclose(other.predict(SIGNS), one.predict(SIGNS), rtol=1e-10)
    if name in ("cells", "moments"):
        assert other.r2_ == pytest.approx(one.r2_, rel=1e-12)
        np.testing.assert_allclose(other.standard_errors(), one.standard_errors(), rtol=1e-11)


@pytest.mark.parametrize(
    "make", [*WEIGHTED.values(), lambda: LSHRegressor(3, random_state=0), LowDegreeClassifier, lambda: LSHClassifier(3)]
)
def test_weights_out_of_range(make):
    y = (Y > 0).astype(int)
    for bad, message in ((1e-310, "weight of row 5 is 1e-310"), (1e150, "weight of row 5 is"), (-1e-9, "[Nn]egative")):
        weights = np.ones(m)
        weights[5] = bad
        with pytest.raises(ValueError, match=message):
            make().fit(SIGNS, y, weights)
    with pytest.raises(ValueError, match="zero"):
        make().fit(SIGNS, y, np.zeros(m))
    weights = np.where(np.arange(m) < 50, 1.0, 0.0)
    np.testing.assert_array_equal(
        make().fit(SIGNS[:50], y[:50]).predict(SIGNS).shape, make().fit(SIGNS, y, weights).predict(SIGNS).shape
    )


def test_products_of_weights_and_targets_that_are_no_floats():
    for weight, size in ((1e20, 1e300), (1e-20, 1e-300)):
        with pytest.raises(ValueError, match=r"row 0 has weight 1e[-+]20 and target .*beyond float64"):
            LowDegreeRegressor(2).fit(SIGNS, Y * size, np.full(m, weight))
    exact = LowDegreeRegressor(2).fit(SIGNS, Y * 1e-300, np.full(m, 1.0))
    assert exact.r2_ == pytest.approx(LowDegreeRegressor(2).fit(SIGNS, Y).r2_, rel=1e-12)


def test_a_query_beyond_every_row_is_a_number_or_refused():
    """A square of 1e300 is no float: never NaN without a word."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    far = np.full((2, 3), 1e300)
    far[0] = 0.5
    model = LSHRegressor(4, 2, 1.0, degree=2, family="hyperplane", directions="standard", random_state=0)
    model.fit(X, X[:, 0] * X[:, 1])
    assert np.isfinite(model.predict(far[:1])).all()
    with pytest.raises(ValueError, match="row 1 lies so far"):
        model.predict(far)

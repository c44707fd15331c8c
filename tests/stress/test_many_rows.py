"""Statistics of 2**30 rows and more, made by merging copies: no accumulator overflows, or the merge is refused."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction

import numpy as np
import pytest
from grids import few_of

import sparsact
from sparsact import (
    DSMRegressor,
    LowDegreeClassifier,
    LowDegreeRegressor,
    LowDegreeRegressorCV,
    LSHClassifier,
    LSHRegressor,
)

rng = np.random.default_rng(0)
m, n = 61, 5
SIGNS = 1 - 2 * rng.integers(0, 2, (m, n))
COLUMNS = rng.normal(size=(m, n))
Y = rng.normal(size=m) + 2 * SIGNS[:, 0] * SIGNS[:, 3]
SOLVERS = [("cells", 0.0), ("moments", 0.0), ("kernel", 0.0), ("correlation", 0.0), ("lasso", 0.05)]


def doubled(model, times):
    for _ in range(times):
        model.merge(deepcopy(model))
    return model


@pytest.mark.parametrize(("solver", "alpha"), SOLVERS)
@pytest.mark.parametrize("times", few_of([30, 53, 64], [64]))
def test_doubled_rows_leave_the_polynomial_as_it_is(solver, alpha, times):
    one = LowDegreeRegressor(2, alpha, solver=solver).fit(SIGNS, Y)
    many = doubled(LowDegreeRegressor(2, alpha, solver=solver).fit(SIGNS, Y), times)
    assert many.n_samples_seen_ == m * 2**times
    assert isinstance(many.n_samples_seen_, int)
    np.testing.assert_allclose(many.coefficients_, one.coefficients_, rtol=1e-12, atol=1e-14)
    if times % 32 == 0:  # the digits are the same, at other places of the grid
        np.testing.assert_array_equal(many.coefficients_, one.coefficients_)
    assert many.r2_ == pytest.approx(one.r2_, rel=1e-12)


@pytest.mark.parametrize("X", [SIGNS, COLUMNS])
def test_standard_errors_shrink_like_the_square_root_of_the_rows(X):
    one = LowDegreeRegressor(2).fit(X, Y)
    many = doubled(LowDegreeRegressor(2).fit(X, Y), 60)
    freedom = (m - 16) / (m * 2**60 - 16)  # of 15 monomials and the constant
    np.testing.assert_allclose(many.standard_errors(), one.standard_errors() * freedom**0.5, rtol=1e-12)
    assert many.residual_variance_ == pytest.approx(one.residual_variance_ * (m - 16) / m, rel=1e-12)


def test_sums_of_many_rows_are_the_rational_ones():
    many = doubled(LowDegreeRegressor(2, solver="moments").fit(SIGNS, Y), 62)
    statistic = many.accumulator_.statistics[0]
    total = 2**62 * sum(Fraction(y) for y in Y.tolist())
    assert statistic.totals.sums.to_fractions() == [total]
    assert statistic.totals.squares.to_fractions() == [2**62 * sum(Fraction(y) ** 2 for y in Y.tolist())]
    products = (Y * SIGNS[:, 0] * SIGNS[:, 3]).tolist()
    place = 1 + many.subsets_.index((0, 3))
    assert statistic.sums.to_fractions()[place] == 2**62 * sum(Fraction(p) for p in products)


def test_other_sums_of_many_rows():
    many = doubled(LowDegreeRegressor(2).fit(COLUMNS, Y), 62)
    np.testing.assert_allclose(many.coefficients_, LowDegreeRegressor(2).fit(COLUMNS, Y).coefficients_, rtol=1e-11)
    assert many.n_samples_seen_ == m * 2**62
    many = doubled(DSMRegressor(17, 4, random_state=0).fit(COLUMNS, Y), 62)
    expected = DSMRegressor(17, 4, random_state=0).fit(COLUMNS, Y).predict(COLUMNS)
    np.testing.assert_array_equal(many.predict(COLUMNS), expected)  # powers of two throughout
    assert many.n_rows_ == m * 2**62


def test_classes_and_folds_of_many_rows():
    one = LowDegreeClassifier(2).fit(SIGNS, Y > 0)
    many = doubled(LowDegreeClassifier(2).fit(SIGNS, Y > 0), 40)
    np.testing.assert_allclose(many.predict_proba(SIGNS), one.predict_proba(SIGNS), atol=1e-13)
    wish = {"degrees": (1, 2), "alphas": (0.0,)}
    one, many = (LowDegreeRegressorCV(**wish).fit(SIGNS, Y) for _ in range(2))
    doubled(many, 40)
    assert many.degree_ == one.degree_ == 2
    np.testing.assert_allclose(many.cv_results_["fold_mse"], one.cv_results_["fold_mse"], rtol=1e-10)


@pytest.mark.parametrize("kind", [LSHRegressor, LSHClassifier])
def test_buckets_of_many_rows(kind):
    y, wish = (Y, {}) if kind is LSHRegressor else (Y > 0, {})
    one = kind(4, degree=1, bucket_width=2.0, alpha=0.5, random_state=0, **wish).fit(COLUMNS, y)
    many = doubled(kind(4, degree=1, bucket_width=2.0, alpha=0.5, random_state=0, **wish).fit(COLUMNS, y), 40)
    assert many.n_samples_seen_ == m * 2**40
    np.testing.assert_array_equal(many.bucket_counts_, one.bucket_counts_ * 2**40)
    many.alpha_ *= 2.0**40  # penalties are absolute: of as many rows, the same
    few, lots = (model.table_.solved(model.alpha_, 1) for model in (one, many))
    np.testing.assert_array_equal(few.coefficients, lots.coefficients)
    assert many.miss_rate_ == 0


def test_counts_of_buckets_that_would_overflow_are_refused():
    many = doubled(LSHRegressor(4, random_state=0).fit(COLUMNS, Y), 54)
    before = many.n_samples_seen_, many.table_.sums.copy()
    with pytest.raises(ValueError, match="rows in 4 tables are more than the counts can hold"):
        many.merge(deepcopy(many))
    assert many.n_samples_seen_ == before[0] == m * 2**54
    np.testing.assert_array_equal(many.table_.sums, before[1])


@pytest.mark.parametrize("X", [SIGNS, COLUMNS])
def test_a_total_weight_that_leaves_no_room_is_refused(X):
    many = doubled(LowDegreeRegressor(2).fit(X, Y), 700)
    with pytest.raises(ValueError, match=r"total weight, 3\..e\+212 .*scale the weights down"):
        _ = many.coefficients_


@pytest.mark.parametrize("solver", ["cells", "moments"])
def test_a_weight_stands_for_as_many_rows(solver):
    weights = np.where(np.arange(m) % 7 == 0, 2.0**30, 1.0)
    weighted = LowDegreeRegressor(2, solver=solver).fit(SIGNS, Y, weights)
    heavy = LowDegreeRegressor(2, solver=solver).fit(SIGNS[::7], Y[::7])
    repeated = doubled(heavy, 30).merge(LowDegreeRegressor(2, solver=solver).fit(SIGNS[weights == 1], Y[weights == 1]))
    np.testing.assert_array_equal(weighted.coefficients_, repeated.coefficients_)
    assert weighted.n_samples_seen_ == m


def test_many_rows_in_a_file(tmp_path):
    many = doubled(LowDegreeRegressor(2, solver="moments").fit(SIGNS, Y), 70)
    many.save(tmp_path / "model", statistic=True)
    read = sparsact.load(tmp_path / "model")
    assert read.n_samples_seen_ == m * 2**70
    np.testing.assert_array_equal(read.merge(many).coefficients_, many.merge(deepcopy(many)).coefficients_)
    np.testing.assert_array_equal(read.standard_errors(), many.standard_errors())


@pytest.mark.parametrize("make", [LowDegreeRegressor, DSMRegressor])
@pytest.mark.parametrize("X", [SIGNS, COLUMNS])
def test_a_model_merged_into_itself_counts_twice(make, X):
    if make is DSMRegressor:
        model = DSMRegressor(17, 4, random_state=0).fit(X, Y)
        assert model.merge(model).n_rows_ == 2 * m
    else:
        model = LowDegreeRegressor(2).fit(X, Y)
        assert model.merge(model).n_samples_seen_ == 2 * m
    np.testing.assert_allclose(model.predict(X), deepcopy(model).fit(X, Y).predict(X), rtol=1e-9)

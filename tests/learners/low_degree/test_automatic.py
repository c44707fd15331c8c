"""LowDegreeRegressor(degree="auto"): what it chooses, by what, and how it behaves afterwards."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from grids import few_of
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

import sparsact
from sparsact import LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.hypercube import points
from sparsact.learners.low_degree import choose


def rows(m, n, noise=0.0, seed=0):
    """Signs, and targets of degree 3."""
    rng = np.random.default_rng([m, n, seed])
    X = rng.choice([1, -1], (m, n))
    return X, X[:, 0] * X[:, 1] + 0.7 * X[:, 2] * X[:, 3] * X[:, 4] + 0.5 * X[:, 5] + noise * rng.normal(size=m)


def auto(**parameters):
    return LowDegreeRegressor(degree="auto", **parameters)


@pytest.mark.grid
@pytest.mark.parametrize(("noise", "as_bits"), [(0.0, False), (0.5, True)])
def test_many_uniform_rows(noise, as_bits):
    X, y = rows(600, 7, noise)
    model = auto().fit((1 - X) // 2 if as_bits else X, y)
    assert model.degree_ == 3
    reason = "least held-out error over degrees 0 to 7; at most 7 is affordable for 600 rows of 7 columns."
    assert model.degree_reason_ == reason
    assert_array_equal(model.coefficients_, LowDegreeRegressor(3).fit(X, y).coefficients_)


@pytest.mark.grid
def test_the_choice_is_the_best_on_new_rows():
    """No other degree does better on new rows by more than a hundredth of the variance."""
    X, y = rows(1500, 8, 1.0)
    new, truth = rows(4000, 8, 0.0, seed=1)
    chosen = auto().fit(X, y)
    scores = {d: LowDegreeRegressor(d).fit(X, y).score(new, truth) for d in range(5)}
    assert scores[chosen.degree_] > max(scores.values()) - 0.01


def test_noise_alone_gives_the_mean():
    X, _ = rows(2500, 8)
    model = auto().fit(X, np.random.default_rng(5).normal(size=2500))
    assert model.degree_ == 0
    assert len(model.coefficients_) == 0


def test_what_is_out_of_reach_is_told():
    """n = 40: degree 3 has 10,700 monomials, which 4,000 rows cannot fit."""
    X, y = rows(4000, 40)
    model = auto().fit(X, y)
    assert model.degree_ == 2
    assert "at most 2 is affordable" in model.degree_reason_
    assert "degrees 3 to 40 not tried: degree 3 has 10,700 monomials." in model.degree_reason_


@pytest.mark.parametrize(("target", "expected"), [("degree 3", 3), ("degree 2", 2), ("biased", 2), ("noise", 0)])
def test_a_degree_that_folds_have_no_time_for(target, expected, monkeypatch):
    """One fit is affordable; pairs of uniform rows speak for it where it has weight, noise included."""
    monkeypatch.setattr(choose, "MAX_MONOMIALS_OF_FEW_ROWS", 60)
    X, y = rows(700, 9, 0.3)
    rng = np.random.default_rng(8)
    if target == "degree 2":
        y -= 0.7 * X[:, 2] * X[:, 3] * X[:, 4]
    elif target == "biased":
        X = 1 - 2 * (rng.random(X.shape) < 0.1)
        y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=700)
    elif target == "noise":
        y = rng.normal(size=700)
    model = auto().fit(X, y)
    assert model.degree_ == expected
    reason = model.degree_reason_
    assert "at most 2 is affordable for 700 rows of 9 columns" in reason
    assert ("was taken without folds" in reason) == (expected == 3)
    assert ("not uniform" in reason) == (target == "biased")
    if expected == 3:
        assert_array_equal(model.coefficients_, LowDegreeRegressor(3).fit(X, y).coefficients_)
        assert auto().fit(sparse.csr_array((1 - X) // 2), y).degree_reason_ == reason
    assert "pairs" not in auto(alpha=1.0).fit(X, y).degree_reason_


@pytest.mark.slow
def test_degree_3_of_40_columns():
    """10,700 monomials, 16,000 rows: half as many monomials as rows would be too few rows, and five folds too long."""
    X, y = rows(16_000, 40, 0.1)
    model = auto().fit(X, y)
    assert model.degree_ == 3
    new, truth = rows(2000, 40, 0.0, seed=1)
    assert model.score(new, truth) > 0.98  # noise of 0.01, twice over as D / (m - D) = 2, of a variance of 1.74


@pytest.mark.parametrize("case", ["few", "biased", "weights", "ridge", "through the origin", "constant target"])
def test_rows_of_any_kind(case):
    X, y = rows(150 if case == "few" else 800, 7, 0.1)
    weights, parameters = None, {}
    if case == "biased":
        X = 1 - 2 * (np.random.default_rng(1).random(X.shape) < 0.25)
        y = X[:, 0] * X[:, 1] * 1.0
    elif case == "weights":
        weights = np.random.default_rng(2).uniform(0.5, 2, len(X))
    elif case == "ridge":
        parameters["alpha"] = 0.5
    elif case == "through the origin":
        parameters["fit_intercept"] = False
    elif case == "constant target":
        y = np.ones(len(X))
    model = auto(**parameters).fit(X, y, weights)
    assert model.degree_ == {"biased": 2, "constant target": 0}.get(case, 3)
    assert model.degree_reason_.startswith("least held-out error over degrees 0 to ")


def test_real_columns_by_held_out_error():
    X = np.random.default_rng(3).normal(size=(400, 4))
    model = auto().fit(X, X[:, 0] * X[:, 2] + X[:, 1])
    assert (model.degree_, model.domain_, model.solver_) == (2, "real", "dense")


def test_few_rows_leave_the_mean():
    X, y = rows(11, 9)
    model = auto().fit(X, y)
    assert model.degree_ == 0
    assert "the mean alone" in model.degree_reason_


def test_the_whole_cube_and_several_targets():
    X = points(6)
    y = np.stack([X[:, 0] * X[:, 1], X[:, 2] + 0.1 * X[:, 3] * X[:, 5]], axis=1).astype(float)
    assert auto().fit(X, y).degree_ == 2


@pytest.mark.grid
def test_memory_limits_it():
    X, y = rows(2500, 12)
    assert auto(max_memory=1e6).fit(X, y).degree_ < auto().fit(X, y).degree_


def test_a_list_of_subsets_stands():
    X, y = rows(300, 7)
    model = auto(subsets=[(0, 1), (2, 3, 4), (5,)]).fit(X, y)
    assert (model.degree_, model.degree_reason_) == (3, "the subsets are listed.")
    assert model.r2_ == pytest.approx(1)


@pytest.mark.grid
def test_later_rows_keep_the_degree_and_the_bits():
    X, y = rows(2500, 8, 0.1)
    whole = LowDegreeRegressor(3).fit(X, y)
    model = auto().fit(X[:2000], y[:2000])
    reason = model.degree_reason_
    model.set_params(degree=model.degree_).partial_fit(X[2000:], y[2000:])
    assert (model.degree_, model.degree_reason_) == (3, "the degree was given.")
    assert_array_equal(model.coefficients_, whole.coefficients_)
    again = auto().merge(auto().fit(X[:2000], y[:2000]))
    assert (again.degree_, again.degree_reason_) == (3, reason)
    assert_array_equal(model.remove(X[2000:], y[2000:]).coefficients_, again.coefficients_)
    assert again.fit(X[:, 6:], y).degree_ == 0  # fitted anew, chosen anew: nothing is left to learn


def test_a_stream_cannot_choose():
    X, y = rows(40, 6)
    assert not hasattr(auto(), "partial_fit")  # so that whoever streams knows beforehand
    assert not hasattr(LowDegreeRegressor(2, "auto"), "partial_fit")
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as refused:
        auto().partial_fit(X, y)
    assert "chosen by fit, from all rows at once: for rows in pieces name a degree" in str(refused.value.__cause__)
    assert LowDegreeRegressorCV((1,)).partial_fit(X, y).n_samples_seen_ == 40


def test_a_failed_fit_leaves_nothing_behind():
    X, y = rows(40, 6)
    model = auto(solver="lasso")
    with pytest.raises(ValueError, match=r'not with solver="lasso": name a degree'):
        model.fit(X, y)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(NotFittedError):
        _ = model.degree_


def test_merge_wants_one_degree():
    X, y = rows(2500, 8)
    first, second = auto().fit(X, y), auto().fit(X, X[:, 0] * 1.0)
    with pytest.raises(ValueError, match="cannot merge: the two have degrees 3 and 1; fit both with one of them"):
        first.merge(second)


@pytest.mark.parametrize("statistic", [False, True])
def test_saved_and_loaded(tmp_path, statistic):
    X, y = rows(2500, 8, 0.2)
    model = auto(alpha="auto").fit(X, y)
    model.save(tmp_path / "model.sparsact", statistic=statistic)
    loaded = sparsact.load(tmp_path / "model.sparsact")
    assert loaded.get_params() == model.get_params()
    assert (loaded.degree_, loaded.alpha_) == (model.degree_, model.alpha_)
    assert loaded.degree_reason_ == model.degree_reason_
    assert_array_equal(loaded.predict(X), model.predict(X))
    if statistic:
        twice = LowDegreeRegressor(3, model.alpha_).fit(np.concatenate([X, X]), np.concatenate([y, y]))
        assert_array_equal(loaded.merge(model).coefficients_, twice.coefficients_)


@pytest.mark.grid
@pytest.mark.parametrize(
    ("kind", "alpha"),
    few_of(product(["bits", "real", "targets"], [0.0, 2.0]), [("bits", 2.0), ("real", 0.0), ("targets", 0.0)]),
)
def test_the_estimators_and_the_table_choose_alike(kind, alpha):
    """One rule: candidates, folds, scores and ties; the table leaves out degree 0, the mean."""
    X, y = rows(500, 6, 0.3)
    X = (1 - X) // 2 if kind == "bits" else X + 0.1 * np.random.default_rng(1).normal(size=X.shape)
    Y = np.stack([y, 1e4 * X[:, 0]], axis=1) if kind == "targets" else y[:, None]
    names = [f"y{i}" for i in range(Y.shape[1])]
    table = pa.table({f"x{i}": X[:, i] for i in range(6)} | dict(zip(names, Y.T, strict=True)))
    fitted, domain = auto(alpha=alpha).fit(X, Y), "auto" if kind == "bits" else "real"
    searched = LowDegreeRegressorCV(alphas=(alpha,)).fit(X, Y)
    of_table = sparsact.fit_table(table, names, alpha=alpha, domain=domain, model="low-degree", explain=False)
    assert fitted.degree_ == searched.degree_ == of_table.model.degree_ == 3
    tried = {c.degree: c.r2.mean for c in of_table.choices.candidates}
    by_search = dict(zip(searched.cv_results_["degree"].tolist(), searched.cv_results_["mean_r2"], strict=True))
    assert sorted(by_search) == [0, *sorted(tried)]
    assert all(by_search[degree] == pytest.approx(r2) for degree, r2 in tried.items())
    both = sparsact.fit_table(table, names, domain=domain, model="low-degree", explain=False).model
    whole, fitted = LowDegreeRegressorCV().fit(X, Y), auto(alpha="auto").fit(X, Y)
    assert (both.degree_, both.alpha) == (whole.degree_, whole.alpha_) == (fitted.degree_, fitted.alpha_)
    given = LowDegreeRegressor(2, "auto").fit(X, Y)
    assert (given.degree_, given.alpha_) == (2, LowDegreeRegressorCV((2,)).fit(X, Y).alpha_)


@pytest.mark.grid
def test_a_stream_is_chosen_for_as_a_whole():
    """Few rows allow more monomials than many do: what the sums serve follows from the rows so far."""
    X, y = rows(1600, 12, 0.2)
    whole, streamed = LowDegreeRegressorCV().fit(X, y), LowDegreeRegressorCV()
    for start in range(0, len(X), 400):
        streamed.partial_fit(X[start : start + 400], y[start : start + 400])
    assert (streamed.degree_, streamed.alpha_) == (whole.degree_, whole.alpha_)
    assert_array_equal(streamed.cv_results_["fold_mse"], whole.cv_results_["fold_mse"])


def test_other_degrees_say_where_they_come_from():
    X, y = rows(60, 6)
    assert LowDegreeRegressor(2).fit(X, y).degree_ == 2
    assert LowDegreeRegressor(2).fit(X, y).degree_reason_ == "the degree was given."
    searched = LowDegreeRegressorCV((1, 2)).fit(X, y)
    assert searched.degree_reason_ == "least held-out error over degrees [1, 2]."


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_the_scale_of_the_targets_does_not_matter(scale):
    X, y = rows(400, 6)
    assert auto().fit(X, scale * y).degree_ == auto().fit(X, y).degree_ == 3

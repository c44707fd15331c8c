"""LowDegreeRegressor(degree="auto"): what it chooses, by what, and how it behaves afterwards."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import sparsact
from sparsact import LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.hypercube import points


def rows(m, n, noise=0.0, seed=0):
    """Signs, and targets of degree 3."""
    rng = np.random.default_rng([m, n, seed])
    X = rng.choice([1, -1], (m, n))
    return X, X[:, 0] * X[:, 1] + 0.7 * X[:, 2] * X[:, 3] * X[:, 4] + 0.5 * X[:, 5] + noise * rng.normal(size=m)


def auto(**parameters):
    return LowDegreeRegressor(degree="auto", **parameters)


@pytest.mark.parametrize(("noise", "as_bits"), [(0.0, False), (0.5, True)])
def test_many_uniform_rows_are_decided_by_theory(noise, as_bits):
    X, y = rows(1300, 8, noise)
    model = auto().fit((1 - X) // 2 if as_bits else X, y)
    assert model.degree_ == 3
    assert model.degree_reason_.startswith(("least predicted error", "least held-out error of degrees 3 to "))
    assert "degree 3 leaves" in model.degree_reason_
    assert "pairs of uniform rows" in model.degree_reason_
    assert_array_equal(model.coef_, LowDegreeRegressor(3).fit(X, y).coef_)


def test_the_prediction_is_of_the_error():
    """It is chosen because it is best: no other degree does better on new rows by more than a hundredth of variance."""
    X, y = rows(3000, 9, 1.0)
    new, truth = rows(4000, 9, 0.0, seed=1)
    chosen = auto().fit(X, y)
    scores = {d: LowDegreeRegressor(d).fit(X, y).score(new, truth) for d in range(5)}
    assert scores[chosen.degree_] > max(scores.values()) - 0.01


def test_noise_alone_gives_the_mean():
    X, _ = rows(2500, 8)
    model = auto().fit(X, np.random.default_rng(5).normal(size=2500))
    assert model.degree_ == 0
    assert len(model.coef_) == 0


def test_what_is_out_of_reach_is_told():
    """n = 40: degree 3 has 10,700 monomials, 4,000 rows cannot fit them, but pairs of rows see what they hold."""
    X, y = rows(4000, 40)
    model = auto().fit(X, y)
    assert model.degree_ == 2
    assert "at most 2 is affordable" in model.degree_reason_
    assert re.search(r"degree 3 would leave \d+% less", model.degree_reason_)


@pytest.mark.parametrize(
    ("case", "because"),
    [
        ("few", "show what is unexplained to"),
        ("biased", "the rows are not uniform"),
        ("weights", "unequal weights"),
        ("ridge", "least squares with an intercept on all subsets"),
        ("through the origin", "least squares with an intercept on all subsets"),
        ("constant target", "a target is constant"),
    ],
)
def test_elsewhere_by_held_out_error(case, because):
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
    assert because in model.degree_reason_


def test_real_columns_by_held_out_error():
    X = np.random.default_rng(3).normal(size=(400, 4))
    model = auto().fit(X, X[:, 0] * X[:, 2] + X[:, 1])
    assert (model.degree_, model.domain_, model.solver_) == (2, "real", "dense")
    assert "the columns are real numbers" in model.degree_reason_


def test_few_rows_leave_the_mean():
    X, y = rows(11, 9)
    model = auto().fit(X, y)
    assert model.degree_ == 0
    assert "the mean alone" in model.degree_reason_


def test_the_whole_cube_and_several_targets():
    X = points(6)
    y = np.stack([X[:, 0] * X[:, 1], X[:, 2] + 0.1 * X[:, 3] * X[:, 5]], axis=1).astype(float)
    assert auto().fit(X, y).degree_ == 2


def test_memory_limits_it():
    X, y = rows(2500, 12)
    assert auto(max_memory=1e6).fit(X, y).degree_ < auto().fit(X, y).degree_


def test_a_list_of_subsets_stands():
    X, y = rows(300, 7)
    model = auto(subsets=[(0, 1), (2, 3, 4), (5,)]).fit(X, y)
    assert (model.degree_, model.degree_reason_) == (3, "the subsets are listed.")
    assert model.r2_ == pytest.approx(1)


def test_later_rows_keep_the_degree_and_the_bits():
    X, y = rows(2500, 8, 0.1)
    whole = LowDegreeRegressor(3).fit(X, y)
    model = auto().fit(X[:2000], y[:2000])
    reason = model.degree_reason_
    model.set_params(degree=model.degree_).partial_fit(X[2000:], y[2000:])
    assert (model.degree_, model.degree_reason_) == (3, "the degree was given.")
    assert_array_equal(model.coef_, whole.coef_)
    again = auto().merge(auto().fit(X[:2000], y[:2000]))
    assert (again.degree_, again.degree_reason_) == (3, reason)
    assert_array_equal(model.remove(X[2000:], y[2000:]).coef_, again.coef_)
    assert again.fit(X[:, 6:], y).degree_ == 0  # fitted anew, chosen anew: nothing is left to learn


def test_a_stream_cannot_choose():
    X, y = rows(40, 6)
    assert not hasattr(auto(), "partial_fit")  # so that whoever streams knows beforehand
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
    with pytest.raises(ValueError, match=r'not with heredity="strong": name a degree'):
        auto(heredity="strong").fit(X, y)


def test_merge_wants_one_degree():
    X, y = rows(2500, 8)
    first, second = auto().fit(X, y), auto().fit(X, X[:, 0] * 1.0)
    with pytest.raises(ValueError, match="cannot merge: the two have degrees 3 and 1; fit both with one of them"):
        first.merge(second)


@pytest.mark.parametrize("statistic", [False, True])
def test_saved_and_loaded(tmp_path, statistic):
    X, y = rows(2500, 8, 0.2)
    model = auto().fit(X, y)
    model.save(tmp_path / "model.sparsact", statistic=statistic)
    loaded = sparsact.load(tmp_path / "model.sparsact")
    assert loaded.get_params() == model.get_params()
    assert (loaded.degree_, loaded.degree_reason_) == (model.degree_, model.degree_reason_)
    assert_array_equal(loaded.predict(X), model.predict(X))
    if statistic:
        twice = LowDegreeRegressor(3).fit(np.concatenate([X, X]), np.concatenate([y, y]))
        assert_array_equal(loaded.merge(model).coef_, twice.coef_)


def test_the_same_rows_give_the_same_choice(monkeypatch):
    monkeypatch.setattr("sparsact.bounds.unexplained.MOST_PAIRED_ROWS", 900)
    X, y = rows(1300, 21, 0.5)  # more rows than are paired, and too many columns for a table
    first, second = auto().fit(X, y), auto().fit(X, y)
    assert first.degree_reason_ == second.degree_reason_


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

"""Hostile input: the right answer or an error with need, fact and remedy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from grids import grid
from sklearn.exceptions import NotFittedError

from sparsact import DSMRegressor

rng = np.random.default_rng(41)
X, y = rng.normal(size=(40, 3)), rng.normal(size=40)


def model(**changes):
    return DSMRegressor(**({"n_units": 16, "n_active": 4, "random_state": 0} | changes))


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"n_active": 17}, "`n_active` is 17, more than `n_units` = 16"),
        ({"n_active": 0}, "'n_active' parameter"),
        ({"n_units": 0}, "'n_units' parameter"),
        ({"router": "top"}, "'router' parameter"),
        ({"solver": "adam"}, "'solver' parameter"),
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"rho": 1.0}, "'rho' parameter"),
        ({"learning_rate": 0.0}, "'learning_rate' parameter"),
        ({"activation": "tanh"}, "'activation' parameter"),
    ],
)
def test_parameters_are_checked(parameters, complaint):
    with pytest.raises(ValueError, match=complaint):
        model(**parameters).fit(X, y)


@pytest.mark.parametrize("solver", ["ridge", "rmsprop"])
@pytest.mark.parametrize(
    ("rows", "targets", "complaint"),
    [
        (np.where(X > 2, np.nan, X) * np.r_[np.nan, np.ones(2)], y, "NaN"),
        (np.where(X.max() == X, np.inf, X), y, "infinity"),
        (X, np.where(y == y.max(), np.nan, y), "NaN"),
        (X[:0], y[:0], "0 sample"),
        (X[:, :0], y, "0 feature"),
        (X, y[:-1], "inconsistent numbers of samples"),
        (X[0], y, "1D array"),
        (sp.csr_array(X), y, "[Ss]parse"),
        (X * 1e200, y, "scale its columns"),
        (X, y * 1e306, "`y` holds [1-9.]+e.306, so that differences overflow; scale it to below"),
        (X * 1e306, y, "`X` holds [1-9.]+e.306, so that differences overflow"),
        (X.astype(complex) * 1j, y, "Complex data"),
    ],
)
def test_bad_rows_are_refused_and_leave_nothing_behind(solver, rows, targets, complaint):
    found = model(solver=solver)
    for method in (found.fit, found.partial_fit):
        with pytest.raises((ValueError, TypeError), match=complaint):
            method(rows, targets)
        with pytest.raises(NotFittedError):
            found.predict(X)


def test_columns_and_targets_must_stay_as_they_were():
    found = model().partial_fit(X, y)
    expected = found.predict(X)
    with pytest.raises(ValueError, match="2 features, but DSMRegressor is expecting 3"):
        found.partial_fit(X[:, :2], y)
    with pytest.raises(ValueError, match="`y` has 2 targets, and earlier rows had 1"):
        found.partial_fit(X, np.c_[y, y])
    with pytest.raises(ValueError, match="2 features"):
        found.predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        found.predict(np.where(X > 1, np.nan, X))
    with pytest.raises(ValueError, match="scale its columns"):
        found.predict(1e200 * X)
    with pytest.raises(ValueError, match=r"`y` is 1e\+100 times as large as in the first rows"):
        found.partial_fit(X, 1e150 * y)
    with pytest.raises(ValueError, match=r"`y` is 1e\+100 times as large as in the first rows"):
        model().fit(X, 1e-200 * y).partial_fit(X, 1e200 * y)
    np.testing.assert_array_equal(found.predict(X), expected)


@pytest.mark.parametrize(
    "change",
    [{"n_units": 17}, {"n_active": 5}, {"absolute": True}, {"activation": "relu"}, {"solver": "rmsprop"}],
)
def test_a_layer_that_was_drawn_stays(change):
    found = model().fit(X, y).set_params(**change)
    with pytest.raises(ValueError, match="changed since the first rows; call fit to start again"):
        found.partial_fit(X, y)
    found.fit(X, y).partial_fit(X, y)


def test_a_merge_names_what_differs():
    found = model().fit(X, y)
    for other, complaint in (
        (model(random_state=1).fit(X, y), "different bottom layers"),
        (model(bottom="pca").fit(X, y), "different bottom layers"),
        (model(activation="relu").fit(X, y), "different bottom layers"),
        (model().fit(X + 1, y), "different bottom layers; make both from one model, by `blank`"),
        (model().fit(X, 2 * y), "different units of the targets"),
        (model(n_active=5).fit(X, y), "different routers"),
        (model(absolute=True).fit(X, y), "different routers"),
        (model().fit(X[:, :2], y), "`n_features_in_` is 3 here and 2 there"),
        (model().fit(X, np.c_[y, y]), "number of targets is 1 here and 2 there"),
        (model(solver="rmsprop").fit(X, y), "keeps no sums"),
        (object(), "cannot merge a object"),
    ):
        with pytest.raises(ValueError, match=complaint):
            found.merge(other)
    with pytest.raises(NotFittedError):
        found.merge(model())
    with pytest.raises(NotFittedError):
        model().merge(found)
    np.testing.assert_array_equal(found.predict(X), model().fit(X, y).predict(X))


@grid(
    rows=[X[:1], X[:2, :1], np.ones((7, 3)), np.zeros((5, 2)), np.c_[X, np.full(40, 1e6)], 1e-120 * X],
    solver=["ridge", "rmsprop"],
    bottom=["random", "pca"],
)
def test_tiny_tables_have_a_model(rows, solver, bottom):
    targets = y[: len(rows)]
    found = model(solver=solver, bottom=bottom).fit(rows, targets)
    values = found.predict(rows)
    assert np.isfinite(values).all()
    if solver == "ridge":  # no worse than the mean, which is among the models
        assert np.mean((values - targets) ** 2) <= targets.var() * (1 + 1e-9) + 1e-20
    if solver == "ridge" and len(np.unique(rows, axis=0)) == 1:
        np.testing.assert_allclose(values, targets.mean(), rtol=1e-9)


@grid(
    convert=[
        lambda a: a.astype(np.float16),
        lambda a: a.astype(np.float32),
        lambda a: np.round(4 * a).astype(int),
        lambda a: a > 0,
        lambda a: a.tolist(),
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a.astype(object),
    ],
    solver=["ridge", "rmsprop"],
)
def test_any_kind_of_numbers_is_read_as_float64_and_left_alone(convert, solver):
    rows = convert(X.copy())
    before = np.array(rows, dtype=object)
    if isinstance(rows, np.ndarray):
        rows.flags.writeable = False
    frozen = y.copy()
    frozen.flags.writeable = False
    found = model(solver=solver).fit(rows, frozen)
    expected = model(solver=solver).fit(np.array(rows, dtype=np.float64), y)
    np.testing.assert_allclose(found.predict(rows), expected.predict(np.array(rows, dtype=np.float64)), rtol=1e-9)
    np.testing.assert_array_equal(np.array(rows, dtype=object), before)


def test_rows_of_weight_zero_do_not_count():
    weights = np.where(np.arange(40) < 30, 1.0, 0.0)
    spoiled = np.where(np.arange(40)[:, None] < 30, X, 1e3)
    for solver in ("ridge", "rmsprop"):
        found = model(solver=solver, bottom="pca").fit(spoiled, y, weights)
        expected = model(solver=solver, bottom="pca").fit(X[:30], y[:30])
        np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-6)
    with pytest.raises(ValueError, match="holds -1 at row 0"):
        model().fit(X, y, -weights)
    with pytest.raises(ValueError, match="zero"):
        model().fit(X, y, 0 * weights)


def test_equal_values_are_chosen_by_place():
    """At the mean of the rows every pre-activation is 0, and the first units win."""
    found = model().fit(X, y)
    rows = np.tile(found.layer_.bottom.centre, (2, 1))
    np.testing.assert_array_equal(found.active_units(rows), np.arange(16)[None] < np.array([[4], [4]]))

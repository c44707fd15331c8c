"""One row in or out in one native call: the model is the one that updates of many rows make."""

from copy import deepcopy
from unittest.mock import patch

import numpy as np
import pytest
from hashed_rows import same, state

from sparsact import LSHClassifier, LSHRegressor
from sparsact.kernels import dispatch
from sparsact.learners.lsh.estimator import LSHModel
from sparsact.learners.lsh.updates import row_keys

rng = np.random.default_rng(7)
X = rng.uniform(-1, 1, (3000, 5))
Y = np.abs(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * np.sin(3 * X[:, 3])
QUERIES = rng.uniform(-1, 1, (300, 5))
FIXED = {"n_tables": 5, "bucket_width": 1.0, "alpha": 0.1, "directions": "principal", "random_state": 3}
OPTIONS = [
    {},
    {"degree": 2, "n_tables": 9},
    {"degree": 0, "family": "hyperplane", "n_hashes": 4, "bucket_width": "auto"},
    {"degree": 1, "family": "euclidean", "n_hashes": 3, "min_count": 2},
    {"n_stages": 2, "degree": 2, "bucket_width": 1.5},
    {"fallback": "mean", "extrapolate": "linear"},
]
options = pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
native = pytest.mark.skipif(dispatch.native is None, reason="the single call is native")


def fitted(**options):
    model = LSHRegressor(**{"degree": 1, "n_stages": 1, "columns": "all"} | FIXED | options).fit(X[:2500], Y[:2500])
    model.predict(QUERIES)
    return model


def in_general():
    """Updates as of many rows."""
    return patch.object(LSHModel, "_update_row", lambda *arguments: False)


def row(i):
    return X[i : i + 1], Y[i : i + 1]


def assert_alike(model, other):
    np.testing.assert_array_equal(model.table_.counts[np.argsort(model.table_.index.keys)], counts(other))
    assert same(state(model), state(other), 1e-11)
    assert model.n_samples_seen_ == other.n_samples_seen_
    np.testing.assert_allclose(model.predict(QUERIES), other.predict(QUERIES), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.predict_interval(QUERIES), other.predict_interval(QUERIES), rtol=1e-7, atol=1e-9)


def counts(model):
    return model.table_.counts[np.argsort(model.table_.index.keys)]


@native
@options
def test_rows_one_by_one_are_rows_of_updates_in_general(options):
    model, other, short = fitted(**options), fitted(**options), 0
    for step in range(60):
        for update, i in (("partial_fit", 2500 + step % 40), ("remove", step if step % 3 else 2500 + step % 40)):
            sign = 1 if update == "partial_fit" else -1
            if model._update_row(*row(i), sign):
                short += 1
            else:
                with in_general():
                    getattr(model, update)(*row(i))
            with in_general():
                getattr(other, update)(*row(i))
        if step % 20 == 7:
            assert_alike(model, other)
    assert short > 30
    assert_alike(model, other)


@pytest.mark.grid
@native
def test_columns_that_drop_out_and_rows_that_the_stages_know():
    noise = np.random.default_rng(1).normal(size=(3000, 6))
    wide = np.concatenate([X, noise], axis=1)[:600]
    model = LSHRegressor(n_tables=4, degree=1, random_state=0, n_stages=2, columns="auto").fit(wide, Y[:600])
    other = deepcopy(model)
    assert len(model.columns_) < 11
    assert model.n_stages_ == 2
    short = sum(model._update_row(wide[i : i + 1], Y[i : i + 1], -1) for i in range(40))
    known = model.table_.rows
    removed = np.flatnonzero(known.copies[known.index.find(row_keys(wide[:40], Y[:40, None], np.ones((40, 1))))] == 0)
    other.remove(wide[removed], Y[removed])
    assert short == len(removed) > 10
    assert same(state(model), state(other), 1e-11)


@options
def test_what_was_not_added_is_refused_and_changes_nothing(options):
    model = fitted(**options)
    before = state(model)
    for x, y in ((X[2600:2601], Y[:1]), (X[:1], Y[:1] + 1e-12), (np.full((1, 5), np.nan), Y[:1])):
        with pytest.raises(ValueError, match="was not added"):
            model.remove(x, y)
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.remove(X[:1, :4], Y[:1])
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(X[:1], np.array([np.inf]))
    assert same(before, state(model))
    model.remove(*row(0))
    with pytest.raises(ValueError, match="was not added"):
        model.remove(*row(0))


def test_equal_rows_are_counted_and_minus_zero_is_zero():
    model = fitted()
    zero = np.where(np.arange(5) == 2, 0.0, X[:1])
    for sign in (0.0, -0.0, 0.0):
        model.partial_fit(np.where(np.arange(5) == 2, sign, zero), np.array([0.25]))
    for _ in range(3):
        model.remove(np.where(np.arange(5) == 2, -0.0, zero), np.array([0.25]))
    with pytest.raises(ValueError, match="was not added"):
        model.remove(zero, np.array([0.25]))
    assert model.n_samples_seen_ == 2500


def test_a_predictor_in_use_stays_as_it_is():
    model = fitted(degree=2)
    held = model._predictor
    frozen, before, interval = model.predictor(), held.values(QUERIES), held.deviations(QUERIES)
    for i in range(20):
        model.remove(*row(i)).partial_fit(*row(2600 + i))
    np.testing.assert_array_equal(held.values(QUERIES), before)
    np.testing.assert_array_equal(held.deviations(QUERIES), interval)
    np.testing.assert_array_equal(frozen(QUERIES), before[:, 0])
    assert not np.array_equal(model.predict(QUERIES), before[:, 0])


def test_the_range_follows_the_extreme_row():
    model = fitted()
    largest = int(np.argmax(Y[:2500]))
    model.remove(*row(largest))
    assert model.table_.high == np.delete(Y[:2500], largest).max()
    model.partial_fit(X[:1], np.array([9.0]))
    assert model.table_.high == 9.0
    assert model.n_samples_seen_ == 2500


@pytest.mark.parametrize("learner", [LSHClassifier, LSHRegressor])
def test_models_of_classes_and_of_several_targets_take_the_general_path(learner):
    targets = (Y[:200] > 0.5) if learner is LSHClassifier else np.column_stack([Y, -Y])[:200]
    model = learner(n_tables=3, degree=1, directions="principal", random_state=0).fit(X[:180], targets[:180])
    model.predict(QUERIES)
    model.partial_fit(X[180:181], targets[180:181]).remove(X[:1], targets[:1])
    assert model.n_samples_seen_ == 180


def test_a_file_and_a_copy_go_on(tmp_path):
    import pickle

    import sparsact

    model = fitted(n_stages=2)
    model.remove(*row(0)).remove(*row(1))
    model.save(tmp_path / "model")
    for other in (sparsact.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        other.predict(QUERIES)
        other.remove(*row(2)).partial_fit(*row(2700))
        assert other.n_samples_seen_ == 2498
    assert model.n_samples_seen_ == 2498
    assert model.remove(*row(2)).n_samples_seen_ == 2497

"""SparselyActivatedClassifier: the sign of a network and a constant, or the largest of several networks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from planted import index, signs
from sklearn.base import clone

import sparsact
from sparsact import SparselyActivatedClassifier, SparselyActivatedRegressor
from sparsact.saving import modelfile
from sparsact.saving.modelfile import ModelFileError

QUICK = {"n_units": 8, "n_restarts": 0, "random_state": 0}


def labels(X):
    """Three classes by an address of one column."""
    return np.where(X[:, 0] > 0, np.where(X[:, 2] > 0, "b", "a"), np.where(X[:, 3] > 0, "c", "a"))


def test_two_classes_are_a_regression_of_what_exceeds_the_frequent_one():
    function, n = index(2)
    X, new = signs(300, n, 0), signs(500, n, 1)
    rare = function(X) * (X[:, 1] > 0) > 0
    model = SparselyActivatedClassifier(**QUICK).fit(X, rare)
    assert model.intercept_ == -1
    (network,) = model.estimators_
    assert_array_equal(model.predict(new), function(new) * (new[:, 1] > 0) > 0)
    assert_allclose(model.decision_function(new), network.predict(new) - 1)
    regression = SparselyActivatedRegressor(**QUICK).fit(X, 2.0 * rare)
    assert_allclose(network.predict(new), regression.predict(new), atol=1e-9)
    assert network.certificate_.max_active == 1


def test_several_classes_have_a_network_each(tmp_path):
    X, new = signs(300, 5, 0), signs(500, 5, 1)
    model = SparselyActivatedClassifier(**QUICK).fit(X, labels(X))
    assert_array_equal(model.predict(new), labels(new))
    assert len(model.estimators_) == 3
    shares = model.predict_proba(new)
    assert_allclose(shares.sum(axis=1), 1)
    assert_array_equal(model.classes_[shares.argmax(axis=1)], labels(new))
    model.save(tmp_path / "m")
    loaded = sparsact.load(tmp_path / "m")
    assert_array_equal(loaded.decision_function(new), model.decision_function(new))
    assert_array_equal(loaded.predict(new), model.predict(new))
    assert loaded.get_params() == model.get_params()


def test_weights_decide_which_class_is_frequent():
    X = signs(60, 4, 0)
    y = (X[:, 0] > 0).astype(int)
    for heavy, sign in ((1, 1), (0, -1)):
        weights = np.where(y == heavy, 10.0, 1.0)
        assert SparselyActivatedClassifier(**QUICK).fit(X, y, weights).intercept_ == sign


def test_a_file_that_does_not_fit_together_is_refused(tmp_path):
    X = signs(60, 4, 0)
    SparselyActivatedClassifier(**QUICK).fit(X, X[:, 0] > 0).save(tmp_path / "m")
    kind, state, arrays = modelfile.read(tmp_path / "m")
    for change in ({"functions": []}, {"functions": state["functions"] * 2}, {"learned": {"n_features_in_": 3}}):
        modelfile.write(tmp_path / "bad", kind, state | change, arrays)
        with pytest.raises(ModelFileError, match="bad"):
            sparsact.load(tmp_path / "bad")


def test_one_class_is_refused_and_an_interrupt_changes_nothing(monkeypatch):
    X = signs(60, 4, 0)
    with pytest.raises(ValueError, match="at least 2 classes"):
        SparselyActivatedClassifier().fit(X, np.ones(60))
    model = SparselyActivatedClassifier(**QUICK).fit(X, X[:, 0] > 0)
    before = dict(model.__dict__)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sparsact.learners.sparsely_activated.regressor.Minimisation.run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:, :3], X[:, 1] > 0)
    assert model.__dict__ == before
    assert clone(model).fit(X, X[:, 1] > 0).score(X, X[:, 1] > 0) == 1

"""Boosted trees of each library in arrays: they say what the library says, also of what is constant."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from sparsact.learners.lsh import trees
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble

RNG = np.random.default_rng(5)
X, NEW = RNG.uniform(-1, 1, (300, 3)), RNG.uniform(-1, 1, (150, 3))
Y = np.sin(3 * X[:, 0] + X[:, 1]) * np.cos(2 * X[:, 2]) + 0.3 * (X[:, 1] > 0.2)
libraries = pytest.mark.parametrize("library", ["lightgbm", "catboost", "sklearn"])


@libraries
@pytest.mark.parametrize(("rows", "target"), [(np.ones((40, 3)), np.arange(40.0)), (X[:40], np.full(40, 0.1))])
def test_what_is_constant_has_its_mean(library, rows, target):
    """CatBoost refuses constant columns, and constant targets."""
    if library != "sklearn":
        pytest.importorskip(library)
    fitted = getattr(trees, library)({}, 12, (rows, target, np.ones(40)), None, 0)
    np.testing.assert_allclose(fitted.predict(X[:7]), target.mean(), rtol=1e-6)


@libraries
def test_trees_in_arrays_say_what_the_library_says(library, kernels_in_use):
    if library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        fitted = trees.lightgbm({"num_leaves": 7}, 12, (X, Y, np.ones(len(X))), None, 0)
        options = {"num_leaves": 7, "learning_rate": trees.RATE, "verbosity": -1, "use_missing": False, "seed": 0}
        options |= {"deterministic": True, "force_col_wise": True, "num_threads": 1}
        theirs = lightgbm.train(options, lightgbm.Dataset(X, Y), 12).predict(NEW)
    elif library == "catboost":
        catboost = pytest.importorskip("catboost")
        fitted = trees.catboost({"depth": 3}, 12, (X, Y, np.ones(len(X))), None, 0)
        options = {"depth": 3, "iterations": 12, "learning_rate": trees.RATE, "random_seed": 0, "thread_count": 1}
        theirs = catboost.CatBoostRegressor(**options, verbose=0, allow_writing_files=False).fit(X, Y).predict(NEW)
    else:
        fitted = trees.sklearn({"max_leaf_nodes": 7}, 12, (X, Y, np.ones(len(X))), None, 0)
        theirs = HistGradientBoostingRegressor(
            max_leaf_nodes=7, max_iter=12, learning_rate=trees.RATE, early_stopping=False, random_state=0
        ).fit(X, Y)
        theirs = theirs.predict(NEW)
    ensemble = TreeEnsemble.joined([(fitted.base, fitted.trees), (2.0, fitted.trees[:3])])
    np.testing.assert_allclose(ensemble.values(NEW)[:, 0], theirs, rtol=1e-12, atol=1e-12)
    again = TreeEnsemble.from_arrays(ensemble.arrays(), 3, 2)
    np.testing.assert_array_equal(again.values(NEW, 2), ensemble.values(NEW))


def test_trees_that_do_not_fit_together_are_refused():
    fitted = trees.sklearn({"max_leaf_nodes": 4}, 3, (X, Y, np.ones(len(X))), None, 0)
    arrays = TreeEnsemble.joined([(0.0, fitted.trees)]).arrays()
    for name, change in {"left": 10**6, "right": -(10**6), "roots": 10**6, "columns": 3, "targets": 1}.items():
        broken = arrays | {name: np.full_like(arrays[name], change)}
        with pytest.raises(ValueError, match="do not fit together"):
            TreeEnsemble.from_arrays(broken, 3, 1)
    circle = arrays | {"left": np.zeros_like(arrays["left"])}
    with pytest.raises(ValueError, match="do not fit together"):
        TreeEnsemble.from_arrays(circle, 3, 1)

"""A forest beside boosted trees: its share, its values, and where it is left out."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from sparsact.learners.lsh import trees
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble, TreeNodes
from sparsact.learners.lsh.trees import FOREST_GAIN, with_forest

RNG = np.random.default_rng(7)
M = 170
X = RNG.normal(size=(M, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.1 * RNG.normal(size=M)
Y = np.rint(Y * trees.STEPS) / trees.STEPS  # as the forest sees them: sums decide among equal splits
WEIGHTS = RNG.integers(1, 4, M).astype(float)
FOLDS = np.arange(M) * 5 // M
NEW = RNG.normal(size=(41, 3))
STUMP = TreeNodes(*map(np.array, ([0], [0.1], [-1], [-2], [-0.5, 0.7])))


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(trees, "FOREST", 9)


def error(values):
    return WEIGHTS @ (Y - values) ** 2


def test_its_share_is_the_best_of_all_and_its_values_are_the_librarys():
    grown = np.empty(M)
    for fold in range(5):
        held = fold == FOLDS
        model = ExtraTreesRegressor(9, random_state=2).fit(X[~held], Y[~held], WEIGHTS[~held])
        grown[held] = model.predict(X[held])
    values = Y + 0.3 * RNG.normal(size=M)  # of boosted trees, as good as the forest
    mixed, both = with_forest((0.2, (STUMP,)), values, (X, Y, WEIGHTS), FOLDS, 2)
    errors = {share: error((1 - share) * values + share * grown) for share in np.linspace(0, 1, 1001)}
    best = min(errors, key=errors.get)
    assert 0.05 < best < 0.95
    np.testing.assert_allclose(both, (1 - best) * values + best * grown, atol=1e-2)
    assert error(both) <= errors[best] * (1 + 1e-12)
    share = 1 - mixed[0] / 0.2
    library = ExtraTreesRegressor(9, random_state=2).fit(X, Y, WEIGHTS)
    expected = (1 - share) * (0.2 + np.where(NEW[:, 0] <= 0.1, -0.5, 0.7)) + share * library.predict(NEW)
    np.testing.assert_allclose(TreeEnsemble.joined([mixed]).values(NEW)[:, 0], expected, atol=1e-12)


def test_it_is_left_out_where_it_gains_too_little():
    boosted = (0.2, (STUMP,))
    for size in (0.001, 0.0):  # errors of boosted trees that no forest lowers
        values = Y + size * RNG.normal(size=M)
        mixed, same = with_forest(boosted, values, (X, Y, WEIGHTS), FOLDS, 0)
        assert mixed is boosted
        np.testing.assert_array_equal(same, values)
    poor = np.zeros(M)
    assert error(with_forest(boosted, poor, (X, Y, WEIGHTS), FOLDS, 0)[1]) < (1 - FOREST_GAIN) ** 2 * error(poor)

"""Trees, missing values and categories as they ship: what predictors, C and ONNX give is what the model predicts."""

import ctypes
from copy import copy
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from exported_models import COMPILER, shared_library, shipped_values
from hashed_rows import model, rows

from sparsact.learners.lsh import trees
from sparsact.learners.lsh.categories import codes_of
from sparsact.learners.lsh.tree_ensemble import TreeEnsemble, TreeNodes

X, Y = rows(m=250)
QUERIES = rows(m=300, seed=3)[0]
KINDS = ["memory", "file", "c", "onnx"]
TOLERANCE = {"float32": 1e-6 * Y.std(), "float64": 1e-12 * Y.std()}
kinds = pytest.mark.parametrize("kind", KINDS)
dtypes = pytest.mark.parametrize("dtype", TOLERANCE)


@cache
def fitted(base="linear", n_targets=1, gaps=0.0, categories=None):
    """A model of few trees, fitted once."""
    table, y = {None: (with_gaps(X, gaps), Y), "numbers": numbered(400, 0), "texts": lettered(400, 0)}[categories]
    targets = np.column_stack([y, np.sign(y), y**2])[:, :n_targets] if n_targets > 1 else y
    options = {"categorical_features": [1, 3]} if categories == "numbers" else {}
    with patch.multiple(trees, MOST_ROUNDS=20, FOREST=3, SKLEARN_CHOICES=trees.SKLEARN_CHOICES[:1]):
        return model(base=base, **options).fit(table, targets)


def at_thresholds(queries, ensemble):
    """Rows that each have one number equal to the threshold of a node, to the bit."""
    queries, nodes = queries.copy(), np.random.default_rng(0).integers(len(ensemble.columns), size=len(queries))
    queries[np.arange(len(queries)), ensemble.columns[nodes]] = ensemble.thresholds[nodes]
    return queries


@dtypes
@kinds
@pytest.mark.parametrize("n_targets", [1, 3])
def test_trees_are_shipped_and_thresholds_are_met_exactly(n_targets, kind, dtype, tmp_path):
    learner = fitted("trees", n_targets)
    queries = at_thresholds(QUERIES, learner._fixed.trees)
    values = shipped_values(kind, learner.predictor(dtype), queries, tmp_path)
    expected = learner.predict(queries).reshape(len(queries), n_targets)
    np.testing.assert_allclose(values, expected, rtol=0, atol=TOLERANCE[dtype])
    beyond = np.nextafter(queries, np.inf)  # on the other side of the threshold
    assert (np.abs(learner.predict(beyond).reshape(expected.shape) - expected).max(axis=1) > 1e-6).mean() > 0.1


@kinds
def test_trees_of_one_leaf_and_of_none(kind, tmp_path):
    """The ensemble by hand: a stump of the first target, two leaves of the second, and no tree of the third."""
    learner, none = copy(fitted("trees", 3)), np.zeros(0)
    stump = TreeNodes(np.array([2]), np.array([0.25]), np.array([-1]), np.array([-2]), np.array([3.0, -5.0]))
    leaves = [TreeNodes(none, none, none, none, np.array([value])) for value in (7.0, 0.5)]
    ensemble = TreeEnsemble.joined([(1.0, [stump]), (0.0, leaves), (-2.0, [])])
    learner._fixed = replace(learner._fixed, trees=ensemble)
    learner._forget_solution()
    values = shipped_values(kind, learner.predictor("float64"), QUERIES, tmp_path)
    by_hand = np.column_stack([np.where(QUERIES[:, 2] <= 0.25, 4.0, -4.0), np.full((300, 2), [7.5, -2.0])])
    np.testing.assert_allclose(ensemble.values(QUERIES), by_hand)
    np.testing.assert_allclose(values, learner.predict(QUERIES), rtol=0, atol=1e-11)


def with_gaps(queries, share):
    return np.where(np.random.default_rng(1).random(queries.shape) < share, np.nan, queries)


@kinds
@pytest.mark.parametrize("base", ["linear", "trees"])
@pytest.mark.parametrize("gaps_in_fit", [True, False])
def test_missing_values_are_shipped(gaps_in_fit, base, kind, tmp_path):
    learner, queries = fitted(base, gaps=0.1 if gaps_in_fit else 0.0), with_gaps(QUERIES, 0.3)
    values = shipped_values(kind, learner.predictor("float64"), queries, tmp_path)[:, 0]
    np.testing.assert_allclose(values, learner.predict(queries), rtol=0, atol=TOLERANCE["float64"])


def numbered(m, seed, n_towns=30):
    """Rows of a number, a category of three, a number with gaps and a category of many, both with gaps and numbered.

    Of at most 255 different numbers trees take no percentiles, which take longest.
    """
    rng = np.random.default_rng(seed)
    kind, town = rng.choice([2.0, 5.0, 11.0], m), rng.integers(0, n_towns, m) - 7.0
    columns = [rng.uniform(-1, 1, m).round(2), kind, rng.uniform(-1, 1, m).round(2), town]
    table = np.column_stack(columns)
    y = table[:, 0] + (kind == 5.0) + np.sin(town) + 0.3 * table[:, 2] ** 2
    table[rng.random((m, 4)) < [0.0, 0.1, 0.1, 0.05]] = np.nan
    return table, y


@kinds
@pytest.mark.parametrize("base", ["linear", "trees"])
def test_categories_that_are_numbers_are_shipped(base, kind, tmp_path):
    learner, queries = fitted(base, categories="numbers"), numbered(200, 1)[0]
    values = shipped_values(kind, learner.predictor("float64"), queries, tmp_path)[:, 0]
    np.testing.assert_allclose(values, learner.predict(queries), rtol=0, atol=1e-12)


def lettered(m, seed):
    """The same rows as a frame of texts."""
    table, y = numbered(m, seed)
    names = {2.0: "Haus", 5.0: "flat", 11.0: "\u00e9table"}
    texts = [np.array([names.get(code) for code in table[:, 1]], dtype=object)]
    texts.append(np.array([None if np.isnan(code) else f"town {code:.0f}" for code in table[:, 3]], dtype=object))
    frame = {
        "size": table[:, 0],
        "kind": pd.Categorical(texts[0]),
        "age": table[:, 2],
        "town": pd.Categorical(texts[1]),
    }
    return pd.DataFrame(frame), y


@kinds
def test_categories_of_texts_are_shipped(kind, tmp_path):
    learner, queries = fitted(categories="texts"), lettered(200, 1)[0]
    values = shipped_values(kind, learner.predictor("float64"), queries, tmp_path)[:, 0]
    np.testing.assert_allclose(values, learner.predict(queries), rtol=0, atol=1e-12)


def test_predictors_take_texts_as_predict_does():
    learner, table = fitted(categories="texts"), lettered(20, 1)[0]
    for predict in (learner.predictor(), learner.predictor("float64")):
        expected = learner.predict(table)
        np.testing.assert_allclose(predict(table), expected, rtol=1e-12)
        np.testing.assert_allclose(predict(table.to_numpy(object)), expected, rtol=1e-12)
        assert predict(table.to_numpy(object)[3]) == pytest.approx(expected[3], rel=1e-12)
        with pytest.raises(ValueError, match="columns of fit by name, and 'age' is not there"):
            predict(table[["size", "kind"]])


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_the_number_of_a_text_in_c_is_its_digest(tmp_path):
    fitted(categories="texts").export(tmp_path / "model.c")
    code = shared_library(tmp_path / "model.c").model_predict_code
    code.restype, code.argtypes = ctypes.c_double, [ctypes.c_char_p, ctypes.c_size_t]
    texts = ["", "a", "\u00e9table", *("x" * n for n in (127, 128, 129, 255, 256, 257, 5000))]
    found = [code(text.encode(), len(text.encode())) for text in texts]
    np.testing.assert_array_equal(found, codes_of(np.array(texts, dtype=object), "texts"))

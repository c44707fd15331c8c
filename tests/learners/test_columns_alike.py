"""A column that is constant, a copy of another or its negation changes no prediction, and no effect without a word."""

from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pytest
from explicit import KINDS, tables
from grids import grid
from sklearn.base import clone

from sparsact import LowDegreeClassifier, LowDegreeRegressor, LowDegreeRegressorCV, SparseFourierRegressor, load
from sparsact.fourier import interactions
from sparsact.learners.low_degree.solvers.solver import MomentSolver, solvers
from sparsact.learners.points import pack

ROWS = 211
BITS = np.random.default_rng(3).integers(0, 2, (ROWS, 3))
MODELS = {
    "regressor": LowDegreeRegressor(2),
    "ridge": LowDegreeRegressor(2, alpha=1e-9),
    "classifier": LowDegreeClassifier(2),
    "cross-validated": LowDegreeRegressorCV(),
    "sparse Fourier": SparseFourierRegressor(3, significance=1e-6, random_state=0),
    "held out": SparseFourierRegressor(3, significance=1e-6, validation_fraction=0.3, random_state=0),
}
ADDED = {
    "zeros": np.zeros(ROWS, dtype=int),
    "ones": np.ones(ROWS, dtype=int),
    "copy": BITS[:, 1],
    "negation": 1 - BITS[:, 1],
}


def regression(bits):
    return 2.0 * bits[..., 0] + bits[..., 1] * bits[..., 2]


def votes(bits):
    """1 where at least two of three bits are, else -1; its best function of degree 2 has the same signs."""
    return np.where(bits[..., :3].sum(axis=-1) >= 2, 1.0, -1.0)


def shapley(function, n):
    """Mean gain of each bit over all orders in which bits become 1."""
    gains = np.zeros(n)
    orders = list(permutations(range(n)))
    for order in orders:
        point = np.zeros(n, dtype=int)
        for i in order:
            before = function(point)
            point[i] = 1
            gains[i] += (function(point) - before) / len(orders)
    return gains


def of_model(model, n):
    found = dict(interactions(model.spectrum_, "SII", order=1).items())
    return np.array([found.get((i,), 0.0) for i in range(n)])


@pytest.mark.grid
@grid(kind=MODELS, place=[0, 3], added=ADDED)
def test_effects_beside_a_column_that_says_nothing_new(kind, place, added):
    """Sparse Fourier names the first of equal columns, here by any place; low degree says which columns share."""
    X = np.insert(BITS, place, ADDED[added], axis=1)
    old = [i for i in range(4) if i != place]
    truth = regression if kind != "classifier" else votes
    y, before = truth(BITS), X.copy()
    model = clone(MODELS[kind]).fit(X, y)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
    if not kind.startswith(("sparse", "held")):
        what = "constant" if added in ("zeros", "ones") else "a copy of column"
        with pytest.warns(UserWarning, match=f"column [0-9] is {what}"):
            model.spectrum_  # noqa: B018 - reading it warns
        return
    due = np.zeros(4)
    due[old] = shapley(truth, 3)
    if place == 0 and added in ("copy", "negation"):  # the added column is the first of the two, and stands for it
        due[[0, 2]] = (due[2] if added == "copy" else -due[2]), 0.0
        if added == "negation":  # x1 x2 = x2 - (1 - x1) x2
            due = shapley(lambda x: 2.0 * x[1] + x[3] - x[0] * x[3], 4)
    np.testing.assert_allclose(of_model(model, 4), due, atol=1e-6)


@pytest.mark.parametrize("kind", MODELS)
def test_a_table_of_ones_has_no_effects(kind):
    y = np.random.default_rng(4).normal(size=ROWS) if kind != "classifier" else np.where(np.arange(ROWS) < 90, 2, 5)
    model = clone(MODELS[kind]).fit(np.ones((ROWS, 3), dtype=int), y)
    np.testing.assert_allclose(model.predict(np.ones((2, 3), dtype=int)), y.mean() if kind != "classifier" else 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # none of its columns can have one
        np.testing.assert_allclose(of_model(model, 3), 0, atol=1e-12)


def first_by_definition(X):
    """Place of the first column that each equals or opposes; -1 for a constant."""
    signs = 1 - 2 * X
    return [
        -1 if np.ptp(own) == 0 else next(i for i, other in enumerate(signs.T) if np.ptp(own * other) == 0)
        for own in signs.T
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["cells", "rows", "moments", "kernel"])
def test_every_statistic_knows_the_first_of_equal_columns(tmp_path, monkeypatch, kind, solver):
    """Rows of positive weight count, in pieces, after other rows were taken away again; a file knows it too."""
    if solver == "moments":
        monkeypatch.setitem(solvers(), "moments", MomentSolver(min_rows=0, rows_a_monomial=0))
    rng = np.random.default_rng([5, len(kind)])
    X, y, weights = tables(rng, kind, 71, 6), rng.normal(size=71), rng.integers(0, 3, 71)
    due = first_by_definition(X[weights > 0])
    np.testing.assert_array_equal(pack(X[weights > 0], "bits").first_alike(), due)
    model = LowDegreeRegressor(2, solver="moments" if solver == "rows" else solver, domain="cube")
    more, its = tables(rng, "uniform", 23, 6), rng.normal(size=23)
    model.partial_fit(more, its)
    model.partial_fit(X[:40], y[:40], weights[:40])
    model.merge(LowDegreeRegressor(**model.get_params()).fit(X[40:], y[40:], weights[40:]))
    model.remove(more, its)
    np.testing.assert_array_equal(model._fitted.first_alike, due)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model")._fitted.first_alike, due)


def test_what_does_not_share_coefficients_is_not_warned_of():
    """Few rows say little of columns; a copy alone in the model shares with no other."""
    X = np.column_stack([BITS, BITS[:, 0]])
    for model, rows in ((LowDegreeRegressor(2), 19), (LowDegreeRegressor(subsets=[(1,), (1, 3)]), ROWS)):
        model.fit(X[:rows], regression(X[:rows])).spectrum_  # noqa: B018 - warnings are errors


def test_the_warning_names_columns():
    import pandas as pd

    frame = pd.DataFrame(BITS, columns=["p", "q", "r"]).assign(s=1, t=1 - BITS[:, 2], u=0, v=0)
    model = LowDegreeRegressor(1).fit(frame, regression(BITS))
    with pytest.warns(UserWarning, match="column 's' is constant, column 't' is a copy of column 'r', .* and 1 more"):
        model.spectrum_  # noqa: B018 - reading it warns

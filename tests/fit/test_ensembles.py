"""Ensembles as models of a table, and the trees beside every default fit."""

import numpy as np
import pandas as pd
import pytest
from fit.test_gaussian_processes import landscape
from grids import few_of
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_squared_error, r2_score

import sparsact as sa
from sparsact.datasets import open_table
from sparsact.fit.candidate import Fit
from sparsact.fit.candidates import candidates, ensemble
from sparsact.fit.candidates.gp import ProcessCandidate
from sparsact.fit.candidates.trees import BoostedTrees, TreesCandidate, fitted_trees
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import FitOptions
from sparsact.hypercube import points, signs_to_bits
from sparsact.learners.stacking import stacking_weights
from sparsact.passes.progress import Stages
from sparsact.statistics.row_sample import RowSample
from sparsact.statistics.statistic import Batch

FEW_TREES = {0: {8: 10}, 100: {8: 10, 16: 10}}  # for tests of all else about ensembles


@pytest.fixture
def few_trees(monkeypatch):
    monkeypatch.setitem(candidates(), "trees", TreesCandidate(FEW_TREES))


@pytest.fixture(scope="module")
def chosen():
    table, _ = landscape(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(candidates(), "trees", TreesCandidate(FEW_TREES))
        return sa.fit_table(table.sample(frac=0.4, random_state=0), "y", folds=3)


def model_named(result, name):
    return next(model for model in result.choices.models if model.name == name)


def test_the_default_is_an_ensemble_where_no_model_is_simple(chosen):
    assert chosen.choices.kind == "ensemble"
    assert isinstance(chosen.model, sa.CubeEnsemble)
    table, f = landscape(0)
    others = table.drop(table.sample(frac=0.4, random_state=0).index)
    truth = f(1 - 2 * others.drop(columns="y").to_numpy())
    assert r2_score(truth, chosen.predict(others)) > 0.75
    assert " by an ensemble of models; " in chosen.verdict
    assert sum(chosen.choices.weights.values()) == pytest.approx(1)
    assert set(chosen.choices.weights) == {
        "product",
        "product + product",
        "degree_site + product",
        "degree_site_pair",
        "product of normal scores",
        "product of inverse sines",
        "lasso",
        "trees of 8 leaves",
        "trees of 16 leaves",
        "sparse",
        "low-degree",
    }


@pytest.mark.grid
@pytest.mark.usefixtures("few_trees")
def test_few_rows_have_kernels_of_different_priors():
    table, _ = landscape(0)
    few = table.sample(60, random_state=0)
    weights = sa.fit_table(few, "y", model="ensemble", explain=False, folds=3).choices.weights
    assert set(weights) == {"product", "sparse_product", "degree_site", "trees of 8 leaves"}


@pytest.mark.grid
@pytest.mark.usefixtures("one_rival")
def test_a_polynomial_is_taken_where_it_does_as_well():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2, (200, 6))
    table = pd.DataFrame(bits).add_prefix("c").assign(y=bits[:, 0] - 2.0 * (bits[:, 1] ^ bits[:, 2]))
    result = sa.fit_table(table, "y", folds=3)
    assert result.choices.kind in ("low-degree", "sparse")
    assert model_named(result, "an ensemble of models").r2.mean > 0.99


@pytest.mark.grid
@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("change", few_of(["offset", "sign"], ["offset"]))
def test_positive_targets_have_a_process_of_their_logarithms(change, monkeypatch):
    """Effects that multiply are learned from 50 of 1,024 rows; an offset or a sign leaves no logarithms to learn."""
    monkeypatch.setitem(candidates(), "gp", ProcessCandidate(kernels=("product",)))
    rng = np.random.default_rng(5)
    bits = signs_to_bits(points(10))
    y = np.exp(bits @ rng.normal(size=10) + 0.02 * rng.normal(size=len(bits)))
    table = pd.DataFrame(bits).add_prefix("c").assign(y=y)
    few = table.sample(50, random_state=0)
    options = {"explain": False, "folds": 3}
    result = sa.fit_table(few, "y", model="ensemble", **options)
    assert result.choices.weights["product of logarithms"] > 0.5
    others = table.drop(few.index)
    process = sa.fit_table(few, "y", model="gp", **options)
    errors = [mean_squared_error(others["y"], model.predict(others)) for model in (result, process)]
    assert errors[0] < 0.4 * errors[1]
    changed = few["y"] + 3 * y.max() if change == "offset" else few["y"] - 2 * y.min()
    weights = sa.fit_table(few.assign(y=changed), "y", model="ensemble", **options).choices.weights
    assert "product of logarithms" not in weights


def n_held(result, f):
    """Number of the forty terms whose interval holds the coefficient of the function."""
    held = 0
    for term in result.targets[0].terms:
        subset = tuple(int(name[1:]) for name in term.subset)
        assert term.coefficient == pytest.approx(result.model.spectrum_[subset])
        held += term.low <= f[subset] <= term.high
    return held


def test_intervals_hold_the_coefficients(chosen):
    """At 95 %, fewer than 31 of forty hold with probability below 1e-4."""
    assert n_held(chosen, landscape(0)[1]) >= 31


@pytest.mark.grid
def test_intervals_of_many_landscapes_hold_the_coefficients():
    held = 0
    for seed in range(8):
        table, f = landscape(seed)
        held += n_held(sa.fit_table(table.sample(frac=0.5, random_state=0), "y", model="ensemble"), f)
    assert held >= 283


def test_weights_of_a_fold_are_learned_from_the_others():
    """A member that is right on one fold only, by accident, earns no weight there."""
    rng = np.random.default_rng(2)
    n, m = 7, 600
    bits = rng.integers(0, 2, (m, n)).astype(np.uint8)
    y = rng.normal(size=m)
    sample = RowSample(m, 3, 0)
    sample.add(Batch(bits, y))
    bits, y, folds = sample.rows()
    lucky = np.where(folds == 0, y, 3 * rng.normal(size=m))
    members = {
        name: Fit(BoostedTrees([[Constant()]], 1), HeldOutScores(y[:, None], predicted[:, None], folds))
        for name, predicted in (("lucky", lucky), ("mean", np.zeros(m)))
    }
    found = ensemble.weighted_models(members, sample)
    model = found.model.on_cube(n)
    seen, left = folds != 0, folds == 0
    margin = 0.5 * (y[seen].max() - y[seen].min())
    ends = y[seen].min() - margin, y[seen].max() + margin
    clipped = np.column_stack([lucky, np.zeros(m)])[seen].clip(*ends)
    weights = stacking_weights(clipped, y[seen], np.ones(2))
    assert weights[0] < 0.2
    expected = weights[0] * lucky[left].clip(*ends)
    assert found.held_out.predicted[left, 0] == pytest.approx(expected)
    assert model.weights_["lucky"] > weights[0]


def test_predictions_reach_beyond_the_targets_but_not_beyond_a_floor():
    y = np.linspace(1.0, 3.0, 50)
    assert ensemble.reach(y) == (0.0, 4.0)
    assert ensemble.reach(np.append(y, np.full(10, 0.5))) == (0.5, 4.25)


class Constant:
    """A model of the value 0."""

    def staged_predict(self, X):
        yield np.zeros(len(X))


@pytest.mark.usefixtures("unrendered")
def test_the_page_tells_the_weights(chosen, tmp_path):
    chosen.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "boosted trees, for comparison" in page
    assert chosen.choices.shares in page
    assert f"weights: {chosen.choices.shares}" in str(chosen)


@pytest.mark.slow
def test_held_out_scores_do_not_flatter():
    """Over some landscapes, a model of all rows errs less on new rows than models of four fifths do on the rest."""
    held_out, new = [], []
    for seed in range(4):
        table, _ = landscape(seed)
        rows = table.sample(frac=0.6, random_state=seed)
        result = sa.fit_table(rows, "y", model="ensemble", explain=False)
        others = table.drop(rows.index)
        held_out.append(np.mean(np.square(model_named(result, "an ensemble of models").rmse.folds)))
        new.append(mean_squared_error(others["y"], result.predict(others)))
    assert np.mean(new) < np.mean(held_out) < 2 * np.mean(new)


@pytest.mark.grid
def test_trees_stand_beside_numbers_and_classes(monkeypatch):
    monkeypatch.setitem(candidates(), "trees", TreesCandidate({0: {8: 60}}))
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    table = pd.DataFrame(X, columns=list("abc"))
    numbers = sa.fit_table(table.assign(y=np.abs(X[:, 0]) + 0.1 * rng.normal(size=300)), "y", folds=2)
    trees = model_named(numbers, TreesCandidate.name)
    assert not trees.chosen
    assert trees.r2.mean > 0.9
    assert f"boosted trees {trees.r2.mean:.3f}" in numbers.verdict
    named = np.array(["low", "middle", "high"])[np.digitize(X[:, 1], [-0.5, 0.5])]
    classes = sa.fit_table(table.assign(y=named), "y", folds=2)
    assert model_named(classes, TreesCandidate.name).r2.mean > 0.9


def test_trees_are_scikit_learns_on_the_same_folds(chosen):
    table = landscape(0)[0].sample(frac=0.4, random_state=0)
    sample = RowSample(1_000, 3, 0)
    sample.add(Batch(table.drop(columns="y").to_numpy(), table["y"].to_numpy()))
    X, y, folds = sample.rows()
    best = max(
        np.mean(
            [
                r2_score(y[folds == k], boosted(leaves, X[folds != k], y[folds != k], 10).predict(X[folds == k]))
                for k in range(3)
            ]
        )
        for leaves in FEW_TREES[100]
    )
    assert model_named(chosen, TreesCandidate.name).r2.mean == pytest.approx(best)


@pytest.mark.grid
def test_many_rows_say_how_many_trees_there_are():
    """Deep trees of a noisy target: more than a few of them only learn its noise."""
    sizes = {16: 50, 63: 25}
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, (1_003, 8)).astype(np.uint8)
    y = 1.5 * bits[:, 0] + bits[:, 1] * bits[:, 2] + rng.normal(size=len(bits))
    table = open_table(pd.DataFrame(bits).add_prefix("c").assign(y=y), "y")
    sample = RowSample(len(bits), 3, 1)
    sample.add(Batch(bits, y[:, None]))
    found = fitted_trees((table, FitOptions(("y",), folds=3), sample, Stages()), {1_000: sizes})
    X, y, folds = sample.rows()
    y = y[:, 0]
    assert set(found) == {"trees of 16 leaves", "trees of 63 leaves"}
    for name, fit in found.items():
        model, held_out = fit.model, fit.held_out
        leaves = int(name.split()[2])
        errors = np.zeros(sizes[leaves])
        for fold in range(3):
            trees = boosted(leaves, X[folds != fold], y[folds != fold], len(errors))
            errors += [((p - y[folds == fold]) ** 2).sum() for p in trees.staged_predict(X[folds == fold])]
        assert model.n_trees == 1 + errors.argmin() < len(errors)
        assert ((held_out.predicted - held_out.actual) ** 2).sum() == pytest.approx(errors.min())
        few = [
            boosted(leaves, X[kept], y[kept], model.n_trees).predict(X)
            for kept in (folds >= 0, *(folds != k for k in range(3)))
        ]
        np.testing.assert_allclose(model.predict(X)[:, 0], (few[0] + np.mean(few[1:], axis=0)) / 2)


def boosted(leaves, X, y, n_trees=150):
    return HistGradientBoostingRegressor(
        max_iter=n_trees,
        learning_rate=0.1,
        max_leaf_nodes=leaves,
        min_samples_leaf=2,
        early_stopping=False,
        random_state=0,
    ).fit(X, y)


def test_what_ensembles_refuse():
    table = landscape(2)[0].head(64).assign(z=0.5, kind=["a", "b"] * 32)
    with pytest.raises(ValueError, match=r"an ensemble of models needs numbers to predict .*, but these are classes"):
        sa.fit_table(table, "kind", ignore=["y", "z"], model="ensemble")
    wide = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (50, 21))).add_prefix("c").assign(y=np.arange(50.0))
    with pytest.raises(ValueError, match="at most 20 columns of bits, but there are 21"):
        sa.fit_table(wide, "y", model="ensemble")
    with pytest.raises(ValueError, match="degree 2 applies to low-degree models only, and model ensemble"):
        sa.fit_table(table, "y", ignore=["kind", "z"], model="ensemble", degree=2)

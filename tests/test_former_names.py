"""Former names of parameters, attributes, options and classes: they warn, and give the same result."""

from __future__ import annotations

import inspect
import json
import warnings
from importlib import import_module

import numpy as np
import pytest
import torch
from commands import run
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from torch import nn

import sparsact as sa
from sparsact import constructions, datasets, distributed, fourier, hardness, layers, routing
from sparsact.inference import find_blocks, predictors
from sparsact.inference.block_weights import BlockWeights
from sparsact.validation.former_names import present_names, renamed

X = np.random.default_rng(0).normal(size=(60, 6))
Y = X[:, 0] * X[:, 1]
BITS = (X > 0).astype(int)
SIGNS = 1 - 2 * BITS


def drawn(layer, *sizes, **options):
    made = layer(*sizes, **options, generator=torch.Generator().manual_seed(0)).eval()
    with torch.no_grad():
        return made(torch.from_numpy(X).float()).numpy()


def routed(router, **options):
    return router(**options)(X).dense()


torch.manual_seed(0)
MODEL = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 4)).eval()
ROWS = torch.from_numpy(X).float()


def model_and_blocks():
    return MODEL, find_blocks(MODEL, ROWS)


BLOCK = BlockWeights.of(MODEL, model_and_blocks()[1][0])


def seen(progress):
    assert progress


def fitted(model, **options):
    return model(**options, random_state=0).fit(X, Y).predict(X)


# The call, what it takes now, and what it took before.
ALIASES = {
    "TopK": (lambda **o: routed(routing.TopK, **o), {"n_active": 2}, {"k": 2}),
    "Nearest": (
        lambda **o: routed(routing.Nearest, **o),
        {"n_active": 2, "random_state": 3},
        {"k": 2, "seed": 3},
    ),
    "RandomHash": (
        lambda **o: routed(routing.RandomHash, **o),
        {"n_active": 2, "n_units": 9, "random_state": 3},
        {"k": 2, "width": 9, "seed": 3},
    ),
    "HyperplaneLSH": (lambda **o: routed(routing.HyperplaneLSH, n_hashes=2, **o), {"random_state": 3}, {"seed": 3}),
    "EuclideanLSH": (
        lambda **o: routed(routing.EuclideanLSH, n_hashes=2, bucket_width=1.0, **o),
        {"random_state": 3},
        {"seed": 3},
    ),
    "Switch": (lambda **o: routed(routing.Switch, n_experts=5, **o), {"random_state": 3}, {"seed": 3}),
    "BlockTop1": (
        lambda **o: routed(routing.BlockTop1, n_blocks=3, block_size=4, **o),
        {"random_state": 3},
        {"seed": 3},
    ),
    "Interpolation": (lambda **o: routed(routing.Interpolation, **o), {"random_state": 3}, {"seed": 3}),
    "Tree": (lambda **o: routed(routing.Tree, depth=3, **o), {"random_state": 3}, {"seed": 3}),
    "a router by its name": (
        lambda **o: routing.named("top_k", **o)(X).dense(),
        {"n_active": 4},
        {"k": 4},
    ),
    "hash_generator": (
        lambda **o: routing.hash_generator(**o).normal(size=4),
        {"random_state": 3},
        {"seed": 3},
    ),
    "Selection": (
        lambda **o: routing.Selection.of(np.array([[1]]), np.ones((1, 1)), **o).dense(),
        {"n_units": 3},
        {"width": 3},
    ),
    "SparselyActivatedLayer": (
        lambda **o: drawn(layers.SparselyActivatedLayer, 6, out_features=2, router=routing.TopK(3), **o),
        {"n_units": 11},
        {"width": 11},
    ),
    "SwitchLayer": (
        lambda **o: drawn(layers.SwitchLayer, 6, out_features=2, router=routing.Switch(3), **o),
        {"n_units": 5},
        {"hidden": 5},
    ),
    "DSMRegressor": (lambda **o: fitted(sa.DSMRegressor, n_active=3, **o), {"n_units": 9}, {"width": 9}),
    "LSHRegressor": (lambda **o: fitted(sa.LSHRegressor, n_tables=2, **o), {"bucket_width": 0.8}, {"width": 0.8}),
    "LSHClassifier": (
        lambda **o: sa.LSHClassifier(n_tables=2, random_state=0, **o).fit(X, BITS[:, 0]).predict_proba(X),
        {"bucket_width": 0.8},
        {"width": 0.8},
    ),
    "set_params": (
        lambda **o: sa.LSHRegressor(2, random_state=0).set_params(**o).fit(X, Y).predict(X),
        {"bucket_width": 0.8},
        {"width": 0.8},
    ),
    "bucket_diameter": (
        lambda **o: sa.bounds.bucket_diameter(intrinsic=2, n_directions=32, **o),
        {"bucket_width": 0.8},
        {"width": 0.8},
    ),
    "bucket_count": (
        lambda **o: sa.bounds.bucket_count(ambient=9, intrinsic=2, **o),
        {"bucket_width": 0.8},
        {"width": 0.8},
    ),
    "random_network": (
        lambda **o: constructions.random_network(6, rng=np.random.default_rng(0), **o)(SIGNS),
        {"n_units": 5, "max_active": 2},
        {"s": 5, "k": 2},
    ),
    "certify": (
        lambda **o: sa.certify(constructions.indexing(2), **o).max_active,
        {"n_threads": 1},
        {"n_jobs": 1},
    ),
    "walsh_hadamard": (lambda **o: fourier.walsh_hadamard(Y[:32], **o), {"n_threads": 1}, {"n_jobs": 1}),
    "distributed.fit": (
        lambda **o: distributed.fit(sa.LowDegreeRegressor(1), iter([(BITS, Y)]), **o).coefficients_,
        {"progress": seen},
        {"on_progress": seen},
    ),
    "StatisticalQueryOracle": (
        lambda **o: hardness.StatisticalQueryOracle(tolerance=0.1, answers="exact", **o).correlations([(0, 1)]),
        {"examples": hardness.parity_distribution((0, 1), 4)},
        {"distribution": hardness.parity_distribution((0, 1), 4)},
    ),
    "calibrate": (
        lambda **o: predictors.calibrate(BLOCK, ROWS, method="lsh", density=0.5, **o).active(ROWS).numpy(),
        {"random_state": 3},
        {"seed": 3},
    ),
    "LSH.fit": (lambda **o: predictors.LSH.fit(BLOCK, ROWS, **o).codes, {"random_state": 3}, {"seed": 3}),
    "LowRank.fit": (lambda **o: predictors.LowRank.fit(BLOCK, ROWS, **o).A, {"random_state": 3}, {"seed": 3}),
    "Sketch.fit": (lambda **o: predictors.Sketch.fit(BLOCK, ROWS, **o).spread, {"random_state": 3}, {"seed": 3}),
    "TopKActivations": (
        lambda **o: predictors.TopKActivations(**o).active(torch.from_numpy(X)).numpy(),
        {"n_active": 2},
        {"k": 2},
    ),
    "collect_inputs": (
        lambda **o: next(iter(predictors.collect_inputs(*model_and_blocks(), ROWS, 9, **o).values())),
        {"random_state": 3},
        {"seed": 3},
    ),
    "ball_within_bucket": (
        lambda **o: sa.bounds.ball_within_bucket(0.01, intrinsic=2, n_directions=3, **o),
        {"bucket_width": 0.8},
        {"width": 0.8},
    ),
}


@pytest.mark.parametrize("name", ALIASES)
def test_former_names_warn_once_each_and_give_the_same(name):
    call, now, before = ALIASES[name]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(**before)
    said = [str(warning.message) for warning in caught if warning.category is FutureWarning]
    assert len(said) == len(caught) == len(before)
    for old, new in zip(before, now, strict=True):
        assert any(f"`{old}`" in one and f"`{new}`" in one and "version 0.3" in one for one in said)
    np.testing.assert_array_equal(found, call(**now))


@pytest.mark.parametrize("name", ALIASES)
def test_both_names_are_refused(name):
    call, now, before = ALIASES[name]
    for old, new in zip(before, now, strict=True):
        with pytest.raises((TypeError, ValueError), match=f"`{new}` and `{old}`, its former name; pass `{new}` alone"):
            call(**now, **{old: now[new]})


def test_both_names_are_refused_where_the_new_one_is_given_by_its_place():
    with pytest.raises(TypeError, match=r"TopK was given `n_active` and `k`"):
        routing.TopK(3, k=3)


def test_signatures_show_the_new_names_alone():
    @renamed(old="new")
    def function(first, new=3):
        return first + new

    assert list(inspect.signature(function).parameters) == ["first", "new"]
    with pytest.warns(FutureWarning, match="`old`") as caught:
        assert function(1, old=5) == 6
    assert caught[0].filename == __file__  # the line to mend


ATTRIBUTES = {
    "k": (lambda: routing.TopK(3), "n_active"),
    "seed": (lambda: routing.RandomHash(3, 7, 2), "random_state"),
    "width": (lambda: routing.TopK(3)(X), "n_units"),
    "width_": (lambda: sa.LSHRegressor(2, random_state=0).fit(X, Y), "bucket_width_"),
    "n_active": (lambda: layers.SparselyActivatedLayer(6, 9, 2, router=routing.TopK(3)), "max_active"),
    "forget": (lambda: sa.LowDegreeRegressor(1).fit(BITS, Y), "remove"),
    "hidden": (lambda: layers.SwitchLayer(6, 9, 2, router=routing.Switch(3)), "n_units"),
}


@pytest.mark.parametrize("old", ATTRIBUTES)
def test_former_attributes(old):
    make, new = ATTRIBUTES[old]
    thing = make()
    with pytest.warns(FutureWarning, match=f"`{old}` of .* is now called `{new}`"):
        assert getattr(thing, old) == getattr(thing, new)


def test_estimators_have_the_new_names_alone():
    for model, new in ((sa.LSHRegressor(bucket_width=2.0), "bucket_width"), (sa.DSMRegressor(n_units=7), "n_units")):
        assert "width" not in model.get_params()
        assert getattr(clone(model), new) == getattr(model, new)
        assert repr(clone(model)) == repr(model)
        with pytest.warns(FutureWarning, match="`width`"):
            model.width = 5
        assert model.get_params()[new] == 5
        assert "width" not in vars(model)
    with pytest.raises(TypeError, match="`bucket_width` and `width`"):
        sa.LSHRegressor().set_params(bucket_width=1.0, width=2.0)
    with pytest.warns(FutureWarning, match="`width` of LSHRegressor"):
        search = GridSearchCV(sa.LSHRegressor(2, random_state=0), {"width": [0.5, 2.0]}, cv=2).fit(X, Y)
    assert search.best_params_["width"] == search.best_estimator_.bucket_width


def test_the_progress_of_reading_a_table(tmp_path):
    (tmp_path / "table.csv").write_text("a,y\n" + "".join(f"{i % 2},{i}\n" for i in range(7)))
    now, before = [], []
    datasets.open_table(tmp_path / "table.csv", "y", progress=now.append)
    with pytest.warns(FutureWarning, match="`on_rows` of open_table is now called `progress`"):
        datasets.open_table(tmp_path / "table.csv", "y", on_rows=before.append)
    assert now == before == [7]


def test_routers_written_for_the_former_contract():
    with pytest.warns(FutureWarning, match="`n_active` of First is now called `max_active`"):

        class First(routing.TopK):
            def n_active(self, in_features):
                return 1

    assert First.max_active is First.n_active
    with pytest.warns(FutureWarning, match="`n_active` of Switch"):
        assert routing.Switch(4).n_active(6) == 1
    with pytest.raises(AttributeError, match="no attribute 'n_actives'"):
        _ = routing.Switch(4).n_actives


def test_records_of_routers_by_former_names_are_read_without_a_word():
    old = {"router": "random_hash", "k": 3, "width": 7, "seed": 2}
    assert routing.from_dict(old) == routing.RandomHash(3, 7, 2)
    assert routing.RandomHash(3, 7, 2).to_dict() == {
        "router": "random_hash", "n_active": 3, "n_units": 7, "random_state": 2
    }  # fmt: skip
    assert present_names(routing.TopK, {"k": 3, "absolute": True}) == {"n_active": 3, "absolute": True}


# ---- the command ----


def test_former_options_are_read_with_a_line_on_stderr(capsys, tmp_path):
    network = tmp_path / "network.sparsact"
    constructions.indexing(3).save(network)
    words = ("certify", network, "--samples", 200, "--json")
    now = run(capsys, *words, "--random-state", 3)
    for former in (("--seed", 3), ("--seed=3",)):
        status, out, err = run(capsys, *words, *former)
        assert err == "sparsact: --seed is now called --random-state; the former name goes in version 0.3.\n"
        assert (status, without_times(out), "") == (now[0], without_times(now[1]), now[2])
    status, out, err = run(capsys, *words, "--seed", 3, "--random-state", 3)
    assert (status, out) == (2, "")
    assert "--random-state and --seed, its former name, are both given; pass --random-state alone." in err
    assert run(capsys, "bounds", "--threads", 3)[0] == 2  # which the command never had


def without_times(text):
    return {name: value for name, value in json.loads(text).items() if name != "seconds"}


def test_former_names_of_given_parameters(capsys):
    words = ("bounds", "--json", "--given", "intrinsic=2", "--given", "n_directions=40", "--given")
    now, before = run(capsys, *words, "bucket_width=0.5"), run(capsys, *words, "width=0.5")
    assert now[:2] == before[:2]
    assert "`width` is now called `bucket_width`" in before[2]


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("predictors", "Rule", "ActivityPredictor"),
        ("predictors", "Split", "CalibrationSplit"),
        ("predictors", "LargestActivations", "TopKActivations"),
        ("training", "Inducement", "SparsityRegularizer"),
    ],
)
def test_classes_by_their_former_names(module, old, new):
    found = import_module(f"sparsact.inference.{module}")
    with pytest.warns(FutureWarning, match=f"`{old}` of .* is now called `{new}`"):
        assert getattr(found, old) is getattr(found, new)
    assert not hasattr(found, "Judge")

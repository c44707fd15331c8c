"""Networks as models of a table: where they are tried, chosen, described and kept."""

import json
import math
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from commands import fit_json, run
from grids import few_of
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

import sparsact as sa
from sparsact.fit.candidates import candidates
from sparsact.fit.candidates.network import NetworkCandidate
from sparsact.fit.held_out import HeldOutScores

pytestmark = pytest.mark.usefixtures("few_rivals", "unrendered")

N_COLUMNS, N_UNITS = 9, 4


def gated(n_rows, seed, n_columns=N_COLUMNS):
    """Bits, and a network that two of them gate: one unit for each setting, which reads the other columns."""
    rng = np.random.default_rng([seed, n_rows])
    weights = np.random.default_rng(seed).normal(size=(N_UNITS, n_columns - 2))
    bits = rng.integers(0, 2, (n_rows, n_columns))
    unit = bits[:, 0] + 2 * bits[:, 1]
    inner = np.einsum("mi,mi->m", weights[unit], 1 - 2 * bits[:, 2:])
    y = np.maximum(inner, 0) * np.array([1, -1, 1, -1])[unit]
    return pd.DataFrame(bits, columns=[f"b{i}" for i in range(n_columns)]).assign(y=y)


@pytest.fixture(scope="module")
def chosen():
    return sa.fit_table(gated(1000, 1), "y", folds=2)


@pytest.mark.grid
def test_an_automatic_choice_takes_the_network_where_it_predicts_best(chosen):
    assert chosen.choices.kind == "network"
    network, polynomial = chosen.choices.models[0], max(chosen.choices.models[1:], key=lambda model: model.r2.mean)
    assert network.r2.mean >= polynomial.r2.mean  # of an ensemble that is all network
    assert f"{network.r2.mean:.3f} against {polynomial.r2.mean:.3f}" in chosen.choices.reason
    fresh = gated(700, 1)
    assert r2_score(fresh["y"], chosen.predict(fresh)) > 0.99
    assert " by a sparsely activated network; " in chosen.verdict


@pytest.mark.grid
def test_held_out_rows_are_predicted_by_networks_that_have_not_seen_them(chosen):
    target = chosen.targets[0]
    assert sorted(target.actual) == sorted(gated(1000, 1)["y"])
    assert r2_score(target.actual, target.predicted) == pytest.approx(target.r2.mean, abs=0.01)


@pytest.mark.grid
def test_units_are_described_by_what_they_do(chosen):
    rows, network = gated(1000, 1), chosen.model.network_
    signs = 1.0 - 2 * rows.drop(columns="y").to_numpy()
    on = [[math.fsum([*w * x, -b]) > 0 for w, b in zip(network.W, network.b, strict=True)] for x in signs]
    shares = np.mean(on, axis=0)  # of exact sums: rows may lie on the very edge of a unit
    info = chosen.details
    assert [unit.share for unit in info.units] == pytest.approx(sorted(shares, reverse=True))
    assert info.n_units == network.s
    assert info.most_active == max(map(sum, on)) <= info.max_active
    for unit in info.units:  # the gates weigh most: a unit is off unless both match
        assert {"b0", "b1"} <= set(unit.columns)


@pytest.mark.grid
def test_the_page_and_the_command_show_the_units(chosen, tmp_path, capsys):
    chosen.save(tmp_path / "model.sparsact")
    chosen.report(tmp_path / "page.html")
    code, said, _ = run(capsys, "inspect", tmp_path / "model.sparsact", "--json")
    units = json.loads(said)["network"]["units"]
    assert {(unit["output"], *unit["columns"]) for unit in units} == {
        (unit.output, *unit.columns) for unit in chosen.details.units
    }
    code, said, _ = run(capsys, "inspect", tmp_path / "model.sparsact")
    assert (code, chosen.details.size in " ".join(said.split())) == (0, True)
    page = (tmp_path / "page.html").read_text()
    assert "Units of the network" in page
    assert f"{chosen.details.units[0].share:.1%}" in page


@pytest.mark.grid
def test_a_quick_look_spares_the_networks_that_would_lose():
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, (1000, 6))
    odd = pd.DataFrame(bits, columns=[f"b{i}" for i in range(6)]).assign(
        y=bits[:, :3].sum(axis=1) % 2 + bits @ rng.normal(size=6)
    )
    result = sa.fit_table(odd, "y")
    assert result.choices.kind == "low-degree"  # a sparse polynomial is as exact, to rounding
    assert "a quick look at a sparsely activated network had R²" in result.choices.reason
    stages = dict(result.resources.stages)
    assert ("looking at networks" in stages, "fitting networks" in stages) == (True, False)


@pytest.mark.grid
def test_networks_of_numbers_and_of_classes(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(candidates(), "network", NetworkCandidate(active=(4,), restarts=1))
    rng = np.random.default_rng(8)
    x = rng.normal(size=(140, 2))
    side = np.where(x[:, 0] + x[:, 1] > 0.6, "high", np.where(x[:, 0] + x[:, 1] < -0.6, "low", "middle"))
    train, test = train_test_split(pd.DataFrame(x, columns=list("uv")).assign(side=side), random_state=0)
    train.to_csv(tmp_path / "train.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    words = ("--target", "side", "--model", "network", "--folds", 2, "--out", tmp_path / "model")
    found = fit_json(capsys, tmp_path / "train.csv", *words)
    assert found["kind"] == "network"
    assert found["accuracy"] > 0.8 > 0.5 > found["majority"]
    assert found["why"] == "you chose model network"
    result = sa.fit_table(gated(60, 2, 5), "y", model="network", folds=2, explain=False)
    assert result.details.to_dict() == {}
    predicted = pd.read_csv(StringIO(run(capsys, "predict", tmp_path / "model", tmp_path / "test.csv")[1]))
    assert (predicted["side"].to_numpy() == test["side"]).mean() > 0.8


def test_what_networks_refuse():
    table = gated(60, 2).assign(z=1.5, kind=["rare"] + ["often"] * 59)
    table.loc[:30, "z"] = -1.0
    with pytest.raises(ValueError, match="one target, got 2"):
        sa.fit_table(table, ["y", "z"], ignore="kind", model="network")
    with pytest.raises(ValueError, match="class 'rare' is in one fold only"):
        sa.fit_table(table, "kind", ignore=["y", "z"], model="network")
    with pytest.raises(ValueError, match="degree 2 applies to low-degree models only, and model network"):
        sa.fit_table(table, "y", model="network", degree=2)


@pytest.mark.grid
def test_an_automatic_choice_leaves_networks_out_where_a_class_is_too_rare():
    result = sa.fit_table(gated(1000, 2, 5).assign(kind=["rare"] + ["often"] * 999), "kind", ignore="y")
    assert result.choices.kind != "network"
    assert "class 'rare' is in one fold only" in result.choices.reason


@pytest.mark.grid
def test_a_quick_look_sees_every_class(monkeypatch):
    monkeypatch.setitem(candidates(), "network", NetworkCandidate(rows_of_look=50))
    kind = np.where(np.arange(1000) < 990, "often", "rare")
    result = sa.fit_table(gated(1000, 2).assign(kind=kind), "kind", ignore="y")
    assert "a quick look at a sparsely activated network" in result.choices.reason


def test_many_rows_are_sampled(monkeypatch):
    monkeypatch.setitem(candidates(), "network", NetworkCandidate(most_rows=300, active=(1,)))
    fitted = []
    of = HeldOutScores.of.__func__

    def counted(cls, models, target, X, y, folds):
        fitted.append(len(X))
        return of(cls, models, target, X, y, folds)

    monkeypatch.setattr(HeldOutScores, "of", classmethod(counted))
    result = sa.fit_table(gated(900, 3, 5), "y", model="network", folds=2)
    assert fitted[-1] == 300
    assert result.details.n_rows == 300
    assert len(result.targets[0].actual) == 300


@pytest.mark.grid
@pytest.mark.parametrize("n_classes", few_of([2, 3], [2]))
def test_networks_of_classes_are_inspected(n_classes, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(candidates(), "network", NetworkCandidate(active=(1,)))
    table = gated(200, 3, 5)
    kind = np.array(list("pqr"))[pd.qcut(table["y"].rank(method="first"), n_classes, labels=False)]
    result = sa.fit_table(table.assign(kind=kind), "kind", ignore="y", model="network", folds=2, explain=False)
    result.save(tmp_path / "m.sparsact")
    code, said, err = run(capsys, "inspect", tmp_path / "m.sparsact")
    assert (code, err) == (0, "")
    assert "SparselyActivatedClassifier of 5 columns:" in " ".join(said.split())

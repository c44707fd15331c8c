"""sparsact fit, predict and inspect where hash tables are in question."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import fit_json, run

import sparsact


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of 700 rows: a kinked function of numbers beside a text column, a product, two targets, classes."""
    path = tmp_path_factory.mktemp("numbers")
    rng = np.random.default_rng(3)
    level, slope = rng.normal(size=700), rng.normal(size=700)
    colour = rng.choice(["red", "green", "blue"], 700)
    kinked = np.abs(level) + (colour == "red")
    columns = {"level": level, "slope": 1000 * slope, "colour": colour}
    kind = np.where(level * slope > 0, "same", "opposite")
    three = np.where(level > 0.5, "high", np.where(level < -0.5, "low", "middle"))
    pa.csv.write_csv(pa.table(columns | {"y": kinked}), path / "kinked.csv")
    pa.csv.write_csv(pa.table({"level": level, "slope": slope, "y": level * slope}), path / "product.csv")
    pa.csv.write_csv(pa.table(columns | {"y": kinked, "z": 3 - 2 * kinked}), path / "two.csv")
    pa.csv.write_csv(pa.table({"level": level, "slope": slope, "kind": kind}), path / "kind.csv")
    pa.csv.write_csv(pa.table({"level": level, "slope": slope, "kind": three}), path / "three.csv")
    return path


def test_numbers_get_hash_tables_where_these_are_better(capsys, folder, tmp_path):
    report, model = tmp_path / "r.html", tmp_path / "m.sparsact"
    told = fit_json(capsys, folder / "kinked.csv", "--target", "y", "--report", report, "--out", model)
    assert (told["kind"], told["rows"], told["laid_out_on"]) == ("lsh", 700, 700)
    assert "hash tables: held-out R²" in told["reason"]
    assert "for a polynomial" in told["reason"]
    (target,) = told["targets"]
    assert target["r2"] > 0.9 > max(target["others"].values())
    assert sum(told["column_shares"].values()) == pytest.approx(1)
    assert told["column_shares"]["level"] == max(told["column_shares"].values())
    assert 0 <= told["miss_rate"] < 1
    assert 0.5 < told["interval_coverage"] <= 1
    assert min(trial["error"] for trial in told["trials"]) < 0.5
    page = report.read_text(encoding="utf-8")
    for heading in ("Bucket load", "Error against cost", "Columns in the directions", "miss rate"):
        assert heading in page
    loaded = sparsact.load(model)
    assert isinstance(loaded, sparsact.LSHRegressor)
    assert loaded.n_buckets_ == told["buckets"]


def test_the_report_says_why_a_polynomial_was_kept(capsys, folder):
    told = fit_json(capsys, folder / "product.csv", "--target", "y")
    assert (told["kind"], told["degree"]) == ("low-degree", 2)
    assert any("hash tables were tried too, and the polynomial is better" in note for note in told["notes"])


def test_the_kind_that_was_asked_for(capsys, folder):
    assert fit_json(capsys, folder / "product.csv", "--target", "y", "--model", "lsh")["kind"] == "lsh"
    assert fit_json(capsys, folder / "kinked.csv", "--target", "y", "--model", "low-degree")["kind"] == "low-degree"
    assert fit_json(capsys, folder / "kinked.csv", "--target", "y", "--degree", "1")["kind"] == "low-degree"


def test_bits_get_a_polynomial_and_hash_tables_when_asked(capsys, tmp_path):
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, (300, 5))
    pa.csv.write_csv(pa.table({f"b{i}": bits[:, i] for i in range(5)} | {"y": bits[:, 0] * 1.5}), tmp_path / "t.csv")
    assert fit_json(capsys, tmp_path / "t.csv", "--target", "y")["kind"] == "low-degree"
    told = fit_json(capsys, tmp_path / "t.csv", "--target", "y", "--model", "lsh")
    assert (told["kind"], told["reason"]) == ("lsh", "hash tables, as asked.")
    assert told["targets"][0]["r2"] > 0.9


def test_predict_is_the_model_and_inspect_describes_it(capsys, folder, tmp_path):
    model = tmp_path / "m.sparsact"
    run(capsys, "fit", folder / "kinked.csv", "--target", "y", "--out", model, "--quiet")
    status, _, _ = run(capsys, "predict", model, folder / "kinked.csv", "--out", tmp_path / "p.csv")
    assert status == 0
    table = pa.csv.read_csv(folder / "kinked.csv")
    predicted = pa.csv.read_csv(tmp_path / "p.csv")["y"].to_numpy()
    assert np.std(predicted - table["y"].to_numpy()) < 0.3 * np.std(table["y"].to_numpy())
    status, out, _ = run(capsys, "inspect", model)
    assert status == 0
    assert "LSHRegressor of 16 tables, learned from 700 rows of 5 columns" in out
    assert "columns in the directions: level" in out
    assert run(capsys, "inspect", model, "--json")[1].startswith('{"kind": "LSHRegressor"')


def test_several_targets(capsys, folder, tmp_path):
    words = ("--target", "y", "--target", "z", "--model", "lsh", "--report", tmp_path / "r.html")
    told = fit_json(capsys, folder / "two.csv", *words, "--out", tmp_path / "m.sparsact")
    y, z = told["targets"]
    assert y["r2"] > 0.9
    assert z["r2"] == pytest.approx(y["r2"], abs=1e-6)
    assert run(capsys, "predict", tmp_path / "m.sparsact", folder / "two.csv")[1].startswith('"y","z"')


@pytest.mark.parametrize(("name", "classes"), [("kind", 2), ("three", 3)])
def test_classes(capsys, folder, tmp_path, name, classes):
    table, model, report = folder / f"{name}.csv", tmp_path / "m.sparsact", tmp_path / "r.html"
    told = fit_json(capsys, table, "--target", "kind", "--model", "lsh", "--out", model, "--report", report)
    assert told["accuracy"] > 0.85 > told["majority"]
    assert len(told["confusion"]["classes"]) == classes
    assert sum(map(sum, told["confusion"]["counts"])) == 700
    run(capsys, "predict", model, table, "--out", tmp_path / "p.csv")
    predicted, actual = (pa.csv.read_csv(path)["kind"].to_numpy() for path in (tmp_path / "p.csv", table))
    assert np.mean(predicted == actual) > 0.9
    assert "Confusion of held-out rows" in report.read_text(encoding="utf-8")


def test_the_layout_needs_only_the_first_rows(capsys, folder, monkeypatch):
    """The rest streams through the tables, batch by batch."""
    monkeypatch.setattr("sparsact.cli.fitting.hashed.ROWS_FOR_LAYOUT", 300)
    monkeypatch.setattr("sparsact.datasets.tables.BATCH_ROWS", 128)
    told = fit_json(capsys, folder / "kinked.csv", "--target", "y", "--model", "lsh")
    assert (told["laid_out_on"], told["rows"]) == (300, 700)
    assert told["targets"][0]["r2"] > 0.85


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--degree", "2"], "--degree 2 belongs to a polynomial"),
        (["--alpha", "0.5"], "--alpha 0.5 belongs to a polynomial"),
        (["--domain", "cube"], "--domain cube is for polynomials on bits"),
        (["--folds", "900"], "700 rows are fewer than 900 folds"),
    ],
)
def test_contradictions_end_with_status_2_and_one_line(capsys, folder, words, message):
    status, out, err = run(capsys, "fit", folder / "kinked.csv", "--target", "y", "--model", "lsh", *words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1

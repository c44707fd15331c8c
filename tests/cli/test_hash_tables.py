"""``sparsact fit`` on columns of numbers: which model it takes, what it measures, and the files it writes."""

import contextlib
import io
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import fit_json, run
from grids import few_of

import sparsact
from sparsact import LSHClassifier, LSHRegressor
from sparsact.cli import main
from sparsact.datasets import open_table
from sparsact.fit.candidates.lsh import fitted_tables
from sparsact.fit.candidates.lsh_details import standardised_weights, tried
from sparsact.fit.options import FitOptions
from sparsact.passes.progress import Stages
from sparsact.passes.resumable import Checkpoint
from sparsact.statistics.row_sample import RowSample
from sparsact.statistics.statistic import Batch

pytestmark = pytest.mark.usefixtures("few_rivals")

N = 601


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables with numbers of very different units, a text and a yes or no; what is learned bends, sums, or is noise."""
    path = tmp_path_factory.mktemp("numbers")
    rng = np.random.default_rng(7)
    x, weight = rng.uniform(-2, 2, N), 1e6 + 1e3 * rng.uniform(-2, 2, N)
    colour, garden = rng.choice(["red", "green", "blue"], N), rng.choice(["yes", "no"], N)
    columns = {"x": x, "weight": weight, "colour": colour, "garden": garden}
    level = (weight - 1e6) / 1e3
    bent = 50 * (np.abs(x) + np.abs(level) + 0.5 * (garden == "yes")) + rng.normal(size=N)
    inside = np.where(x**2 + level**2 < 2, "in", np.where(x > 0, "right", "left"))
    pa.csv.write_csv(pa.table(columns | {"y": bent}), path / "bent.csv")
    pa.csv.write_csv(pa.table(columns | {"y": bent, "z": np.sin(2 * x)}), path / "two.csv")
    pa.csv.write_csv(pa.table(columns | {"y": 3 * x * level + level + 0.05 * rng.normal(size=N)}), path / "product.csv")
    pa.csv.write_csv(pa.table(columns | {"place": inside}), path / "places.csv")
    pa.csv.write_csv(pa.table(columns | {"side": np.where(x**2 > 1.5, "far", "near")}), path / "sides.csv")
    many = {f"x{i}": rng.normal(size=120) for i in range(30)}
    pa.csv.write_csv(pa.table(many | {"y": rng.normal(size=120)}), path / "noise.csv")
    bits = rng.integers(0, 2, (400, 6))
    y = 1 - 2.0 * (bits[:, 0] ^ bits[:, 1])
    pa.csv.write_csv(pa.table({f"b{i}": bits[:, i] for i in range(6)} | {"y": y}), path / "bits.csv")
    return path


@pytest.fixture(scope="module")
def bent(folder):
    """What ``--json`` says of the table that bends, and the files of its model and of its report."""
    model, report, said = folder / "bent.sparsact", folder / "bent.html", io.StringIO()
    words = ("fit", folder / "bent.csv", "--target", "y", "--report", report, "--out", model, "--folds", 3, "--json")
    with contextlib.redirect_stdout(said), pytest.MonkeyPatch.context() as patch:
        patch.setattr("sparsact.reports.figure.to_svg", lambda figure: "<svg></svg>")
        assert main([str(word) for word in words]) == 0
    return json.loads(said.getvalue()), model, report


@pytest.mark.grid
def test_what_bends_is_learned_by_hash_tables_because_they_err_less(capsys, folder, bent):
    report = bent[2]
    status, out, err = run(capsys, "fit", folder / "bent.csv", "--target", "y", "--folds", 2)
    assert (status, err) == (0, "")
    assert re.match(r"Held-out R² 0\.9\d+ ± [\d.]+ by hash tables \(LSH\); ", out)
    assert "chosen: hash tables (LSH), because it predicts held-out rows best" in out
    assert re.search(r"every model with effect intervals is more than a standard error worse.*: held-out R² 0\.9", out)
    page = report.read_text(encoding="utf-8")
    for heading in ("Bucket load", "Error against cost", "Columns that matter", "Coverage of prediction intervals"):
        assert f"{heading}</h3>" in page
    assert "Strongest effects" not in page
    assert "standardised by the mean and standard deviation of this table: x, weight." in page


@pytest.mark.grid
def test_what_multiplies_is_learned_by_a_polynomial_because_it_errs_less(capsys, folder):
    told = fit_json(capsys, folder / "product.csv", "--target", "y", "--folds", 3)
    assert (told["kind"], told["degree"], told["lsh"]) == ("low-degree", 2, None)
    by_name = {c["name"]: c["r2"] for c in told["contenders"]}
    assert [c["chosen"] for c in told["contenders"]] == [True, False, False, False, False]
    assert told["contenders"][0]["r2"] > by_name["hash tables (LSH)"] > by_name["degree 1 (linear)"]
    assert told["why"].startswith("it predicts held-out rows best")
    assert told["why"].endswith(" of a lasso polynomial, on the same 3 folds")


def test_json_holds_the_tables(bent):
    told = bent[0]
    tables = told["lsh"]
    rows, buckets = np.array(tables["load"]["rows"]), np.array(tables["load"]["buckets"])
    assert rows @ buckets == N * tables["n_tables"]
    assert buckets.sum() == tables["n_buckets"]
    assert tables["miss_rate"] == pytest.approx(buckets[rows == 1].sum() / (N * tables["n_tables"]), abs=1e-3)
    assert [trial["chosen"] for trial in tables["trials"]].count(True) == 1
    assert sum(column["share"] for column in tables["columns"]) == pytest.approx(1)
    inside = {entry["probability"]: entry["inside"] for entry in tables["coverage"]}
    assert list(inside.values()) == sorted(inside.values())
    assert 0.85 < inside[0.9] < 0.99
    assert told["degree"] is None
    chosen, *others = told["contenders"]
    linear = next(contender for contender in others if "linear" in contender["name"])
    assert chosen["rmse"] < 0.3 * linear["rmse"]


@pytest.mark.grid
def test_bits_are_learned_by_a_polynomial_unless_tables_are_asked_for(capsys, folder):
    told = fit_json(capsys, folder / "bits.csv", "--target", "y", "--folds", 2)
    assert told["kind"] in ("low-degree", "sparse")
    assert not any("hash tables" in contender["name"] for contender in told["contenders"])
    words = ("--target", "y", "--model", "lsh", "--folds", 2)
    asked = fit_json(capsys, folder / "bits.csv", *words)
    assert (asked["kind"], asked["why"]) == ("lsh", "you chose model lsh")
    assert "The effects are" not in run(capsys, "fit", folder / "bits.csv", *words)[1]
    assert [c["name"] for c in asked["contenders"]] == ["hash tables (LSH)", "degree 1 (linear)"]


def test_a_degree_or_penalty_that_is_asked_for_asks_for_a_polynomial(capsys, folder):
    told = fit_json(capsys, folder / "bent.csv", "--target", "y", "--degree", "2")
    assert (told["kind"], told["degree"], told["why"]) == ("low-degree", 2, "degree was given")
    told = fit_json(capsys, folder / "bent.csv", "--target", "y", "--degree", "1", "--alpha", "1")
    assert told["why"] == "degree and alpha were given"


@pytest.mark.grid
def test_many_columns_of_noise_are_not_called_learned(capsys, folder):
    """The trend has as many slopes as columns; it would find some in rows that it had seen."""
    for words in ((), ("--model", "lsh")):
        told = fit_json(capsys, folder / "noise.csv", "--target", "y", "--folds", 3, *words)
        assert not told["learned"]
        assert re.search(r"nor by .*hash tables \(LSH\)( or a lasso polynomial)?, was found", told["verdict"])


def sampled(table, n_folds, seed, most=10_000):
    """A sample of the table's rows."""
    sample, first = RowSample(most, n_folds, seed), 0
    for X, y in table.batches():
        sample.add(Batch(X, y, first_row=first))
        first += len(X)
    return sample


@pytest.mark.grid
def test_held_out_scores_match_models_fitted_without_the_fold(folder):
    table = open_table(folder / "bent.csv", "y", domain="auto")
    sample = sampled(table, 3, 4)
    asked = FitOptions(("y",), folds=3, random_state=4)
    fit = fitted_tables((table, asked, sample, Stages()), Checkpoint())
    model, held_out = fit.model, fit.held_out
    X, y, folds = sample.rows()
    expected, roots = [], []
    for fold in range(3):
        fixed = {name: getattr(model, f"{name}_") for name in ("bucket_width", "alpha", "n_hashes", "directions")}
        other = LSHRegressor(random_state=4, **fixed).fit(X[folds != fold], y[folds != fold])
        expected.append(other.score(X[folds == fold], y[folds == fold]))
        roots.append(np.sqrt(np.mean((other.predict(X[folds == fold]) - y[folds == fold]) ** 2)))
    np.testing.assert_allclose(held_out.r2()[0].folds, expected, rtol=1e-9)
    np.testing.assert_allclose(held_out.rmse()[0].folds, roots, rtol=1e-9)
    assert held_out.predicted.shape == (N, 1)


@pytest.mark.grid
@pytest.mark.parametrize("at_once", few_of([4, 3, 1], [3]))
def test_a_table_larger_than_the_sample_streams_and_gives_the_model_of_all_its_rows(folder, at_once):
    """Few rows lay the tables out; every row is learned once by each model but that of its fold."""
    table = open_table(folder / "bent.csv", "y", batch_rows=131, domain="auto")
    sample = sampled(table, 3, 4, most=500)
    assert not sample.is_complete
    assert len(sample.rows()[0]) == 500
    seen = []
    stages = Stages(lambda now: seen.append((now.stage, now.n_rows)))
    fit = fitted_tables((table, FitOptions(("y",), folds=3, random_state=4), sample, stages), Checkpoint(), at_once)
    whole, held_out = fit.model, fit.held_out
    X = np.concatenate([X for X, _ in table.batches()])
    y = np.concatenate([y for _, y in table.batches()])
    assert whole.n_samples_seen_ == N
    assert np.abs(whole.predict(X) - whole.blank().partial_fit(X, y).predict(X)).max() < 1e-9 * np.abs(y).max()
    assert dict(seen)["learning"] == {4: 1, 3: 2, 1: 4}[at_once] * N
    assert dict(seen)["measuring"] == 500
    assert held_out.mean_r2.mean > 0.9


def test_a_saved_model_predicts_new_tables_with_the_scales_of_the_first(capsys, folder, tmp_path, bent):
    model = bent[1]
    table = pa.csv.read_csv(folder / "bent.csv")
    pa.csv.write_csv(table.slice(3, 5).select(["garden", "weight", "colour", "x"]), tmp_path / "few.csv")
    assert run(capsys, "predict", model, folder / "bent.csv", "--out", tmp_path / "all.csv")[0] == 0
    assert run(capsys, "predict", model, tmp_path / "few.csv", "--out", tmp_path / "p.csv")[0] == 0
    everything, few = (pa.csv.read_csv(tmp_path / name)["y"].to_numpy() for name in ("all.csv", "p.csv"))
    np.testing.assert_allclose(few, everything[3:8], rtol=1e-12)
    learned_model = sparsact.load(model)
    assert isinstance(learned_model, LSHRegressor)
    X = np.concatenate([X for X, _ in open_table(folder / "bent.csv", "y", domain="auto").batches()])
    np.testing.assert_array_equal(everything, learned_model.predict(X))
    assert abs(X[:, 1].mean()) < 1e-9
    assert X[:, 1].std() == pytest.approx(1)
    assert run(capsys, "predict", model, folder / "noise.csv")[0] == 2  # other columns


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(("file", "target"), few_of([("places", "place"), ("sides", "side")], [("places", "place")]))
def test_classes_are_learned_by_hash_tables(capsys, folder, tmp_path, file, target):
    model, report = tmp_path / "m.sparsact", tmp_path / "r.html"
    told = fit_json(
        capsys, folder / f"{file}.csv", "--target", target, "--folds", 3, "--out", model, "--report", report
    )
    assert (told["kind"], told["task"]) == ("lsh", "classification")
    assert told["accuracy"] > 0.93
    assert told["lsh"]["coverage"] == []
    assert sum(map(sum, told["confusion"]["counts"])) == N
    assert isinstance(sparsact.load(model), LSHClassifier)
    run(capsys, "predict", model, folder / f"{file}.csv", "--out", tmp_path / "p.csv")
    predicted, actual = (
        pa.csv.read_csv(path)[target].to_numpy() for path in (tmp_path / "p.csv", folder / f"{file}.csv")
    )
    assert np.mean(predicted == actual) > 0.95
    page = report.read_text(encoding="utf-8")
    assert "Confusion of held-out rows" in page
    assert "Bucket load" in page
    assert "What each class consists of" not in page


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered")
def test_several_targets_are_scored_one_by_one(capsys, folder, tmp_path):
    told = fit_json(capsys, folder / "two.csv", "-t", "y", "-t", "z", "--folds", 2, "--report", tmp_path / "r.html")
    assert told["kind"] == "lsh"
    assert [target["name"] for target in told["targets"]] == ["y", "z"]
    assert all(target["r2"] > 0.9 for target in told["targets"])
    assert all(contender["rmse"] is None for contender in told["contenders"][:1])  # of different units
    assert "How well it predicts: z" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_inspect_shows_the_tables_and_the_columns(capsys, tmp_path, bent):
    fitted, model, _ = bent
    status, out, _ = run(capsys, "inspect", model, "--top", "2")
    assert status == 0
    assert f"{fitted['lsh']['n_tables']} hash tables" in out
    assert "weight" in out
    assert "colour" not in out
    told = json.loads(run(capsys, "inspect", model, "--json")[1])
    assert (told["kind"], told["rows"], told["targets"]) == ("LSHRegressor", N, ["y"])
    ranked = sorted(told["lsh"]["columns"], key=lambda column: -column["share"])
    assert {column["column"] for column in ranked[:2]} == {"x", "weight"}
    shares = {column["column"]: column["share"] for column in told["lsh"]["columns"]}
    assert shares == pytest.approx({column["column"]: column["share"] for column in fitted["lsh"]["columns"]})
    status, _, err = run(capsys, "inspect", model, "--report", tmp_path / "r.html")
    assert (status, err.count("\n")) == (2, 1)


@pytest.mark.grid
def test_slopes_are_in_deviations_and_each_layout_is_told_once(folder):
    table = open_table(folder / "product.csv", "y", domain="auto")
    X, y, _ = (sample := sampled(table, 2, 0)).rows()
    model = fitted_tables((table, FitOptions(("y",), folds=2), sample, Stages()), Checkpoint()).model
    weights = {weight.column: weight for weight in standardised_weights(model, table, X, y)}
    slope = np.linalg.lstsq(np.column_stack([np.ones(N), X]), y, rcond=None)[0][2] * X[:, 1].std() / y.std()
    assert weights["weight"].trend == pytest.approx(slope, rel=0.02)  # the trend is penalised a little
    trials = tried(model)
    assert len({(t.directions, t.n_rows, t.bucket_width, t.alpha, t.degree) for t in trials}) == len(trials)
    chosen = next(t for t in trials if t.chosen)
    assert chosen.error == min(t.error for t in trials if t.n_rows == chosen.n_rows)
    assert chosen.n_rows == N

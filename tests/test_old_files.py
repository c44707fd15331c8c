"""Files that version 0.1.0 wrote still load, predict what they predicted, go on, and save; see `fixtures/write.py`."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import run
from grids import grid
from safetensors import safe_open
from sklearn.base import clone

import sparsact as sa
from sparsact.datasets.table_stream import TableSurvey
from sparsact.saving import modelfile

FILES = Path(__file__).parent / "fixtures" / "files"
REFUSED = "lsh-joint"  # LSHRegressor(3, degree=0, alpha=0.1, combine="joint")
MODELS = sorted({path.stem for path in FILES.glob("*.sparsact")} - {REFUSED})
WRITTEN = 1_700_000_000_000_000_000  # nanoseconds: when the tables of the stopped fits were written
ITERATIVE = {"lasso": 1e-8}  # what a solver that stops at its tolerance may differ by elsewhere
RENAMED = {"width": ("width", "n_units", "bucket_width")}  # what a parameter of the file may be called by now


def opened(name):
    with np.load(FILES / f"{name}.npz") as kept:
        return sa.load(FILES / f"{name}.sparsact"), dict(kept)


def predict(model, rows):
    return np.asarray(model(rows) if isinstance(model, sa.SparselyActivatedNetwork) else model.predict(rows))


def check(found, expected, *, exact=False, tolerance=1e-12):
    """The same bits, or all numbers within a share of the largest."""
    assert found.shape == expected.shape
    if exact or expected.dtype.kind == "U":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def of_more_rows(model, rows, targets):
    """Another model of the same kind that has seen these rows alone."""
    other = model.blank() if hasattr(model, "blank") else clone(model)
    labels = (rows, targets, model.classes_) if hasattr(model, "classes_") else (rows, targets)
    return other.partial_fit(*labels)


def test_every_class_of_model_has_a_file():
    kinds = {type(sa.load(FILES / f"{name}.sparsact")) for name in MODELS}
    assert kinds == {
        sa.SparselyActivatedNetwork,
        sa.LowDegreeRegressor,
        sa.LowDegreeClassifier,
        sa.LowDegreeRegressorCV,
        sa.LSHRegressor,
        sa.LSHClassifier,
        sa.DSMRegressor,
        sa.SparselyActivatedRegressor,
    }


@grid(name=MODELS)
def test_predictions(name):
    model, kept = opened(name)
    tolerance = ITERATIVE.get(name, 1e-12)
    check(predict(model, kept["asked"]), kept["predictions"], exact=kept["exact"], tolerance=tolerance)


@grid(name=MODELS)
def test_parameters_of_the_file_match_the_model(name):
    with safe_open(FILES / f"{name}.sparsact", framework="numpy") as file:
        state = json.loads(file.metadata()["sparsact"])["state"]
    model, _ = opened(name)
    now = model.get_params() if "params" in state else {}
    written = state.get("params", {})
    assert (written.pop("combine", "average"), written.pop("heredity", None)) == ("average", None)
    for old, value in written.items():
        (new,) = {new for new in RENAMED.get(old, (old,)) if new in now}
        assert json.loads(json.dumps(now[new])) == value


@pytest.mark.parametrize("name", MODELS)
def test_saved_again_it_is_the_same_model(name, tmp_path):
    model, kept = opened(name)
    model.save(tmp_path / "again")
    again = sa.load(tmp_path / "again")
    assert type(again) is type(model)
    np.testing.assert_array_equal(predict(again, kept["asked"]), predict(model, kept["asked"]))


def test_a_model_of_an_option_that_is_gone_is_refused(tmp_path):
    kind, state, arrays = modelfile.read(FILES / "cells.sparsact")
    state["params"]["heredity"] = "weak"
    modelfile.write(tmp_path / "selected.sparsact", kind, state, arrays)
    for path, what in (
        (FILES / f"{REFUSED}.sparsact", "LSHRegressor with combine='joint'"),
        (tmp_path / "selected.sparsact", "LowDegreeRegressor with heredity='weak'"),
    ):
        name = what.split()[-1].split("=")[0]
        whole = (
            f"{path} holds a model of {what}, which this version no longer fits; fit it again without `{name}`, "
            "or load it with the version that saved it."
        )
        with pytest.raises(modelfile.ModelFileError, match=f"^{re.escape(whole)}$"):
            sa.load(path)


GO_ON = [name for name in MODELS if "predictions_after" in np.load(FILES / f"{name}.npz")]
APART = ("dsm-rmsprop", "cross-validated")  # training depends on the order of rows, folds on their places
MERGE = [name for name in GO_ON if name not in APART]


@pytest.mark.parametrize("name", GO_ON)
def test_more_rows(name, tmp_path):
    model, kept = opened(name)
    model.partial_fit(kept["more_rows"], kept["more_targets"])
    tolerance = ITERATIVE.get(name, 1e-12)
    check(predict(model, kept["asked"]), kept["predictions_after"], tolerance=tolerance)
    model.save(tmp_path / "again", statistic=True)
    check(predict(sa.load(tmp_path / "again"), kept["asked"]), kept["predictions_after"], tolerance=tolerance)


@grid(name=MERGE)
def test_merging(name):
    model, kept = opened(name)
    if name == "lsh-forgets-rows":
        other = model.blank(remember_rows=False).partial_fit(kept["more_rows"], kept["more_targets"])
    else:
        other = of_more_rows(model, kept["more_rows"], kept["more_targets"])
    found = predict(model.merge(other), kept["asked"])
    check(found, kept["predictions_after"], tolerance=ITERATIVE.get(name, 1e-12))


def test_rows_are_taken_away_again():
    for name in ("cells", "moments", "distinct-points", "lsh"):
        model, kept = opened(name)
        model.partial_fit(kept["more_rows"], kept["more_targets"])
        model.remove(kept["more_rows"], kept["more_targets"])
        check(predict(model, kept["asked"]), kept["predictions"], tolerance=1e-9 if name == "lsh" else 1e-12)


def test_what_was_left_out_of_a_file_is_missed():
    low, kept = opened("without-statistic")
    with pytest.raises(ValueError, match="statistic"):
        low.partial_fit(kept["asked"], kept["predictions"])
    lsh, kept = opened("lsh-forgets-rows")
    with pytest.raises(ValueError, match="statistic"):
        lsh.remove(kept["more_rows"], kept["more_targets"])


# ---- the command ----


def check_answers(found, expected, tolerance=1e-12):
    """Every expected column is there, with its values."""
    found, due = (pa.csv.read_csv(path) for path in (found, expected))
    for name in due.column_names:
        if pa.types.is_floating(due[name].type):
            check(found[name].to_numpy(), due[name].to_numpy(), tolerance=tolerance)
        else:
            assert found[name] == due[name]


@pytest.mark.parametrize(
    ("model", "table"), [("bits", "bits"), ("classes", "classes"), ("numbers", "numbers"), ("tables", "numbers")]
)
def test_models_of_the_command_predict(capsys, tmp_path, model, table):
    words = ("predict", FILES / f"{model}.model", FILES / f"{table}.csv", "--out", tmp_path / "out.csv")
    assert run(capsys, *words) == (0, "", "")
    table = pa.csv.read_csv(tmp_path / "out.csv")
    (name,) = pa.csv.read_csv(FILES / f"{model}.predictions.csv").column_names
    unknown = [table[other].null_count for other in table.column_names if other != name]
    assert set(unknown) == {len(table)}  # intervals, and rows outside: what those files do not hold
    check_answers(tmp_path / "out.csv", FILES / f"{model}.predictions.csv")


@pytest.mark.usefixtures("few_rivals")
@pytest.mark.parametrize(
    ("name", "words"), [pytest.param("bits", (), marks=pytest.mark.grid), ("numbers", ("--model", "low-degree"))]
)
def test_a_stopped_fit_goes_on(capsys, monkeypatch, tmp_path, name, words):
    """Its survey is not made again; later passes of that version are, since they summed up something else."""
    heading, rows = (FILES / f"{name}.csv").read_text().split("\n", 1)
    whole = f"{heading}\n{600 * rows}"
    middle = slice(70_000, 90_000)
    table = tmp_path / f"{name}-repeated.csv"
    table.write_text(whole[: middle.start] + whole[middle].translate({49: 48}) + whole[middle.stop :])  # 1 becomes 0
    os.utime(table, ns=(WRITTEN, WRITTEN))  # where no comparison of files looks, rows are others now
    statistic = Path(shutil.copy(FILES / f"{name}.statistic", tmp_path))
    fit, surveyed, real = ("fit", table, "-t", "y", *words, "--folds", "3", "--quiet"), [], TableSurvey.add
    monkeypatch.setattr(TableSurvey, "add", lambda *given: (surveyed.append(1), real(*given)))
    for out, options in (("resumed", ("--resume", statistic)), ("again", ())):
        model = tmp_path / out
        assert run(capsys, *fit, "--out", model, *options) == (0, "", "")
        assert run(capsys, "predict", model, FILES / f"{name}.csv", "--out", tmp_path / f"{out}.csv")[0] == 0
        assert bool(surveyed) is (out == "again")
    assert not statistic.exists()
    check_answers(tmp_path / "resumed.csv", tmp_path / "again.csv", 0.05)


# ---- the rest ----


def test_certificates():
    model, _ = opened("network-dense")
    proved, sampled = (
        sa.Certificate.from_json((FILES / f"{kind}.certificate.json").read_text()) for kind in ("proved", "sampled")
    )
    now = sa.certify(model)
    assert (proved.max_active, proved.upper, proved.exact) == (now.max_active, now.upper, now.exact)
    assert int(model.n_active(proved.witness[None])[0]) == proved.max_active
    assert (sampled.method, sampled.n_samples, sampled.max_active <= proved.max_active) == ("sampled", 10_000, True)


def test_rows_of_results(tmp_path):
    from sparsact_papers.results import Store

    lines = shutil.copy(FILES / "juntas-and-index.jsonl", tmp_path)
    store = Store(tmp_path)
    assert (len(store), store.n_unreadable) == (3, 0)
    rows = [json.loads(line) for line in Path(lines).read_text().splitlines()]
    assert store.seconds("juntas-and-index") == [row["seconds"] for row in rows]


def test_a_stopped_training_goes_on(tmp_path):
    import torch
    from trainings import TEXT, model

    from sparsact_papers.training import Recipe, train

    recipe = Recipe(steps=5, batch=3, context=11, warmup=2, evaluate_every=2, windows=4)
    shutil.copy(FILES / "training.safetensors", tmp_path / "checkpoint.safetensors")
    resumed, steps = model(), []
    rows = train(resumed, TEXT, recipe, checkpoint=tmp_path, progress=steps.append)
    assert ([row.step for row in rows], steps[0]) == ([0, 2, 4, 5], 2)
    with np.load(FILES / "training.npz") as kept, torch.no_grad():
        found = resumed.eval()(torch.from_numpy(kept["asked"])).numpy()
        check(found, kept["predictions"], tolerance=1e-4)  # float32, by other orders of summation elsewhere

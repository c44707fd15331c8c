"""What people do wrong at the command line, and what it says: one line that names the remedy, and no file is harmed."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import run

from sparsact.cli import main

pytestmark = pytest.mark.usefixtures("few_rivals")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a table of 90 rows and a model of it."""
    folder = tmp_path_factory.mktemp("mistakes")
    bits = np.random.default_rng(7).integers(0, 2, (90, 4))
    columns = {name: bits[:, i] for i, name in enumerate("abcd")}
    pa.csv.write_csv(pa.table(columns | {"y": bits[:, 0] - 2.5 * bits[:, 1] * bits[:, 2]}), folder / "t.csv")
    words = ["--target", "y", "--degree", "2", "--out", str(folder / "m.sparsact"), "--quiet"]
    assert main(["fit", str(folder / "t.csv"), *words]) == 0
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A folder of one's own with both files, in which the command runs."""
    for name in ("t.csv", "m.sparsact"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    (tmp_path / "text.csv").write_text("a,b,c,d,y\n" + "0,1,0,1,2\n1,1,0,0,3\n" * 20 + "0,1,1,0,x\n")
    (tmp_path / "head.csv").write_text("a,b,c,d,y\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("predict t.csv m.sparsact", "the model comes first: sparsact predict m.sparsact t.csv"),
        ("predict t.csv m.sparsact --out p.csv", "the model comes first: sparsact predict m.sparsact t.csv"),
        ("predict t.csv t.csv", "t.csv is a table, and a model is needed"),
        (
            "inspect t.csv",
            "a table, and a model is needed; make one with sparsact fit TABLE --target COLUMN --out t.sp",
        ),
        ("certify t.csv", "t.csv is a table, and a model is needed; make one with network.save('t.sparsact')"),
        ("predict . t.csv", "is a folder; name a model in it"),
        ("predict m.sparsact t.csv --json --out p.csv", "--json prints, and --out writes a file; choose one"),
        ("predict m.sparsact", "Missing argument 'TABLE...'"),
        ("predict m.sparsact no.csv", "no.csv"),
        ("predict m.sparsact head.csv --id no", "no"),
        ("predict m.sparsact t.csv --confidence 95", "confidence"),
        ("fit t.csv", "Missing option '--target'"),
        ("fit --target y", "Missing argument 'TABLE...'"),
        ("fit t.csv --target z", "'z'"),
        ("fit t.csv --target Y", "'Y'"),
        ("fit t.csv --target y --model gpp", "gpp"),
        ("fit t.csv --target y --degree two", "two"),
        ("fit t.csv --target y --degree -1", "degree"),
        ("fit t.csv --target y --alpha -1", "alpha"),
        ("fit t.csv --target y --folds 1", "folds"),
        ("fit t.csv --target y --folds 1000", "folds"),
        ("fit t.csv --target y --fold 3", "No such option: --fold"),
        ("fit t.csv --target y --columns z*", "z*"),
        ("fit t.csv --target y --ignore a,b,c,d", "column"),
        ("fit t.csv --target y --report r.pdf", ".html"),
        ("fit t.csv --target y --out no/m.sparsact", "make it first"),
        ("fit t.csv --target y --out folder", "it is a folder"),
        ("fit t.csv m.sparsact --target y", "m.sparsact cannot be read as a table"),
        ("fit folder --target y", "folder"),
        ("fit head.csv --target y", "head.csv"),
        ("fit empty.csv --target y", "empty.csv"),
        ("fit text.csv --target y --task regression", "'x'"),
        ("fit t.csv --target y --separator ;", "y"),
        ("fits t.csv", "No such command 'fits'"),
        ("report m.sparsact", "sparsact fit TABLE --target COLUMN --report FILE"),
        ("demo --folder t.csv", "t.csv"),
    ],
)
def test_a_mistake_is_answered_by_one_line(here, capsys, words, says):
    before = {path: path.read_bytes() for path in here.iterdir() if path.is_file()}
    status, out, err = run(capsys, *words.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("sparsact: error: ")
    assert says in err
    assert {path: path.read_bytes() for path in here.iterdir() if path.is_file()} == before


@pytest.mark.usefixtures("here")
def test_a_model_may_have_any_name(here, capsys):
    (here / "m.sparsact").rename(here / "m.csv")
    assert run(capsys, "predict", "m.csv", "t.csv")[0] == 0


@pytest.mark.usefixtures("here")
def test_predictions_as_json_match_csv(capsys):
    rows = json.loads(run(capsys, "predict", "m.sparsact", "t.csv", "--json")[1])["rows"]
    told = run(capsys, "predict", "m.sparsact", "t.csv")[1]
    table = pa.csv.read_csv(pa.py_buffer(told.encode())).to_pylist() if told else []
    assert len(rows) == len(table) == 90
    assert [row["y"] for row in rows] == [row["y"] for row in table]
    assert list(rows[0]) == list(table[0])


def test_json_of_no_rows_is_an_object(here, capsys):
    assert json.loads(run(capsys, "predict", "m.sparsact", "head.csv", "--json")[1]) == {"rows": []}


@pytest.mark.parametrize("how", [(), ("--json",)])
@pytest.mark.usefixtures("here")
def test_nothing_is_written_before_the_first_good_rows(capsys, monkeypatch, how):
    def fails(*_):
        raise ValueError("the first rows are bad")

    monkeypatch.setattr("sparsact.fit.predict.readable", fails)
    found = run(capsys, "predict", "m.sparsact", "t.csv", *how)
    assert found == (2, "", "sparsact: error: the first rows are bad\n")


def test_files_to_be_replaced_are_named_before_the_fit(here, capsys, monkeypatch):
    def fails(*_, **__):
        raise ValueError("the fit has begun")

    monkeypatch.setattr("sparsact.fit.fit_table.fit_table", fails)
    words = ["fit", "t.csv", "--target", "y", "--out", "m.sparsact"]
    assert run(capsys, *words)[2].splitlines() == [
        "m.sparsact is there already and will be replaced.",
        "sparsact: error: the fit has begun",
    ]
    (here / "r.html").touch()
    assert run(capsys, *words, "--report", "r.html")[2].startswith("m.sparsact and r.html are there already and will")
    for silent in ("--quiet", "--json"):
        assert run(capsys, *words, silent)[2] == "sparsact: error: the fit has begun\n"

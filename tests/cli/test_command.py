import io
import json
import re
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from commands import fit_json, process, run

import sparsact
from sparsact.cli import main

pytestmark = pytest.mark.usefixtures("few_rivals")

NAMES = [f"gene{i}" for i in range(6)]


def signal(signs):
    return 2 * signs[:, 0] * signs[:, 1] + signs[:, 2] + 0.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of 301 rows and 6 bits: a number of degree 2, a class, and digits of three classes."""
    path = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(11)
    bits = rng.integers(0, 2, (301, 6))
    signs = 1 - 2 * bits
    y = signal(signs) + 0.1 * rng.normal(size=301)
    columns = {name: bits[:, i] for i, name in enumerate(NAMES)}
    kind = np.where(signs[:, 0] * signs[:, 3] > 0, "even", "odd")
    three = bits[:, 0] + bits[:, 1]
    pa.csv.write_csv(pa.table(columns | {"y": y}), path / "t.csv")
    pa.csv.write_csv(pa.table(columns | {"kind": kind}), path / "kinds.csv")
    pa.csv.write_csv(pa.table(columns | {"three": three}), path / "three.csv")
    pa.csv.write_csv(pa.table(columns | {"y": y, "z": -3 * y}), path / "two.csv")
    pa.csv.write_csv(pa.table({"level": rng.normal(size=301), **columns, "y": y}), path / "real.csv")
    return path


@pytest.fixture(scope="module")
def fitted(folder):
    """The file of a model of the first table."""
    words = ("--target", "y", "--folds", "2", "--out", str(folder / "m.sparsact"), "--quiet")
    assert main(["fit", str(folder / "t.csv"), *words]) == 0
    return folder / "m.sparsact"


@pytest.mark.usefixtures("unrendered")
def test_fit_finds_the_degree_and_the_terms_and_writes_what_was_asked(capsys, folder, tmp_path):
    report, model = tmp_path / "r.html", tmp_path / "m.sparsact"
    words = (folder / "t.csv", "--target", "y", "--folds", 3, "--report", report, "--out", model)
    status, out, _ = run(capsys, "fit", *words)
    assert status == 0
    assert re.match(r"Held-out R² 0\.99\d ± 0\.\d+ by a sparse polynomial of degree 2; .*linear model 0\.\d+\.\n", out)
    assert "gene0 × gene1" in out
    assert f"report: {report}" in out
    assert model.stat().st_size > 0
    page = report.read_text(encoding="utf-8")
    assert "Held-out R²" in page
    assert str(tmp_path) not in page  # nor any other folder of this machine
    assert str(folder) not in page
    assert "sparsact fit t.csv --target y --folds 3 --report r.html" in page


def test_json_is_one_object_and_nothing_else(capsys, folder):
    told = fit_json(capsys, folder / "t.csv", "--target", "y", "--model", "low-degree")
    assert (told["rows"], told["degree"], told["task"], told["learned"]) == (301, 2, "regression", True)
    (target,) = told["targets"]
    assert target["r2"] > 0.99
    first = target["terms"][0]
    assert first["columns"] == ["gene0", "gene1"]
    assert first["low"] < 2 < first["high"] or abs(first["coefficient"] - 2) < 0.05
    assert first["effect_low"] < 8 < first["effect_high"] or abs(first["effect"] - 8) < 0.2
    assert target["weight_by_degree"] == []  # 301 rows of 64 points: squared coefficients are no shares
    added = {gain["degree"]: gain["r2"] for gain in told["r2_by_degree"]}
    assert sum(added.values()) == pytest.approx(target["r2"])
    assert 0.1 < added[1] < 0.3  # the signal is 2 x_0 x_1 + x_2
    assert all(gain["low"] <= gain["r2"] <= gain["high"] for gain in told["r2_by_degree"])


def test_predict_and_inspect_follow_the_model(capsys, folder, fitted, tmp_path):
    table = pa.csv.read_csv(folder / "t.csv")
    shuffled = table.select([*reversed(NAMES)])  # columns are found by name; no target is needed
    pa.csv.write_csv(shuffled, tmp_path / "new.csv")
    for out in ("p.csv", "p.parquet", "p.feather"):
        assert run(capsys, "predict", fitted, tmp_path / "new.csv", "--out", tmp_path / out)[:2] == (0, "")
    from_csv = pa.csv.read_csv(tmp_path / "p.csv")["y"].to_numpy()
    np.testing.assert_array_equal(from_csv, pa.parquet.read_table(tmp_path / "p.parquet")["y"].to_numpy())
    assert pa.feather.read_table(tmp_path / "p.feather") == pa.parquet.read_table(tmp_path / "p.parquet")
    bits = np.column_stack([table[name].to_numpy() for name in NAMES])
    np.testing.assert_array_equal(from_csv, sparsact.load(fitted).predict(bits.astype(np.uint8)))
    assert np.corrcoef(from_csv, signal(1 - 2 * bits))[0, 1] > 0.99
    status, out, _ = run(capsys, "inspect", fitted, "--top", "3")
    assert status == 0
    assert "gene0 × gene1" in out
    told = json.loads(run(capsys, "inspect", fitted, "--json", "--top", "3")[1])
    terms = told["targets"][0]["terms"]  # two of the signal, and the constant
    assert (told["degree"], told["rows"], len(terms)) == (2, 301, 3)


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize(
    ("file", "target", "classes"), [("kinds", "kind", ["even", "odd"]), ("three", "three", ["0", "1", "2"])]
)
def test_classes_are_learned_and_predicted_by_name(capsys, folder, tmp_path, file, target, classes):
    model, report, table = tmp_path / "m.sparsact", tmp_path / "r.html", folder / f"{file}.csv"
    words = (table, "--target", target, "--task", "classification", "--folds", 3, "--out", model)
    told = fit_json(capsys, *words, *(("--report", report) if file == "kinds" else ()))
    assert told["accuracy"] > 0.97
    assert told["target_columns"] == [target]
    if file == "three":
        assert [target["name"] for target in told["targets"]] == classes
    else:
        page = report.read_text(encoding="utf-8")
        assert "Confusion of held-out rows" in page
        assert "<h1>kind in kinds.csv</h1>" in page
    assert told["confusion"]["classes"] == classes
    assert sum(map(sum, told["confusion"]["counts"])) == 301
    run(capsys, "predict", model, table, "--out", tmp_path / "p.csv")
    predicted, actual = (pa.csv.read_csv(path)[target].to_numpy() for path in (tmp_path / "p.csv", table))
    assert np.mean(predicted == actual) > 0.97
    assert run(capsys, "inspect", model)[0] == 0


def test_text_targets_are_classes_without_being_told(capsys, folder):
    told = fit_json(capsys, folder / "kinds.csv", "--target", "kind", "--model", "low-degree", "--folds", 2)
    assert told["task"] == "classification"


@pytest.mark.usefixtures("unrendered")
def test_several_targets_share_a_degree(capsys, folder, tmp_path):
    files = ("--report", tmp_path / "r.html", "--out", tmp_path / "m.sparsact")
    words = ("--target", "y", "--target", "z", "--folds", 2, *files)
    told = fit_json(capsys, folder / "two.csv", *words)
    y, z = told["targets"]
    assert y["r2"] > 0.99
    assert z["r2"] == pytest.approx(y["r2"])
    assert z["terms"][0]["effect"] == pytest.approx(-3 * y["terms"][0]["effect"])
    predicted = run(capsys, "predict", tmp_path / "m.sparsact", folder / "two.csv")[1]
    assert predicted.startswith('"y","y_low","y_high","z",')
    assert "How well it predicts: z" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("unrendered")
def test_columns_of_numbers_are_refused_where_bits_are_asked_for(capsys, folder, tmp_path):
    status, _, err = run(capsys, "fit", folder / "real.csv", "--target", "y", "--domain", "cube")
    assert status == 2
    assert "column 'level', row 1" in err
    words = ("--target", "y", "--domain", "real", "--model", "low-degree", "--folds", 2)
    told = fit_json(capsys, folder / "real.csv", *words, "--report", tmp_path / "r.html")
    assert told["targets"][0]["r2"] > 0.9


def test_a_fixed_degree_and_penalty_are_kept_and_the_lower_degrees_are_compared(capsys, folder):
    told = fit_json(capsys, folder / "t.csv", "--target", "y", "--degree", "3", "--alpha", "2.5", "--folds", "4")
    assert (told["degree"], told["alpha"]) == (3, 2.5)
    assert [c["degree"] for c in told["candidates"]] == [1, 2, 3]


def test_the_model_does_not_depend_on_the_folds_or_the_seed(capsys, folder, tmp_path):
    for seed, folds in ((0, 5), (7, 3)):
        fixed = ("--degree", "2", "--alpha", "0", "--random-state", seed, "--folds", folds)
        run(capsys, "fit", folder / "t.csv", "--target", "y", *fixed, "--out", tmp_path / f"{seed}.sparsact", "--quiet")
    one, other = (sparsact.load(tmp_path / f"{seed}.sparsact") for seed in (0, 7))
    np.testing.assert_array_equal(one.coefficients_, other.coefficients_)


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (None, [], "no table"),
        ("a,b\n0,1\n1,2\n", [], "no target 'y' in the table; its columns are a, b"),
        ("a,yy\n0,1\n1,2\n", [], "did you mean 'yy'"),
        ("a,y\n0,1\n0.5,2\n1,3\n", ["--domain", "cube"], "column 'a', row 2: 0.5 is a value that is not a bit"),
        ("a,y\n0,1\n1,nan\n", [], "column 'y', row 2: the value is missing"),
        ("a,y\n", [], "no rows"),
        ("a,y\n0,3\n1,3\n", [], "target 'y' is constant"),
        ("a,y\n0,1\n1,2\n0,3\n", [], "3 rows are fewer than 5 folds; choose folds 3"),
        ("a,y\n0,1\n1,2\n0,3\n", ["--degree", "4", "--folds", "2"], "degree 4 is above the number of columns"),
        ("a,y\n0,1\n1,2\n", ["--degree", "two"], "degree two is neither 'auto' nor a whole number"),
        ("a,y\n0,1\n1,2\n", ["--alpha", "-1"], "alpha -1 is neither 'auto' nor a number"),
        ("a,y\n0,1\n1,2\n", ["--folds", "1"], "folds 1: held-out scores need at least 2"),
        ("a,y\n0,1\n1,2\n", ["--domain", "torus"], "domain 'torus' is none of 'auto', 'cube', 'real'"),
        (
            "a,y\n0,1\n1,2\n",
            ["--model", "forest"],
            "model 'forest' is none of 'auto', 'low-degree', 'sparse', 'gp', 'letters', 'latent'",
        ),
        ("a,y\n0,1\n1,2\n", ["--model", "lsh", "--degree", "3"], "degree 3 applies to low-degree models only"),
        ("a,y\n0,1\n1,2\n", ["--model", "lsh", "--alpha", "0.5"], "alpha 0.5 applies to low-degree models only"),
        ("0.5,-1\n0,1\n1,2\n", [], "its first row holds numbers (0.5, -1, ...) instead of names"),
        ("a,y\n0,1\n1,2\n", ["--nonsense"], "No such option"),
        ("a,y\n0,1\n1,2\n", ["--report", "nowhere/r.html"], "there is no folder 'nowhere'"),
        ("a,y\n0,1\n1,2\n", ["--report", "report.pdf"], "its name must end in .html"),
        ("a,y\n0,1\n1,2\n", ["--out", "."], "it is a folder"),
    ],
)
def test_bad_input_ends_with_status_2_and_one_line(capsys, tmp_path, monkeypatch, text, words, message):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "t.csv").write_text(text)
    status, out, err = run(capsys, "fit", "t.csv", "--target", "y", *words)
    assert (status, out) == (2, "")
    assert err.startswith("sparsact: error: ")
    assert err.count("\n") == 1
    assert message in err


def test_outputs_are_checked_before_the_work(capsys, folder, tmp_path):
    words = ("--target", "y", "--out", tmp_path / "none" / "m.sparsact")
    status, _, err = run(capsys, "fit", folder / "missing.csv", *words)
    assert status == 2
    assert "there is no folder" in err


def test_model_files_that_are_missing_foreign_or_altered_are_refused(capsys, folder, fitted, tmp_path):
    status, _, err = run(capsys, "inspect", tmp_path / "none.sparsact")
    assert (status, err.count("\n")) == (2, 1)
    assert "no model" in err
    model, whole = tmp_path / "m.sparsact", fitted.read_bytes()
    middle = bytearray(whole)
    middle[-5] ^= 1
    for content in (b"", b"no model", whole[:-7], bytes(middle)):
        model.write_bytes(content)
        for words in (("inspect", model), ("predict", model, folder / "t.csv")):
            status, out, err = run(capsys, *words)
            assert (status, out, err.count("\n")) == (2, "", 1)
            assert err.startswith("sparsact: error: ")


def test_a_model_made_in_python_knows_no_columns(capsys, folder, tmp_path):
    X = np.random.default_rng(0).integers(0, 2, (50, 3))
    sparsact.LowDegreeRegressor(degree=1).fit(X, X[:, 0]).save(tmp_path / "m.sparsact")
    status, _, err = run(capsys, "predict", tmp_path / "m.sparsact", folder / "t.csv")
    assert status == 2
    assert "was not made by sparsact fit" in err


def test_progress_is_shown_on_stderr_when_asked(capsys, folder):
    status, out, err = run(capsys, "fit", folder / "t.csv", "--target", "y", "--degree", "2", "--json", "--progress")
    assert status == 0
    assert json.loads(out)["rows"] == 301
    assert "reading" in err
    assert "choosing" in err


@pytest.mark.grid
def test_the_installed_program_runs(fitted):
    """The fit of a fresh interpreter is tested in test_dependencies.py."""
    done = process("inspect", fitted, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["degree"] == 2


def test_the_version_names_the_kernels_in_use():
    done = process("--version", SPARSACT_KERNELS="reference")
    assert re.fullmatch(r"sparsact \S+, kernels: reference \(NumPy\)\n", done.stdout)


def piped(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_table_on_stdin(capsys, folder, tmp_path, monkeypatch):
    """Its output is as for a file with these rows; the copy is deleted afterwards, whether it could be read or not."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)  # which Python keeps once it has looked
    (tmp_path / "temporary").mkdir()
    rows, model = (folder / "t.csv").read_bytes(), tmp_path / "m.sparsact"
    piped(monkeypatch, rows)
    words = ("--target", "y", "--model", "low-degree", "--folds", 2)
    told = fit_json(capsys, "-", *words, "--out", model)
    expected = fit_json(capsys, folder / "t.csv", *words)
    assert told["table"] == "stdin.csv"
    assert told["targets"] == expected["targets"]
    answers = run(capsys, "predict", model, folder / "t.csv")
    for out in ([], ["--out", "-"]):
        piped(monkeypatch, rows)
        assert run(capsys, "predict", model, "-", *out) == answers
    for data, words, message in (
        (b"a,y\n0,1\n", ["fit", "-", "-t", "z"], "no target 'z'"),
        (b"", ["predict", model, "-"], "stdin.csv"),
        (rows, ["fit", "-", folder / "t.csv", "-t", "y"], "name no other file"),
        (rows, ["fit", "-", "-t", "y", "--resume", tmp_path / "r"], "stdin can be read once"),
    ):
        piped(monkeypatch, data)
        status, out, err = run(capsys, *words)
        assert (status, out) == (2, "")
        assert message in err
    assert not list((tmp_path / "temporary").iterdir())


def test_predictions_are_written_whole_or_not_at_all(capsys, fitted, tmp_path):
    model, table = fitted, tmp_path / "new.csv"
    header, rows = ",".join(NAMES) + "\n", "0,1,0,1,1,1\n" * 200_000
    table.write_text(header + rows + "0,1\n")
    (tmp_path / "p.csv").write_text("earlier")
    assert run(capsys, "predict", model, table, "--out", tmp_path / "p.csv")[0] == 2
    assert (tmp_path / "p.csv").read_text() == "earlier"
    assert not list(tmp_path.glob(".*"))
    table.write_text(header)  # no rows: a header, and no rows
    assert run(capsys, "predict", model, table) == (0, '"y","y_low","y_high","outside"\n', "")
    assert run(capsys, "predict", model, table, "--out", tmp_path / "p.parquet")[0] == 0
    assert pa.parquet.read_table(tmp_path / "p.parquet").num_rows == 0


def test_tables_that_cannot_be_read_are_named(capsys, tmp_path):
    (tmp_path / "t.csv").write_bytes(b"caf\xe9,y\n0,1\n1,2\n")
    (tmp_path / "u.csv").write_bytes(b"y,a\n0,1\n" * 20_000 + b"1,caf\xe9\n")  # beyond the head
    for table, message in ((tmp_path / "u.csv", "save it as UTF-8"), (tmp_path, "is a folder")):
        status, _, err = run(capsys, "fit", table, "--target", "y")
        assert (status, err.count("\n")) == (2, 1)
        assert message in err


def test_a_pattern_of_files_is_one_table(capsys, folder, tmp_path):
    """The same model bytes as of the whole table, and predictions for every row of all files."""
    table = pa.csv.read_csv(folder / "t.csv")
    for number, (start, length) in enumerate([(0, 150), (150, 13), (163, 138)], start=9):
        pa.csv.write_csv(table.slice(start, length), tmp_path / f"part-{number}.csv")
    words = ("-t", "y", "--model", "low-degree", "--folds", 2)
    pattern, model, again = tmp_path / "part-*.csv", tmp_path / "m.sparsact", tmp_path / "again.sparsact"
    assert run(capsys, "fit", folder / "t.csv", *words, "--out", model, "-q")[0] == 0
    told = fit_json(capsys, pattern, *words, "--out", again)
    assert (told["table"], told["rows"]) == ("part-9.csv ... part-11.csv (3 files)", 301)
    assert again.read_bytes() == model.read_bytes()
    listed = sorted(tmp_path.glob("part-*.csv"))  # as a shell without natural order expands it
    assert run(capsys, "predict", model, *listed)[1] == run(capsys, "predict", model, folder / "t.csv")[1]


def test_streams_that_are_closed_or_lack_a_sign_do_not_lose_the_answer(folder, tmp_path, monkeypatch):
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    monkeypatch.setattr(sys, "stderr", None)
    assert (
        main(["fit", str(folder / "t.csv"), "--target", "y", "--degree", "2", "--out", str(tmp_path / "m.sparsact")])
        == 0
    )
    assert b"R2 0.99" in narrow.buffer.getvalue()
    assert (tmp_path / "m.sparsact").exists()
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["fit", str(folder / "t.csv"), "--target", "missing"]) == 2
    sys.stdout.close()
    sys.stderr.close()

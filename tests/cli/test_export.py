"""``sparsact export``: the program of a table's model, given numbers as its comment says, answers as predictions do."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import fit_json, run
from exported_models import COMPILER, values_in_c
from grids import few_of

import sparsact

pytestmark = [pytest.mark.usefixtures("few_rivals"), pytest.mark.skipif(COMPILER is None, reason="no C compiler")]

RNG = np.random.default_rng(3)
M = 241
YES, COLOUR = RNG.choice(["no", "yes */ /* \\"], M), RNG.choice(["red", "grün", "blue"], M)
X = np.where(RNG.random(M) < 0.05, np.nan, 1e3 + 5 * RNG.normal(size=M))
LETTERS = ["".join(RNG.choice(list("AC"), 3)) for _ in range(M)]
COUNT = np.array([text.count("A") for text in LETTERS])
LEVEL = (YES == "no") * (COLOUR == "red") + 0.1 * RNG.normal(size=M)
TABLES = {  # columns, and what fit is told besides them
    "bits": ({"garden*/": YES, "colour": COLOUR, "y": LEVEL}, []),
    "letters": ({"s": LETTERS, "b": YES, "y": LEVEL + COUNT}, ["--model", "low-degree"]),
    "numbers": ({"x": X, "colour": COLOUR, "b": YES, "y": np.exp(LEVEL + np.nan_to_num(X, nan=1e3) / 10 - 100)},
                ["--model", "low-degree", "--drop-missing", "--log-target"]),
    "tables": ({"x": X, "colour": COLOUR, "y": LEVEL + np.abs(np.nan_to_num(X, nan=1e3) - 1e3)}, ["--model", "lsh"]),
    "classes": ({"colour": COLOUR, "b": YES, "y": np.where(LEVEL > 0.5, "in", "out")}, ["--model", "low-degree"]),
    "hashed classes": ({"x": X, "colour": COLOUR, "y": np.where(LEVEL > 0.5, "in", "out")}, ["--model", "lsh"]),
}  # fmt: skip


def value_said(line, table):
    """What a line of the comment says of a number, for every row."""
    bit = re.fullmatch(r"column '(.+)': (-?\d) for '(.+)', (-?\d) for '(.+)'", line)
    one_hot = re.fullmatch(r"column '(.+)': (-?\d) for '(.+)', else (-?\d)", line)
    missing = re.fullmatch(r"column '(.+)': (-?\d) where it is missing, else (-?\d)", line)
    number = re.fullmatch(r"column '(.+)': \(its number - (.+)\) / ([^;]+)(?:; (.+) if missing)?", line)
    letter = re.fullmatch(r"(-?\d) where '(.+)\[(\d+)\]=(.)', else (-?\d)", line)

    def column(name):
        return np.array(table[name.replace("* /", "*/")])

    if bit:
        name, one, value, zero, _ = bit.groups()
        other = bit[5].encode().decode("unicode_escape").replace("* /", "*/").replace("/ *", "/*")
        return np.where(column(name) == other, float(zero), float(one))
    if one_hot:
        name, one, value, zero = one_hot.groups()
        return np.where(column(name) == value.encode().decode("unicode_escape"), float(one), float(zero))
    if missing:
        return np.where(np.isnan(column(missing[1])), float(missing[2]), float(missing[3]))
    if number:
        name, centre, scale, fill = number.groups()
        own = column(name)
        return np.where(np.isnan(own), float(fill or "nan"), (own - float(centre)) / float(scale))
    one, name, place, value, zero = letter.groups()
    return np.where([text[int(place) - 1] == value for text in column(name)], float(one), float(zero))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    for name, (columns, _) in TABLES.items():
        masked = {key: pa.array(own, from_pandas=True) for key, own in columns.items()}
        pa.csv.write_csv(pa.table(masked), path / f"{name}.csv")
    return path


@pytest.mark.parametrize("name", few_of(TABLES, ["bits"]))
def test_a_program_that_is_given_what_its_comment_says_answers_as_predictions_do(capsys, folder, name):
    columns, options = TABLES[name]
    model, program = folder / f"{name}.sparsact", folder / f"{name.replace(' ', '_')}.c"
    fit_json(capsys, folder / f"{name}.csv", "--target", "y", "--folds", 2, "--out", model, *options)
    status, out, err = run(capsys, "export", model, program, "--name", "f")
    assert (status, err) == (0, "")
    assert str(program) in out
    lines = program.read_text(encoding="ascii").partition("*/")[0].splitlines()
    said = [line.partition(": ")[2] for line in lines if re.match(r"/?[ *]+x\[", line)]
    answers = [line.partition(": ")[2] for line in lines if " y[" in line]
    rows = np.column_stack([value_said(line, columns) for line in said])
    values = values_in_c(program, "f", rows, len(answers))
    expected = sparsact.predict_table(sparsact.load(model), folder / f"{name}.csv")["y"].to_numpy()
    if "classes" in name:
        names = re.findall(r" is '(\w+)' where", " ".join(answers))
        if len(answers) == 1:
            found = np.where(values[:, 0] > 0, names[0], re.search(r"else '(\w+)'", answers[0])[1])
        else:
            found = np.array(names)[values.argmax(axis=1)]
        assert found.tolist() == expected.tolist()
        return
    found = np.exp(values[:, 0]) if "logarithm" in answers[0] else values[:, 0]
    assert np.isnan(found).sum() < M / 10
    np.testing.assert_allclose(found, expected, rtol=1e-6 if name == "tables" else 1e-11, atol=1e-7)


@pytest.mark.grid
def test_what_has_no_program_is_refused_in_one_line(capsys, folder):
    sites = pa.table({"s": LETTERS, "t": RNG.choice(list("ACG"), M), "y": LEVEL})
    pa.csv.write_csv(sites, folder / "sites.csv")
    model, program = folder / "sites.sparsact", folder / "sites.c"
    fit_json(capsys, folder / "sites.csv", "--target", "y", "--folds", 2, "--model", "letters", "--out", model)
    status, out, err = run(capsys, "export", model, program)
    assert (status, out, program.exists()) == (2, "", False)
    assert "error: sites.sparsact holds a LettersRegressor, which cannot be exported; fit the table with --model" in err
    assert err.count("\n") == 1
    status, _, err = run(capsys, "export", model, folder / "sites.py")
    assert (status, "must end in .c or .onnx" in err) == (2, True)


def test_the_description_of_a_graph_says_what_its_numbers_are(capsys, folder):
    onnx = pytest.importorskip("onnx")
    model = folder / "described.sparsact"
    fit_json(capsys, folder / "bits.csv", "--target", "y", "--folds", 2, "--out", model)
    assert run(capsys, "export", model, folder / "model.onnx")[0] == 0
    graph = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(graph, full_check=True)
    assert graph.doc_string.startswith("x[0]: column 'garden*/': 1 for ")
    assert graph.doc_string.endswith("y[0]: column 'y'")

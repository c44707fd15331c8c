"""What a first fit of a table says of terms, weights, groups and cells that it cannot read; and which rows are next."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import run

import sparsact as sa
from sparsact.datasets import open_table

pytestmark = pytest.mark.usefixtures("few_rivals")
NAMES = ("V11A", "K23R", "D45N", "G67S", "L89F", "T101I", "E120K", "A133V", "S150P", "R171H")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of 120 rows: names, ten mutations, plates, errors; the fitness of the first two rows is missing."""
    rng = np.random.default_rng(3)
    X, se = rng.integers(0, 2, (120, 10)), rng.uniform(0.05, 0.3, 120).round(3)
    fitness = X[:, 0] - X[:, 3] + X[:, 1] * X[:, 2] + se * rng.normal(size=120)
    columns = {"id": [f"variant {i}" for i in range(120)]} | {name: X[:, i] for i, name in enumerate(NAMES)}
    columns |= {"plate": [f"P{i % 7}" for i in range(120)], "se": se}
    found = tmp_path_factory.mktemp("first")
    pa.csv.write_csv(pa.table(columns | {"fitness": [None, None, *fitness[2:].round(4)]}), found / "t.csv")
    return found


def told(capsys, folder, *words):
    given = ("fit", folder / "t.csv", "--target", "fitness", "--drop-missing", *words)
    status, out, err = run(capsys, *given)
    return out if status == 0 else err


def test_terms_that_are_not_shown_are_counted_and_can_be_listed(capsys, folder):
    model = folder / "m.sparsact"
    out = told(capsys, folder, "--degree", 2, "--out", model)
    more, top = map(int, re.search(r"\n  (\d+) more terms: sparsact inspect \S+ --top (\d+)\n", out).groups())
    assert top == 55  # ten columns and 45 pairs
    assert more == 55 - len(re.findall("rests on", out))
    inspected = run(capsys, "inspect", model, "--top", top)[1]
    assert len(re.findall(r"V11A|K23R|D45N|G67S", inspected.partition("variance")[0])) > 8
    assert len([line for line in inspected.splitlines() if line.startswith("│")]) == 56
    assert f"{more} more terms: add --out FILE" in told(capsys, folder, "--degree", 2)
    assert "more terms" not in told(capsys, folder, "--degree", 1, "--columns", "V11A,K23R,D45N")


def test_of_a_few_terms_none_are_missing_and_python_names_its_own_method(folder):
    result = sa.fit_table(folder / "t.csv", "fitness", degree=2, drop_missing=True)
    assert "47 more terms: see to_frame()" in str(result)
    assert len(result.to_frame()) == 56


def test_weights_that_look_like_errors_are_doubted(capsys, folder):
    out = told(capsys, folder, "--weights", "se", "--degree", 1)
    assert re.search("note: warning: se looks like standard deviations.*use --sigma se in place of weights", out)
    assert "warning" not in told(capsys, folder, "--sigma", "se", "--degree", 1)


@pytest.mark.parametrize(
    ("name", "option"),
    [("fitness_sd", "sigma"), ("Var", "variance"), ("inverse_variance", ""), ("error_weight", ""), ("reads", "")],
)
def test_names_of_errors_are_told_from_names_of_weights(name, option):
    rng = np.random.default_rng(4)
    data = pa.table({"a": np.arange(40) % 2, "b": np.arange(40) // 2 % 2, name: rng.uniform(1, 2, 40)})
    data = data.append_column("fitness", pa.array(rng.normal(size=40)))
    notes = sa.fit_table(data, "fitness", degree=1, weights=name).encoding.notes
    assert [f"{option}={name!r}" in note for note in notes if "warning" in note] == [True] * bool(option)


def test_groups_of_single_rows_are_doubted(capsys, folder):
    out = told(capsys, folder, "--groups", "id", "--degree", 1)
    assert "warning: id holds 118 groups in 118 rows" in out
    assert "warning" not in told(capsys, folder, "--groups", "plate", "--degree", 1)


@pytest.mark.parametrize("option", ["--sigma", "--weights"])
def test_a_cell_that_is_no_number_is_named_by_its_row_in_the_file(capsys, folder, option):
    """Rows 1 and 2 are left out before the column is read."""
    said = told(capsys, folder, option, "plate")
    assert "column 'plate', row 3: 'P2' is not a finite number" in said
    assert "name another column" in said


def test_rows_of_the_file_are_counted_through_two_choices_of_rows(tmp_path):
    """A row is bad, and before it some lack a value, some have no weight, and batches end."""
    rows = [f"{i % 2},{i % 3},{'' if i % 5 == 0 else i},{i % 4}" for i in range(100)]
    rows[77] = "1,1,x,2"
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y,n", *rows]))
    with pytest.raises(ValueError, match="'y', row 78: 'x'"):
        sa.fit_table(tmp_path / "t.csv", "y", task="regression", drop_missing=True, weights="n")


def test_a_target_of_names_is_called_an_identifier(capsys, folder):
    status, _, err = run(capsys, "fit", folder / "t.csv", "--target", "id")
    assert status == 2
    assert "like an identifier" in err


def test_swapped_arguments_are_recognized(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(ValueError, match=r"'t\.csv' is one; the table comes first"):
        sa.fit_table("fitness", "t.csv")


def test_of_few_rows_an_identifier_and_errors_are_left_out_too(tmp_path):
    rows = ["name,a,b,se,y", *(f"v{i},{i % 2},{i // 2 % 2},{0.1 + 0.013 * i * i:.3f},{i}" for i in range(8))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    encoding = open_table(tmp_path / "t.csv", "y", domain="auto").encoding
    assert encoding.source_columns == ["a", "b"]
    assert any("like an identifier: name" in note for note in encoding.notes)


def test_suggested_rows_fit_a_narrow_terminal_with_whole_gains_first(capsys, folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told(capsys, folder, "--degree", 1, "--out", folder / "s.sparsact")
    out = run(capsys, "suggest", folder / "s.sparsact", "--n", 4, "--measured", folder / "t.csv")[1]
    *notes, head, one, two, three, four = out.splitlines()
    assert head.split() == ["gain", *NAMES]
    total = sum(float(re.match(r" *([\d.]+)%", row)[1]) for row in (one, two, three, four))
    assert total == pytest.approx(float(re.search(r"remove ([\d.]+)%", notes[0])[1]), rel=0.05)
    assert any("errors, weights and groups are not read" in note for note in notes)
    best = run(capsys, "suggest", folder / "s.sparsact", "--n", 1, "--measured", folder / "t.csv", "--goal", "maximum")
    assert "%" not in best[1].splitlines()[-1]

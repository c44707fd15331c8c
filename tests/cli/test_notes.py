"""Columns left out, terms that are not identified, shares of columns: what the command says of them."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from commands import fit_json, run

import sparsact

pytestmark = pytest.mark.usefixtures("few_rivals")


def test_a_remedy_can_be_pasted(capsys, tmp_path):
    """The name of a column may have spaces."""
    (tmp_path / "t.csv").write_text("a,free text,y\n" + "".join(f"{i % 2},note {i},{i}\n" for i in range(70)))
    status, _, err = run(capsys, "fit", tmp_path / "t.csv", "--target", "y", "--strict")
    assert status == 2
    assert err.endswith("leave it out with --ignore 'free text'.\n")


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered")
def test_columns_left_out_are_said_on_the_terminal_in_json_and_on_the_page(capsys, tmp_path):
    rows = "".join(f"n{i},{i % 2},{1 - i % 2},{i % 3 * 1.5},{i % 2 + i % 7}\n" for i in range(90))
    (tmp_path / "t.csv").write_text("name,a,b,y_other,y_1\n" + rows)
    words = ("fit", tmp_path / "t.csv", "--target", "y_1", "--ignore", "y_other")
    status, out, _ = run(capsys, *words, "--report", tmp_path / "r.html")
    notes = fit_json(capsys, *words[1:])["notes"]
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert status == 0
    for part in ("like an identifier: name.", "b (see a)."):
        assert part in out
        assert part in page
        assert any(note.endswith(part) for note in notes)


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered")
def test_terms_that_the_rows_do_not_identify_have_no_interval_but_aliases(capsys, tmp_path):
    """One of three letters as three columns, and a site that is the sum of two others: products have others."""
    rng = np.random.default_rng(6)
    letter, other, third = rng.integers(0, 3, 211), rng.integers(0, 2, 211), rng.integers(0, 2, 211)
    columns = {f"is_{i}": (letter == i).astype(int) for i in range(3)} | {
        "site": [f"{a}{b}{a ^ b}" for a, b in zip(other, third, strict=True)]
    }
    table = pa.table(columns | {"y": letter + 4.0 * other + rng.normal(0, 0.1, 211)})
    pa.csv.write_csv(table, tmp_path / "letters.csv")
    words = ("fit", tmp_path / "letters.csv", "--target", "y", "--degree", 2, "--report", tmp_path / "r.html")
    told = fit_json(capsys, *words[1:])
    (target,) = told["targets"]
    intervals = {tuple(term["columns"]): term["effect_low"] for term in target["terms"]}
    assert target["not_identified"]["site[1]"] == ["site[2] × site[3]"]
    assert intervals["site[1]",] is None
    status, out, _ = run(capsys, *words)
    assert status == 0
    assert re.search(r" site\[1\] .*, not identified by these rows: same as site\[2\] × site\[3\]\n", out)
    assert sum(gain["r2"] for gain in told["r2_by_degree"]) == pytest.approx(target["r2"])
    assert max(target["influences"].values()) < 1.2 * (4 + 2 / 3)  # the variance: off the cube squares exceed it


@pytest.mark.grid
def test_on_the_whole_cube_influences_and_weights_match_the_spectrum(capsys, tmp_path):
    bits = (np.arange(64)[:, None] >> np.arange(6)) & 1
    signs = 1 - 2 * np.repeat(bits, 3, axis=0)
    y = 2 * signs[:, 0] * signs[:, 1] + signs[:, 2] + 0.5 + np.random.default_rng(5).normal(0, 0.1, 192)
    columns = {name: np.repeat(bits[:, i], 3) for i, name in enumerate("abcdef")}
    pa.csv.write_csv(pa.table(columns | {"y": y}), tmp_path / "cube.csv")
    model = tmp_path / "m.sparsact"
    told = fit_json(capsys, tmp_path / "cube.csv", "--target", "y", "--out", model)
    spectrum, (target,) = sparsact.load(model).spectrum_, told["targets"]
    assert target["weight_by_degree"] == pytest.approx(spectrum.weight_by_degree()[1 : told["degree"] + 1].tolist())
    assert list(target["influences"].values()) == pytest.approx(spectrum.influences().tolist())


@pytest.mark.usefixtures("unrendered")
def test_variances_at_the_frequencies_of_the_rows(capsys, tmp_path):
    """For a + 2 b c by hand, where the rows are independent and each column has its own frequency of 1."""
    rng = np.random.default_rng(3)
    a, b, c, d = (rng.random((400, 4)) < [0.1, 0.5, 0.25, 0.5]).T.astype(int)
    pa.csv.write_csv(pa.table({"a": a, "b": b, "c": c, "d": d, "y": a + 2.0 * b * c}), tmp_path / "t.csv")
    fit_json(capsys, tmp_path / "t.csv", "--target", "y", "--degree", 2, "--alpha", 0, "--out", tmp_path / "m")
    p, q, r = (float(column.mean()) for column in (a, b, c))
    due = p * (1 - p) + 4 * q * (1 - q) * r**2 + 4 * r * (1 - r) * q**2, 4 * q * (1 - q) * r * (1 - r)
    status, out, _ = run(capsys, "inspect", tmp_path / "m", "--measure", "data")
    assert status == 0
    assert f"values as frequent as in the rows) 1: {due[0]:.4g}, 2: {due[1]:.4g}" in " ".join(out.split())
    out = run(capsys, "inspect", tmp_path / "m")[1]
    assert "(all combinations equally frequent) 1: 0.75, 2: 0.25" in " ".join(out.split())
    status, _, err = run(capsys, "inspect", tmp_path / "m", "--measure", "Gauss")
    assert (status, "measure must be one of uniform, data; got 'Gauss'" in err) == (2, True)
    fit_json(capsys, tmp_path / "t.csv", "--target", "y", "--model", "gp", "--out", tmp_path / "g")
    assert "--measure data needs a polynomial" in run(capsys, "inspect", tmp_path / "g", "--measure", "data")[2]


CELLS = {"a": [f"{i % 2}" for i in range(40)], "free text": ["", *map(str, range(39))], "y": list(map(str, range(40)))}
REMEDIES = (
    ("drop_missing=True", "--drop-missing"),
    ("ignore='free text'", "--ignore 'free text'"),
)


def test_remedies_are_arguments_in_python_and_options_in_the_command(capsys, tmp_path):
    pa.csv.write_csv(pa.table(CELLS), path := tmp_path / "t.csv")
    with pytest.raises(ValueError, match="the value is missing") as error:
        sparsact.fit_table(path, "y")
    told = run(capsys, "fit", path, "--target", "y")[2]
    for argument, option in REMEDIES:
        assert argument in str(error.value)
        assert option not in str(error.value)
        assert option in told
        assert argument not in told


@pytest.mark.grid
@pytest.mark.usefixtures("unrendered")
def test_notes_name_options_in_the_command_and_arguments_in_the_model(capsys, tmp_path):
    columns = {"n_reads": [f"{i * i % 97 + 9}" for i in range(90)], "a": [f"{i % 2}" for i in range(90)]}
    pa.csv.write_csv(pa.table(columns | {"y": [f"{i % 2 + i % 7}" for i in range(90)]}), path := tmp_path / "t.csv")
    words = (path, "--target", "y", "--report", tmp_path / "r.html", "--out", tmp_path / "m")
    (note,) = (note for note in fit_json(capsys, *words)["notes"] if "n_reads" in note)
    assert "use it with --weights n_reads, or learn from it with --columns '*,n_reads'." in note
    assert "--weights n_reads" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "use it with --weights n_reads" in run(capsys, "inspect", tmp_path / "m", "--json")[1]
    (own,) = (note for note in sparsact.fit_table(path, "y").encoding.notes if "n_reads" in note)
    assert "use it with weights='n_reads', or learn from it with columns='*,n_reads'." in own

"""``sparsact demo``: a real table, a fit, and what to do next."""

import numpy as np
import pytest
from commands import run

import sparsact as sa
from sparsact.datasets import load_poelwijk


@pytest.fixture
def few_rows(monkeypatch):
    """The demo's table with every sixteenth row."""
    whole = load_poelwijk()
    part = type(whole)(whole.X[::16], whole.y[::16], *(whole.names, whole.target_names, whole.source, whole.licence))
    monkeypatch.setattr("sparsact.datasets.load_poelwijk", lambda: part)
    return part


@pytest.mark.usefixtures("unrendered")
def test_the_demo_writes_a_table_fits_it_and_says_what_is_next(few_rows, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, "demo", "--no-progress")
    assert (status, err) == (0, "")
    names = ["protein.csv", "protein.html", "protein.sparsact"]
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == names
    assert out.startswith("Held-out R² 0.")
    written, every, own = out.splitlines()[-3:]
    assert all(f"demo/{name}" in written for name in names)
    assert every.endswith("sparsact fit demo/protein.csv --target brightness")
    assert own.endswith("sparsact fit TABLE.csv --target COLUMN --report report.html --out model.sparsact")
    found = sa.load(tmp_path / "demo" / "protein.sparsact")
    assert found.n_samples_seen_ == len(few_rows.y)
    table = np.loadtxt(tmp_path / "demo" / "protein.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(table, np.column_stack([few_rows.X, few_rows.y]))


@pytest.mark.usefixtures("unrendered", "few_rows")
def test_the_demo_replaces_files_only_if_told(capsys, tmp_path):
    mine = tmp_path / "protein.csv"
    mine.write_text("mine")
    status, out, err = run(capsys, "demo", "--folder", tmp_path)
    assert (status, out) == (2, "")
    assert (
        err == f"sparsact: error: {mine} exists already; pass --force to replace it, or --folder for another place.\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["protein.csv"]
    assert mine.read_text() == "mine"
    assert run(capsys, "demo", "--folder", tmp_path, "--force", "--no-progress")[0] == 0
    assert mine.read_text().startswith('"D1N"')


@pytest.mark.usefixtures("few_rows")
def test_without_the_extra_of_reports_the_demo_has_none(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("sparsact.cli.io.find_spec", lambda name: None)
    status, out, _ = run(capsys, "demo", "--folder", tmp_path, "--no-progress")
    assert status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["protein.csv", "protein.sparsact"]
    assert "a report needs" in out


@pytest.mark.parametrize("below", ["", "within"])
def test_a_file_is_no_folder_for_the_demo(below, capsys, tmp_path):
    (tmp_path / "t.csv").write_text("mine")
    status, out, err = run(capsys, "demo", "--folder", tmp_path / "t.csv" / below)
    assert (status, out) == (2, "")
    assert err.startswith("sparsact: error: cannot make the folder ")
    assert err.endswith(f"{str(tmp_path / 't.csv')!r} is a file; choose another --folder.\n")

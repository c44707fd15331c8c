"""Every command that writes a file, in every place that takes none: one line, status 2, and no file is harmed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import run
from disks import read_only, small_disk, small_files
from reproduced import rows_of
from torch import nn

import sparsact as sa
from sparsact.constructions import indexing
from sparsact_papers.experiments import Scale, Store, experiments

N_ROWS = 9000  # their predictions are larger than any of the disks
LINE = experiments()["one-dimension"]
EARLIER = b"earlier"

COMMANDS = {  # by what is written, with FILE for its name
    "predict.csv": ("predict", "model.sparsact", "table.csv", "--out"),
    "predict.parquet": ("predict", "model.sparsact", "table.csv", "--out"),
    "inspect.html": ("inspect", "network.sparsact", "--report"),
    "measure.html": ("measure", "sparsact_of_test_commands:model", "--inputs", "points.npy", "--report"),
    "reproduce.html": ("reproduce", "--smoke", "--only", LINE.name, "--store", "rows", "--report"),
}
DEAR = ("measure.html", "reproduce.html")  # they write in the same way, after seconds of work
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name for name in COMMANDS]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder with what the commands read."""
    folder, rng = tmp_path_factory.mktemp("inputs"), np.random.default_rng(5)
    bits = rng.integers(0, 2, (N_ROWS, 4))
    table = "a,b,c,d,y\n" + "".join(f"{','.join(map(str, row))},{row[0] / 3 + row[1] * row[2]}\n" for row in bits)
    (folder / "table.csv").write_text(table)
    (folder / "few.csv").write_text("".join(table.splitlines(keepends=True)[:300]))
    indexing(2).save(folder / "network.sparsact")
    np.save(folder / "points.npy", rng.normal(size=(19, 5)))
    store = Store(folder / "rows")
    for row in rows_of(LINE, Scale.SMOKE):
        store.append(row)
    return folder


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 13), nn.ReLU(), nn.Linear(13, 3))


@pytest.fixture
def here(inputs, monkeypatch, capsys):
    monkeypatch.chdir(inputs)
    monkeypatch.setitem(sys.modules, "sparsact_of_test_commands", sys.modules[__name__])
    if not Path("model.sparsact").exists():
        assert run(capsys, "fit", "few.csv", "-t", "y", "--degree", 2, "--out", "model.sparsact", "-q")[0] == 0
    return inputs


def fails(capsys, name, file):
    """Run the command of that name, that is to write a file; what it says."""
    status, out, err = run(capsys, *COMMANDS[name], file)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("sparsact: error: ")
    return err


@pytest.mark.parametrize("full", [small_files, small_disk])
@pytest.mark.parametrize("name", NAMES)
def test_a_disk_without_room(here, tmp_path, capsys, name, full):
    earlier = full is small_files
    if earlier:
        (tmp_path / name).write_bytes(EARLIER)
    with full(tmp_path):
        before = sorted(path.name for path in tmp_path.iterdir())
        err = fails(capsys, name, tmp_path / name)
        assert str(tmp_path / name) in err
        assert "free some space and run this again" in err
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        assert not earlier or (tmp_path / name).read_bytes() == EARLIER


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_without_permission(here, tmp_path, capsys, name):
    with read_only(tmp_path, lambda: (tmp_path / name).write_bytes(EARLIER)):
        for file in (tmp_path / name, tmp_path / f"new-{name}"):
            err = fails(capsys, name, file)
            assert str(file) in err
            assert "permission denied; choose another place" in err
        assert [path.name for path in tmp_path.iterdir()] == [name]
        assert (tmp_path / name).read_bytes() == EARLIER


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_is_not_there_or_is_in_the_place_of_the_file(here, tmp_path, capsys, name):
    assert "make it first" in fails(capsys, name, tmp_path / "nowhere" / name)
    (tmp_path / name).mkdir()
    assert "it is a folder" in fails(capsys, name, tmp_path / name)
    assert list(tmp_path.rglob("*")) == [tmp_path / name]


@pytest.mark.parametrize("name", NAMES)
def test_with_room_the_file_is_replaced(here, tmp_path, capsys, name):
    (tmp_path / name).write_bytes(EARLIER)
    status, _, err = run(capsys, *COMMANDS[name], tmp_path / name)
    assert (status, err) == (0, "")
    assert (tmp_path / name).stat().st_size > 3000
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("fit", "few.csv", "-t", "y", "--out", "few.csv"), "--out: it is read"),
        (("fit", "f*.csv", "-t", "y", "--out", "linked.csv"), "--out: it is read"),
        (("fit", "few.csv", "-t", "y", "--resume", "few.csv"), "--resume: it is read"),
        (("fit", "few.csv", "-t", "y", "--out", "new", "--resume", "./new"), "--resume: it is written by --out"),
        (("fit", "few.csv", "-t", "y", "--out", "r.html", "--report", "r.html"), "--report: it is written by --out"),
        (("predict", "model.sparsact", "few.csv", "--out", "few.csv"), "--out: it is read"),
        (("predict", "model.csv", "few.csv", "--out", "model.csv"), "--out: it is read"),
    ],
)
def test_what_is_read_is_not_written_over(here, tmp_path, monkeypatch, capsys, words, options):
    for name in ("few.csv", "model.sparsact"):
        (tmp_path / name).write_bytes((here / name).read_bytes())
    (tmp_path / "linked.csv").symlink_to("few.csv")
    (tmp_path / "model.csv").symlink_to("model.sparsact")
    monkeypatch.chdir(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    status, out, err = run(capsys, *words, *["-q"] * (words[0] == "fit"))
    assert (status, out, options in err) == (2, "", True), err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_store_that_takes_no_rows_is_told_before_the_work(here, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sparsact_papers.command._collect", lambda *_: pytest.fail("it began to work"))
    words = ["reproduce", "--smoke", "--only", LINE.name, "--report", here / "page.html", "--store"]
    (tmp_path / "file").write_bytes(EARLIER)
    (tmp_path / "folder").mkdir()
    with read_only(tmp_path / "folder"):
        for store in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / "folder", tmp_path / "folder" / "new"):
            status, out, err = run(capsys, *words, store)
            assert (status, out, err.count("\n")) == (2, "", 1)
            assert str(store) in err
    assert not (here / "page.html").exists()


@pytest.mark.grid
def test_a_store_without_room_keeps_its_rows(here, tmp_path, capsys):
    words = ["reproduce", "--smoke", "--only", LINE.name, "--jobs", 1, "--store", tmp_path / "rows"]
    with small_files(tmp_path, 2500):
        status, out, err = run(capsys, *words, "--report", tmp_path / "page.html")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{LINE.name}.jsonl" in err
    assert "free some space and run this again" in err
    kept = Store(tmp_path / "rows")
    assert (0 < len(kept) < len(LINE.tasks(Scale.SMOKE)), kept.n_unreadable) == (True, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def said(words, folder, **files):
    command = [sys.executable, "-m", "sparsact", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, cwd=folder, env=environment, stderr=subprocess.PIPE, check=False, **files)


@pytest.mark.parametrize(
    "words", [("bounds",), pytest.param(("predict", "model.sparsact", "table.csv"), marks=pytest.mark.slow)]
)
@pytest.mark.grid
def test_an_answer_that_cannot_be_written_or_is_not_read_to_its_end(here, words):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        told = said(words, here, stdout=full)
    assert told.returncode == 2
    assert told.stderr.decode().splitlines() == [
        "sparsact: error: No space left on device; free some space and run this again."
    ]
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    told = said(words, here, stdout=reader.stdin)
    reader.stdin.close()
    assert (told.returncode, told.stderr) == (1, b"")


def test_a_network_is_saved_whole_or_not_at_all(tmp_path):
    path = tmp_path / "network.sparsact"
    indexing(2).save(path)
    before = path.read_bytes()
    with small_files(tmp_path), pytest.raises(OSError, match="free some space"):
        indexing(9).save(path)
    assert path.read_bytes() == before
    assert sa.load(path).s == indexing(2).s

"""Rows on disk, whatever happens to the disk and whoever else writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import measurements
import pytest
from disks import small_disk, small_files
from measurements import experiment, square

from sparsact_papers.experiments import Scale, Store, Task, measure
from sparsact_papers.lines import locked

ROWS = [measure(square, task) for task in experiment(square, range(5)).tasks(Scale.FULL)]

WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from measurements import experiment, square
from sparsact_papers.experiments import Scale, Store, Task, measure
from sparsact_papers.lines import locked
store, first, count, cut = Store(sys.argv[1]), *map(int, sys.argv[2:])
row = measure(square, experiment(square, range(1)).tasks(Scale.FULL)[0])
path = Path(sys.argv[1]) / "square.jsonl"
print("ready", flush=True)
sys.stdin.readline()
for number in range(first, first + count):
    task = Task("square", 1, {"number": number, "seed": 7})
    store.append(replace(row, task=task.name, parameters=task.parameters, values={"text": "x" * (number * 97 % 9000)}))
    if cut and number % 5 == 0:
        with path.open("ab", buffering=0) as file, locked(file):
            file.write(b'{"task":"of a process that was killed')
"""


def filled(folder, count=5):
    store = Store(folder)
    for row in ROWS[:count]:
        store.append(row)
    return folder / "square.jsonl"


def writer(folder, first, count, cut=False):
    """A process that appends rows to a store, from one number on, once it is told to."""
    words = [sys.executable, "-c", WRITER, folder, str(first), str(count), str(int(cut))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(measurements.__file__).parent), *sys.path])}
    return subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def start(*writers):
    for one in writers:
        assert one.stdout.readline() == b"ready\n"
    for one in writers:
        one.stdin.write(b"\n")
        one.stdin.flush()


def finish(*writers):
    for one in writers:
        one.communicate()
        assert one.returncode == 0


@pytest.mark.parametrize("each", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_processes_that_write_one_store_lose_no_row(tmp_path, each):
    """Three processes; two thirds of the numbers are measured by two of them."""
    writers = [writer(tmp_path, part * each // 2, each) for part in range(3)]
    start(*writers)
    finish(*writers)
    store = Store(tmp_path)
    assert (len(store), store.n_unreadable) == (2 * each, 0)
    lines = (tmp_path / "square.jsonl").read_bytes().splitlines()
    assert len(lines) == 3 * each
    tasks = [Task("square", 1, {"number": number, "seed": 7}) for number in range(2 * each)]
    assert [len(row["text"]) for row in store.of(tasks)] == [number * 97 % 9000 for number in range(len(tasks))]


def test_half_rows_of_killed_processes_cost_no_row_of_the_others(tmp_path):
    writers = [writer(tmp_path, first, 25, cut=True) for first in (0, 25)]
    start(*writers)
    finish(*writers)
    assert len(Store(tmp_path)) == 50
    assert Store(tmp_path).n_unreadable > 0


@pytest.mark.parametrize("full", ["files", "disk"])
def test_a_full_disk_is_told_and_leaves_what_was(tmp_path, full):
    path = tmp_path / "square.jsonl"

    def prepare():
        """Three rows, and 50 bytes to the end of the block: a part of the next row fits."""
        filled(tmp_path, 3)
        with path.open("ab") as file:
            file.write(b"\n" * (-path.stat().st_size % 4096 - 50))

    if full == "files":
        prepare()
    with small_disk(tmp_path, prepare) if full == "disk" else small_files(tmp_path, path.stat().st_size + 50):
        before, store = path.read_bytes(), Store(tmp_path)
        with pytest.raises(OSError, match="free some space and run this again") as raised:
            store.append(ROWS[3])
        assert raised.value.filename == str(path)
        assert path.read_bytes() == before
        assert len(store) == len(Store(tmp_path)) == 3
        (tmp_path / "other").unlink(missing_ok=True)
        if full == "disk":
            store.append(ROWS[3])
            assert (len(Store(tmp_path)), Store(tmp_path).n_unreadable) == (4, 0)


def test_a_row_goes_to_the_file_that_is_there_when_its_turn_comes(tmp_path):
    """A writer waits for the lock; meanwhile the file is put aside for another one."""
    path, waiting = filled(tmp_path, 2), writer(tmp_path, 4, 1)
    with path.open("rb", buffering=0) as held:
        assert waiting.stdout.peek()  # it has read the store
        with locked(held):
            start(waiting)
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(0.3)
            path.rename(tmp_path / "aside")
            (tmp_path / "new").write_bytes((tmp_path / "aside").read_bytes().splitlines(keepends=True)[0])
            (tmp_path / "new").rename(path)
    finish(waiting)
    assert [row["number"] for row in Store(tmp_path).of(experiment(square).tasks(Scale.FULL))] == [0, 4]

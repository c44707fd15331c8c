"""Tasks, stores and workers: nothing is measured twice, nothing is lost, nothing stale is shown."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import measurements
import psutil
import pytest
from measurements import beside_a_killer, counted, dies_later, experiment, faulty, slow_square, square, work

from sparsact_papers.experiments import Failure, Findings, Outcome, Rows, Scale, Store, Task, collect, measure

SQUARES = experiment(square)


def untimed(rows):
    return sorted((row.task, json.dumps(row.parameters), json.dumps(row.values)) for row in rows)


def fill(store, of_experiment, scale=Scale.FULL):
    """Measure in this process the tasks that have no row yet."""
    for task in of_experiment.tasks(scale):
        if not store.of([task]):
            store.append(measure(of_experiment.measure, task))
    return store


def of(store, of_experiment):
    return store.of(of_experiment.tasks(Scale.FULL))


def test_a_name_depends_on_the_definition_and_on_nothing_else():
    task = Task("e", 1, {"a": 1, "b": 2.5, "c": None, "d": "x", "e": True})
    shuffled = Task("e", 1, dict(reversed(task.parameters.items())))
    others = [replace(task, version=2), replace(task, experiment="f")]
    others += [replace(task, parameters={**task.parameters, name: "changed"}) for name in task.parameters]
    others += [replace(task, parameters={**task.parameters, "more": None})]
    assert shuffled.name == task.name
    assert len({task.name, *(other.name for other in others)}) == 1 + len(others)


def test_a_name_is_the_same_in_another_process():
    code = "from sparsact_papers.experiments import Task; print(Task('e', 1, {'a': 0.1, 'b': 'x'}).name)"
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert told.stdout.strip() == Task("e", 1, {"b": "x", "a": 0.1}).name


@pytest.mark.parametrize("value", [[1], {"a": 1}, object()])
def test_a_parameter_is_plain(value):
    with pytest.raises(TypeError, match="plain number"):
        Task("e", 1, {"a": value})


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_becomes_a_row(tmp_path, jobs):
    store = Store(tmp_path / "rows")
    told = []
    assert collect(work(SQUARES), store, jobs=jobs, finished=lambda task, row: told.append((task, row))) == []
    rows = of(store, SQUARES)
    assert [row["square"] for row in rows] == [0, 1, 4, 9, 16]
    assert sorted(row.task for _, row in told) == sorted(row.task for row in rows)
    here = [measure(square, task) for task in SQUARES.tasks(Scale.FULL)]
    assert untimed(rows) == untimed(here)  # another process, the same bits
    assert untimed(of(Store(tmp_path / "rows"), SQUARES)) == untimed(rows)


def test_what_has_a_row_is_not_measured_again(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    part = experiment(counted, range(3), folder=str(marks))
    whole = experiment(counted, range(5), folder=str(marks))
    for one in (part, whole, whole):
        collect(work(one), Store(tmp_path / "rows"), jobs=1)
    assert {path.name: path.read_text() for path in marks.iterdir()} == {f"call-{number}": "x" for number in range(5)}


def test_a_new_version_does_not_see_old_rows(tmp_path):
    store = fill(Store(tmp_path), SQUARES)
    assert of(store, replace(SQUARES, version=2)) == []
    assert len(of(store, SQUARES)) == 5


def test_stores_merge_by_concatenation(tmp_path):
    for name, numbers in (("here", range(3)), ("there", range(2, 5))):
        fill(Store(tmp_path / name), experiment(square, numbers))
    with (tmp_path / "here/square.jsonl").open("ab") as file:
        file.write((tmp_path / "there/square.jsonl").read_bytes())
    merged = Store(tmp_path / "here")
    assert [row["number"] for row in of(merged, SQUARES)] == [0, 1, 2, 3, 4]
    assert len(merged) == 5


@pytest.mark.parametrize("lost", [1, 30, 200])
def test_a_line_that_was_cut_short_costs_its_own_row_only(tmp_path, lost):
    fill(Store(tmp_path), SQUARES)
    path = tmp_path / "square.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-lost])
    cut = Store(tmp_path)
    assert len(cut) == (5 if lost == 1 else 4)  # without its newline a row is still whole
    assert cut.n_unreadable == (lost > 1)
    fill(cut, SQUARES)
    assert [row["square"] for row in of(Store(tmp_path), SQUARES)] == [0, 1, 4, 9, 16]


def test_a_row_whose_definition_was_changed_is_passed_over(tmp_path):
    fill(Store(tmp_path), SQUARES)
    path = tmp_path / "square.jsonl"
    path.write_text(path.read_text().replace('"number":2', '"number":3', 1) + "not json\n[1, 2]\n")
    changed = Store(tmp_path)
    assert len(changed) == 4
    assert changed.n_unreadable == 3


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_task_that_fails_or_dies_does_not_harm_the_others(tmp_path, jobs):
    store, told = Store(tmp_path), []
    wild = experiment(faulty)
    failures = collect(work(wild), store, jobs=jobs, finished=lambda task, result: told.append(result))
    reasons = {failure.task.parameters["number"]: failure.reason for failure in failures}
    assert reasons.keys() == {1, 2, 3}
    assert "ValueError: one is refused" in reasons[1]
    assert "process died" in reasons[2]
    assert "ValueError" in reasons[3]  # a NaN is no result
    assert [row["number"] for row in of(store, wild)] == [0, 4]
    assert sum(isinstance(result, Failure) for result in told) == 3
    assert len(told) == 5


def test_the_neighbours_of_a_task_that_kills_its_worker_are_not_blamed(tmp_path):
    store, wild = Store(tmp_path), experiment(beside_a_killer, range(2))
    failures = collect(work(wild), store, jobs=2)
    assert [failure.task.parameters["number"] for failure in failures] == [0]
    assert [row["number"] for row in of(store, wild)] == [1]


def test_a_worker_that_dies_while_rows_are_written_costs_its_own_task_only(tmp_path):
    store, wild = Store(tmp_path), experiment(dies_later, range(3))
    failures = collect(work(wild), store, jobs=2, finished=lambda task, result: time.sleep(0.3))
    assert [failure.task.parameters["number"] for failure in failures] == [0]
    assert [row["number"] for row in of(store, wild)] == [1, 2]


def test_names_of_tasks_match_rows_that_are_stored_already():
    """A hash of compact JSON with sorted keys: older rows would be lost with any other."""
    definition = b'{"experiment":"one-dimension","parameters":{"n":8,"none":null,"share":0.5},"version":1}'
    named = blake2b(definition, digest_size=8).hexdigest()
    assert Task("one-dimension", 1, {"share": 0.5, "none": None, "n": 8}).name == named


def test_the_surroundings_of_a_run_are_as_before(tmp_path):
    before = dict(os.environ)
    collect(work(SQUARES)[:1], Store(tmp_path), jobs=1)
    assert dict(os.environ) == before


def test_findings_show_the_largest_size_that_is_whole(tmp_path):
    store = Store(tmp_path)
    assert Findings.of(SQUARES, store).scale is Scale.QUICK
    fill(store, SQUARES, Scale.QUICK)
    small = Findings.of(SQUARES, store)
    assert (small.scale, len(small.rows), small.n_tasks) == (Scale.QUICK, 3, 3)
    assert small.verdicts[0][1].measured == "3"
    fill(store, experiment(square, range(4)))
    assert Findings.of(SQUARES, store).scale is Scale.QUICK  # a whole run before a larger part
    part = Findings.of(SQUARES, store, Scale.FULL)
    assert part.verdicts[0][1].measured == "4; from 4 of 5 tasks"
    fill(store, SQUARES)
    assert Findings.of(SQUARES, store).scale is Scale.FULL
    assert Findings.of(SQUARES, store, Scale.QUICK).n_tasks == 3


def test_rows_are_selected_and_grouped(tmp_path):
    rows = Rows(of(fill(Store(tmp_path), SQUARES), SQUARES))
    assert rows.where(number=3).column("square") == [9]
    assert len(rows.where(no_such=1)) == 0
    assert rows.distinct("number") == [0, 1, 2, 3, 4]
    assert {key: len(group) for key, group in rows.groups("text", "seed").items()} == {("x", 7): 5}
    assert rows[1:3].array("square").tolist() == [1.0, 4.0]


KILLED = """
import sys
from measurements import experiment, slow_square, work
from sparsact_papers.experiments import Store, collect
if __name__ == "__main__":
    collect(work(experiment(slow_square, range(12))), Store(sys.argv[1]), jobs=2)
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    """Killed at random moments, twice: at most the two running tasks are lost, and the rows are the same."""
    script = tmp_path / "run.py"
    script.write_text(KILLED)
    rows, rng, slow = tmp_path / "rows", random.Random(3), experiment(slow_square, range(12))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(measurements.__file__).parent), *sys.path])}
    counts = [0]
    for _ in range(2):
        process = subprocess.Popen([sys.executable, script, rows], env=environment, start_new_session=True)
        until = time.monotonic() + 60
        while len(Store(rows)) <= counts[-1] and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.1))
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        counts.append(len(Store(rows)))
    assert counts == sorted(counts)
    assert counts[-1] >= 2
    assert Store(rows).n_unreadable == 0
    collect(work(slow), Store(rows), jobs=2)
    assert untimed(of(Store(rows), slow)) == untimed(measure(slow_square, task) for task in slow.tasks(Scale.FULL))
    assert Findings.of(slow, Store(rows), Scale.FULL).verdicts[0][1].outcome is Outcome.HOLDS


def test_workers_end_when_the_run_is_killed(tmp_path):
    """Only the process that collects is killed; within half a minute none of its workers is left."""
    script = tmp_path / "run.py"
    script.write_text(KILLED.replace("range(12)", "range(4000)"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(measurements.__file__).parent), *sys.path])}
    process = subprocess.Popen([sys.executable, script, tmp_path / "rows"], env=environment)
    until = time.monotonic() + 60
    while not len(Store(tmp_path / "rows")) and time.monotonic() < until:
        time.sleep(0.05)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert workers
    _, left = psutil.wait_procs(workers, timeout=30)
    assert left == []

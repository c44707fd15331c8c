import json
from types import SimpleNamespace

import pytest
from commands import run

from sparsact_papers.collect import remaining_seconds
from sparsact_papers.command import _work
from sparsact_papers.experiments import Scale, Standing, Store, experiments

LINE = ("--only", "one-dimension")


def reproduce(capsys, folder, *words):
    return run(capsys, "reproduce", "--store", folder / "rows", "--report", folder / "page.html", "--jobs", 1, *words)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder in which the smallest run of one experiment was made."""
    from sparsact.cli import main

    folder = tmp_path_factory.mktemp("measured")
    words = ["--store", folder / "rows", "--report", folder / "page.html", "--jobs", "1"]
    assert main(["reproduce", *LINE, "--smoke", *map(str, words)]) == 0
    return folder


def test_a_run_leaves_a_row_a_task_and_a_page(measured):
    experiment = experiments()["one-dimension"]
    rows = Store(measured / "rows").of(experiment.tasks(Scale.SMOKE))
    assert len(rows) == len(experiment.tasks(Scale.SMOKE)) > 0
    assert all(row.seconds > 0 and row.versions["numpy"] and row.machine["cores"] for row in rows)
    assert experiment.title in (measured / "page.html").read_text(encoding="utf-8")


def test_a_second_run_measures_nothing_and_says_the_same(measured, capsys):
    before = {path: path.read_bytes() for path in (measured / "rows").iterdir()}
    status, out, err = reproduce(capsys, measured, *LINE, "--smoke", "--json")
    told = json.loads(out)
    assert (status, err) == (0, "")
    assert before == {path: path.read_bytes() for path in (measured / "rows").iterdir()}
    (one,) = told["experiments"]
    assert one["rows"] == one["tasks"]
    assert {claim["outcome"] for claim in one["claims"]} <= {"holds", "does not hold", "holds only if", "undecided"}
    standings = [claim["standing"] for claim in one["claims"]]
    assert standings.count(Standing.SURVIVES) == told["correction"]["surviving"]
    assert standings.count(Standing.ALONE) == told["correction"]["decided"] - told["correction"]["surviving"]
    assert told["failures"] == []


def test_without_a_size_what_lacks_of_quick_is_measured_and_full_rows_are_shown(measured):
    experiment, store = experiments()["one-dimension"], Store(measured / "rows")
    quick = [task for task in experiment.tasks(Scale.QUICK) if task not in store]
    work, _ = _work([experiment], store, None)
    assert [task for _, task in work] == quick != []
    held = {task.name for task in experiment.tasks(Scale.FULL)}
    full = SimpleNamespace(of=lambda tasks: [task for task in tasks if task.name in held])
    assert _work([experiment], full, None) == ([], {})


def test_the_list_counts_rows(measured, capsys):
    status, out, _ = reproduce(capsys, measured, "--list", "--json")
    told = {line["name"]: line for line in json.loads(out)}
    assert status == 0
    assert told.keys() == experiments().keys()
    assert told["one-dimension"]["smoke"]["rows"] == told["one-dimension"]["smoke"]["tasks"] > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only", "no-such"), "no experiment is named 'no-such'"),
        (("--quick", "--full"), "pass one of them"),
        (("--report", "page.pdf"), "must end in .html"),
    ],
)
def test_bad_input_ends_with_status_2_before_any_work(tmp_path, capsys, words, said):
    status, out, err = run(capsys, "reproduce", "--store", tmp_path / "rows", *words)
    assert (status, out) == (2, "")
    assert said in err
    assert not (tmp_path / "rows").exists()


def test_a_store_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "rows").write_text("not a folder")
    status, _, err = reproduce(capsys, tmp_path, *LINE, "--smoke")
    assert status == 2
    assert "is a folder" in err


def test_the_remaining_time_counts_what_is_known(measured):
    store = Store(measured / "rows")
    mean = sum(store.seconds("one-dimension")) / len(store.seconds("one-dimension"))
    assert remaining_seconds({"one-dimension": 6}, store, jobs=2) == pytest.approx(3 * mean)
    assert remaining_seconds({"one-dimension": 6, "unknown": 4}, store, jobs=2) == pytest.approx(5 * mean)
    assert remaining_seconds({"unknown": 4}, Store(measured / "none"), jobs=4) == 1.0

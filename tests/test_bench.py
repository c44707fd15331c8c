"""``python -m benchmarks``: what runs, what is kept, and the table of the documentation."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial
from importlib import import_module
from pathlib import Path

import commands
import numpy as np
import pytest
from scipy.stats import pearsonr

from benchmarks import landscapes, planted, regression_tasks
from benchmarks.__main__ import main
from benchmarks.figures import Figure
from benchmarks.harness import first_seconds, interleaved
from benchmarks.registry import BENCHMARKS, Benchmark
from benchmarks.regression_tasks import TABLES, leaks_of
from benchmarks.table import lines, newest
from benchmarks.table.kept import kept
from sparsact_papers.data import TabularData
from sparsact_papers.provenance import commit

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "results" / "benchmarks.jsonl"
PACKAGE = ROOT / "benchmarks"
_PARTS = {
    "architectures",
    "mixture_families",
    "harness",
    "figures",
    "program",
    "opponents",
    "regressors",
    "regression_tasks",
}  # what benchmarks share
SHARED = {"__init__", "__main__", "registry", "runtimes"} | _PARTS


run = partial(commands.run, main=main)


def test_every_module_that_measures_is_listed():
    assert {path.stem for path in PACKAGE.glob("*.py")} - SHARED == set(BENCHMARKS)


def test_goals_and_needs(capsys):
    status, out, _ = run(capsys, "--list", "--json")
    told = json.loads(out)
    assert status == 0
    assert [each["name"] for each in told] == list(BENCHMARKS)
    assert all(each["goal"].endswith(".") for each in told)
    _, out, _ = run(capsys, "--list")
    assert len(out.splitlines()) == len(told)


def test_landscapes_are_compared_with_one_peer_over_all_draws():
    """Six peers; five are each the best of one draw by luck. The peer that is best on the whole is named."""
    ours, *lucky, steady = landscapes.SIDES
    rows = []
    for draw in range(len(lucky)):
        errors = {ours: 1.0, steady: 0.8} | {side: 0.5 if place == draw else 2.0 for place, side in enumerate(lucky)}
        name = {"table": "LLVM", "rows": 0.05, "seed": draw}
        rows += [{**name, "side": side, "error": (1.0 + draw) * error} for side, error in errors.items()]
    (ratio,) = (figure for figure in landscapes.figures(rows) if "best of all draws" in figure.quantity)
    assert ratio.quantity == f"over {steady}, best of all draws, error of the log 0.000"
    assert [ratio.value, *ratio.samples] == pytest.approx([1.25] * (1 + len(lucky)))


def test_ties_of_test_rows_are_counted_as_by_hand():
    """Columns of few values in random order, and one of names that come in runs."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.integers(0, 3, (90, 4)), np.repeat(np.arange(9), 10)]).astype(float)
    y, test = rng.normal(size=90), rng.random(90) < 0.3
    found = leaks_of(X, y, test)
    differing = np.array([[(new != row).sum() for row in X[~test]] for new in X[test]])
    assert found["seen"] == (differing == 0).any(axis=1).mean()
    without = [
        np.mean([(np.delete(X[~test], j, 1) == np.delete(new, j)).all(axis=1).any() for new in X[test]])
        for j in range(5)
    ]
    assert (found["neighbours"], found["but"]) == (max(without), int(np.argmax(without)))
    assert found["of"] == 4
    assert found["runs"] == pytest.approx((81 / 89 - 1 / 9) / (1 - 1 / 9))
    assert found["order"] == pytest.approx(pearsonr(y[1:], y[:-1]).statistic)


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.group])
def test_whole_groups_are_left_out(name, monkeypatch):
    """Each group is tested on in one fold, and never in part; columns of names are not learned from."""
    X = np.random.default_rng(0).integers(0, 2, (211, 21)).astype(float)
    masks = np.zeros((10, len(X)), dtype=bool)
    monkeypatch.setattr(regression_tasks, "load_tabular", lambda _: TabularData(X, X[:, 0], masks, "", ""))
    table = TABLES[name]
    found = [regression_tasks._measured(name, fold) for fold in range(10)]
    assert np.sum([test for *_, test in found], axis=0).tolist() == [1] * len(X)
    assert all(rows.shape == (len(X), 21 - len(table.group) * table.names) for rows, *_ in found)
    for *_, test in found:
        inside, outside = ({tuple(row[list(table.group)]) for row in X[some]} for some in (test, ~test))
        assert not inside & outside


def test_rows_name_the_commit():
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout of the repository")
    asked = ["git", "rev-parse", "--short", "HEAD"]
    head = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    assert commit().removesuffix("+") == head


def test_every_part_of_the_table_has_its_rows():
    from benchmarks.table import SECTIONS

    rows = kept()
    assert all(list(section(rows)) for section in SECTIONS)


def test_a_quick_run_keeps_rows_and_prints_ratios(tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    status, out, _ = run(capsys, "network_values", "--quick", "--rows", rows)
    assert status == 0
    assert "times as fast" in out
    assert "network_values: every target met" in out
    kept = newest(rows)
    ratio = kept["Index_5 m=2,000", "times as fast"]
    assert min(ratio["samples"]) <= ratio["value"] <= max(ratio["samples"])
    status, out, _ = run(capsys, "--no-measure", "--rows", rows, "--json")
    assert json.loads(out)["rows"] == list(kept.values())


def test_a_target_that_is_missed_ends_with_status_1(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    status, out, _ = run(capsys, "units", "--quick")
    assert status == 1
    assert "units: a target missed" in out


def test_a_peer_that_is_not_installed(capsys, monkeypatch):
    monkeypatch.setitem(BENCHMARKS, "units", Benchmark("units", "1 min", ("no_such_peer",)))
    status, _, err = run(capsys, "units")
    assert status == 2
    assert "no_such_peer" in err
    for name in set(BENCHMARKS) - {"units"}:
        monkeypatch.delitem(BENCHMARKS, name)
    status, out, _ = run(capsys)
    assert status == 0
    assert "units: skipped" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nonsense",), "'nonsense' is no benchmark"),
        (("--no-measure",), "--rows"),
    ],
)
def test_what_makes_no_sense_is_refused(words, told, capsys):
    status, _, err = run(capsys, *words)
    assert status == 2
    assert told in err


def test_a_file_that_is_none(tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"work": 1}\n')
    assert "line 1" in run(capsys, "--no-measure", "--rows", rows)[2]


WHOLE = {"work": "w", "quantity": "q", "unit": "x", "value": 2.0, "samples": [1.0, 3.0], "met": None}


@pytest.mark.parametrize(
    "odd",
    [
        {"work": "\x1b[2J"},
        {"work": "<script>"},
        {"quantity": "a | b"},
        {"unit": 3},
        {"value": "2"},
        {"value": float("nan")},
        {"value": 10**400},
        {"samples": [None]},
        {"met": "yes"},
    ],
)
def test_rows_that_anyone_may_have_written(tmp_path, capsys, odd):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(WHOLE) + "\n" + json.dumps(WHOLE | odd) + "\n")
    status, out, err = run(capsys, "--no-measure", "--rows", rows)
    assert (status, out, "line 2 is no row" in err) == (2, "", True)


def test_a_table_of_any_of_the_rows():
    """Each benchmark may be run alone; what the others have not measured is left out."""
    every = newest(ROWS)
    whole = set(lines(every))
    for name in {row["benchmark"] for row in every.values()}:
        some = {key: row for key, row in every.items() if row["benchmark"] == name}
        assert set(lines(some)) <= whole, name
    assert list(lines({("w", "q"): WHOLE})) == list(lines({}))


def test_pages_show_every_miss_and_every_benchmark(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = tmp_path / "page.inc"
    import_module("missed_targets").missed_targets(page)
    text, missed = page.read_text(), [row for row in kept().values() if row["met"] is False]
    assert text.count("\n     - ") == len(missed) > 0
    assert [row["work"] for row in missed if f"     - {row['work']}: " not in text] == []
    import_module("benchmark_list").benchmark_list(page)
    assert {name for name in BENCHMARKS if f"``{name}``\n   " not in page.read_text()} == set()


def test_a_ratio_is_one_a_round():
    figure = Figure.ratio("work", "times as fast", [2.0, 6.0, 12.0], [1.0, 2.0, 3.0], least=2.5)
    assert (figure.value, figure.samples, figure.met) == (3.0, (2.0, 3.0, 4.0), True)


@pytest.mark.parametrize("warm_up", [0, 1, 4])
def test_the_first_call_is_kept_beside_later_ones(warm_up):
    """By a clock whose ticks double: call number i of a side takes 4**i, or twice as long."""
    ticks = iter(2**i for i in range(99))
    times = interleaved({"fast": int, "slow": int}, 3, warm_up=warm_up, clock=lambda: next(ticks))
    assert (times["fast"].first, times["slow"].first) == (1, 4)
    assert list(times["fast"]) == [16 ** (warm_up + i) for i in range(3)]
    one = Figure.of("work", "fast", times["fast"].scaled(1e3), "ms")
    assert (one.first, one.value) == (1e3, 1e3 * 16 ** (warm_up + 1))
    assert one.measured.startswith(f"first 1000, then {one.value:.4g} ms [")
    assert Figure.ratio("work", "times", times["slow"], times["fast"]).first == 4
    assert Figure.of("work", "no call", [1.0, 2.0], "").first is None


@pytest.mark.grid
def test_the_first_call_runs_in_a_fresh_process():
    """A function that keeps its answer is slow once in a process, so in each of them."""
    assert min(first_seconds(3, partial, time.sleep, 0.01)) >= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, each in BENCHMARKS.items() if not each.missing()])
def test_each_agrees_at_small_size(name, tmp_path):
    """Both sides give the same; speed is not judged."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--out", str(tmp_path / "rows.jsonl")]
    assert subprocess.run(command, check=False).returncode == 0


def test_a_planted_run_that_was_stopped_reads_its_own_rows(tmp_path, monkeypatch):
    """Each task and seed has its own error, so a row of another would show."""
    drawn = []

    def predictors(task, seed):
        drawn.append((task.work, seed))
        yield from ((side, len(drawn) / 1e6, 1.0) for side in (planted.OURS, planted.STARTS))

    monkeypatch.setattr(planted, "predictors", predictors)
    names = [name for name, task in planted.TASKS.items() if not task.noise][:3]
    first, again = (list(planted.measure(names, 2, tmp_path / "rows.jsonl")) for _ in range(2))
    assert len(drawn) == 6
    assert [row["errors"] for row in again] == [
        {side: list(one) for side, one in row["errors"].items()} for row in first
    ]
    assert len(list(planted.figures(again))) == len(list(planted.figures(first)))

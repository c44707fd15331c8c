"""``sparsact reproduce`` killed at random moments: no row is lost or doubled, and no process stays."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from sparsact.files import SUFFIX
from sparsact_papers.experiments import Store

NAME = "sq-ledger"


def begun(store, report):
    words = ["reproduce", "--smoke", "--only", NAME, "--store", store, "--report", report, "--jobs", "2"]
    return subprocess.Popen(
        [sys.executable, "-m", "sparsact", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A suite that a shell runs in the background has SIGINT ignored, and hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def lines(store):
    """Rows of the file, without where and when they were measured; every line must be whole."""
    path = store / f"{NAME}.jsonl"
    rows = [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
    return {row["task"]: json.dumps([row["parameters"], row["values"]]) for row in rows}, len(rows)


def size(store):
    path = store / f"{NAME}.jsonl"
    return path.stat().st_size if path.exists() else 0


def wait_for_a_row(process, store):
    before = size(store)
    while process.poll() is None and size(store) == before:
        time.sleep(0.002)


def ended(process):
    """Status, and what was said on stderr."""
    told = process.communicate()[1].decode()
    return process.returncode, told


def workers(process):
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).children(recursive=True)
    return []


def kill(process, whom, rng):
    """With -9: the whole group at once, as a machine stops; the command alone; or a worker and then the command."""
    children = workers(process)
    with suppress(ProcessLookupError, psutil.NoSuchProcess):
        if whom == "all":
            os.killpg(process.pid, signal.SIGKILL)
        elif whom == "a worker" and children:
            rng.choice(children).kill()
            time.sleep(rng.uniform(0, 0.3))
    children += workers(process)
    process.kill()
    process.communicate()
    _, left = psutil.wait_procs(children, timeout=60)
    assert left == []


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_killed_reproduction_loses_nothing(tmp_path):
    expected_store, report = tmp_path / "never killed", tmp_path / "report.html"
    assert ended(begun(expected_store, report)) == (0, "")
    expected, n_rows = lines(expected_store)
    assert len(expected) == n_rows > 50
    rng, kills, rounds = random.Random(23), 0, 0
    while kills < 50:
        store, found = tmp_path / f"store {rounds}", {}
        rounds += 1
        while kills < 50:
            process = begun(store, report)
            if rng.random() < 0.8:  # a fifth at any moment of the start
                wait_for_a_row(process, store)
            time.sleep(rng.uniform(0, 0.1))
            if process.poll() is not None:
                assert ended(process) == (0, "")
                break
            kill(process, rng.choice(["all", "the command", "a worker"]), rng)
            kills += 1
            before, (found, count) = found, lines(store)
            assert len(found) == count
            assert before.items() <= found.items() <= expected.items()
        assert ended(begun(store, report)) == (0, "")
        assert lines(store) == (expected, n_rows)
        assert Store(store).n_unreadable == 0
    left = [path.name for path in tmp_path.iterdir() if path.name.endswith(SUFFIX)]
    assert all(name.startswith(".report.html.") for name in left)


def test_ctrl_c_tells_how_to_go_on(tmp_path):
    """Ctrl-C reaches the command and its workers; two lines are said, and no process stays."""
    for attempt in range(5):  # a quick machine may be done before it is stopped
        store = tmp_path / f"store{attempt}"
        process = begun(store, tmp_path / f"report{attempt}.html")
        wait_for_a_row(process, store)
        children = workers(process)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        told = process.communicate()[1].decode().splitlines()
        if process.returncode:
            break
    assert process.returncode in (130, -signal.SIGINT)
    assert told == [
        f"sparsact: finished tasks are kept in {store}; the same command goes on from there.",
        "sparsact: stopped.",
    ]
    assert lines(store)[1]
    assert children
    assert psutil.wait_procs(children, timeout=60)[1] == []
    assert not (tmp_path / f"report{attempt}.html").exists()

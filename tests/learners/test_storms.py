"""Threads may ask and save any learner while others change it, and pickle LSH models: they see whole states."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from storms import LEARNERS

SECONDS = 0.15  # that the updates of a learner are spread over
LIMIT = 240  # seconds for all of them: a thread that waits for ever ends here
QUICK = ("LSHRegressor(stages)", "LowDegreeRegressor(kernel)")


def check_storms(names):
    """Storms of learners in one process: native code that never returns cannot be stopped from within."""
    command = [sys.executable, "-W", "error", str(Path(__file__).parents[1] / "storms.py"), str(SECONDS), *names]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, env=environment)
    except subprocess.TimeoutExpired as stopped:
        pytest.fail(f"a storm did not end; before it: {stopped.stdout!r}")
    assert ran.returncode == 0, ran.stderr
    results = {result["name"]: result for result in map(json.loads, ran.stdout.splitlines())}
    assert list(results) == list(names)
    assert {name: result["wrong"] for name, result in results.items() if result["wrong"]} == {}
    assert min(result["n_seen"] for result in results.values()) > 9


@pytest.mark.grid
def test_threads_see_whole_states():
    check_storms(QUICK)


@pytest.mark.grid
def test_threads_see_whole_states_of_every_learner():
    check_storms([name for name in LEARNERS if name not in QUICK])

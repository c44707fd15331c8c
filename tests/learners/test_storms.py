"""Threads may ask and save any learner while others change it, and pickle LSH models: they see whole states."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from storms import LEARNERS

SECONDS = 0.4  # that the updates of a learner are spread over
LIMIT = 240  # seconds for all of them: a thread that waits for ever ends here


@pytest.fixture(scope="module")
def storms():
    """Results by learner, from one process: native code that never returns cannot be stopped from within."""
    command = [sys.executable, "-W", "error", str(Path(__file__).parents[1] / "storms.py"), str(SECONDS)]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, env=environment)
    except subprocess.TimeoutExpired as stopped:
        pytest.fail(f"a storm did not end; before it: {stopped.stdout!r}")
    assert ran.returncode == 0, ran.stderr
    return {result["name"]: result for result in map(json.loads, ran.stdout.splitlines())}


@pytest.mark.parametrize("name", LEARNERS)
def test_threads_see_whole_states(storms, name):
    assert storms[name]["wrong"] == []
    assert storms[name]["n_seen"] > 9

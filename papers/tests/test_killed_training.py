"""Training killed at random moments: every checkpoint is whole, none goes back, and the end is the same to the bit."""

from __future__ import annotations

import random
import time
from multiprocessing import get_context

import pytest
from trainings import LONG, train_to_the_end

from sparsact.files import SUFFIX
from sparsact.saving import modelfile

CHECKPOINT = "checkpoint.safetensors"


@pytest.fixture(scope="module")
def processes():
    """Processes that have loaded torch already when they start; without threads, so that they may fork."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["sparsact_papers.training"])
    return context


def trained(processes, *arguments, seconds=None, progress=None):
    """Run a training; whether it came to its end before it was killed, so long after a file has changed."""
    before = content(progress)
    process = processes.Process(target=train_to_the_end, args=[str(word) for word in arguments])
    process.start()
    while progress and process.is_alive() and content(progress) == before:
        time.sleep(0.001)
    process.join(seconds)
    killed = process.is_alive()
    process.kill()
    process.join()
    assert killed or process.exitcode == 0
    return not killed


def content(path):
    return path.read_bytes() if path and path.exists() else b""


def step_of(folder):
    path = folder / CHECKPOINT
    return modelfile.read(path)[1]["rows"][-1]["step"] if path.exists() else -1


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("L1", 2),
        pytest.param("L1", 15, marks=pytest.mark.slow),
        pytest.param("none", 25, marks=pytest.mark.slow),
        pytest.param("top-k", 25, marks=pytest.mark.slow),
    ],
)
def test_a_killed_training_gives_the_same_bits(tmp_path, processes, kind, kills):
    assert trained(processes, kind, tmp_path / "never killed", tmp_path / "expected")
    expected, rng = (tmp_path / "expected").read_bytes(), random.Random(17)
    longest, done = 0.2, 0
    while done < kills:
        folder, result = tmp_path / f"after {done}", tmp_path / f"result {done}"
        steps = [-1]
        while done < kills:
            progress = folder / CHECKPOINT if rng.random() < 0.8 else None  # a fifth at any moment of the start
            if trained(processes, kind, folder, result, seconds=rng.uniform(0, longest), progress=progress):
                longest /= 2  # it was quicker than the kill: again, with less time
                break
            done += 1
            steps.append(step_of(folder))
            assert progress is None or steps[-1] > steps[-2]
        assert steps == sorted(steps)
        assert result.exists() or trained(processes, kind, folder, result)
        assert result.read_bytes() == expected
        assert step_of(folder) == LONG.steps
        left = [path.name for path in folder.iterdir() if path.name != CHECKPOINT]
        assert all(name.startswith(f".{CHECKPOINT}.") and name.endswith(SUFFIX) for name in left)
    assert longest > 1e-4

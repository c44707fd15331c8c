"""Run the command in this process or in one of its own, and read what it says."""

import json
import os
import subprocess
import sys

from sparsact.cli import main


def run(capsys, *words, main=main):
    status = main([str(word) for word in words])
    told = capsys.readouterr()
    return status, told.out, told.err


def fit_json(capsys, *words):
    status, out, err = run(capsys, "fit", *words, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def process(*words, **environment):
    """The command in a fresh interpreter: a CompletedProcess with texts."""
    command = [sys.executable, "-m", "sparsact", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | environment, check=False
    )

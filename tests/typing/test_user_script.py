"""What a type checker knows of the public names, from the installed package alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sparsact

SCRIPT = Path(__file__).with_name("user_script.py")


def mypy(script, folder):
    pytest.importorskip("mypy", reason="the types are checked by mypy, of the extra dev")
    (folder / "mypy.ini").write_text("[mypy]\nstrict = true\n")  # not our own settings: a user has none
    words = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", str(script)]
    env = os.environ | {"MYPYPATH": str(Path(sparsact.__file__).parents[1])}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_users_script_is_typed(tmp_path):
    done = mypy(SCRIPT, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_name_or_an_argument_that_does_not_exist_is_told(tmp_path):
    """Although names are loaded late, a type checker sees through."""
    script = tmp_path / "wrong.py"
    script.write_text("import sparsact\nsparsact.Perceptron\nsparsact.LowDegreeRegressor(depth=3)\n")
    done = mypy(script, tmp_path)
    assert done.returncode == 1
    assert 'Module has no attribute "Perceptron"' in done.stdout
    assert 'Unexpected keyword argument "depth"' in done.stdout

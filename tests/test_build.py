"""What a build gives: the native kernels, or the reference alone where there is no compiler."""

import subprocess
import sys
import zipfile
from os import environ
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("compiler", [True, False])
def test_the_package_builds_with_and_without_a_compiler(tmp_path, compiler):
    env = dict(environ) if compiler else environ | {"CXX": "/nonexistent/c++"}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--verbose", "--wheel-dir", str(tmp_path), str(ROOT)]
    log = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any("_native" in name for name in names) == compiler
    assert ((log.stdout + log.stderr).count("no C++ compiler found") == 1) == (not compiler)
    assert "sparsact/kernels/reference/packed.py" in names

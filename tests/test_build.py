"""What a build gives: the native kernels, or the reference alone where there is no compiler."""

import re
import subprocess
import sys
import tarfile
import zipfile
from os import environ
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "variables", "options"),
    [
        (True, {}, []),
        (False, {"CXX": "/nonexistent/c++"}, []),
        (False, {}, ["--config-settings=cmake.define.CMAKE_CXX_COMPILER=NOTFOUND"]),
    ],
)
def test_the_package_builds_with_and_without_a_compiler(tmp_path, compiler, variables, options):
    env = environ | variables
    assert all(option in (ROOT / "docs" / "install.rst").read_text(encoding="utf-8") for option in options)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--verbose", "--wheel-dir", str(tmp_path), *options]
    command += [str(ROOT)]
    log = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any("_native" in name for name in names) == compiler
    assert ((log.stdout + log.stderr).count("no C++ compiler found") == 1) == (not compiler)
    assert "sparsact/kernels/packed_bits.py" in names


def check(*words, **options):
    """What a command prints."""
    words = [str(word) for word in words]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True, **options).stdout


def test_make_lint_installs_two_programs_and_nothing_else():
    """Without torch and the library, whose types mypy reads: that is `make types`."""
    installed = {
        target: [line for line in check("make", "-n", "-B", target).splitlines() if " pip install" in line]
        for target in ("lint", "types")
    }
    assert [line.split()[-2:] for line in installed["lint"]] == [["clang-format", "ruff"]]
    assert any(".[dev]" in line for line in installed["types"])


@pytest.mark.slow
@pytest.mark.timeout(1200)  # it compiles everything, and fills an environment from the registry
def test_sdist_and_wheel_hold_what_they_should_and_the_wheel_works_in_an_empty_environment(tmp_path):
    pytest.importorskip("build", reason="of the extra dev")
    check(sys.executable, "-m", "build", "--outdir", tmp_path, ROOT)  # the wheel is built from the sdist
    (sdist,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(sdist) as archive:
        sources = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    top = {name.split("/")[0] for name in sources}
    assert top == {"CHANGELOG.md", "CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "src"}
    assert not [name for name in sources if name.endswith((".so", ".pyd", ".pyc"))]
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "sparsact/py.typed" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"sparsact"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.endswith((".cpp", ".hpp", ".a", ".txt")) and "dist-info" not in name]
    expected = "cp311-cp311" if sys.version_info < (3, 12) else "cp312-abi3"
    assert expected in wheel.name
    here = Path(sys.executable).parent  # where `python` of the script is
    told = check("bash", ROOT / ".ci" / "wheel", wheel, env=environ | {"PATH": f"{here}:{environ['PATH']}"})
    assert re.findall(r"^(library|with the command and reports|demo): \d+ s", told, re.MULTILINE)[2:] == ["demo"]


@pytest.mark.slow
def test_the_same_sources_give_the_same_sdist(tmp_path):
    pytest.importorskip("build", reason="of the extra dev")
    for folder in ("one", "two"):
        check(sys.executable, "-m", "build", "--sdist", "--outdir", tmp_path / folder, ROOT)
    one, two = (next((tmp_path / folder).glob("*.tar.gz")).read_bytes() for folder in ("one", "two"))
    assert one == two

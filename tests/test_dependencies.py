"""What ``pip install sparsact`` brings, and that nothing else is needed."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from commands import run
from journeys import parsed

import sparsact
from sparsact.constructions import parity
from sparsact.extras import EXTRAS as EXTRA_OF
from sparsact.extras import install, missing

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = (
    "matplotlib",
    "jinja2",
    "markupsafe",
    "psutil",
    "torch",
    "array_api_compat",
    "dask",
    "transformers",
    "pyarrow",
    "rich",
    "typer",
)
IMPORTED_AS = {"scikit_learn": "sklearn", "xgboost_cpu": "xgboost"}
BROUGHT_ALONG = {"joblib", "threadpoolctl"}  # by scikit-learn


def named(requirements):
    """Names that are imported, of a list of requirements."""
    names = (re.match(r"[\w.-]+", requirement)[0].replace("-", "_") for requirement in requirements)
    return {IMPORTED_AS.get(name, name) for name in names}


def test_four_packages_are_installed():
    wanted = {"numpy", "scipy", "sklearn", "safetensors"}
    assert named(PROJECT["dependencies"]) == wanted


@pytest.mark.grid
def test_every_import_is_of_a_declared_package():
    """Also of those inside functions; tools of developers do not count."""
    extras = {extra: named(lines) for extra, lines in PROJECT["optional-dependencies"].items()}
    for extra in ("all", "dev", "docs", "test"):
        del extras[extra]
    declared = named(PROJECT["dependencies"]).union(
        BROUGHT_ALONG, sys.stdlib_module_names, {"sparsact", "sparsact_papers", "benchmarks"}, *extras.values()
    )
    for path in (path for folder in ("src", "papers/src", "benchmarks") for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                assert name.split(".")[0] in declared, f"{path.relative_to(ROOT)}:{node.lineno} imports {name}"


def test_every_package_is_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = named(line for line in lines if not line.startswith("#"))
    unpinned = {"sparsact", "triton"}  # triton is pinned by torch
    for lines in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        assert named(lines) - unpinned <= pins


def test_one_version_everywhere():
    version = re.escape(sparsact.__version__)
    places = {
        "CHANGELOG.md": rf"^## \[{version}\]",
        "CITATION.cff": f"^version: {version}$",
        "docs/cite.rst": rf"version = \{{{version}\}}",
        "packaging/conda/recipe.yaml": f'^  version: "{version}"$',
        "papers/src/sparsact_papers/__init__.py": f'^__version__ = "{version}"$',
    }
    for path, line in places.items():
        assert re.search(line, (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), path


BLOCKED = f"""
import sys
from importlib.machinery import PathFinder
class Present(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in {EXTRAS} else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Present
"""


def without_extras(code, folder, but=("pyarrow", "rich", "typer")):
    """Run a program in which no optional package can be imported except the packages ``but``."""
    env = os.environ | {"PYTHONPATH": str(Path(sparsact.__file__).parents[1])}
    words = [sys.executable, "-c", BLOCKED.replace(str(EXTRAS), str(tuple(set(EXTRAS) - set(but)))) + code]
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.grid
def test_learners_need_no_extra_and_the_command_says_which(tmp_path):
    done = without_extras(
        """
import numpy as np
import sparsact
rng = np.random.default_rng(0)
X, y = rng.integers(0, 2, (97, 5)), rng.normal(size=97)
for model in (sparsact.LowDegreeRegressor(2), sparsact.LSHRegressor(2), sparsact.DSMRegressor(8, 4)):
    model.fit(X, y).save("m.sparsact")
    assert np.array_equal(sparsact.load("m.sparsact").predict(X), model.predict(X))
assert sparsact.constructions.parity([0, 2], 5).certify().exact
from sparsact import cli
assert cli.main(["--help"]) == 2
try:
    sparsact.datasets
except ImportError as error:
    print(error)
""",
        tmp_path,
        but=(),
    )
    assert done.returncode == 0, done.stderr
    assert missing("this", "typer") in done.stderr
    assert missing("sparsact.datasets", "pyarrow") in done.stdout


@pytest.mark.grid
def test_everything_but_reports_and_torch_works_without_extras(tmp_path):
    """And a command without its extra says which in one line."""
    np.save(tmp_path / "tokens.npy", np.ones((3, 2)))
    refused = {
        "measure": (["nowhere:model", "--inputs", "tokens.npy"], "torch"),
        "sparsify": (["nowhere:model", "--inputs", "tokens.npy"], "torch"),
        "fit": (["t.npz", "--target", "y", "--cluster", "local:2"], "dask"),
    }
    calls = [[name, *words] for name, (words, _) in refused.items()]
    X = 1 - 2 * np.random.default_rng(0).integers(0, 2, (97, 5))
    np.savez(tmp_path / "t.npz", x=X, y=X[:, 0] * X[:, 3] + 0.5)
    done = without_extras(
        """
import numpy as np
import sparsact
from sparsact import cli, constructions, routing
words = ["--model", "low-degree", "--folds", "2", "--quiet"]
assert cli.main(["fit", "t.npz", "--target", "y", "--out", "m.sparsact", *words]) == 0
assert cli.main(["predict", "m.sparsact", "t.npz", "--out", "p.csv"]) == 0
assert cli.main(["inspect", "m.sparsact"]) == 0
model = sparsact.load("m.sparsact")
table = np.load("t.npz")
assert np.allclose(model.predict((1 - table["x"]) / 2), table["y"])
constructions.parity([0, 2], 5).save("n.sparsact")
assert cli.main(["certify", "n.sparsact"]) == 0
assert cli.main(["inspect", "n.sparsact"]) == 0
assert cli.main(["reproduce", "--list"]) == 0
x = table["x"].astype(float)
router = routing.Switch(n_experts=3)
assert router(x).indices.shape == (97, 1)
"""
        f"for words in {calls}: assert cli.main(words) == 2",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()[-len(calls) :]
    for line, (_, extra) in zip(said, refused.values(), strict=True):
        assert install(extra) in line


@pytest.mark.parametrize("package", ["matplotlib", "jinja2", "markupsafe"])
@pytest.mark.parametrize("command", ["fit", "inspect", "measure", "reproduce"])
def test_a_report_without_its_libraries_is_refused_before_the_work(capsys, monkeypatch, tmp_path, command, package):
    """The work would fail otherwise: there is no table, model or network at all."""
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "report.html"
    words = {
        "fit": ["fit", "none.csv", "--target", "y"],
        "inspect": ["inspect", "network.sparsact"],
        "measure": ["measure", "nowhere:model", "--inputs", "none.npy"],
        "reproduce": ["reproduce", "--smoke"],
    }[command]
    if command == "inspect":
        parity([0, 2], 5).save(tmp_path / "network.sparsact")
    status, out, error = run(capsys, *words, "--report", report)
    assert status == 2
    assert not out
    assert error.count("\n") == 1
    assert missing("a report", package) in error
    assert not report.exists()
    assert not (tmp_path / "results").exists()


def test_one_module_says_what_to_install():
    """And names extras that bring the package."""
    extras = {extra: named(lines) for extra, lines in PROJECT["optional-dependencies"].items()}
    assert all(package in extras[extra] for package, extra in EXTRA_OF.items())
    for path in (path for folder in ("src", "papers/src") for path in (ROOT / folder).rglob("*.py")):
        if "sparsact[" not in path.read_text(encoding="utf-8"):
            continue
        tree = parsed(path)
        texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
        constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in texts)
        advice = [node.lineno for node in constants if isinstance(node.value, str) and "sparsact[" in node.value]
        assert not advice or path.name == "extras.py", f"{path.relative_to(ROOT)}:{advice}: use sparsact.extras"

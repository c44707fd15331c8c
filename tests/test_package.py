"""The package as a whole: quick to import, layered one way, with the names it promises."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sparsact

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sparsact"
OPTIONAL = {"sparsact.inference.triton": "triton"}  # packages that not every machine can install, by who needs them
HEAVY = ("torch", "matplotlib", "dask", "sklearn", "pandas", "pyarrow", "numpy")

# Each folder or module, and what it may import of the package besides itself.
GROUND = {"hypercube", "checks", "lift", "kernels", "files", "memory", "storage", "_version"}
MAY_IMPORT = {
    "_version": set(),
    "hypercube": set(),
    "checks": {"hypercube"},
    "exact_sign": set(),
    "lift": {"hypercube", "checks"},
    "kernels": {"hypercube"},
    "files": set(),
    "transaction": set(),
    "memory": set(),
    "storage": {"_version", "files", "learners", "network"},  # the last two inside `load` alone
    "network": GROUND | {"exact_sign", "fourier", "certificate"},  # the last two inside methods that stand for them
    "fourier": GROUND | {"network"},
    "certificate": GROUND | {"exact_sign", "network", "fourier"},
    "constructions": GROUND | {"exact_sign", "network"},
    "bounds": GROUND | {"network", "fourier"},
    "rademacher": GROUND | {"network", "fourier", "bounds"},
    "learners": GROUND | {"transaction", "exact_sign", "network", "fourier", "certificate", "bounds", "routing"},
    "hardness": GROUND | {"network", "fourier", "constructions", "learners"},
    "routing": GROUND,
    "layers": GROUND | {"routing"},
    "inference": GROUND | {"routing", "layers"},
    "dsm": GROUND | {"routing", "learners"},
    "datasets": GROUND | {"fourier"},
    "distributed": GROUND | {"learners", "datasets"},
    "experiments": GROUND
    | {"network", "fourier", "certificate", "constructions", "bounds", "rademacher", "learners", "hardness"}
    | {"routing", "layers", "inference", "dsm", "datasets"},
    "tables": GROUND | {"datasets"},
}


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


DOORS = f"""
import contextlib, io, sys
def loaded(*names): return [name for name in names if name in sys.modules]
import sparsact
print(loaded(*{HEAVY}))
from sparsact.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    main(["--help"])
print(loaded("matplotlib", "sklearn", "scipy", "pyarrow", "torch", "jinja2"))
import numpy
sparsact.LowDegreeRegressor
sparsact.routing.Switch(3)(numpy.eye(4))
print(loaded("torch", "matplotlib", "dask", "sparsact.layers", "sparsact.inference"))
sparsact.layers
print(loaded("torch", "sparsact.inference"))
sparsact.measure
print(loaded("sparsact.inference"))
"""


def test_each_part_is_loaded_when_it_is_asked_for():
    """The import, the command's help, learners and routers on NumPy, layers, and the measurement, in this order."""
    assert python(DOORS).splitlines() == ["[]", "[]", "[]", "['torch']", "['sparsact.inference']"]


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import sparsact
for name in ("layers", "measure"):
    try:
        getattr(sparsact, name)
    except ImportError as error:
        print(error)
"""


def test_without_torch_the_error_says_what_to_install():
    layers, measure = python(WITHOUT_TORCH).splitlines()
    assert layers.startswith("sparsact.layers are modules of PyTorch")
    assert measure.startswith("sparsact.inference works on models of PyTorch")
    assert ': pip install "sparsact[torch]".' in layers
    assert ': pip install "sparsact[torch]".' in measure


def test_the_import_is_quick():
    """Median of three fresh interpreters, less the same without the import: under half a second."""
    took = {"import sparsact": [], "pass": []}
    for _ in range(3):
        for code, seconds in took.items():
            start = time.perf_counter()
            python(code)
            seconds.append(time.perf_counter() - start)
    assert statistics.median(took["import sparsact"]) - statistics.median(took["pass"]) < 0.5


def statements(tree):
    """Every statement of a module, at any depth; expressions, most of a tree, are left out."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(tree, field, ()):
            yield child
            yield from statements(child)


def imports():
    """(importing part, imported part, where) of every import inside the package that is not for type hints alone."""
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE)
        if inside.name == "__init__.py" and len(inside.parts) == 1:
            continue
        part = inside.parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text())
        for node in statements(tree):
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{inside}:{node.lineno}: a relative import"
                module = node.module or ""
                names = [f"sparsact.{a.name}" for a in node.names] if module == "sparsact" else [module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                if name.startswith("sparsact."):
                    yield part, name.split(".")[1], f"{inside}:{node.lineno}"


def test_imports_point_one_way():
    for part, imported, where in imports():
        if imported == part:
            continue
        if imported in ("cli", "reports", "benchmarks"):
            assert part in ("cli", "__main__"), f"{where}: only the command may import {imported}"
        if part in MAY_IMPORT:
            assert imported in MAY_IMPORT[part], f"{where}: {part} must not import {imported}"


@pytest.mark.parametrize(
    ("module", "above"), [("storage", ("learners", "network")), ("network", ("fourier", "certificate"))]
)
def test_what_stands_above_is_imported_late(module, above):
    tree = ast.parse((SOURCE / f"{module}.py").read_text())
    top = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{alias.name}" for node in top for alias in node.names}
    assert not [name for name in names if name.startswith(tuple(f"sparsact.{part}" for part in above))]


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name == "__main__.py":
            continue
        yield ".".join(("sparsact", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


@pytest.mark.parametrize("name", list(modules()))
def test_names_that_are_promised_exist(name):
    for needing, needed in OPTIONAL.items():
        if name.startswith(needing):
            pytest.importorskip(needed, reason=f"{needing} needs it")
    module = __import__(name, fromlist=["_"])
    promised = getattr(module, "__all__", [])
    assert len(set(promised)) == len(promised)
    for promise in promised:
        assert getattr(module, promise) is not None
        if name == "sparsact":
            assert promise in dir(module)


def test_the_public_contract():
    for name in ("LowDegreeRegressor", "LowDegreeClassifier", "LowDegreeRegressorCV", "load", "fourier", "__version__"):
        assert hasattr(sparsact, name)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", sparsact.__version__)
    with pytest.raises(AttributeError, match="no attribute 'Perceptron'"):
        _ = sparsact.Perceptron


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of the repository")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_file_names_a_machine():
    """No absolute path of anybody's machine in a tracked file."""
    machine = re.compile(rb"(?<![\w.])/(?:work|home|Users|mnt|root|data|workspace)/[\w.-]+")
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content:
            found = machine.search(content)
            assert not found, f"{path.relative_to(ROOT)} names {found[0].decode()}"


def test_no_tracked_file_is_large():
    """Rows of full experiments may be two megabytes a file: some 2,000 rows, each with its machine and versions."""
    for path in tracked():
        most = 2 if path.parent == ROOT / "results" / "reproduction" else 1
        assert path.stat().st_size < most << 20, f"{path.relative_to(ROOT)} has over {most} megabytes"

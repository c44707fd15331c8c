"""The package as a whole: quick to import, layered one way, with the names it promises."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest
from grids import grid
from journeys import parsed

import sparsact
from sparsact import registry
from sparsact.extras import missing

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sparsact"
OPTIONAL = {  # packages that not every machine can install, by who needs them
    "sparsact.inference.triton": "triton",
    "sparsact.kernels.gpu": "triton",
    "benchmarks.walsh_hadamard": "fht_cpu",
}
HEAVY = ("torch", "matplotlib", "dask", "sklearn", "pandas", "pyarrow", "numpy")

# Each folder or module, and what it may import of the package besides itself, inside functions too.
GROUND = {
    "hypercube",
    "notebook",
    "validation",
    "lift",
    "kernels",
    "files",
    "memory",
    "saving",
    "extras",
    "statistics",
    "_version",
}
TORCH = {"kernels", "routing", "statistics", "validation", "notebook", "extras"}  # an area apart: tests/areas.py
NETWORKS = GROUND | {"exact_sign", "activity", "network", "stack", "fourier"}
MAY_IMPORT = {
    "_version": set(),
    "registry": set(),  # names what stands above as text
    "hypercube": set(),
    "notebook": set(),
    "exact_sign": set(),
    "activity": {"notebook"},
    "extras": set(),
    "files": set(),
    "transaction": set(),
    "memory": set(),
    "environment": {"_version", "kernels"},
    "validation": {"hypercube"},
    "kernels": {"hypercube"},
    "statistics": {"kernels", "transaction", "saving"},
    "lift": {"hypercube", "validation"},
    "saving": {"_version", "files", "registry", "validation"},
    "network": GROUND | {"exact_sign", "activity", "registry"},
    "stack": GROUND | {"exact_sign", "activity", "registry", "network"},
    "fourier": GROUND | {"network", "stack", "registry"},
    "certificate": NETWORKS,
    "constructions": GROUND | {"exact_sign", "network"},
    "bounds": GROUND | {"network", "stack", "fourier"},
    "rademacher": GROUND | {"network", "fourier", "bounds"},
    "routing": GROUND,
    "learners": NETWORKS | {"transaction", "certificate", "bounds", "routing", "registry"},
    "hardness": GROUND | {"network", "fourier", "constructions", "learners"},
    "layers": TORCH,
    "inference": TORCH | {"layers", "saving"},
    "datasets": GROUND | {"fourier"},
    "passes": GROUND | {"environment", "registry"},
    "distributed": GROUND | {"learners", "datasets", "passes"},
    "reports": {"files", "network"},  # of results of fits and measurements they read attributes
    "fit": GROUND | {"environment", "fourier", "learners", "datasets", "passes", "registry", "reports"},
    "cli": NETWORKS
    | {
        "environment",
        "certificate",
        "constructions",
        "bounds",
        "learners",
        "inference",
        "datasets",
        "passes",
        "reports",
        "fit",
    },
    "__main__": {"cli"},
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


@pytest.mark.grid
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
    assert layers.startswith(f"{missing('sparsact.layers', 'torch')} Routers")
    assert measure == missing("sparsact.inference", "torch")


def test_the_import_is_quick():
    """Median of three fresh interpreters, less the same without the import: under half a second."""
    took = {"import sparsact": [], "pass": []}
    for _ in range(3):
        for code, seconds in took.items():
            start = time.perf_counter()
            python(code)
            seconds.append(time.perf_counter() - start)
    assert statistics.median(took["import sparsact"]) - statistics.median(took["pass"]) < 0.5


@cache
def sources():
    """Every module of the library but its first, by name."""
    paths = {path: path.relative_to(SOURCE.parent).with_suffix("").parts for path in SOURCE.rglob("*.py")}
    return {".".join(parts).removesuffix(".__init__"): path for path, parts in paths.items()}


def statements(node):
    """Every statement below a node, at any depth, but those for type checkers."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
                yield child
                yield from statements(child)


@cache
def imports(*, for_types=False):
    """(importing module, imported module, line) of imports between modules of the library: those run, or all."""
    found = []
    for name, path in sources().items():
        for node in ast.walk(parsed(path)) if for_types else statements(parsed(path)):
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{name}:{node.lineno}: a relative import"
                inside = (f"{node.module}.{alias.name}" for alias in node.names)
                names = [one if one in sources() else node.module for one in inside]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            found += [(name, imported, node.lineno) for imported in names]
    return found


def part_of(module):
    return module.split(".")[1]


def test_imports_point_one_way():
    """Between the parts of the library, without an exception; the other packages import it, and it imports neither."""
    for module, imported, line in imports():
        above = imported.split(".")[0] in ("sparsact_papers", "benchmarks")
        assert not above, f"{module}:{line}: the library must not import {imported}"
        if module == "sparsact" or not imported.startswith("sparsact.") or part_of(module) == part_of(imported):
            continue
        assert part_of(imported) in MAY_IMPORT[part_of(module)], f"{module}:{line} must not import {imported}"
    assert {part_of(module) for module in sources() if module != "sparsact"} == set(MAY_IMPORT)


def test_the_house_is_as_it_is_drawn():
    """In the drawing of CONTRIBUTING each part stands after all that it may import, so that there are no circles."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    library = contributing.partition("src/sparsact/\n")[2].partition("papers/src/")[0]
    order = list(dict.fromkeys(word for word in re.findall(r"\w+", library) if word in MAY_IMPORT))
    undrawn = {"_version", "registry", "__main__"}
    assert set(order) == set(MAY_IMPORT) - undrawn
    for place, part in enumerate(order):
        assert MAY_IMPORT[part] <= {"_version", "registry", *order[:place]}, part


def test_only_the_command_imports_layers_and_inference():
    """The library of tables and theory does without them, so that each area is tested alone."""
    assert [part for part, allowed in MAY_IMPORT.items() if "inference" in allowed] == ["cli"]
    assert [part for part, allowed in MAY_IMPORT.items() if "layers" in allowed] == ["inference"]


def circle(graph):
    """Modules that import each other in turn, the first again at the end; empty if there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return found.args[1]
    return []


def test_no_modules_stand_in_a_circle():
    """Imports for type checkers and those within functions count; only the top ``__init__``, which re-exports, may."""
    graph = {name: set() for name in sources() if name != "sparsact"}
    for module, imported, _ in imports(for_types=True):
        if module in graph and imported in graph:
            graph[module].add(imported)
    assert circle(graph) == []
    graph["sparsact.registry"].add("sparsact.cli")
    assert len(circle(graph)) > 2


@pytest.mark.slow
def test_the_suite_is_collected_without_triton():
    """Some systems have no wheels of Triton: tests that need it are skipped when they run."""
    blocked = "import sys; sys.modules['triton'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    words = ["--collect-only", "-q", "-p", "no:cacheprovider", "-m", "", "src", "tests", "benchmarks", "papers"]
    done = subprocess.run([sys.executable, "-c", blocked, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


DOORS_UPWARD = (
    *(registry.CERTIFY, registry.CERTIFY_STACK),
    *registry.DISPLAYS.values(),
    registry.BARS,
)


@grid(place=[*DOORS_UPWARD, *registry.MODELS.values()])
def test_the_door_upward_leads_somewhere(place):
    assert callable(registry.find(place))


def modules():
    for folder in (ROOT / "src", ROOT / "papers" / "src", ROOT):
        for path in sorted(folder.glob("sparsact*/**/*.py" if folder != ROOT else "benchmarks/**/*.py")):
            if path.name != "__main__.py":
                yield ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")


def test_names_that_are_promised_exist():
    for name in modules():
        if any(name.startswith(needing) and find_spec(needed) is None for needing, needed in OPTIONAL.items()):
            continue
        module = __import__(name, fromlist=["_"])
        promised = getattr(module, "__all__", [])
        assert len(set(promised)) == len(promised), name
        assert [promise for promise in promised if getattr(module, promise, None) is None] == [], name
    assert set(sparsact.__all__) <= set(dir(sparsact))


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


def classes(node):
    """Classes at any depth; expressions hold none."""
    for child in statements(node):
        if isinstance(child, ast.ClassDef):
            yield child


def test_no_two_classes_share_a_name():
    """In any of the packages: whoever searches for a class finds one."""
    found = Counter()
    for folder in (SOURCE, ROOT / "papers" / "src", ROOT / "benchmarks"):
        for path in folder.rglob("*.py"):
            found.update(node.name for node in classes(parsed(path)))
    assert [name for name, times in found.items() if times > 1] == []

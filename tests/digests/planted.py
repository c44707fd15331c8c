"""How many planted changes the digests see: constants of ``learners`` and ``fit``, each changed by a factor of ten.

    python tests/digests/planted.py [--changes 40] [--seed 0] [--jobs 2]

Each change is made in a process of its own, in the source as it is imported; no file is touched. A change is *seen* if
an output differs, besides the kept numbers themselves (item ``constants``), which see every change; a process that ends
with an error, or not within a quarter of an hour, sees it too. Outputs that are named like the module come first, and
the first difference ends the search: some seconds for what is seen, the time of all outputs for what is not.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
SECONDS = 900.0


def constants() -> list[tuple[str, str, float]]:
    """(module, name, value) of every number bound in upper case at the top of a module of ``learners`` or ``fit``."""
    found = []
    for folder in ("learners", "fit"):
        for path in sorted((SOURCE / "sparsact" / folder).rglob("*.py")):
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
            for target, value in bindings(ast.parse(path.read_text(encoding="utf-8"))):
                number = number_of(value)
                if target.id.lstrip("_").isupper() and number:
                    found.append((module, target.id, number))
    return found


def bindings(tree: ast.Module) -> list[tuple[ast.Name, ast.expr]]:
    """Names and the expressions that are bound to them; names of a tuple one by one."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs.append((node.target, node.value))
        elif (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Tuple)
            and isinstance(node.value, ast.Tuple)
        ):
            pairs += zip(node.targets[0].elts, node.value.elts, strict=True)
    return [(target, value) for target, value in pairs if isinstance(target, ast.Name)]


def number_of(value: ast.expr) -> float | None:
    """The number that an expression of literals is, else None."""
    try:
        found = eval(compile(ast.Expression(value), "constant", "eval"), {"__builtins__": {}})
    except NameError:  # it names another constant or a function
        return None
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


class Planted(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Imports one module with one constant times ten, or by ten."""

    def __init__(self, module: str, name: str, value: float) -> None:
        path = SOURCE.joinpath(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        super().__init__(module, str(path))
        self.constant, self.value = name, value

    def find_spec(self, fullname, path=None, target=None):
        return (
            importlib.util.spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None
        )

    def get_code(self, fullname):
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        for target, value in bindings(tree):
            if target.id == self.constant:
                place = next(p for p in ast.walk(tree) if value in ast.iter_child_nodes(p))
                new = ast.copy_location(ast.Constant(self.value), value)
                if isinstance(place, ast.Tuple):
                    place.elts[place.elts.index(value)] = new
                else:
                    place.value = new
        return compile(tree, self.path, "exec")


def first_seen(change: tuple[str, str, float]) -> str:
    """The first output that is not what is kept, once a constant is changed; of nearby names first. Empty: none is."""
    sys.meta_path.insert(0, Planted(*change))
    import digests

    kept = json.loads(digests.MANIFEST.read_text())
    words = set(change[0].replace(".", "_").split("_"))
    items = sorted(digests.ITEMS.keys() - {"constants"}, key=lambda item: (-len(words & set(item.split("_"))), item))
    for name, value in digests.outputs(items):
        if digests.error(kept[name], digests.digest(value))[0] > digests.tolerance(name):
            return name
    return ""


def outcome(change: tuple[str, str, float]) -> str:
    """What computing the outputs says of a change: which differs first, or how the process ended; empty: nothing."""
    command = [sys.executable, __file__, "--one", json.dumps(change)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"more than {SECONDS:g} s"
    if run.returncode:
        return f"error: {(run.stderr.strip().splitlines() or ['?'])[-1][:80]}"
    return run.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        warnings.simplefilter("ignore")
        print(first_seen(json.loads(options.one)))
        return
    draw = random.Random(options.seed)
    changes = []
    for module, name, value in draw.sample(constants(), options.changes):
        larger = draw.random() < 0.5
        changes.append((module, name, value * 10 if larger else value // 10 if isinstance(value, int) else value / 10))
    n_seen = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for (module, name, value), seen in zip(changes, pool.map(outcome, changes), strict=True):
            n_seen += bool(seen)
            print(f"{module}.{name} = {value:g}: {seen or 'not seen'}", flush=True)
    print(f"{n_seen} of {len(changes)} planted changes seen by what is computed")


if __name__ == "__main__":
    main()

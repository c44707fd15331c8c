"""How many planted changes the digests see: constants of ``learners`` and ``fit``, each changed by a factor of ten.

    python tests/digests/planted.py [--changes 40] [--seed 0] [--jobs 2]

Each change is made in a process of its own, in the source as it is imported; no file is touched. A change is *seen* if
an output differs, besides the kept numbers themselves (item ``constants``), which see every change; a process that ends
with an error or takes ten times as long sees it too.
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


def outcome(change: tuple[str, str, float]) -> tuple[str, list[str]]:
    """What the comparison says of a change: the outputs that differ, or how the process ended."""
    command = [sys.executable, __file__, "--one", json.dumps(change)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "too slow", []
    if "outputs in" not in run.stdout:
        return f"error: {(run.stderr.strip().splitlines() or ['?'])[-1][:80]}", []
    lines = [line for line in run.stdout.splitlines()[:-1] if not line.startswith("constants:")]
    return ("seen" if lines else "not seen"), [line.split("  ")[0] for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        import digests

        sys.meta_path.insert(0, Planted(*json.loads(options.one)))
        sys.exit(digests.main("compare", []))
    draw = random.Random(options.seed)
    changes = []
    for module, name, value in draw.sample(constants(), options.changes):
        larger = draw.random() < 0.5
        changes.append((module, name, value * 10 if larger else value // 10 if isinstance(value, int) else value / 10))
    seen = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for (module, name, value), (said, where) in zip(changes, pool.map(outcome, changes), strict=True):
            seen += said != "not seen"
            print(f"{module}.{name} = {value:g}: {said}; {len(where)} outputs {', '.join(where[:3])}", flush=True)
    print(f"{seen} of {len(changes)} planted changes seen by what is computed")


if __name__ == "__main__":
    main()

"""Count the files and functions that six journeys run through, and what the package consists of.

    python tests/journeys.py [--json] [FOLDER]

A journey is run once to load what it needs, and counted the second time: files and functions of the package that were
entered, and the most of them on the stack at once; lambdas and comprehensions are parts of their functions. The rest is
read from the sources in FOLDER, by default the sources of the package that Python imports; journeys always run the
imported package.

A circle is a set of modules that all import each other, directly or through other modules of the set. Imports inside
functions and for type checkers count, imports of the top ``__init__`` do not. Blank lines, comments and docstrings are
no code.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import sparsact as sa

IMPORTED = Path(sa.__file__).parent
IS_FUNCTION = 1  # the flag CO_OPTIMIZED, which modules and the bodies of classes lack


# ---- journeys ----


class Count:
    """Functions of a folder that run while it is entered, and the most of them on the stack at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = f"{folder}/"
        self.functions: set[CodeType] = set()
        self.depth = self.now = 0

    def __enter__(self) -> Count:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        named = code.co_flags & IS_FUNCTION and not code.co_name.startswith("<")
        if event in ("call", "return") and named and code.co_filename.startswith(self.folder):
            self.functions.add(code)
            self.now += 1 if event == "call" else -1
            self.depth = max(self.depth, self.now)

    def found(self) -> dict[str, int]:
        files = {code.co_filename for code in self.functions}
        return {"files": len(files), "functions": len(self.functions), "depth": self.depth}


def low_degree() -> Callable[[], Any]:
    X = np.random.default_rng(0).integers(0, 2, (500, 8))
    return lambda: sa.LowDegreeRegressor(degree=2).fit(X, X[:, 0] ^ X[:, 3])


def lsh() -> Callable[[], Any]:
    X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    return lambda: sa.LSHRegressor(random_state=0).fit(X, np.abs(X[:, 0]))


def lsh_updated() -> Callable[[], Any]:
    X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    model = sa.LSHRegressor(random_state=0).fit(X, np.abs(X[:, 0]))
    return lambda: model.partial_fit(X[:7], np.abs(X[:7, 0]))


def lsh_asked() -> Callable[[], Any]:
    X = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    model = sa.LSHRegressor(random_state=0).fit(X, np.abs(X[:, 0]))
    return lambda: model.predict(X[:7])


def command() -> Callable[[], Any]:
    from sparsact.cli import main

    bits = np.random.default_rng(0).integers(0, 2, (500, 6))
    lines = ["a,b,c,d,e,f,y", *(",".join(map(str, [*row, row[0] ^ row[3]])) for row in bits)]

    def fit() -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            path = Path(folder) / "t.csv"
            path.write_text("\n".join(lines))
            if main(["fit", str(path), "--target", "y"]):
                raise RuntimeError("sparsact fit failed")

    return fit


def sparsify() -> Callable[[], Any]:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 16)).eval()
        inputs = [torch.randn(4, 16) for _ in range(8)]
    return lambda: sa.sparsify(model, "exact", inputs, copy=True)


JOURNEYS = {
    "LowDegreeRegressor.fit": low_degree,
    "sparsact fit t.csv --target y": command,
    "sparsify": sparsify,
    "LSHRegressor.fit": lsh,
    "LSHRegressor.partial_fit": lsh_updated,
    "LSHRegressor.predict": lsh_asked,
}


def counted(prepare: Callable[[], Callable[[], Any]]) -> dict[str, int]:
    run = prepare()
    run()
    with Count(IMPORTED) as count:
        run()
    return count.found()


# ---- sources ----


def modules(folder: Path) -> dict[str, Path]:
    """Files by the name of their module."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, name: str, is_package: bool, known: dict[str, Path]) -> set[str]:
    """Modules of the package that a module imports; of ``from a import b`` it is a.b, if that is a module."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = name.split(".")[: len(name.split(".")) - node.level + is_package] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            inner = [f"{origin}.{alias.name}" for alias in node.names]
            names += [one if one in known else origin for one in inner]
    return {one for one in names if one in known} - {name}


def in_circles(trees: dict[str, ast.Module], known: dict[str, Path]) -> list[int]:
    """Sizes of all circles, the largest first."""
    places = {name: place for place, name in enumerate(trees)}
    edges = [
        (places[name], places[other])
        for name, tree in trees.items()
        for other in imported(tree, name, known[name].name == "__init__.py", known)
        if "." in name and "." in other
    ]
    starts, ends = zip(*edges, strict=True) if edges else ((), ())
    graph = csr_array((np.ones(len(edges)), (starts, ends)), shape=(len(trees), len(trees)))
    _, circle = connected_components(graph, connection="strong")
    return sorted((int(size) for size in np.bincount(circle) if size > 1), reverse=True)


def code_lines(text: str, nodes: list[ast.AST]) -> set[int]:
    """Numbers of the lines that hold code."""
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.strip() and line.lstrip()[0] != "#"}
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return lines


def public_names(tree: ast.Module) -> int:
    """Length of ``__all__``, where it is written out."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return len(node.value.elts) if isinstance(node.value, ast.List | ast.Tuple) else 0
    return 0


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def of_sources(folder: Path) -> dict[str, Any]:
    known = modules(folder)
    texts = {name: path.read_text(encoding="utf-8") for name, path in known.items()}
    trees = {name: parsed(path) for name, path in known.items()}
    nodes = {name: list(ast.walk(tree)) for name, tree in trees.items()}
    code = {name: code_lines(texts[name], found) for name, found in nodes.items()}
    imports = sum(
        len(
            {line for node in found if isinstance(node, ast.Import | ast.ImportFrom)
             for line in range(node.lineno, (node.end_lineno or 0) + 1)}
        )
        for found in nodes.values()
    )  # fmt: skip
    classes = Counter(node.name for found in nodes.values() for node in found if isinstance(node, ast.ClassDef))
    circles = in_circles(trees, known)
    n_code = sum(map(len, code.values()))
    return {
        "files": len(known),
        "lines": sum(len(text.splitlines()) for text in texts.values()),
        "lines of code": n_code,
        "share of imports in code": round(imports / n_code, 4),
        "classes": sum(classes.values()),
        "class names borne twice or more": sum(count > 1 for count in classes.values()),
        "classes that bear them": sum(count for count in classes.values() if count > 1),
        "names in __all__": sum(map(public_names, trees.values())),
        "modules in circles": sum(circles),
        "circles": circles,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=IMPORTED, help="of the package's sources")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of the tables")
    given = parser.parse_args()
    found = {
        "journeys": {name: counted(prepare) for name, prepare in JOURNEYS.items()},
        "sources": of_sources(given.folder.resolve()),
    }
    if given.json:
        print(json.dumps(found))
        return
    print(f"{'journey':<32} {'files':>9} {'functions':>9} {'depth':>9}")
    for name, numbers in found["journeys"].items():
        print(f"{name:<32} " + " ".join(f"{number:>9,}" for number in numbers.values()))
    print()
    for name, value in found["sources"].items():
        print(f"{name:<32} {value:>9,}" if isinstance(value, int | float) else f"{name:<32} {value}")


if __name__ == "__main__":
    main()

"""Every example names only what the library has; `make demo` and the gallery run them."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

from grids import grid

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").rglob("*.py"))


@grid(path=EXAMPLES)
def test_names_that_are_imported_exist(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sparsact":
            module = import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []

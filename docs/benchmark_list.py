"""The catalogue of benchmarks, from their registry, their docstrings and the kept rows."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

from list_table import list_table

from benchmarks.registry import BENCHMARKS
from benchmarks.table.kept import kept

MODULES = Path(__file__).parents[1] / "benchmarks"


def method(name: str) -> str:
    """The docstring of a benchmark below its first line; a reference is plain text."""
    text = (MODULES / f"{name}.py").read_text(encoding="utf-8")
    _, _, rest = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")
    rest = re.sub(r" \[\d\]_", "", rest)
    # A line that begins with an initial would be a list of letters.
    return re.sub(r"^\.\. \[\d\] (.*)\n +", r"\\\1 ", rest, flags=re.MULTILINE)


def benchmark_list(path: Path) -> None:
    """Write the table, and a fold for each benchmark, to be included by ``benchmark_list.rst``."""
    judged = [(row["benchmark"], row["met"]) for row in kept().values() if row["met"] is not None]
    targets, missed = Counter(name for name, _ in judged), Counter(name for name, met in judged if not met)
    lines = [("name", "what it measures", "takes", "targets missed")]
    for each in BENCHMARKS.values():
        count = f"{missed[each.name]} of {targets[each.name]}" if targets[each.name] else "-"
        lines.append((f"``{each.name}``", each.goal, each.takes or "-", count))
    page = list_table(lines, ":widths: 20 50 10 20")
    page += ["", "Goals and methods", "-----------------", ""]
    for each in BENCHMARKS.values():
        needs = ", ".join(f"``{module}``" for module in each.needs) or "no other package"
        body = [f"Needs {needs}.", "", *method(each.name).splitlines()]
        page += [f".. dropdown:: {each.name}", "", *(f"   {line}".rstrip() for line in body), ""]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")

"""The table of all bounds, from their own list, so that it cannot grow old."""

from __future__ import annotations

from pathlib import Path

from sparsact.bounds import BOUNDS, BoundInfo
from sparsact.bounds.registry import MEANING


def bound_table(path: Path) -> None:
    """Write the table, to be included by ``theory.rst``."""
    lines = [*(f"- *{status}*: {meaning}" for status, meaning in MEANING.items()), ""]
    lines += [".. list-table::", "   :header-rows: 1", "   :widths: 20 12 30 38", ""]
    for row in (("statement", "status", "gives", "function of"), *map(_row, BOUNDS)):
        first, *rest = row
        lines += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _row(entry: BoundInfo) -> tuple[str, str, str, str]:
    paper = "" if entry.paper is None else f" (paper {entry.paper})"
    function = f":func:`~sparsact.bounds.{entry.name}` of {', '.join(entry.parameters)}"
    return f"{entry.statement}{paper}", entry.status, entry.gives, function

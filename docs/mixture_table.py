"""The table of families of mixtures of experts, from the list that the tests run through."""

from __future__ import annotations

from pathlib import Path

from benchmarks.mixture_families import MIXTURES


def mixture_families(path: Path) -> None:
    """Write each family, and whether ``replace_experts`` takes it: ``replaced_experts.rst`` includes it."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 55 45", "   :class: paired", ""]
    lines += ["   * - family, and class in transformers", "     - experts"]
    for one in sorted(MIXTURES, key=lambda each: each.name.lower()):
        experts = f"kept: ``{one.reason.replace(' ', '`` ', 1)}" if one.reason else "replaced"
        lines += [f"   * - | {one.name}", f"       | ``{one.model}``", f"     - {experts}"]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")

"""The list-tables that pages include."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def list_table(lines: Iterable[Sequence[object]], option: str = ":class: compact", title: str = "") -> list[str]:
    """A table as lines of reStructuredText; ``lines`` holds rows of cells, the head first."""
    page = [f".. list-table:: {title}".rstrip(), "   :header-rows: 1", f"   {option}", ""]
    for first, *rest in lines:
        page += [f"   * - {first}", *(f"     - {cell}" for cell in rest)]
    return page

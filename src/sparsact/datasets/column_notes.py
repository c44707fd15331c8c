"""What a report says of the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence

from sparsact.datasets.columns import Bit, BitString, Column, OneHot, Real, listed
from sparsact.datasets.letters import LetterString, Mutations


def column_notes(columns: Sequence[Column], domain: str) -> list[str]:
    """Sentences for the report on columns that are not simply 0 and 1; columns of the same values share one."""
    numbers = [column.name for column in columns if isinstance(column, Real)]
    how = "used as they are" if domain == "real" else "less their mean, over their standard deviation, both frozen"
    notes = [f"columns of numbers, {how}: {listed(numbers)}."] if numbers else []
    same: dict[tuple[str, ...], list[str]] = {}
    for column in columns:
        if isinstance(column, Bit) and len(column.values) == 2 and set(column.values) != {"0", "1"}:
            same.setdefault(column.values, []).append(column.name)
        elif isinstance(column, BitString):
            notes.append(f"{column.name}: strings of {column.length} bits, expanded into as many columns.")
        elif isinstance(column, OneHot):
            notes.append(f"{column.name}: {len(column.values)} categories, one bit each (one-hot).")
        elif isinstance(column, LetterString):
            sites = f"strings of {len(column.letters)} letters, of which {len(column.sites)} sites vary"
            notes.append(f"{column.name}: {sites}.")
        elif isinstance(column, Mutations):
            notes.append(f"{column.name}: mutations of {len(column.sites)} sites.")
    bits = [f"{listed(names)}: bit 1 stands for {one}, bit 0 for {zero}." for (zero, one), names in same.items()]
    return notes + bits

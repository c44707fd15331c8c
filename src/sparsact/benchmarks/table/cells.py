"""Cells of the README's table."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Rows = dict[tuple[str, str], Row]


def spread(row: Row, unit: str = "s", factor: float = 1.0) -> str:
    """Median with the least and the most, in multiples of a unit.

    >>> spread({"value": 2e-6, "samples": [1e-6, 3e-6]}, "us", 1e6)
    '2 us [1 to 3]'
    """
    low, value, high = (factor * number for number in (min(row["samples"]), row["value"], max(row["samples"])))
    return f"{value:.3g} {unit} [{low:.3g} to {high:.3g}]"


def times(row: Row) -> str:
    """A ratio with its spread, where it was measured more than once, and what is said of a bar that was missed.

    >>> times({"value": 2.04, "samples": [1.96, 2.04, 2.113], "met": False})
    '2.04x [1.96 to 2.11], missed'
    """
    told = f"{row['value']:.3g}x"
    if len(row["samples"]) > 1:
        told += f" [{min(row['samples']):.3g} to {max(row['samples']):.3g}]"
    return told + verdict(row)


def line(*cells: str) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def verdict(row: Row) -> str:
    """What is said of a bar that was missed."""
    return ", missed" if row["met"] is False else ""

"""Cells of the README's table."""

from __future__ import annotations


def spread(row: dict, unit: str = "s", factor: float = 1.0) -> str:
    """Median with the least and the most, in multiples of a unit.

    >>> spread({"value": 2e-6, "samples": [1e-6, 3e-6]}, "us", 1e6)
    '2 us [1 to 3]'
    """
    low, value, high = (factor * number for number in (min(row["samples"]), row["value"], max(row["samples"])))
    return f"{value:.3g} {unit} [{low:.3g} to {high:.3g}]"


def line(*cells: str) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def verdict(row: dict) -> str:
    """What is said of a bar that was missed."""
    return "" if row["met"] else ", missed"

"""Cells of the documentation's table."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Rows = dict[tuple[str, str], Row]
Line = tuple[str, str, str, str]  # work, against, target, measured


def spread(row: Row, unit: str = "s", factor: float = 1.0) -> str:
    """Median with the least and the most, in multiples of a unit.

    >>> spread({"value": 2e-6, "samples": [1e-6, 3e-6]}, "us", 1e6)
    '2 us [1 to 3]'
    """
    samples = row["samples"] or [row["value"]]
    low, value, high = (factor * number for number in (min(samples), row["value"], max(samples)))
    return f"{value:.3g} {unit} [{low:.3g} to {high:.3g}]"


def times(row: Row) -> str:
    """A ratio with its spread, where it was measured more than once, and what is said of a target that was missed.

    >>> times({"value": 2.04, "samples": [1.96, 2.04, 2.113], "met": False})
    '2.04x [1.96 to 2.11], missed'
    """
    shown = f"{row['value']:.3g}x"
    if len(row["samples"]) > 1:
        shown += f" [{min(row['samples']):.3g} to {max(row['samples']):.3g}]"
    return shown + verdict(row)


def starting(rows: Rows, words: str, work: str | None = None) -> dict[str, Row]:
    """Rows, by their work, of the quantity that starts with these words; of one work, if it is named.

    Raises
    ------
    KeyError
        If there are none.
    """
    found = {w: row for (w, quantity), row in rows.items() if quantity.startswith(words) and work in (None, w)}
    if not found:
        raise KeyError(words)
    return found


def verdict(row: Row) -> str:
    """What is said of a target that was missed."""
    return ", missed" if row["met"] is False else ""

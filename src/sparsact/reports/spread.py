"""A row that holds a list, as one row for each entry of the list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparsact.experiments import Row


def spread(row: Row, **values: Any) -> Row:
    """The row with further values, of one entry of its lists."""
    return replace(row, values={**row.values, **values})

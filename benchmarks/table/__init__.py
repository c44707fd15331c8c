"""The documentation's table of measured figures, from the newest rows of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any, Final

from benchmarks.table import inference, networks, polynomials, routed
from benchmarks.table.cells import Line, Rows

HEAD: Final = ("work", "compared with", "target", "measured")
SECTIONS: Final = (*polynomials.SECTIONS, *networks.SECTIONS, *routed.SECTIONS, *inference.SECTIONS)


def newest(path: str | Path) -> Rows:
    """Rows of a file by what they measure, (work, quantity); a later row replaces an earlier one.

    Raises
    ------
    ValueError
        At the first line that is no row of a benchmark, by its number.
    """
    rows: Rows = {}
    for number, text in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(text)
            if not _is_whole(row):
                raise ValueError
            rows[row["work"], row["quantity"]] = row
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise ValueError(f"{path}, line {number} is no row of a benchmark; remove it.") from None
    return rows


def _is_whole(row: Any) -> bool:
    """Whether every field is of its type, and no text is more than text on a page: a row may come from anyone."""
    texts, numbers = [row[name] for name in ("work", "quantity", "unit")], [row["value"], *row["samples"]]
    return (
        all(isinstance(text, str) and text.isprintable() and not set(text) & set("|<>") for text in texts)
        and all(isinstance(number, int | float) and isfinite(number) for number in numbers)
        and row["met"] in (True, False, None)
    )


def lines(rows: Rows) -> Iterator[Line]:
    """Lines of the table; work that was not measured has none."""
    yield HEAD
    for section in SECTIONS:
        try:
            yield from list(section(rows))
        except KeyError:  # some row that the section needs is not there
            continue

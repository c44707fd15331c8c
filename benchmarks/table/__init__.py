"""The README's table of measured figures, from the newest rows of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from benchmarks.table import inference, networks, polynomials, routed
from benchmarks.table.cells import Rows
from sparsact.files import write

HEAD = ("| work | against | bar | measured |", "|---|---|---|---|")
BEGIN, END = "<!-- measured by python -m benchmarks -->", "<!-- end of what was measured -->"
SECTIONS = (*polynomials.SECTIONS, *networks.SECTIONS, *routed.SECTIONS, *inference.SECTIONS)


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
            raise ValueError(f"{path}, line {number} is no row of a benchmark; take it out, or measure anew.") from None
    return rows


def _is_whole(row: Any) -> bool:
    """Whether every field is of its type, and no text is more than text on a page: a row may come from anyone."""
    texts, numbers = [row[name] for name in ("work", "quantity", "unit")], [row["value"], *row["samples"]]
    return (
        all(isinstance(text, str) and text.isprintable() and not set(text) & set("|<>") for text in texts)
        and all(isinstance(number, int | float) and isfinite(number) for number in numbers)
        and row["met"] in (True, False, None)
    )


def lines(rows: Rows) -> Iterator[str]:
    """Lines of the table in Markdown; work that was not measured has none."""
    yield from HEAD
    for section in SECTIONS:
        try:
            yield from list(section(rows))
        except KeyError:  # some row that the section tells of is not there
            continue


def write_into(readme: str | Path, rows: Rows) -> None:
    """Replace what stands between the two comments of a Markdown file by the table.

    Raises
    ------
    ValueError
        If the file lacks one of the comments.
    """
    text = Path(readme).read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{readme} has no place for the table: put the lines {BEGIN} and {END} where it should stand.")
    table = "\n".join(lines(rows))
    write(readme, f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")

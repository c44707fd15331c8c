"""Tables for notebooks: what ``_repr_html_`` of a result returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any


def to_pandas(rows: Sequence[Mapping[str, Any]] | Mapping[str, Any], columns: Sequence[str]) -> Any:
    """Rows, or columns by their names, as a ``pandas.DataFrame``; needs pandas."""
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise ImportError("`to_frame` needs the package pandas: pip install pandas.") from error
    return DataFrame(rows, columns=list(columns))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table of texts: the first column on the left, the others on the right.

    >>> aligned([["name", "value"], ["x", "3"]])
    ['name  value', 'x         3']
    """
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    return [
        "  ".join([row[0].ljust(first), *(cell.rjust(width) for cell, width in zip(row[1:], others, strict=True))])
        for row in rows
    ]


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table in which every text is escaped; the first cell of a row is its heading.

    >>> print(html_table("a < b", ("name", "value"), [("x", 3)]))
    <table><caption style="text-align:left">a &lt; b</caption>
    <thead><tr><th scope="col">name</th><th scope="col">value</th></tr></thead>
    <tbody><tr><th scope="row">x</th><td>3</td></tr></tbody></table>
    """
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = "".join(
        f'<tr><th scope="row">{escape(str(first))}</th>{"".join(f"<td>{escape(str(cell))}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return (
        f'<table><caption style="text-align:left">{escape(caption)}</caption>\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>{lines}</tbody></table>"
    )

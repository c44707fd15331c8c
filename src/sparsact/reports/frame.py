"""A frame: the numbers of a figure as named columns of equal length."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

Frame = dict[str, Sequence[Any]]


def rows(frame: Frame) -> Iterator[tuple[Any, ...]]:
    """Rows of a frame."""
    return zip(*frame.values(), strict=True)


def n_rows(frame: Frame) -> int:
    """Length of the columns."""
    return len(next(iter(frame.values())))


def to_csv(frame: Frame) -> str:
    r"""Text of a frame as CSV, with a header.

    >>> to_csv({"degree": [1, 2], "weight": [0.5, 0.25]})
    'degree,weight\r\n1,0.5\r\n2,0.25\r\n'
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(frame)
    writer.writerows(rows(frame))
    return text.getvalue()

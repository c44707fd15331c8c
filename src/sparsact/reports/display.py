"""A figure with its numbers, ready for the page: both can be saved from it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from matplotlib.figure import Figure

from sparsact.reports.frame import Frame, n_rows, rows, to_csv
from sparsact.reports.style import to_svg, with_own_names

ROWS_SHOWN = 25


class Drawing(Protocol):
    """A figure's module, or anything else that draws a frame."""

    @property
    def plot(self) -> Callable[[Frame], Figure]:
        """Draw the numbers."""


@dataclass(frozen=True)
class Display:
    """A figure on the page. ``name`` is unique there, and becomes the name of saved files."""

    name: str
    title: str
    caption: str
    frame: Frame
    svg: str

    @classmethod
    def of(cls, figure: Drawing, name: str, title: str, caption: str, frame: Frame) -> Display:
        """Draw a frame with the ``plot`` of its figure's module."""
        return cls(name, title, caption, frame, to_svg(figure.plot(frame)))

    @property
    def inline_svg(self) -> str:
        """The figure for this page: named for screen readers, its ids its own."""
        named = f'<svg role="img" aria-labelledby="{self.name}-title" '
        return with_own_names(self.svg, self.name).replace("<svg ", named, 1)

    @property
    def svg_uri(self) -> str:
        """The figure as a link that saves it."""
        return _data_uri("image/svg+xml", '<?xml version="1.0" encoding="utf-8"?>\n' + self.svg)

    @property
    def csv_uri(self) -> str:
        """The numbers as a link that saves them."""
        return _data_uri("text/csv;charset=utf-8", to_csv(self.frame))

    @property
    def shown(self) -> Iterator[tuple[Any, ...]]:
        """The first rows of the numbers."""
        return (row for row, _ in zip(rows(self.frame), range(ROWS_SHOWN), strict=False))

    @property
    def n_hidden(self) -> int:
        """Rows that are in the CSV but not in the table."""
        return max(0, n_rows(self.frame) - ROWS_SHOWN)


def _data_uri(kind: str, text: str) -> str:
    return f"data:{kind};base64,{b64encode(text.encode()).decode()}"

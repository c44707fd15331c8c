"""Findings that are shown as a table: as text, in notebooks, and as a frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from sparsact.notebook import aligned, html_table, to_pandas
from sparsact.reports.numbers import number


class Tabular(ABC):
    """A base of findings that are a caption and rows."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """A sentence above the table."""

    @abstractmethod
    def records(self) -> list[dict[str, object]]:
        """Rows, each with the same columns."""

    def _cells(self) -> list[list[str]]:
        """Names of the columns, then the rows, for a person."""
        rows = self.records()
        return [list(rows[0]), *([number(value) for value in row.values()] for row in rows)]

    def to_frame(self) -> Any:
        """The rows as a ``pandas.DataFrame``, which wants pandas."""
        rows = self.records()
        return to_pandas(rows, list(rows[0]))

    def __repr__(self) -> str:
        return "\n".join([self.caption, *aligned(self._cells())])

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        return html_table(self.caption, head, rows)

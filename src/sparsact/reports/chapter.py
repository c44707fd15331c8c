"""The part of a fit's page that is special to a kind of model."""

from __future__ import annotations

from dataclasses import dataclass

from sparsact.reports.figure import Display


@dataclass(frozen=True)
class TextTable:
    """A table of texts: ``numbers`` is the count of first columns that are aligned as numbers."""

    name: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int
    remark: str = ""


@dataclass(frozen=True)
class Chapter:
    """What a page shows of one kind of model; ``name`` is the anchor of the title, and without a title there is none.

    ``tiles`` (name, value, remark) stand at the head of the page and ``facts`` (name, text) among the choices; ``wide``
    names the figures that take the whole width.
    """

    name: str = ""
    title: str = ""
    text: str = ""
    figures: tuple[Display, ...] = ()
    wide: tuple[str, ...] = ()
    table: TextTable | None = None
    tiles: tuple[tuple[str, str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

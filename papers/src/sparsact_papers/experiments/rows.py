"""Results: one row a task, and how to look into many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self, overload

import numpy as np


class MissingRowsError(IndexError):
    """The rows that a rule needs are not there (yet)."""


@dataclass(frozen=True)
class Row:
    """What one task gave, and where.

    Attributes
    ----------
    task : str
        Hash of the task's definition.
    experiment, version, parameters
        The definition itself.
    values : mapping of str to a number, text or a list of these
        What was measured.
    seconds : float
        Time of the measurement, in its own process.
    finished : str
        Date and time, UTC.
    machine, versions : mapping
        Processor, cores and system; versions of Python and of the libraries.
    commit : str
        Of the library's source, with + where it was changed since; empty where there is no repository.
    """

    task: str
    experiment: str
    version: int
    parameters: Mapping[str, Any]
    values: Mapping[str, Any]
    seconds: float
    finished: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    commit: str

    def __getitem__(self, name: str) -> Any:
        """A parameter or a value."""
        return self.values[name] if name in self.values else self.parameters[name]

    def with_values(self, **values: Any) -> Row:
        """The row with further values: computed ones, or one entry of its lists."""
        return replace(self, values={**self.values, **values})

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON holds it."""
        return asdict(self)


class Rows(Sequence[Row]):
    """Rows of one experiment.

    >>> row = Row("0", "e", 1, {"model": "dense", "seed": 0}, {"error": 2.0}, 1.0, "", {}, {}, "")
    >>> Rows([row]).where(model="dense").column("error")
    [2.0]
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    def __getitem__(self, index: int | slice) -> Row | Rows:
        if isinstance(index, slice):
            return Rows(self._rows[index])
        if not -len(self) <= index < len(self):
            raise MissingRowsError(f"row {index} of {len(self)}")
        return self._rows[index]

    def where(self, **equal: Any) -> Self:
        """Rows whose parameters (or values) are the given ones; a row without such a parameter is left out."""
        kept = (
            row
            for row in self
            if all(
                (name in row.parameters or name in row.values) and row[name] == value for name, value in equal.items()
            )
        )
        return type(self)(kept)

    def column(self, name: str) -> list[Any]:
        """A parameter or a value of every row."""
        return [row[name] for row in self]

    def array(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """A column of numbers."""
        return np.asarray(self.column(name), dtype=np.float64)

    def distinct(self, name: str) -> list[Any]:
        """The values that a column takes, in ascending order."""
        return sorted({row[name] for row in self})

    def groups(self, *names: str) -> dict[tuple[Any, ...], Rows]:
        """Rows with equal values in the named columns, in ascending order of these."""
        found: dict[tuple[Any, ...], list[Row]] = {}
        for row in self:
            found.setdefault(tuple(row[name] for name in names), []).append(row)
        return {key: Rows(found[key]) for key in sorted(found)}

"""Tasks, their rows, and the folder in which rows are kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Self, overload

import numpy as np

from sparsact_papers.lines import append_line, locked

Parameter = bool | int | float | str | None
HASH_BYTES: Final = 8


class Scale(StrEnum):
    """How large the experiments are run."""

    SMOKE = "smoke"  # seconds in all: does every experiment run from end to end?
    QUICK = "quick"  # minutes in all: every figure, at small size
    FULL = "full"  # hours in all: the sizes of the papers


@dataclass(frozen=True)
class Task:
    """One measurement of an experiment, whose ``measure`` takes the parameters as keywords: target, model, seed, sizes.

    The version is raised whenever the same parameters would give another result.
    """

    experiment: str
    version: int
    parameters: Mapping[str, Parameter] = field(hash=False)

    def __post_init__(self) -> None:
        for name, value in self.parameters.items():
            if not isinstance(value, bool | int | float | str | None):
                raise TypeError(
                    f"parameter {name!r} of a task of {self.experiment} is a {type(value).__name__}; "
                    "it must be a plain number, text, bool or None, so that its hash is the same everywhere."
                )

    @cached_property
    def name(self) -> str:
        """Hash of the definition: 16 hexadecimal digits, the same on every machine."""
        definition = json.dumps(self.definition, sort_keys=True, allow_nan=False, separators=(",", ":"))
        return blake2b(definition.encode(), digest_size=HASH_BYTES).hexdigest()

    @property
    def definition(self) -> dict[str, Any]:
        """What the hash is taken of."""
        return {"experiment": self.experiment, "version": self.version, "parameters": dict(self.parameters)}


class MissingRowsError(IndexError):
    """The rows that a rule needs are not there (yet)."""


@dataclass(frozen=True)
class Row:
    """What one task gave, and where.

    ``task`` is the hash of its definition (experiment, version, parameters). The values are numbers, texts or lists of
    these; the seconds measure the task in its own process; ``finished`` is the date and time, UTC. ``commit`` is the
    commit of the source, with + if it was changed since, and empty if there is no repository.
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
        """A parameter, a value, or a ratio of two: ``row["error / variance"]``."""
        if name in self.values:
            return self.values[name]
        if " / " in name:
            with np.errstate(all="ignore"):
                return np.divide(*(self[part] for part in name.split(" / "))).tolist()
        return self.parameters[name]

    def with_values(self, **values: Any) -> Row:
        """The row with further values: computed ones, or one entry of its lists."""
        return replace(self, values={**self.values, **values})


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

    def unfolded(self, **lists: str) -> Rows:
        """A row for each place of lists: a new value is the entry of the list that it names."""
        return Rows(
            row.with_values(**dict(zip(lists, entries, strict=True)))
            for row in self
            for entries in zip(*(row[name] for name in lists.values()), strict=True)
        )

    def paired(self, others: Rows, *names: str) -> list[tuple[Row, Row]]:
        """Each row with that of the others which has equal values in the named columns, where there is one."""
        beside = {tuple(row[name] for name in names): row for row in others}
        return [(row, beside[key]) for row in self if (key := tuple(row[name] for name in names)) in beside]


MOST_SECONDS: Final = 1e10  # three centuries: no task took longer


class Store:
    """A folder of rows.

    A row is written whole, under a lock, and flushed to the disk: a process killed at any moment loses the tasks that
    were running and nothing else, and several processes may write to one store. A task that two of them measured has
    one row. A line cut short (by a kill, say) is passed over when read, and counted.

    Parameters
    ----------
    folder : path
        Made when the first row is written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"a store of rows is a folder; {str(folder)!r} is a file.")
        self.n_unreadable = 0
        self._rows: dict[str, Row] = {}
        for path in sorted(self.folder.glob("*.jsonl")):
            self._read(path)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, task: Task) -> bool:
        return task.name in self._rows

    def of(self, tasks: Iterable[Task]) -> list[Row]:
        """Rows of the tasks that have one, in the order of the tasks."""
        return [self._rows[task.name] for task in tasks if task.name in self._rows]

    def seconds(self, experiment: str) -> list[float]:
        """How long the tasks of an experiment took."""
        return [row.seconds for row in self._rows.values() if row.experiment == experiment]

    def append(self, row: Row) -> None:
        """Add a row, on disk and here."""
        self.folder.mkdir(parents=True, exist_ok=True)
        line = (json.dumps(asdict(row), allow_nan=False, separators=(",", ":")) + "\n").encode()
        append_line(self.folder / f"{row.experiment}.jsonl", line)
        self._rows[row.task] = row

    def _read(self, path: Path) -> None:
        with path.open("rb", buffering=0) as file, locked(file, shared=True):
            file.seek(0)
            content = file.readall()
        for line in content.split(b"\n"):
            if not line.strip():
                continue
            try:
                row = Row(**json.loads(line))
                name = Task(row.experiment, row.version, row.parameters).name
            except (ValueError, TypeError, AttributeError, RecursionError):
                self.n_unreadable += 1
                continue
            # A row whose definition was edited by hand is not what its name says.
            if name == row.task and _is_whole(row):
                self._rows[row.task] = row
            else:
                self.n_unreadable += 1


def _is_whole(row: Row) -> bool:
    """Whether every field has its type: a line may come from anyone."""
    mappings = (row.parameters, row.values, row.machine, row.versions)
    texts = (row.experiment, row.finished, row.commit)
    return (
        all(isinstance(part, dict) for part in mappings)
        and all(isinstance(text, str) for text in texts)
        and isinstance(row.seconds, int | float)
        and 0 <= row.seconds < MOST_SECONDS
    )

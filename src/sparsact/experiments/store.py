"""Rows on disk: one append-only file of JSON lines an experiment. Two machines' stores merge by concatenation."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from sparsact.experiments.locks import locked
from sparsact.experiments.rows import Row
from sparsact.experiments.task import Task
from sparsact.files import flush_folder, naming

MOST_SECONDS = 1e10  # three centuries: no task took longer


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
        """Rows of those tasks that have one, in the order of the tasks."""
        return [self._rows[task.name] for task in tasks if task.name in self._rows]

    def seconds(self, experiment: str) -> list[float]:
        """How long the tasks of an experiment took."""
        return [row.seconds for row in self._rows.values() if row.experiment == experiment]

    def append(self, row: Row) -> None:
        """Add a row, on disk and here.

        Raises
        ------
        OSError
            If it cannot be written, with the name of its file: the disk may be full. The rows before are as they were.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        line = (json.dumps(row.as_dict(), allow_nan=False, separators=(",", ":")) + "\n").encode()
        path = self._path(row.experiment)
        with naming(path), _open_at_end(path) as file:
            end = file.seek(0, os.SEEK_END)
            rest = memoryview(b"\n" + line if _is_cut(file, end) else line)
            try:
                while rest:
                    rest = rest[file.write(rest) :]
            except BaseException:
                with suppress(OSError):
                    file.truncate(end)  # of half a row nothing
                raise
            os.fsync(file.fileno())
            if not end:
                flush_folder(self.folder)
        self._rows[row.task] = row

    def _path(self, experiment: str) -> Path:
        return self.folder / f"{experiment}.jsonl"

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


@contextmanager
def _open_at_end(path: Path) -> Iterator[FileIO]:
    """The file, made if need be, for this process alone: not one that was put aside while it waited."""
    while True:
        with path.open("a+b", buffering=0) as file, locked(file):
            if _is_still(file, path):
                yield file
                return


def _is_still(file: FileIO, path: Path) -> bool:
    """Whether a path leads to that open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _is_whole(row: Row) -> bool:
    """Whether every field is of its type: a line may come from anyone."""
    mappings = (row.parameters, row.values, row.machine, row.versions)
    texts = (row.experiment, row.finished, row.commit)
    return (
        all(isinstance(part, dict) for part in mappings)
        and all(isinstance(text, str) for text in texts)
        and isinstance(row.seconds, int | float)
        and 0 <= row.seconds < MOST_SECONDS
    )


def _is_cut(file: FileIO, end: int) -> bool:
    """Whether the last line of an open file has no end."""
    if not end:
        return False
    file.seek(end - 1)
    return file.read(1) != b"\n"

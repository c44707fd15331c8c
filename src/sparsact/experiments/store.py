"""Rows on disk: one append-only file of JSON lines an experiment. Two machines' stores merge by concatenation."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from sparsact.experiments.rows import Row
from sparsact.experiments.task import Task

MOST_SECONDS = 1e10  # three centuries: no task took longer


class Store:
    """A folder of rows.

    A row is written whole, by one call, and flushed to the disk: a process killed at any moment loses the tasks that
    were running and nothing else. A line cut short (by a full disk, say) is passed over when read, and counted.

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
        """Add a row, on disk and here."""
        self.folder.mkdir(parents=True, exist_ok=True)
        line = (json.dumps(row.as_dict(), allow_nan=False, separators=(",", ":")) + "\n").encode()
        file = os.open(self._path(row.experiment), os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if _is_cut(file):
                line = b"\n" + line
            written = os.write(file, line)
            if written < len(line):
                raise OSError(
                    f"only {written} of {len(line)} bytes of a row could be written to {self.folder}: "
                    "free some space and run the command again."
                )
            os.fsync(file)
        finally:
            os.close(file)
        self._rows[row.task] = row

    def _path(self, experiment: str) -> Path:
        return self.folder / f"{experiment}.jsonl"

    def _read(self, path: Path) -> None:
        for line in path.read_bytes().split(b"\n"):
            if not line.strip():
                continue
            try:
                row = Row(**json.loads(line))
                name = Task(row.experiment, row.version, row.parameters).name
            except (ValueError, TypeError, AttributeError, RecursionError):
                self.n_unreadable += 1
                continue
            if name == row.task and _is_whole(
                row
            ):  # a row whose definition was edited by hand is not what its name says
                self._rows[row.task] = row
            else:
                self.n_unreadable += 1


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


def _is_cut(file: int) -> bool:
    """Whether the last line of an open file has no end."""
    size = os.lseek(file, 0, os.SEEK_END)
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"

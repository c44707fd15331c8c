"""Rows on disk: one append-only file of JSON lines an experiment. Two machines' stores merge by concatenation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from sparsact_papers.experiments.lines import append_line
from sparsact_papers.experiments.locks import locked
from sparsact_papers.experiments.rows import Row
from sparsact_papers.experiments.task import Task

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
        append_line(self._path(row.experiment), line)
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

"""Progress of a pass over the rows: shown on stderr, and only to a person."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from sparsact.passes import progress


class RowsPerSecond(ProgressColumn):
    """How fast rows go by."""

    def render(self, task: Task) -> Text:
        """Rows a second since the stage began."""
        seconds = task.finished_time or task.elapsed
        rows = task.completed - task.fields.get("resumed", 0)
        counted = task.fields.get("counts_rows") and rows and seconds
        return Text(f"{rows / (seconds or 1):,.0f} rows/s" if counted else "", style="progress.data.speed")


class Bars:
    """A bar for each stage; with ``lines``, instead of bars, a note and from there on the names of stages."""

    def __init__(self, bars: Progress, lines: bool = False) -> None:
        self._bars, self._lines = bars, lines
        self._tasks: dict[str, TaskID] = {}
        self._resumed, self._noted = 0, False

    def __call__(self, now: progress.Progress) -> None:
        """Move the bar of the stage, or print the note above the bars."""
        if now.note:
            self._noted = True
            if self._lines or not self._bars.disable:
                self._bars.console.print(now.note, soft_wrap=True)
            return
        if now.stage not in self._tasks:
            if self._lines and self._noted:
                self._bars.console.print(f"{now.stage} ...")
            self._tasks[now.stage] = self._bars.add_task(now.stage, total=now.total, counts_rows=True)
            self._resumed = 0
        task = self._tasks[now.stage]
        if now.resumed > self._resumed:  # from here on the speed is measured
            self._resumed = now.resumed
            self._bars.reset(task, completed=now.n_rows, counts_rows=True, resumed=now.resumed)
        elif now.seconds is None:
            self._bars.update(task, completed=now.n_rows)
        else:
            self._bars.update(task, total=now.n_rows or 1, completed=now.n_rows or 1, counts_rows=now.n_rows > 0)


@contextmanager
def bars(shown: bool | None = None) -> Iterator[Bars]:
    """Bars on stderr, by default if that is a terminal; if it is not, a line for each stage of work that takes long."""
    visible = sys.stderr.isatty() if shown is None else shown
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<10}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        RowsPerSecond(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # Where stderr is a file, rich writes the finished bars once.
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as drawn:
        yield Bars(drawn, lines=shown is None and not visible)

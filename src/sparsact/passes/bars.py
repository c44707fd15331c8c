"""Bars of progress on a terminal."""

from __future__ import annotations

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
    """A bar for each stage."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}
        self._resumed = 0

    def __call__(self, now: progress.Progress) -> None:
        """Move the bar of the stage, or print the note above the bars."""
        if now.note:
            self._bars.console.print(now.note, soft_wrap=True)
            return
        if now.stage not in self._tasks:
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
def bars() -> Iterator[Bars]:
    """Bars on stderr."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<10}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        RowsPerSecond(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True)) as drawn:
        yield Bars(drawn)

"""Progress of a pass over the rows: shown on stderr, and only to a person."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

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

OnRows = Callable[[int], object]


class RowsPerSecond(ProgressColumn):
    """How fast rows go by."""

    def render(self, task: Task) -> Text:
        """Rows a second since the stage began."""
        seconds = task.finished_time or task.elapsed
        rows = task.completed - task.fields.get("already", 0)
        counted = task.fields.get("counts_rows") and rows and seconds
        return Text(f"{rows / (seconds or 1):,.0f} rows/s" if counted else "", style="progress.data.speed")


class Bar:
    """One stage: called with a number of rows, it moves on by so many."""

    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def __call__(self, count: int) -> None:
        """So many more rows."""
        self._bars.advance(self._task, count)

    def already(self, count: int) -> None:
        """So many more rows that an earlier run has read: they say nothing about the speed of this one."""
        (task,) = (task for task in self._bars.tasks if task.id == self._task)
        skipped, done = task.fields.get("already", 0) + count, task.completed + count
        self._bars.reset(self._task, completed=int(done), **(task.fields | {"already": skipped}))


class Stages:
    """The stages of a command: each has a bar, and its seconds are kept."""

    def __init__(self, bars: Progress) -> None:
        self.seconds: dict[str, float] = {}
        self._bars = bars

    @contextmanager
    def stage(self, name: str, n_rows: int | None = None) -> Iterator[Bar]:
        """A block of work; the value tells the bar of so many more rows."""
        bar = self._bars.add_task(name, total=n_rows, counts_rows=True)
        start = perf_counter()
        yield Bar(self._bars, bar)
        self.seconds[name] = perf_counter() - start
        rows = self._bars.tasks[bar].completed
        self._bars.update(bar, total=rows or 1, completed=rows or 1, counts_rows=rows > 0)


@contextmanager
def stages(shown: bool | None = None) -> Iterator[Stages]:
    """Bars on stderr. By default they are shown when stderr is a terminal."""
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
    with Progress(*columns, console=Console(stderr=True), disable=not visible) as bars:
        yield Stages(bars)

"""What a person sees on a terminal: safe names, progress, versions, and a clean end on Ctrl-C or SIGTERM."""

from __future__ import annotations

import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import PurePath
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

# Control characters but line feeds, which move and colour and erase; separators of lines; turns of the direction of
# writing; halves of characters, which no encoding holds.
_OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: object) -> str:
    r"""A text in which whatever a terminal would obey is spelled out.

    >>> shown("\x1b[2Jred\u202e")
    '\\x1b[2Jred\\u202e'
    """
    return _OBEYED.sub(lambda match: ascii(match[0])[1:-1], str(text))


def say(text: object) -> None:
    """Write a line, or several, for a person."""
    print(shown(text))


def terminal() -> Console:
    """Where tables for a person go; brackets and colons in names are brackets and colons there."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


class Stopped(BaseException):
    """Not an Exception: no handler of errors may take it for one.

    ``status`` is what shells expect of a process that a signal ended.
    """

    def __init__(self, signal: int, where: str = "") -> None:
        super().__init__(f"stopped: {where}" if where else "stopped.")  # `where` may end with a command to be copied
        self.status = 128 + signal


def versions() -> tuple[tuple[str, str], ...]:
    """Versions that decide the result."""
    from sparsact import __version__
    from sparsact.kernels import description

    libraries = ((name, version(name)) for name in ("numpy", "scipy", "scikit-learn", "pyarrow"))
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return (("sparsact", __version__), ("kernels", description()), ("Python", python), *libraries)


def command_line(words: Sequence[str]) -> str:
    """The command as typed, with the folders of absolute paths left out.

    >>> command_line(["fit", "/tables/my table.csv", "--out=/tmp/m.sparsact"])
    "sparsact fit 'my table.csv' --out=m.sparsact"
    """
    return shlex.join(["sparsact", *map(_without_folder, words)])


def _without_folder(word: str) -> str:
    option, equals, value = word.partition("=")
    if option.startswith("--") and equals:
        return f"{option}={_without_folder(value)}"
    return PurePath(word).name if PurePath(word).is_absolute() else word


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

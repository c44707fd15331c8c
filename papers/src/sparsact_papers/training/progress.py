"""Progress of training with the time that is left: on stderr, and only to a person."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def training_progress(steps: int, what: str = "training") -> Iterator[Callable[[int], None]]:
    """A bar of so many steps; the value is told of steps that were done, as ``progress`` of :func:`train`.

    Parameters
    ----------
    steps : int
        Steps of the whole bar.
    what : str
        Its label.

    Yields
    ------
    done : callable
        Takes the number of steps that were done.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bars:
        bar = bars.add_task(what, total=steps)
        yield lambda done: bars.advance(bar, done)

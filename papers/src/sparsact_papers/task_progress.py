"""Progress over the tasks of experiments, with the time that is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sparsact_papers.experiments import Experiment, Failure, Row, Store, Task

GUESS = 1.0  # seconds of a task of which nothing is known yet


@contextmanager
def task_progress(
    work: Iterable[tuple[Experiment, Task]], store: Store, jobs: int
) -> Iterator[Callable[[Task, Row | Failure], None]]:
    """A bar on stderr (a person's only); the value is told of every task that is finished."""
    waiting: dict[str, int] = {}
    for experiment, _ in work:
        waiting[experiment.name] = waiting.get(experiment.name, 0) + 1
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<26}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bars:
        bar = bars.add_task(next(iter(waiting), ""), total=sum(waiting.values()), left="")

        def finished(task: Task, _: Row | Failure) -> None:
            waiting[task.experiment] -= 1
            bars.update(
                bar, advance=1, description=task.experiment, left=_left(remaining_seconds(waiting, store, jobs))
            )

        yield finished


def remaining_seconds(waiting: dict[str, int], store: Store, jobs: int) -> float:
    """Time for the tasks that wait, at the mean time of their experiment's rows, or of all experiments met so far."""
    means = {name: _mean(store.seconds(name)) for name in waiting}
    usual = _mean([mean for mean in means.values() if mean is not None]) or GUESS
    return sum(count * (usual if (mean := means[name]) is None else mean) for name, count in waiting.items()) / jobs


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _left(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"about {hours} h {minutes} min left" if hours else f"about {max(minutes, 1)} min left"

"""Run tasks in worker processes, one thread each, with a progress bar; every finished one becomes a row at once."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context, parent_process
from threading import Thread
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from sparsact_papers import provenance
from sparsact_papers.experiment import Experiment
from sparsact_papers.results import Row, Store, Task

THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Failure:
    """A task that gave no row."""

    task: Task
    reason: str


def collect(
    work: Iterable[tuple[Experiment, Task]],
    store: Store,
    *,
    jobs: int,
    finished: Callable[[Task, Row | Failure], None] = lambda task, result: None,
) -> list[Failure]:
    """Measure the tasks that the store does not hold yet, in this order.

    Parameters
    ----------
    work : iterable of (Experiment, Task)
    store : Store
        Where rows go.
    jobs : int
        Worker processes, each with one thread.
    finished : callable
        Told of each task with its row or failure.

    Returns
    -------
    failures : list of Failure
        Tasks whose measurement raised an error or killed its process. All others have their row.
    """
    waiting = deque((experiment, task) for experiment, task in work if task not in store)
    suspects: deque[tuple[Experiment, Task]] = deque()
    failures: list[Failure] = []
    while waiting or suspects:
        alone = not waiting
        for experiment, task, result in _until_broken(suspects if alone else waiting, 1 if alone else jobs):
            if result is None and not alone:  # this task or its neighbour killed a worker: again, by itself
                suspects.append((experiment, task))
                continue
            if result is None:
                result = Failure(task, "its process died, alone too (out of memory?); make it smaller.")
            if isinstance(result, Failure):
                failures.append(result)
            else:
                store.append(result)
            finished(task, result)
    return failures


Result = Row | Failure | None


def _until_broken(waiting: deque[tuple[Experiment, Task]], jobs: int) -> Iterator[tuple[Experiment, Task, Result]]:
    """Results as they come, until all are there or a worker dies; then None for each task that was running."""
    running: dict[Future[Row], tuple[Experiment, Task]] = {}
    with _one_thread_each(), ProcessPoolExecutor(jobs, get_context("spawn"), _begin) as pool:
        try:
            while waiting or running:
                _fill(pool, jobs, waiting, running)
                if not running:  # a worker died with nothing to do
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    result = _result(future, running[future][1])
                    if result is None:
                        break
                    yield *running.pop(future), result
                else:
                    continue
                break
        except BaseException:
            for process in pool._processes.values():  # Ctrl-C: nobody waits for the tasks in flight
                process.terminate()
            raise
    for future, (experiment, task) in running.items():
        yield experiment, task, _result(future, task)


def _begin() -> None:
    """In a worker: look where it is before anything changes, and end with the process that collects, not by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    provenance.commit()
    Thread(target=_wait_for_the_parent, daemon=True).start()


def _wait_for_the_parent() -> None:
    if parent := parent_process():
        parent.join()
        os._exit(1)


def _fill(
    pool: ProcessPoolExecutor, jobs: int, waiting: deque[tuple[Experiment, Task]], running: dict[Future[Row], Any]
) -> None:
    """Hand out tasks, one per process; none if a worker has died meanwhile: the running tasks then raise the error."""
    with suppress(BrokenProcessPool), _no_interrupt():
        while waiting and len(running) < jobs:
            experiment, task = waiting[0]
            running[pool.submit(measure, experiment.measure, task)] = waiting[0]
            waiting.popleft()


@contextmanager
def _no_interrupt() -> Iterator[None]:
    """Ctrl-C waits: a worker that starts within never hears of it, not even before :func:`_begin`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _result(future: Future[Row], task: Task) -> Result:
    try:
        return future.result()
    except BrokenProcessPool:
        return None
    except Exception as error:  # whatever a measurement raises, the others go on
        place = traceback.extract_tb(error.__traceback__)[-1]
        return Failure(task, f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})")


def measure(function: Callable[..., Mapping[str, Any]], task: Task) -> Row:
    """Measure one task, here and now."""
    start = time.perf_counter()
    measured = dict(function(**task.parameters))
    values = json.loads(json.dumps(measured, default=_plain, allow_nan=False))  # what the file will hold
    return Row(
        task.name,
        **task.definition,
        values=values,
        seconds=round(time.perf_counter() - start, 4),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=provenance.machine(),
        versions=provenance.versions(),
        commit=provenance.commit(),
    )


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a measurement gave a {type(value).__name__}; it may give numbers, texts and lists of these.")


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that start within have one thread for each library: as many workers as cores then keep all busy."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


GUESS: Final = 1.0  # seconds of a task that was never measured


@contextmanager
def task_progress(
    work: Iterable[tuple[Experiment, Task]], store: Store, jobs: int
) -> Iterator[Callable[[Task, Row | Failure], None]]:
    """A bar on stderr (a person's only); its value is called for every finished task."""
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

"""What every benchmark needs: times taken in turns, memory at its peak, the machine in words, rows in a file."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.figures import CallSeconds, Figure
from sparsact.memory import peak_memory
from sparsact_papers import provenance
from sparsact_papers.lines import append_line

Result = TypeVar("Result")
Row = dict[str, Any]


def interleaved(
    callables: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    before: Callable[[], object] | None = None,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, CallSeconds]:
    """Seconds of each callable, taken in turns so that a busy moment of the machine meets all of them alike.

    ``before`` runs untimed ahead of every call, for instance to restore the input. ``warm_up`` rounds are run first and
    thrown away but for the very first call: they pay for the first touch of memory. Calls of many seconds need none.
    """
    seconds: dict[str, list[float]] = {name: [] for name in callables}
    for _ in range(repeats + warm_up):
        for name, call in callables.items():
            if before is not None:
                before()
            start = clock()
            call()
            seconds[name].append(clock() - start)
    return {name: CallSeconds(times, repeats) for name, times in seconds.items()}


def first_and_later(
    work: str, name: str, repeats: int, prepared: Callable[..., Callable[[], object]], *arguments: Any
) -> list[Figure]:
    """Seconds of a call that a function of a module prepares: the first of fresh processes, and later ones of this."""
    first = first_seconds(repeats, prepared, *arguments)
    later = interleaved({name: prepared(*arguments)}, max(10, repeats))[name]
    return [Figure.of(work, f"{name}, first of a process", first, "s"), Figure.of(work, f"{name}, later", later, "s")]


def first_seconds(repeats: int, prepared: Callable[..., Callable[[], object]], *arguments: Any) -> list[float]:
    """Seconds of a process's first call, of what a function of a module prepares there: a process for each repeat."""
    return [alone(_seconds_of, prepared, *arguments) for _ in range(repeats)]


def _seconds_of(prepared: Callable[..., Callable[[], object]], *arguments: Any) -> float:
    call, start = prepared(*arguments), time.perf_counter()
    call()
    return time.perf_counter() - start


def seconds_of_reading(n_bytes: int) -> Callable[[], object]:
    """A call that reads a number of bytes once."""
    values = np.ones(max(1, n_bytes // 4), dtype=np.float32)
    return lambda: values @ values


def finished() -> float:
    """Wall-clock time, once the GPU has nothing left to do."""
    sys.modules["torch"].cuda.synchronize()
    return time.perf_counter()


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """What a call returns, and seconds of the processor until it does."""
    start = time.process_time()
    return call(), time.process_time() - start


def alone(function: Callable[..., Result], *arguments: Any) -> Result:
    """What a function of a module returns when a fresh interpreter with one thread runs it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as interpreter:
        return interpreter.submit(_on_one_thread, function, *arguments).result()


def _on_one_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    with threadpool_limits(1):
        return function(*arguments)


def memory_above(call: Callable[[], Result]) -> tuple[Result, int]:
    """Result of a call, and the most bytes held during it above what was held before.

    Where the system cannot forget the peak that was before, the figure is above that peak.
    """
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    before = peak_memory()
    result = call()
    return result, peak_memory() - before


def machine() -> dict[str, Any]:
    """Processor, cores, memory, kernels in use, commit, and versions of what is measured."""
    return {**provenance.machine(), "commit": provenance.commit(), **provenance.versions()}


def kept_rows(path: Path | None, cells: Iterable[tuple[Row, Callable[[], Row]]]) -> Iterator[Row]:
    """Row of each cell, a name with a call that measures: from the file where it has one, else measured and appended.

    So a run that was stopped goes on from its file. New rows are printed, and have machine and commit in the file;
    without a path nothing is kept. Warnings of peers, of convergence and deprecation, are left out.
    """
    known = list(map(json.loads, path.read_text(encoding="utf-8").splitlines())) if path and path.exists() else []
    for name, measured in cells:
        row = next((row for row in reversed(known) if row | name == row), None)
        if row is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row = {**name, **measured()}
            short = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()}
            print(", ".join(f"{key} {value}" for key, value in short.items()), flush=True)
            if path:
                append_row(path, {**row, **machine()})
        yield row


def append_row(path: str | Path, row: dict[str, Any]) -> None:
    """Add one line of JSON to the file at ``path``."""
    append_line(Path(path), (json.dumps(row) + "\n").encode())

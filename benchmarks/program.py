"""A benchmark as a program: its options, its one thread, its table of figures and its rows."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.figures import Figure, unjudged
from benchmarks.harness import append_row, machine

Option = tuple[tuple[str, ...], dict[str, Any]]
Measure = Callable[[Namespace], Iterable[Figure]]


def option(*names: str, **settings: Any) -> Option:
    """An option of a benchmark, in the words of :meth:`argparse.ArgumentParser.add_argument`."""
    return names, settings


KEPT_ROWS: Final = option("--rows", type=Path, help="file that keeps each measurement: a run that was stopped goes on")


def program(*options: Option, repeats: int, one_thread: bool = True) -> Callable[[Measure], Measure]:
    """Declare the figures that a module measures; ``python -m`` with its name then measures and exits.

    The program reads ``--quick``, ``--repeats``, ``--out`` and the given options, measures on one thread (on as many as
    an option ``--threads`` says; ``one_thread=False`` sets no limit), prints the table and appends the rows. Its status
    is 1 if a target is missed; in a quick run only checks have one. Without figures nothing is reported: the benchmark
    has said why.
    """

    def declared(measure: Measure) -> Measure:
        if measure.__module__ == "__main__":  # the last statement of a module that is run
            raise SystemExit(_status(measure, options, repeats, one_thread))
        return measure

    return declared


def _status(measure: Measure, options: Sequence[Option], repeats: int, one_thread: bool) -> int:
    module = sys.modules[measure.__module__]
    name = Path(module.__file__ or "").stem
    parser = ArgumentParser(
        f"python -m benchmarks.{name}", None, module.__doc__, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, in seconds; speed and memory have no target")
    parser.add_argument("--repeats", type=int, default=repeats, help=f"measurements of each figure (default {repeats})")
    parser.add_argument("--out", help="file of JSON rows to append to")
    for names, settings in options:
        parser.add_argument(*names, **settings)
    arguments = parser.parse_args()
    threads = getattr(arguments, "threads", 1)
    if one_thread and "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    with threadpool_limits(threads) if one_thread else nullcontext():
        figures = unjudged(measure(arguments)) if arguments.quick else list(measure(arguments))
    return report(name, figures, arguments.out) if figures else 0


def checkpoints(folder: str) -> Path:
    """Folder of the user's cache in which benchmarks keep trained models."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sparsact" / folder


def report(benchmark: str, figures: Sequence[Figure], out: str | None) -> int:
    """Print the table, append the rows to ``out``, and return the exit status: 1 if a target is missed."""
    described = machine()
    title = f"{benchmark}: " + ", ".join(described[key] for key in ("processor", "kernels", "commit") if described[key])
    table = Table("work", "figure", "measured [least ... most; repeats]", "target", "", title=title)
    for figure in figures:
        verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
        table.add_row(figure.work, figure.quantity, figure.measured.replace("[", r"\["), figure.target, verdict)
        if out:
            append_row(out, {"benchmark": benchmark, **asdict(figure), "met": figure.met, **described})
    Console(width=140).print(table)
    return int(any(figure.met is False for figure in figures))

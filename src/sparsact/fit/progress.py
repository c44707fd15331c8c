"""Stages of a fit: the seconds of each, and its progress for a caller who wants to show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class FitProgress:
    """How far a stage of a fit is, such as ``"reading"``, ``"choosing"`` or ``"learning"``."""

    stage: str
    n_rows: int  # read so far
    total: int | None  # to be read, where that is known
    resumed: int = 0  # of `n_rows` those that an earlier run had read, which say nothing about the speed of this one
    seconds: float | None = None  # of the stage, once it is over


OnRows = Callable[[int], object]
OnProgress = Callable[[FitProgress], object]


@dataclass
class StageRows:
    """Rows of one stage: call it with the number of rows just read, and it reports."""

    progress: OnProgress | None
    stage: str
    total: int | None
    n_rows: int = 0
    resumed: int = 0

    def __call__(self, count: int) -> None:
        """Add ``count`` rows."""
        self.n_rows += count
        self.report()

    def resume(self, count: int) -> None:
        """Add ``count`` rows that an earlier run has read."""
        self.resumed += count
        self(count)

    def report(self, seconds: float | None = None) -> None:
        """Call the caller."""
        if self.progress is not None:
            self.progress(FitProgress(self.stage, self.n_rows, self.total, self.resumed, seconds))


class Stages:
    """The stages of a piece of work, and the seconds of each that is over."""

    def __init__(self, progress: OnProgress | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[StageRows]:
        """A block of work; the value counts its rows."""
        rows = StageRows(self._progress, name, total)
        rows.report()
        start = perf_counter()
        yield rows
        self.seconds[name] = perf_counter() - start
        rows.report(self.seconds[name])


@dataclass(frozen=True)
class Resources:
    """Seconds of each stage, and the most memory that the process held."""

    stages: tuple[tuple[str, float], ...]
    peak_bytes: int

    @property
    def seconds(self) -> float:
        """All stages together."""
        return sum(seconds for _, seconds in self.stages)

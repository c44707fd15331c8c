"""Progress of a piece of work: the rows and partitions of each stage, wherever they are read, and its seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from sparsact import registry

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Progress:
    """Progress of one stage of a computation.

    Attributes
    ----------
    stage : str
        Such as ``"counting"``, ``"classes"``, ``"sampling"``, ``"reading"``, ``"choosing"`` or ``"learning"``.
    partitions, n_partitions : int
        Partitions that are done, and all of them (for an iterable, all so far); 0 where there are none.
    n_rows : int
        Rows read so far; with partitions, the rows of the ones that are done.
    total : int or None
        Rows to be read, where that is known.
    resumed : int
        Rows among ``n_rows`` that an earlier run has read; they say nothing about the speed of this one.
    seconds : float or None
        Duration of the stage, once it is over.
    note : str
        A sentence for a person, such as how long the rest may take; then there is no stage.
    """

    stage: str
    partitions: int
    n_partitions: int
    n_rows: int
    total: int | None = None
    resumed: int = 0
    seconds: float | None = None
    note: str = ""


OnProgress = Callable[[Progress], object]


@dataclass
class StageProgress:
    """Counter of a stage's rows: call it with the number of rows just read, and it reports."""

    on_progress: OnProgress | None
    name: str
    total: int | None = None
    n_partitions: int = 0
    n_rows: int = 0
    resumed: int = 0
    _done: set[int] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, count: int) -> None:
        """Add ``count`` rows."""
        self.n_rows += count
        self.report()

    def resume(self, count: int) -> None:
        """Add ``count`` rows that an earlier run has read."""
        self.resumed += count
        self(count)

    def partition(self, number: int, n_rows: int) -> None:
        """Add the rows of a partition, once, however often a lost worker's part is done again."""
        with self._lock:
            if number not in self._done:
                self._done.add(number)
                self(n_rows)

    def report(self, seconds: float | None = None) -> None:
        """Call the caller."""
        if self.on_progress is not None:
            now = (self.name, len(self._done), self.n_partitions, self.n_rows, self.total, self.resumed, seconds)
            self.on_progress(Progress(*now))


class Stages:
    """The stages of a piece of work, and the seconds of each that is over."""

    def __init__(self, on_progress: OnProgress | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._on_progress = on_progress

    def say(self, note: str) -> None:
        """Pass a sentence on to the caller, unless it is empty."""
        if note and self._on_progress is not None:
            self._on_progress(Progress("", 0, 0, 0, note=note))

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[StageProgress]:
        """A block of work; the value counts its rows."""
        rows = StageProgress(self._on_progress, name, total)
        rows.report()
        start = perf_counter()
        yield rows
        self.seconds[name] = perf_counter() - start
        rows.report(self.seconds[name])


@dataclass
class Lines:
    """A line on stderr for a note, and for each stage as it begins: for all stages, or only after a note."""

    begun: bool
    _seen: set[str] = field(default_factory=set)

    def __call__(self, now: Progress) -> None:
        """Print what is new."""
        self.begun |= bool(now.note)
        line = now.note or f"{now.stage} ..."
        if self.begun and line not in self._seen and sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)
        self._seen.add(line)


def on_a_terminal() -> bool:
    """Whether stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def showing(progress: bool | OnProgress | None) -> Iterator[OnProgress | None]:
    """What shows progress on stderr: bars if that is a terminal (and rich is installed), else lines.

    None is as True, but without a terminal lines begin at the note of a fit that may take long. False shows nothing,
    and a callable shows what it likes.
    """
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(f"`progress` is True, False, None or a function of a Progress; got {progress!r}.")
    if callable(progress) or progress is False:
        yield progress or None
    elif on_a_terminal() and find_spec("rich") is not None:
        with registry.find(registry.BARS)() as shown:
            yield shown
    else:
        yield Lines(begun=progress is True or on_a_terminal())


_LISTENERS: Final[dict[str, StageProgress]] = {}  # of this process, by topic


def report(topic: str, number: int, n_rows: int) -> None:
    """Report a partition to the stage of a topic: in this process or, from a worker, over its scheduler."""
    if topic in _LISTENERS:
        _LISTENERS[topic].partition(number, n_rows)
        return
    from distributed import get_worker

    get_worker().log_event(topic, {"number": number, "n_rows": n_rows})


@contextmanager
def listening(stage: StageProgress, client: Client | None) -> Iterator[str | None]:
    """A topic under which :func:`report` reaches the stage, until the end of the block; None without a listener."""
    if stage.on_progress is None:
        yield None
        return
    topic = f"sparsact-{uuid4().hex}"
    _LISTENERS[topic] = stage
    if client is not None:
        client.subscribe_topic(  # type: ignore[no-untyped-call]
            topic, lambda event: stage.partition(event[1]["number"], event[1]["n_rows"])
        )
    try:
        yield topic
    finally:
        del _LISTENERS[topic]
        if client is not None:
            client.unsubscribe_topic(topic)  # type: ignore[no-untyped-call]

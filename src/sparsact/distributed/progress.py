"""Progress of the partitions, reported to the process that asked, wherever they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final
from uuid import uuid4


@dataclass(frozen=True)
class Progress:
    """What has been done so far.

    Attributes
    ----------
    stage : {"counting", "classes", "sampling", "learning"}
        Which pass over the data this is.
    partitions, n_partitions : int
        Partitions that are done, and all of them (for an iterable: all that came so far).
    n_rows : int
        Rows in the partitions that are done.
    """

    stage: str
    partitions: int
    n_partitions: int
    n_rows: int


OnProgress = Callable[[Progress], object]


@dataclass
class ProgressCounter:
    """Partitions done, each counted once, however often a lost worker's part is done again."""

    stage: str
    on_progress: OnProgress
    n_partitions: int = 0
    rows: dict[int, int] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock)

    def take(self, number: int, n_rows: int) -> None:
        """One more partition."""
        with self._lock:
            if number in self.rows:
                return
            self.rows[number] = n_rows
            self.on_progress(Progress(self.stage, len(self.rows), self.n_partitions, sum(self.rows.values())))


_LISTENERS: Final[dict[str, ProgressCounter]] = {}  # of this process


def report(topic: str | None, number: int, n_rows: int) -> None:
    """Tell whoever listens to the topic, here or, from a worker, over its scheduler."""
    if topic is None:
        return
    if topic in _LISTENERS:
        _LISTENERS[topic].take(number, n_rows)
        return
    from distributed import get_worker

    get_worker().log_event(topic, {"number": number, "n_rows": n_rows})


@contextmanager
def listening(tally: ProgressCounter | None, client: Any) -> Iterator[str | None]:
    """A topic under which :func:`report` reaches the tally, until the end of the block."""
    if tally is None:
        yield None
        return
    topic = f"sparsact-{uuid4().hex}"
    _LISTENERS[topic] = tally
    if client is not None:
        client.subscribe_topic(topic, lambda event: tally.take(event[1]["number"], event[1]["n_rows"]))
    try:
        yield topic
    finally:
        del _LISTENERS[topic]
        if client is not None:
            client.unsubscribe_topic(topic)

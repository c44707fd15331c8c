"""Passes that can be stopped and resumed: the file of their sums, and a check that it belongs to the same fit."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import current_thread, main_thread
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Protocol

from sparsact.environment import Interrupted
from sparsact.passes.progress import StageProgress
from sparsact.passes.source import B, Pass, S
from sparsact.saving import modelfile
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix
from sparsact.statistics.statistic import Resumable

if TYPE_CHECKING:
    from sparsact.passes.dask import Engine

BYTES_OF_ENDS: Final = 1 << 16
SUMS_OF: Final = "0.1.0"  # the version from which passes sum up the same; raise it when they change


class FileStamp(Protocol):
    """Size of a file in bytes, and the time of its last change (ns)."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def written(self) -> int:
        """Nanoseconds since 1970."""


def fingerprint(files: Iterable[tuple[Path, FileStamp]], options: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that decides the result of a fit: the version of its sums, options by name, and files.

    A file enters by its name without the folder, size, time of the last change, and a digest of both ends.
    """
    stamped = [[path.name, stamp.size, stamp.written, _ends(path)] for path, stamp in files]
    return {"version": SUMS_OF, "options": dict(options), "files": stamped}


def check_fingerprint(path: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise unless both are the same; the message names the first difference."""
    fact = _difference(then, now)
    if fact:
        raise ValueError(f"{path} keeps another fit: {fact}; undo that, or name another file to resume from.")


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    if then["version"] != now["version"]:
        return f"its sums were written by sparsact {then['version']}, and this is {now['version']}"
    for name, value in now["options"].items():
        had = then["options"].get(name, None if value else value)  # options that came later were not given
        if had != value:
            return f"{name} was {_spelled(had)}, now it is {_spelled(value)}"
    for name, had in then["options"].items():
        if had and name not in now["options"]:
            return f"{name} was {_spelled(had)}, which this version no longer has"
    for before, after in zip(then["files"], now["files"], strict=False):
        if before[0] != after[0]:
            return f"it read a file {before[0]} where {after[0]} now stands"
        if before != after:
            return f"{after[0]} has changed since"
    if len(then["files"]) != len(now["files"]):
        return f"it read {len(then['files']):,} files, now there are {len(now['files']):,}"
    return None


def _spelled(value: Any) -> str:
    if value is None:
        return "auto"
    if isinstance(value, bool):
        return "given" if value else "not given"
    return (", ".join(map(str, value)) or "not given") if isinstance(value, list) else str(value)


def _ends(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(BYTES_OF_ENDS))
        file.seek(max(0, path.stat().st_size - BYTES_OF_ENDS))
        digest.update(file.read(BYTES_OF_ENDS))
    return digest.hexdigest()


SHARE_OF_TIME: Final = 20  # time of the fit over the time that writing may take


@dataclass
class Checkpoint:
    """The passes that a fit has made or begun, and the file that holds what they have summed."""

    path: Path | None = None  # None keeps nothing
    every: float | None = None  # seconds between two writings; None reads nothing, and writes only when stopped
    how_to_resume: str = ""  # ends the message of `Interrupted`
    workers: Engine | None = None  # for passes that have partitions
    _fingerprint: State = field(default_factory=dict)
    _pending: dict[str, tuple[int, State, Arrays]] = field(default_factory=dict)  # that an earlier run began
    _begun: dict[str, tuple[int, Resumable[Any]]] = field(default_factory=dict)  # by this run, with their rows
    _busy: bool = False
    _signal: int | None = None
    _written: float = field(default_factory=perf_counter)
    _cost: float = 0.0

    @classmethod
    def at(cls, path: str | Path | None, every: float) -> Checkpoint:
        """A checkpoint in this file, read and written; None keeps nothing."""
        return cls() if path is None else cls(Path(path), every, f"; go on with resume={str(path)!r}")

    def begin(self, files: Iterable[tuple[Path, FileStamp]], options: Mapping[str, Any]) -> None:
        """Resume a fit of these files from the checkpoint's own, if that exists."""
        if self.path is None:
            return
        self._fingerprint = fingerprint(files, options)
        if self.every is None or not self.path.exists():
            return
        kind, state, arrays = modelfile.read(self.path)
        if kind != modelfile.UNFINISHED_FIT:
            raise ValueError(f"{self.path} holds a {kind}, not the statistic of a fit; name another file.")
        check_fingerprint(self.path, state["asked"], self._fingerprint)
        with self._reading():
            self._pending = {
                name: (int(one["rows"]), one["sums"], strip_prefix(name, arrays))
                for name, one in _passes(state).items()
            }

    def run(self, one: Pass[B, S], stage: StageProgress) -> S:
        """Return the statistic with every row of the source; rows that an earlier run has read are restored."""
        name, statistic = one.name, one.statistic
        if self.workers is not None and one.partitions is not None and name not in self._pending:
            self._begun[name] = self.workers.run(one, stage), statistic
        else:
            seen, state, arrays = self._pending.pop(name, (0, None, {}))
            if state is not None:
                with self._reading():
                    statistic.restore(state, arrays)
                stage.resume(seen)
            self._begun[name] = (seen, statistic)
            self._busy = True
            try:
                for batch in one.source.batches(seen):
                    statistic.add(batch)
                    seen += len(batch)
                    self._begun[name] = (seen, statistic)
                    stage(len(batch))
                    self._between_batches(name)
            finally:
                self._busy = False
        if self.every is not None:
            self._write()
        return statistic

    def _between_batches(self, name: str) -> None:
        if self._signal is not None:
            self._write()
            raise Interrupted(self._signal, f"{name}, after {self._begun[name][0]:,} rows{self.how_to_resume}")
        waited = perf_counter() - self._written
        if self.every is not None and waited >= max(self.every, SHARE_OF_TIME * self._cost):
            self._write()

    def _write(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is None:
            return
        start = perf_counter()
        everything: Arrays = {}
        state: State = {"asked": self._fingerprint, "passes": {}}
        waiting = dict(self._pending)
        for name, (rows, begun) in self._begun.items():
            waiting[name] = (rows, *begun.state())
        for name, (rows, sums, arrays) in waiting.items():
            state["passes"][name] = {"rows": rows, "sums": sums}
            everything |= add_prefix(name, arrays)
        modelfile.write(self.path, modelfile.UNFINISHED_FIT, state, everything)
        self._written = perf_counter()
        self._cost = self._written - start

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, IndexError, ValueError, OverflowError, AttributeError, MemoryError) as error:
            raise ValueError(f"{self.path} lacks something that this fit needs ({error}); remove it.") from error

    def remove(self) -> None:
        """Remove the file once the fit is done, also if its name is a link to it."""
        if self.path is not None and self.every is not None:
            self.path.resolve().unlink(missing_ok=True)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Let SIGINT and SIGTERM end a pass between two batches, with the file written; the second one at once."""

        def stop(number: int, frame: FrameType | None) -> None:
            if not self._busy or self._signal is not None:
                kept = self.path is not None and self.path.exists() and self.every is not None
                raise Interrupted(number, self.how_to_resume.lstrip(";, ") if kept else "")
            self._signal = number

        if self.path is None or current_thread() is not main_thread():  # only there may signals be caught
            yield
            return
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _passes(state: State) -> State:
    """The passes of a file; of the first layout, which had others, the survey alone."""
    if "outcomes" not in state:
        return dict(state["passes"])
    survey = state["outcomes"].get("reading", {}).get("survey")
    if survey is not None:
        return {"reading": {"rows": survey["n_rows"], "sums": survey}}
    return {name: one for name, one in state["passes"].items() if name == "reading"}

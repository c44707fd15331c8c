"""A fit that can be stopped and resumed: the file of its sums, and a check that it belongs to the same fit."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import current_thread, main_thread
from time import perf_counter
from types import FrameType
from typing import Any, Protocol, TypeVar

from sparsact._version import __version__
from sparsact.datasets.parts import Parts
from sparsact.environment import Interrupted
from sparsact.fit.progress import OnRows, StageRows
from sparsact.saving import modelfile
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix
from sparsact.validation.former_names import FORMER_OPTIONS

BYTES_OF_ENDS = 1 << 16


def fingerprint(parts: Parts, options: Mapping[str, Any]) -> dict[str, Any]:
    """All that decides the result of a fit: the version, the options by their names in the command, and the files.

    Of a file: its name without the folder, size, time of the last change, and a digest of both ends.
    """
    files = [
        [path.name, stamp.size, stamp.written, _ends(path)]
        for path, stamp in zip(parts.files("`resume`"), parts.stamps, strict=True)
        if stamp is not None
    ]
    return {"version": __version__, "options": dict(options), "files": files}


def check_fingerprint(path: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise unless both are the same; the message names the first difference."""
    fact = _difference(then, now)
    if fact:
        raise ValueError(f"{path} keeps another fit: {fact}; undo that, or name another file to resume from.")


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    if then["version"] != now["version"]:
        return f"it is of sparsact {then['version']}, and this is {now['version']}"
    for name, value in now["options"].items():
        had = then["options"].get(name)
        if had != value:
            return f"{FORMER_OPTIONS.get(name, name)} was {_spelled(had)}, now it is {_spelled(value)}"
    for before, after in zip(then["files"], now["files"], strict=False):
        if before[0] != after[0]:
            return f"it was of a file {before[0]} where {after[0]} now stands"
        if before != after:
            return f"{after[0]} has changed since"
    if len(then["files"]) != len(now["files"]):
        return f"it was of {len(then['files']):,} files, now there are {len(now['files']):,}"
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


SHARE_OF_TIME = 20  # writing takes at most one part in so many
Rows = TypeVar("Rows", bound=tuple[Any, ...])


class Sums(Protocol):
    """What one pass over the rows sums up.

    Where ``divisible`` is true, parts of its ``table`` can be summed apart, each by a copy: ``begin(first_row)``,
    ``take(X, y)`` for each batch, ``end(first_row)``; and then ``merge``, in the order of the parts.
    """

    def state(self, arrays: Arrays) -> State:
        """All of it, as JSON spells it; arrays are put among the others."""

    def restore(self, state: State, arrays: Arrays) -> None:
        """Have summed what another had."""


@dataclass
class Checkpoint:
    """What a fit has done so far, and the file that holds it.

    Every pass over the rows has a name. Of a pass that is over the result is kept where it is small, else all that it
    has summed, with the number of rows.
    """

    path: Path | None = None  # None keeps nothing
    every: float | None = None  # seconds between two writings; None reads nothing, and writes only when stopped
    how_to_resume: str = ""  # ends the message of `Interrupted`
    cluster: Any = None  # `Workers` that sum up the passes whose parts can be summed apart
    _fingerprint: State = field(default_factory=dict)
    _results: dict[str, tuple[State, Arrays]] = field(default_factory=dict)  # of passes that are over
    _pending: dict[str, tuple[int, State, Arrays]] = field(default_factory=dict)  # that an earlier run began
    _begun: dict[str, tuple[int, Sums]] = field(default_factory=dict)  # by this run: rows, and what they sum up to
    _busy: bool = False
    _signal: int | None = None
    _written: float = field(default_factory=perf_counter)
    _cost: float = 0.0

    @classmethod
    def at(cls, path: str | Path | None, every: float) -> Checkpoint:
        """A checkpoint in this file, read and written; None keeps nothing."""
        return cls() if path is None else cls(Path(path), every, f"; go on with resume={str(path)!r}")

    def begin(self, parts: Parts, options: Mapping[str, Any]) -> None:
        """Go on from the file, if it is there."""
        if self.path is None:
            return
        self._fingerprint = fingerprint(parts, options)
        if self.every is None or not self.path.exists():
            return
        kind, state, arrays = modelfile.read(self.path)
        if kind != modelfile.UNFINISHED_FIT:
            raise ValueError(f"{self.path} holds a {kind}, not the statistic of a fit; name another file.")
        check_fingerprint(self.path, state["asked"], self._fingerprint)
        with self._reading():
            self._results = {name: (one, strip_prefix(name, arrays)) for name, one in state["outcomes"].items()}
            self._pending = {
                name: (int(one["rows"]), one["sums"], strip_prefix(name, arrays))
                for name, one in state["passes"].items()
            }

    def result(self, name: str) -> tuple[State, Arrays] | None:
        """Of a pass that is over, if it was saved."""
        return self._results.get(name)

    def save(self, name: str, state: State, arrays: Arrays | None = None, *, instead_of: tuple[str, ...] = ()) -> None:
        """Save the result of a pass, and drop what it (and others) summed."""
        self._results[name] = (state, arrays or {})
        for other in (name, *instead_of):
            self._begun.pop(other, None)
        if self.every is not None:
            self._write()

    def rows(self, name: str, batches: Callable[[int], Iterator[Rows]], sums: Sums, on_rows: OnRows) -> Iterator[Rows]:
        """The rows that a pass has not yet seen, batch by batch; each is counted when the next is asked for.

        ``batches`` yields them from a row on; the first entry of each is as long as the batch. What the caller sums up
        is restored before the first batch.
        """
        if self.cluster is not None and name not in self._pending and getattr(sums, "divisible", False):
            sums.restore(*self.cluster.summed(sums, on_rows))
            return
        seen, state, arrays = self._pending.pop(name, (0, None, {}))
        if state is not None:
            with self._reading():
                sums.restore(state, arrays)
            on_rows.resume(seen) if isinstance(on_rows, StageRows) else on_rows(seen)
        self._begun[name] = (seen, sums)
        self._busy = True
        try:
            for batch in batches(seen):
                yield batch
                size: Sized = batch[0]
                seen += len(size)
                self._begun[name] = (seen, sums)
                on_rows(len(size))
                self._between_batches(name)
        finally:
            self._busy = False
        if self.every is not None:
            self._write()

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
        state: State = {"asked": self._fingerprint, "outcomes": {}, "passes": {}}
        for name, (result, arrays) in self._results.items():
            state["outcomes"][name] = result
            everything |= add_prefix(name, arrays)
        waiting = dict(self._pending)
        for name, (rows, begun) in self._begun.items():
            arrays = {}
            waiting[name] = (rows, begun.state(arrays), arrays)
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
        """Remove the file, to which the name may be a link: the fit is done."""
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

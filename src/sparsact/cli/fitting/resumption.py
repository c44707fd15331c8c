"""A fit that can be stopped and resumed: a checkpoint of its sums, and a check that it is of this very fit."""

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
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sparsact import __version__
from sparsact.cli.outputs import naming
from sparsact.cli.progress import Bar, OnRows
from sparsact.cli.terminal import Stopped
from sparsact.datasets.parts import Parts
from sparsact.saving import modelfile
from sparsact.saving.schema import Arrays, State, add_prefix, strip_prefix
from sparsact.validation.former_names import FORMER_OPTIONS

if TYPE_CHECKING:
    from sparsact.datasets import Table


BYTES_OF_ENDS = 1 << 16


def identity(parts: Parts, options: Mapping[str, Any]) -> dict[str, Any]:
    """All that decides the result of a fit; ``options`` by the name that the user knows.

    Of a file the name without its folder, the size, the time of its last change, and a digest of both its ends.
    """
    files = [
        [source.path.name, stamp.size, stamp.written, _ends(source.path)]
        for source, stamp in zip(parts.sources, parts.stamps, strict=True)
    ]
    return {"version": __version__, "options": dict(options), "files": files}


def refuse_other_fit(path: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise unless both are the same; tells the first difference.

    Raises
    ------
    ValueError
        If they are not.
    """
    fact = _difference(then, now)
    if fact:
        raise ValueError(f"{path} keeps another fit: {fact}; undo that, or name another file with --resume.")


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
    """What one pass over the rows sums up."""

    def state(self, arrays: Arrays) -> State:
        """All of it, as JSON spells it; arrays are put among the others."""

    def restore(self, state: State, arrays: Arrays) -> None:
        """Have summed what another had."""


@runtime_checkable
class Divisible(Sums, Protocol):
    """Sums over parts of a table that can be made apart from each other, and merged."""

    table: Table

    @property
    def divisible(self) -> bool:
        """Whether that is so this time."""

    def begin(self, first_row: int) -> None:
        """Before the rows of a part, of which the first has this number in the table."""

    def take_part(self, X: NDArray[Any], y: NDArray[np.float64], first_row: int) -> None:
        """The next rows of a part."""

    def end(self, first_row: int) -> None:
        """After the rows of a part."""

    def merge(self, other: Any) -> None:
        """Take in what was summed over the next part."""


class Cluster(Protocol):
    """Processes that sum up the parts of a table."""

    def summed(self, sums: Divisible, on_rows: OnRows) -> tuple[State, Arrays]:
        """State of the sums over every row; those given are left empty."""


@dataclass
class Pass:
    """A pass over the rows that has begun: how many it has seen, and what it has summed."""

    rows: int
    sums: Sums


@dataclass
class Resumption:
    """What a fit has done so far, and the file that holds it.

    Every pass over the rows has a name. Of a pass that is over and whose outcome is small the outcome is kept, else all
    that it has summed, with the number of rows.

    Attributes
    ----------
    path : Path or None
        The file; None keeps nothing.
    asked : dict
        All that decides the result, the state of the files among it.
    every : float or None
        Seconds between two writings; None writes only when the fit is stopped.
    remedy : str
        How to go on, for the line that says that it was stopped.
    cluster : Cluster or None
        Who sums up the passes whose parts can be summed apart, as if an earlier run had; None for this process alone.
    """

    path: Path | None = None
    asked: State = field(default_factory=dict)
    every: float | None = None
    remedy: str = ""
    cluster: Cluster | None = None
    outcomes: dict[str, tuple[State, Arrays]] = field(default_factory=dict)
    passes: dict[str, Pass] = field(default_factory=dict)
    found: dict[str, tuple[int, State, Arrays]] = field(default_factory=dict)
    _busy: bool = False
    _signal: int | None = None
    _written: float = field(default_factory=perf_counter)
    _cost: float = 0.0

    def outcome(self, name: str) -> tuple[State, Arrays] | None:
        """Of a pass that is over, if it was kept."""
        return self.outcomes.get(name)

    def keep(self, name: str, state: State, arrays: Arrays | None = None, *, instead_of: tuple[str, ...] = ()) -> None:
        """Keep the outcome of a pass, and forget what it (and others) summed."""
        self.outcomes[name] = (state, arrays or {})
        for other in (name, *instead_of):
            self.passes.pop(other, None)
        if self.every is not None:
            self.write()

    def rows(
        self, name: str, batches: Callable[[int], Iterator[Rows]], sums: Sums, on_rows: OnRows | Bar
    ) -> Iterator[Rows]:
        """The rows that a pass has not yet seen, batch by batch; each is counted when the next is asked for.

        Parameters
        ----------
        name : str
            Of the pass.
        batches : callable
            Batches from a row on; the first of each is as long as the batch is.
        sums : Sums
            What the caller sums up. It is restored before the first batch.
        on_rows : callable
            Told of the rows.
        """
        if self.cluster is not None and name not in self.found and isinstance(sums, Divisible) and sums.divisible:
            sums.restore(*self.cluster.summed(sums, on_rows))
            return
        first, state, arrays = self.found.pop(name, (0, None, {}))
        if state is not None:
            with self._reading():
                sums.restore(state, arrays)
            on_rows.already(first) if isinstance(on_rows, Bar) else on_rows(first)
        now = self.passes[name] = Pass(first, sums)
        self._busy = True
        try:
            for batch in batches(first):
                yield batch
                size: Sized = batch[0]
                now.rows += len(size)
                on_rows(len(size))
                self._between_batches(name)
        finally:
            self._busy = False
        if self.every is not None:
            self.write()

    def _between_batches(self, name: str) -> None:
        if self._signal is not None:
            self.write()
            raise Stopped(self._signal, f"{name}, after {self.passes[name].rows:,} rows{self.remedy}")
        waited = perf_counter() - self._written
        if self.every is not None and waited >= max(self.every, SHARE_OF_TIME * self._cost):
            self.write()

    def write(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is None:
            return
        start = perf_counter()
        everything: Arrays = {}
        state: State = {"asked": self.asked, "outcomes": {}, "passes": {}}
        for name, (outcome, arrays) in self.outcomes.items():
            state["outcomes"][name] = outcome
            everything |= add_prefix(name, arrays)
        waiting = dict(self.found)
        for name, begun in self.passes.items():
            arrays = {}
            waiting[name] = (begun.rows, begun.sums.state(arrays), arrays)
        for name, (rows, sums, arrays) in waiting.items():
            state["passes"][name] = {"rows": rows, "sums": sums}
            everything |= add_prefix(name, arrays)
        with naming(self.path):
            modelfile.write(self.path, modelfile.UNFINISHED_FIT, state, everything)
        self._written = perf_counter()
        self._cost = self._written - start

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, IndexError, ValueError, OverflowError, AttributeError, MemoryError) as error:
            raise ValueError(f"{self.path} lacks something that this fit needs ({error}); remove it.") from error

    def read(self) -> None:
        """Go on from the file, if it is there.

        Raises
        ------
        ValueError
            If it holds something else, or the statistic of another fit; says in what it differs.
        """
        if self.path is None or not self.path.exists():
            return
        kind, state, arrays = modelfile.read(self.path)
        if kind != modelfile.UNFINISHED_FIT:
            raise ValueError(f"{self.path} holds a {kind}, not the statistic of a fit; name another file.")
        refuse_other_fit(self.path, state["asked"], self.asked)
        with self._reading():
            self.outcomes = {name: (one, strip_prefix(name, arrays)) for name, one in state["outcomes"].items()}
            self.found = {
                name: (int(one["rows"]), one["sums"], strip_prefix(name, arrays))
                for name, one in state["passes"].items()
            }

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
                raise Stopped(number, self.remedy.lstrip(";, ") if kept else "")
            self._signal = number

        if current_thread() is not main_thread():  # only there may signals be caught
            yield
            return
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

"""The graph that Dask runs: a statistic of each partition, and a tree of merges whose shape depends on their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Protocol
from uuid import uuid4

import dask
from dask.delayed import delayed

from sparsact.distributed.partitions import Partition, Reader
from sparsact.distributed.progress import report
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.statistic import DivisibleStatistic


class PartitionError(ValueError):
    """A partition that cannot be learned; the message begins with its name."""


@dataclass(frozen=True)
class PassTask:
    """One partition's place: its number and name, how it is read, and the rows before it."""

    number: int
    name: str
    reader: Reader
    first_row: int = 0
    topic: str | None = None


@dataclass(frozen=True)
class PartialSum:
    """The sums of some consecutive partitions."""

    first: str
    last: str
    n_rows: int
    sums: tuple[State, Arrays]

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


Work = Callable[..., tuple[int, Any]]


def of_partition(work: Work) -> Callable[..., Any]:
    """Work on one partition, which tells its progress and names the partition in what it raises."""

    @wraps(work)
    def named(shared: Any, task: PassTask, *pieces: Any) -> Any:
        try:
            n_rows, result = work(shared, task, *pieces)
        except (ValueError, TypeError) as error:
            raise PartitionError(f"{task.name}: {error}") from error
        except MemoryError as error:
            raise MemoryError(f"{task.name}: {error}") from error
        report(task.topic, task.number, n_rows)
        return result

    return named


@of_partition
def summed(statistic: DivisibleStatistic, task: PassTask, *pieces: Any) -> tuple[int, PartialSum]:
    """The sums of one partition."""
    own, n_rows = statistic.empty(), 0
    for batch in task.reader.batches(*pieces):
        own.add(*batch, task.first_row + n_rows)
        n_rows += len(batch[1])
    return n_rows, PartialSum(task.name, task.name, n_rows, _state(own))


def joined(statistic: DivisibleStatistic, parts: Sequence[PartialSum]) -> PartialSum:
    """Merge the parts in their order, unchanged, because a lost result may need them again; return the sum."""
    n_rows, some = sum(part.n_rows for part in parts), [part for part in parts if part.n_rows]
    if len(some) < 2:
        return PartialSum(parts[0].first, parts[-1].last, n_rows, (some or parts)[0].sums)
    whole = statistic.empty()
    for part in some:
        try:
            whole.merge(restored(statistic, part))
        except ValueError as error:
            raise PartitionError(f"{some[0].first} and {part.name}: {error}") from error
        except MemoryError as error:
            raise MemoryError(f"{some[0].first} to {part.name}: {error}") from error
    return PartialSum(parts[0].first, parts[-1].last, n_rows, _state(whole))


def restored(statistic: Any, part: PartialSum) -> Any:
    """A statistic with the sums of a part."""
    own = statistic.empty()
    own.restore(*part.sums)
    return own


def _state(statistic: DivisibleStatistic) -> tuple[State, Arrays]:
    arrays: Arrays = {}
    return statistic.state(arrays), arrays


@of_partition
def counted(shared: None, task: PassTask, *pieces: Any) -> tuple[int, tuple[int, ...]]:
    """Number of rows of one partition."""
    n_rows = task.reader.count(*pieces)
    return n_rows, (n_rows,)


def concatenated(shared: None, parts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Numbers of rows one after another."""
    return tuple(n_rows for part in parts for n_rows in part)


ARITY: Final = 8  # parts of one merge


class Running(Protocol):
    """Something that is being computed."""

    def result(self) -> Any:
        """Its value, waited for."""


class Engine:
    """Computes graphs on a Dask client or, without one, in the threads of this process."""

    def __init__(self, client: Any) -> None:
        self.client = _client(client)

    def start(self, root: Any) -> Running:
        """Begin to compute; without a client, when the result is read."""
        if self.client is None:
            return _Local(root)
        # Batches that exist once only travel inside the graph, so that a lost worker's part can be done again.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return _Remote(self.client, self.client.compute(root))


class _Local:
    def __init__(self, root: Any) -> None:
        self._root = root

    def result(self) -> Any:
        return self._root.compute(scheduler="threads")

    def cancel(self) -> None:
        """Do nothing: tasks run when the result is read."""


class _Remote:
    def __init__(self, client: Any, future: Any) -> None:
        self._client, self._future = client, future

    def result(self) -> Any:
        try:
            return self._future.result()
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Let the workers stop."""
        self._client.cancel([self._future])


def tree(
    parts: Sequence[Partition],
    shared: Any,
    first_rows: Sequence[int] | None = None,
    leaf: Callable[..., Any] = summed,
    merge: Callable[..., Any] = joined,
    *,
    number: int = 0,
    topic: str | None = None,
) -> Any:
    """A delayed value: the statistic of every partition, merged ``ARITY`` at a time, in their order."""
    token = uuid4().hex
    common = delayed(shared, pure=False, traverse=False)
    nodes = []
    for i, (part, first_row) in enumerate(zip(parts, first_rows or [0] * len(parts), strict=True)):
        pieces = [delayed(piece, pure=False, traverse=False) for piece in part.pieces]
        task = PassTask(number + i, part.name, part.reader, first_row, topic)
        own = delayed(task, pure=False, traverse=False)
        nodes.append(delayed(leaf, pure=False)(common, own, *pieces, dask_key_name=(f"partition-{token}", i)))
    level = 0
    while len(nodes) > 1 or not level:
        level += 1
        groups = [nodes[i : i + ARITY] for i in range(0, len(nodes), ARITY)]
        nodes = [
            delayed(merge, pure=False)(common, group, dask_key_name=(f"merge{level}-{token}", i))
            for i, group in enumerate(groups)
        ]
    return nodes[0]


def _client(client: Any) -> Any:
    try:
        from distributed import Client, default_client
    except ImportError:
        if client is None:
            return None
        raise
    if client is None:
        try:
            client = default_client()  # type: ignore[no-untyped-call]
        except ValueError:
            return None
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(f"`client` is a {type(client).__name__}; pass a synchronous dask.distributed.Client, or None.")
    return client

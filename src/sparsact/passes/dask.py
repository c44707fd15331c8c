"""Passes by Dask: a statistic of each partition, and a tree of merges whose shape depends on their number alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from itertools import islice
from logging import ERROR
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from uuid import uuid4

import dask
from dask.delayed import Delayed, delayed

from sparsact.passes.progress import StageProgress, listening, report
from sparsact.passes.source import B, Partition, Pass, R, Reader, S, placed
from sparsact.saving.schema import Arrays, State
from sparsact.statistics.statistic import Batch, Statistic

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

Parts = Iterable[Partition[Reader]]
Sums = TypeVar("Sums", bound=Statistic[Batch])
WAIT_FOR_WORKERS: Final = 60  # seconds: a batch system may start them one after the other


class PartitionError(ValueError):
    """A partition that cannot be learned; the message begins with its name."""


@dataclass(frozen=True)
class PassTask(Generic[R]):
    """One partition's work: the partition without its pieces, its number, and the topic that hears when it is done."""

    part: Partition[R]
    number: int = 0
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
    """Work on one partition that reports its progress and names the partition in its errors."""

    @wraps(work)
    def named(shared: object, task: PassTask[Reader], *pieces: object) -> Any:
        try:
            n_rows, result = work(shared, task.part, *pieces)
        except (ValueError, TypeError) as error:
            raise PartitionError(f"{task.part.name}: {error}") from error
        except MemoryError as error:
            raise MemoryError(f"{task.part.name}: {error}") from error
        if task.topic is not None:
            report(task.topic, task.number, n_rows)
        return result

    return named


@of_partition
def summed(statistic: Statistic[Batch], part: Partition[Reader], *pieces: object) -> tuple[int, PartialSum]:
    """The sums of one partition."""
    own, n_rows = statistic.empty(), 0
    for batch in part.reader.batches(*pieces):
        own.add(replace(batch, first_row=part.first_row + n_rows))
        n_rows += len(batch)
    return n_rows, PartialSum(part.name, part.name, n_rows, own.state())


def joined(statistic: Statistic[Batch], parts: Sequence[PartialSum]) -> PartialSum:
    """The parts merged in order. They are not changed: if the result is lost, they are merged again."""
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
    return PartialSum(parts[0].first, parts[-1].last, n_rows, whole.state())


def restored(statistic: Sums, part: PartialSum) -> Sums:
    """A statistic with the sums of a part."""
    own = statistic.empty()
    own.restore(*part.sums)
    return own


ARITY: Final = 8  # parts of one merge
AT_ONCE: Final = 2  # graphs under way


@dataclass(frozen=True)
class Running:
    """A graph that is being computed by a client or, without one, once its result is asked for."""

    root: Delayed
    future: Future[Any] | None = None

    def result(self) -> Any:
        """Wait for the value."""
        if self.future is None:
            return self.root.compute(scheduler="threads")  # type: ignore[no-untyped-call]
        try:
            return self.future.result()
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> None:
        """Let the workers stop."""
        if self.future is not None:
            self.future.cancel()  # type: ignore[no-untyped-call]


class Engine:
    """Computes graphs on a Dask client or, without one, in the threads of this process."""

    def __init__(self, client: Client | None) -> None:
        self.client = _client(client)

    def start(self, root: Delayed) -> Running:
        """Begin to compute."""
        if self.client is None:
            return Running(root)
        # Batches that exist once only travel inside the graph, so that a lost worker's part can be done again.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return Running(root, self.client.compute(root))  # type: ignore[no-untyped-call]

    def add(self, statistic: Statistic[Batch], parts: Parts, stage: StageProgress, block: int | None = None) -> int:
        """Add all rows of the partitions to a statistic without rows; return their number.

        One graph sums them or, of ``block`` partitions each, one after another, which are let go when it is done.
        """
        source, blank, running = iter(parts), statistic.empty(), deque[Running]()
        sums, n_rows = list[PartialSum](), 0

        def wait(most: int) -> None:
            while len(running) > most:
                sums[:] = [joined(blank, [*sums, running[0].result()])]
                running.popleft()

        with listening(stage, self.client) as topic:
            try:
                while some := placed(islice(source, block), n_rows):
                    graph = tree(some, blank, number=stage.n_partitions, topic=topic)
                    stage.n_partitions += len(some)
                    n_rows = some[-1].first_row + (some[-1].n_rows or 0)
                    running.append(self.start(graph))
                    wait(AT_ONCE - 1)
                wait(0)
            finally:
                for left in running:
                    left.cancel()
        statistic.restore(*sums[0].sums)
        return sums[0].n_rows

    def run(self, one: Pass[B, S], stage: StageProgress) -> int:
        """Add all rows to the statistic of a pass that has partitions; return their number."""
        if one.partitions is None or not isinstance(one.statistic, Statistic):
            raise TypeError(f"the pass {one.name!r} cannot be divided; make it in one process.")
        return self.add(one.statistic, one.partitions(), stage)


def leaves(
    work: Callable[..., Any],
    shared: object,
    parts: Sequence[Partition[Reader]],
    *,
    number: int = 0,
    topic: str | None = None,
) -> list[Delayed]:
    """Delayed work on each partition; they are numbered from ``number`` on."""
    token, common = uuid4().hex, delayed(shared, pure=False, traverse=False)
    nodes = []
    for i, part in enumerate(parts):
        pieces = [delayed(piece, pure=False, traverse=False) for piece in part.pieces]
        task = delayed(PassTask(replace(part, pieces=()), number + i, topic), pure=False, traverse=False)
        nodes.append(delayed(work, pure=False)(common, task, *pieces, dask_key_name=(f"partition-{token}", i)))
    return nodes


def tree(
    parts: Sequence[Partition[Reader]], statistic: Statistic[Batch], *, number: int = 0, topic: str | None = None
) -> Delayed:
    """The delayed sums of every partition, merged ``ARITY`` at a time, in their order."""
    token, common = uuid4().hex, delayed(statistic, pure=False, traverse=False)
    nodes, level = leaves(summed, statistic, parts, number=number, topic=topic), 0
    while len(nodes) > 1 or not level:
        level += 1
        groups = [nodes[i : i + ARITY] for i in range(0, len(nodes), ARITY)]
        nodes = [
            delayed(joined, pure=False)(common, group, dask_key_name=(f"merge{level}-{token}", i))
            for i, group in enumerate(groups)
        ]
    return nodes[0]


@contextmanager
def workers(cluster: Client | str, wait: float = WAIT_FOR_WORKERS) -> Iterator[Engine]:
    """The workers of a client, or at an address: ``local:2`` starts two processes, ``tcp://host:port`` is running."""
    from distributed import Client, LocalCluster

    if isinstance(cluster, Client):
        yield Engine(cluster)
        return
    kind, _, rest = str(cluster).partition(":")
    with ExitStack() as stack:
        if kind == "local" and rest.isdecimal() and int(rest) > 0:
            options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": ERROR}
            try:
                scheduler: LocalCluster | str = stack.enter_context(LocalCluster(n_workers=int(rest), **options))  # type: ignore[no-untyped-call]
            except (RuntimeError, OSError) as error:
                raise ValueError(
                    f"cluster {cluster}: its workers ended while they started ({error}); see what they print by "
                    "`dask worker`, or fit without a cluster."
                ) from error
        elif kind in ("tcp", "tls", "ucx"):
            scheduler = str(cluster)
        else:
            raise ValueError(f"cluster {cluster} is neither local:N, with N processes to start, nor tcp://host:port.")
        yield _workers(stack, str(cluster), scheduler, wait)


def _workers(stack: ExitStack, address: str, scheduler: LocalCluster | str, wait: float) -> Engine:
    """The workers of a scheduler, once the first has joined it."""
    from distributed import Client

    try:
        client = Client(scheduler, set_as_default=False, timeout="10s")  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ValueError(f"cluster {address}: no scheduler answers there ({error}); start one.") from error
    stack.enter_context(client)
    try:
        client.wait_for_workers(1, timeout=wait)
    except TimeoutError as error:
        raise ValueError(
            f"cluster {address}: no worker joined within {wait} s; start workers there, and "
            "see why the workers that were started ended."
        ) from error
    return Engine(client)


def _client(client: Client | None) -> Client | None:
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

"""The graph that Dask runs: one task a partition, and a tree of merges whose shape depends on their number alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol
from uuid import uuid4

import dask
from dask.delayed import delayed

from sparsact.distributed.partitions import Partition
from sparsact.distributed.work import PassTask

ARITY = 8  # parts of one merge


class Running(Protocol):
    """Something that is being computed."""

    def result(self) -> Any:
        """Its value, waited for."""


class Engine:
    """Computes graphs on a Dask client or, without one, in the threads of this process."""

    def __init__(self, client: Any) -> None:
        self.client = _client(client)

    def start(self, root: Any) -> Running:
        """Begin to compute; without a client, when the result is asked for."""
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
        """Nothing runs before the result is asked for."""


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
    first_rows: Sequence[int],
    leaf: Callable[..., Any],
    merge: Callable[..., Any],
    shared: Any,
    *,
    number: int = 0,
    topic: str | None = None,
) -> Any:
    """A delayed value: the leaf of every partition, merged ``ARITY`` at a time, in their order."""
    token = uuid4().hex
    common = delayed(shared, pure=False, traverse=False)
    nodes = []
    for i, (part, first_row) in enumerate(zip(parts, first_rows, strict=True)):
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

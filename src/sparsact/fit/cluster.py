"""Passes over the files of a table by the workers of a Dask cluster: a file each, or a piece of a large one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from logging import ERROR
from typing import Any, Final

from sparsact.datasets import Table
from sparsact.datasets.parts import Parts, piece_name, pieces
from sparsact.distributed.engine import Engine, tree
from sparsact.distributed.partitions import Partition
from sparsact.distributed.progress import Progress, ProgressCounter, listening
from sparsact.fit.progress import OnRows

WAIT_FOR_WORKERS: Final = 60  # seconds


@contextmanager
def workers(cluster: Any) -> Iterator[Workers]:
    """The workers of a client, or at an address: ``local:2`` starts two processes, ``tcp://host:port`` is running."""
    from distributed import Client, LocalCluster

    if isinstance(cluster, Client):
        yield Workers(cluster)
        return
    kind, _, rest = str(cluster).partition(":")
    with ExitStack() as stack:
        if kind == "local" and rest.isdecimal() and int(rest) > 0:
            options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": ERROR}
            try:
                scheduler = stack.enter_context(LocalCluster(n_workers=int(rest), **options))  # type: ignore[no-untyped-call]
            except (RuntimeError, OSError) as error:
                raise ValueError(
                    f"cluster {cluster}: its workers ended while they started ({error}); see what they print by "
                    "`dask worker`, or fit without a cluster."
                ) from error
        elif kind in ("tcp", "tls", "ucx"):
            scheduler = cluster
        else:
            raise ValueError(f"cluster {cluster} is neither local:N, with N processes to start, nor tcp://host:port.")
        yield _workers(stack, cluster, scheduler)


def _workers(stack: ExitStack, address: str, scheduler: Any) -> Workers:
    """The workers of a scheduler, once the first has joined it."""
    from distributed import Client

    try:
        client = Client(scheduler, set_as_default=False, timeout="10s")  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ValueError(f"cluster {address}: no scheduler answers there ({error}); start one.") from error
    stack.enter_context(client)
    try:
        client.wait_for_workers(1, timeout=WAIT_FOR_WORKERS)
    except TimeoutError as error:
        raise ValueError(
            f"cluster {address}: no worker joined within {WAIT_FOR_WORKERS} s; start workers there, and "
            "see why those that were started ended."
        ) from error
    return Workers(client)


@dataclass(frozen=True)
class Workers:
    """Processes that read the files, under the same names as this one."""

    client: Any

    def run(self, one: Any, on_rows: OnRows) -> tuple[int, Any]:
        """The rows of a pass, and its statistic with all of them: every file is summed where a worker reads it."""
        statistic, tables = one.statistic, _pieces(one.source)
        files = [
            Partition(piece_name(table.parts.sources[0]), table)  # type: ignore[arg-type] # a table is its own reader
            for table in tables
        ]
        first_rows = [0, *accumulate(table.parts.n_rows or 0 for table in tables)][:-1]
        reported = [0]

        def show(progress: Progress) -> None:
            on_rows(progress.n_rows - reported[0])
            reported[0] = progress.n_rows

        counter = ProgressCounter("learning", show, len(files))
        with listening(counter, self.client) as topic:
            found = Engine(self.client).start(tree(files, statistic.empty(), first_rows, topic=topic)).result()
        statistic.restore(*found.sums)
        return found.n_rows, statistic


def _pieces(table: Table) -> list[Table]:
    """Every file of a table, or piece of a large one, as a table."""
    parts = table.parts
    return [
        replace(table, parts=Parts((piece,), (stamp,), [length if piece.n_rows is None else piece.n_rows]))
        for of_file, stamp, length in zip(pieces(parts.sources), parts.stamps, parts.lengths, strict=True)
        for piece in of_file
    ]

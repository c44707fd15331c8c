"""Workers that die or dawdle, partitions that are bounded, and what is told meanwhile."""

from __future__ import annotations

import gc
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from partitioned import EXACT, ROUNDED, saved, table
from sklearn.base import clone

from sparsact import distributed
from sparsact.passes.dask import ARITY, PartialSum


def logged(block, log, seconds=0.001, slow_worker=None, last_read=None, block_info=None):
    """The block, after a while; the log names the worker and the block.

    After more than ``last_read`` reads of all workers, the first that is not at its first block kills its process.
    """
    from distributed import get_worker

    worker, log = get_worker().name, Path(log)
    time.sleep(seconds if slow_worker in (None, worker) else 0.001)
    with log.open("a") as file:  # one short line is written at once
        file.write(f"{worker} {block_info[0]['chunk-location'][0]}\n")
    workers = [line.split()[0] for line in log.read_text().splitlines()]
    if last_read is not None and len(workers) > last_read and workers.count(str(worker)) > 1:
        with suppress(FileExistsError):
            log.with_name("killed").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
    return block


def observed(data, rows, **options):
    """Dask arrays of the data; reading a block of X takes a while and is logged."""
    X, *others = (da.from_array(part, chunks=(rows, *part.shape[1:])) for part in data)
    return X.map_blocks(logged, dtype=X.dtype, meta=X._meta, **options), *others


@pytest.mark.parametrize("name", ["folds", pytest.param("lsh", marks=pytest.mark.slow)])
@pytest.mark.grid
def test_a_worker_that_is_killed(name, client, tmp_path):
    """SIGKILL amid its second partition: the other learns again what it had, to the same bits."""
    estimator = (EXACT | ROUNDED)[name]
    data = table(estimator)
    expected = saved(
        distributed.fit(estimator, tuple(da.from_array(part, chunks=(20, *part.shape[1:])) for part in data)), tmp_path
    )
    log, passes = tmp_path / "log", 2 if name == "lsh" else 1
    victims = client.run(os.getpid)
    n_blocks = -(-len(data[0]) // 20)
    options = {"log": str(log), "last_read": n_blocks * (passes - 1) + 1}
    model = distributed.fit(estimator, observed(data, 20, **options), client)
    assert (tmp_path / "killed").exists()
    assert saved(model, tmp_path) == expected
    reads = [line.split()[1] for line in log.read_text().splitlines()]
    assert len(reads) > n_blocks * passes, "nothing was lost, so nothing was tried"
    client.wait_for_workers(2)
    assert len(set(victims.values()) & set(client.run(os.getpid).values())) == 1


@pytest.mark.slow
def test_a_worker_that_is_killed_amid_batches(client, tmp_path):
    """Batches of a generator exist once: the batches of a lost worker are still in the graph."""
    estimator = EXACT["folds"]
    X, y, weights = table(estimator)
    victim = list(client.run(os.getpid).values())[1]
    killed = []

    def kill(progress):
        if progress.partitions == 9 and not killed:
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

    batches = ((X[i : i + 8], y[i : i + 8], weights[i : i + 8]) for i in range(0, len(X), 8))
    model = distributed.fit(estimator, batches, client, progress=kill)
    assert killed
    assert saved(model, tmp_path) == saved(clone(estimator).fit(X, y, weights), tmp_path)
    client.wait_for_workers(2)


@pytest.mark.slow
def test_a_worker_that_is_slow(client, tmp_path):
    """The other one does most of the work, and the model is the same."""
    estimator = ROUNDED["dsm"]
    data = table(estimator)
    log = tmp_path / "log"
    slow, quick = client.run(lambda dask_worker: dask_worker.name).values()
    model = distributed.fit(estimator, observed(data, 10, log=str(log), seconds=0.2, slow_worker=slow), client)
    plain = tuple(da.from_array(part, chunks=(10, *part.shape[1:])) for part in data)
    assert saved(model, tmp_path) == saved(distributed.fit(estimator, plain), tmp_path)
    workers = [line.split()[0] for line in log.read_text().splitlines()]
    assert workers.count(str(quick)) > workers.count(str(slow))


def test_progress_counts_every_partition_once(somewhere):
    X, y, _ = table(EXACT["rows"])
    seen = []
    parts = da.from_array(X, chunks=(40, 6)), da.from_array(y, chunks=40)
    distributed.fit(EXACT["rows"], parts, somewhere, progress=seen.append)
    assert [p.partitions for p in seen] == list(range(1, 9))
    assert [p.n_rows for p in seen] == sorted(p.n_rows for p in seen)
    assert seen[-1] == distributed.Progress("learning", 8, 8, 317)


@pytest.mark.grid
def test_few_partitions_and_statistics_are_held_at_once():
    """Each of 2 threads reads one of 40 partitions; statistics are dropped as soon as they are merged."""
    threads, held, statistics, waiting = 2, [], [], []

    def read(block):
        waiting.append(1)
        held.append(len(waiting))
        return block

    def done(progress):
        waiting.pop()
        if progress.partitions % 7 == 0:
            gc.collect()  # what earlier tests of this process left in cycles
            statistics.append(sum(type(thing) is PartialSum for thing in gc.get_objects()))

    X = da.from_array(np.eye(40, dtype=np.int8), chunks=(1, 40)).map_blocks(read, dtype=np.int8, meta=np.empty((0, 0)))
    with dask.config.set(num_workers=threads):
        distributed.fit(EXACT["rows"], (X, da.arange(40, chunks=1)), progress=done)
    assert max(held) <= 2 * threads
    assert 2 <= max(statistics) <= 2 * ARITY + 2 * threads


@pytest.mark.slow
def test_only_statistics_come_home(client):
    """The client is sent far fewer bytes than the rows have, whatever the worker sums."""
    X = da.random.default_rng(0).integers(0, 2, (400_000, 8), chunks=(50_000, 8), dtype=np.int64)
    model = distributed.fit(EXACT["cells"], (X, X[:, 0] * 1.0), client)
    _, arrays = model.state()
    assert model.n_samples_seen_ == 400_000
    assert sum(array.nbytes for array in arrays.values()) < X.nbytes / 100

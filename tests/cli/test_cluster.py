"""`sparsact fit --cluster`: the files of a table summed by other processes, the model file of one."""

from __future__ import annotations

import signal

import numpy as np
import pandas as pd
import pytest
from commands import run
from distributed import LocalCluster

from sparsact.datasets.readers import open_source
from sparsact.datasets.table_files import pieces
from sparsact.datasets.table_stream import TableSurvey
from sparsact.fit.fold_sums import FoldSums
from sparsact.passes.dask import workers
from sparsact.saving import modelfile

pytestmark = pytest.mark.usefixtures("few_rivals")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for i, m in enumerate((37, 90, 1, 64)):
        X = rng.integers(0, 2, (m, 5))
        frame = pd.DataFrame(X, columns=list("abcde")).assign(y=2.0 * X[:, 1] * X[:, 4] + rng.normal(size=m))
        frame["kind"] = np.where(frame.y > 1, "high", np.where(frame.y > 0, "middle", "low"))
        frame.to_parquet(tmp_path / f"part-{i}.parquet")
    return tmp_path


@pytest.fixture(scope="module")
def scheduler():
    """Address of a scheduler that runs, with two workers: threads of this process, spoken to through sockets."""
    options = {"processes": False, "protocol": "tcp", "dashboard_address": ":0", "memory_limit": None}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def both(capsys, folder):
    """Run a fit in one process and on a cluster; the bytes of both models and the first lines that were said."""

    def fitted(table, address, *words):
        found = []
        for name, more in (("one", ()), ("two", ("--cluster", address))):
            status, told, err = run(capsys, "fit", table, *words, "--out", folder / name, "--no-progress", *more)
            assert (status, err) == (0, "")
            found.append(((folder / name).read_bytes(), told.splitlines()[0]))
        return found

    return fitted


@pytest.mark.parametrize(
    "words",
    [
        ("--target", "y", "--ignore", "kind"),
        ("--target", "y", "--ignore", "kind", "--degree", "2", "--alpha", "0.5"),
        pytest.param(("--target", "kind", "--ignore", "y"), marks=pytest.mark.slow),
        pytest.param(("--target", "y", "--ignore", "kind", "--report"), marks=pytest.mark.slow),
    ],
)
@pytest.mark.grid
def test_the_same_model_file_by_a_scheduler_that_runs(words, both, folder, scheduler):
    if words[-1] == "--report":
        words = (*words, folder / "report.html")
    one, two = both(folder / "part-*.parquet", scheduler, *words)
    assert one == two


@pytest.mark.grid
def test_one_large_file_is_in_pieces(both, folder, scheduler):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (530_000, 4), dtype=np.int8)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=X[:, 0] * X[:, 3] + rng.integers(0, 9, len(X)))
    frame.to_parquet(folder / "large.parquet", row_group_size=90_000)
    assert [len(of_file) for of_file in pieces([open_source(folder / "large.parquet")])] == [2]
    one, two = both(folder / "large.parquet", scheduler, "--target", "y", "--degree", "2")
    assert one == two


@pytest.mark.slow
def test_processes_of_its_own_go_on_from_a_statistic(capsys, folder, monkeypatch):
    """A fit that Ctrl-C stopped on its first pass goes on by two processes to the model of one."""
    words = ("fit", folder / "part-*.parquet", "-t", "y", "--ignore", "kind", "--degree", "2")
    assert run(capsys, *words, "--out", folder / "whole", "-q")[0] == 0
    words = (*words, "--out", folder / "model", "--resume", folder / "statistic")
    with monkeypatch.context() as patch:
        patch.setattr("sparsact.datasets.table_stream.TableSurvey.add", interrupted())
        status, _, err = run(capsys, *words)
    assert (status, (folder / "statistic").is_file()) == (130, True)
    assert f"--resume {folder / 'statistic'}" in err
    assert run(capsys, *words, "--cluster", "local:2", "--no-progress")[0] == 0
    assert (folder / "model").read_bytes() == (folder / "whole").read_bytes()
    assert not (folder / "statistic").exists()


def test_a_statistic_is_passed_on_by_the_cluster(capsys, folder, monkeypatch, scheduler):
    """Ctrl-C after the workers' pass: what they summed is kept, and one process goes on from it."""
    words = ("fit", folder / "part-*.parquet", "-t", "y", "--ignore", "kind", "--model", "low-degree")
    assert run(capsys, *words, "--out", folder / "whole", "-q")[0] == 0
    words = (*words, "--out", folder / "model", "--resume", folder / "statistic")
    real, passes = FoldSums.models, []

    def models(sums, *choice):
        passes.append(sums.n_rows)
        signal.raise_signal(signal.SIGINT)
        return real(sums, *choice)

    with monkeypatch.context() as patch:
        patch.setattr(FoldSums, "models", models)
        assert run(capsys, *words, "--cluster", scheduler, "--no-progress")[0] == 130
    assert passes == [192]
    kept = modelfile.read(folder / "statistic")[1]["passes"]
    assert {name: one["rows"] for name, one in kept.items()} == {"reading": 192, "choosing": 192}
    assert run(capsys, *words)[0] == 0
    assert (folder / "model").read_bytes() == (folder / "whole").read_bytes()


def interrupted():
    """Looking at rows, with Ctrl-C at the second batch."""
    real, seen = TableSurvey.add, []

    def add(survey, *given):
        seen.append(1)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)
        return real(survey, *given)

    return add


def test_an_address_that_is_none(folder, capsys):
    for address in ("nowhere", "local:", "local:0", "local:-1", "http://a:1"):
        status, _, err = run(capsys, "fit", folder / "part-0.parquet", "-t", "y", "--cluster", address)
        assert status == 2
        assert "is neither local:N" in err


def test_a_cluster_without_workers_is_not_waited_for_without_end():
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0", protocol="tcp") as empty,
        pytest.raises(ValueError, match=r"no worker joined within 0\.2 s"),
        workers(empty.scheduler_address, wait=0.2),
    ):
        pytest.fail("there are no workers")


def test_workers_that_end_while_they_start_end_the_command(capsys, folder, monkeypatch):
    def failing(**_):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", failing)
    status, _, err = run(capsys, "fit", str(folder / "*.parquet"), "--target", "y", "--cluster", "local:2")
    assert status == 2
    assert "its workers ended while they started" in err

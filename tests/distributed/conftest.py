"""A cluster of two worker processes of one thread each, and models to fit on it."""

from __future__ import annotations

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def cluster():
    """Two worker processes; a killed one is started again by its nanny."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=None) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """The cluster, as a client of this test alone."""
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture(params=["threads", pytest.param("processes", marks=pytest.mark.slow)])
def somewhere(request):
    """None, which is threads of this process, or a client of worker processes."""
    return None if request.param == "threads" else request.getfixturevalue("client")

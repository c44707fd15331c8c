from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparsact import kernels
from sparsact.kernels import dispatch

REFERENCE = pytest.param("reference", marks=pytest.mark.grid)  # tens of times as slow


@pytest.fixture(params=["reference"] if dispatch.native is None else ["native", REFERENCE])
def kernels_in_use(request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs on the native kernels, where they are built, and on the ones in NumPy."""
    with kernels.using(request.param):
        yield request.param

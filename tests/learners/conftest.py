from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparsact import kernels
from sparsact.kernels import dispatch


@pytest.fixture(params=["reference"] if dispatch.native is None else ["reference", "native"])
def kernels_in_use(request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs on the NumPy kernels and, where they are built, on the native ones."""
    with kernels.using(request.param):
        yield request.param

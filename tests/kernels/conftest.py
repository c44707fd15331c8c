from __future__ import annotations

from collections.abc import Iterator

import pytest
from instruction_sets import BACKENDS, name_of

from sparsact import kernels


@pytest.fixture(params=BACKENDS, ids=name_of)
def backend(request: pytest.FixtureRequest) -> Iterator[tuple[str, str | None]]:
    """The test runs on each backend in turn; all must equal the reference."""
    with kernels.using(*request.param):
        yield request.param

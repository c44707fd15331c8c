from __future__ import annotations

from collections.abc import Iterator

import pytest

from sparsact import kernels
from sparsact.kernels import dispatch

ISAS = ("portable", "avx2", "avx512")
HERE = [] if dispatch.native is None else list(ISAS[: ISAS.index(dispatch.native.widest_isa()) + 1])

# Every way this processor can run the kernels: (name, isa) as `kernels.using` takes them.
BACKENDS: list[tuple[str, str | None]] = [("reference", None), *(("native", isa) for isa in HERE)]


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend[1] or backend[0])
def backend(request: pytest.FixtureRequest) -> Iterator[tuple[str, str | None]]:
    """The test runs on each backend in turn, all of which must equal the reference."""
    with kernels.using(*request.param):
        yield request.param

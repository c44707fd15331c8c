from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _forget_compiled_code() -> Iterator[None]:
    """Torch keeps what it has compiled of a function, for eight layers at most; a test starts without."""
    yield
    torch._dynamo.reset()

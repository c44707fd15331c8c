"""A process that is not given all the memory there is."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GIBIBYTES = 3


@contextmanager
def little_memory() -> Iterator[None]:
    """Three GiB more of addresses than this process has now: allocating more raises a MemoryError."""
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + GIBIBYTES * 2**30, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)

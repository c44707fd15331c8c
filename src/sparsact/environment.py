"""The process that computes a result: the versions that decide it, and its end by a signal."""

from __future__ import annotations

import platform
from importlib.metadata import version

from sparsact._version import __version__


class Interrupted(BaseException):
    """SIGINT or SIGTERM ended the work between two batches. No Exception: no handler of errors may take it for one.

    ``status`` is what shells expect of a process that a signal ended.
    """

    def __init__(self, signal: int, where: str = "") -> None:
        super().__init__(f"stopped: {where}" if where else "stopped.")  # `where` may end with a command to be copied
        self.status = 128 + signal


def versions() -> tuple[tuple[str, str], ...]:
    """Versions that decide a result, by name."""
    from sparsact.kernels import description

    libraries = ((name, version(name)) for name in ("numpy", "scipy", "scikit-learn", "pyarrow"))
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return (("sparsact", __version__), ("kernels", description()), ("Python", python), *libraries)

"""What a report says about the run: memory, versions, and the command without this machine's folders."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path, PurePath


def peak_memory() -> int:
    """Most bytes that this process has held at once."""
    if sys.platform == "linux":  # where `getrusage` also counts the process that this one was started from
        with Path("/proc/self/status").open() as status:
            return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    elif sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    else:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def versions() -> tuple[tuple[str, str], ...]:
    """Versions that decide the result."""
    from sparsact import __version__
    from sparsact.kernels import description

    libraries = ((name, version(name)) for name in ("numpy", "scipy", "scikit-learn", "pyarrow"))
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return (("sparsact", __version__), ("kernels", description()), ("Python", python), *libraries)


def command_line(words: Sequence[str]) -> str:
    """The command as typed, with the folders of absolute paths left out.

    >>> command_line(["fit", "/tables/my table.csv", "--out=/tmp/m.sparsact"])
    "sparsact fit 'my table.csv' --out=m.sparsact"
    """
    return shlex.join(["sparsact", *map(_without_folder, words)])


def _without_folder(word: str) -> str:
    option, equals, value = word.partition("=")
    if option.startswith("--") and equals:
        return f"{option}={_without_folder(value)}"
    return PurePath(word).name if PurePath(word).is_absolute() else word

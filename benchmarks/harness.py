"""What every benchmark needs: times taken in turns, the machine in words, rows in a file."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from sparsact import __version__, kernels


def interleaved(
    callables: dict[str, Callable[[], object]], repeats: int, *, before: Callable[[], object] | None = None
) -> dict[str, list[float]]:
    """Seconds of each callable, taken in turns so that a busy moment of the machine meets all of them alike.

    ``before`` runs untimed ahead of every call, for instance to restore the input. One round more is run first and
    thrown away: it pays for the first touch of memory.
    """
    seconds: dict[str, list[float]] = {name: [] for name in callables}
    for _ in range(repeats + 1):
        for name, call in callables.items():
            if before is not None:
                before()
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: times[1:] for name, times in seconds.items()}


def machine() -> dict[str, Any]:
    """Processor, cores, memory, kernels in use, commit, and versions of what is measured."""
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": platform.platform(terse=True),
        "kernels": kernels.description(),
        "commit": _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain", "-uno") else ""),
        "sparsact": __version__,
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", "scipy", "scikit-learn", "fht-cpu")},
    }


def append_row(path: str | Path, row: dict[str, Any]) -> None:
    """Add one line of JSON to the file at ``path``."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    fields = dict(map(str.strip, line.split(":", 1)) for line in lines if ":" in line)
    if "model name" not in fields:
        return platform.processor()
    return f"{fields['model name']} (family {fields.get('cpu family')}, model {fields.get('model')})"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=Path(__file__).parent, check=False)
    return done.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None

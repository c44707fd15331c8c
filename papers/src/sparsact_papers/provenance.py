"""Where a row comes from: processor, system, versions, commit."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from sparsact._version import __version__
from sparsact.kernels import description
from sparsact.memory import total_memory

LIBRARIES: Final = ("numpy", "scipy", "scikit-learn", "torch")


@cache
def machine() -> dict[str, Any]:
    """Processor, cores, memory, system, kernels in use."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(total_memory() / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "kernels": description(),
    }


@cache
def versions() -> dict[str, str]:
    """Versions of Python, of this library and of the libraries that it computes with."""
    found = {"python": platform.python_version(), "sparsact": __version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def commit() -> str:
    """Short hash of the source's commit, with + where files were changed since; empty outside a repository."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():  # an installed copy may lie inside somebody else's repository
        return ""
    changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", "src", "papers/src", "benchmarks")
    return _git(root, "rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    words = ["git", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(words, capture_output=True, text=True, cwd=root, check=False)  # noqa: S603 - fixed words
    except OSError:
        return ""
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )

"""Memory in bytes: free to this process, fitted in the machine, and the most that was held.

Containers get less than their machine has, so that free memory is the least of what the machine and every control
group above the process leave.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
CGROUP: Final = Path("/sys/fs/cgroup")
SMALL: Final = 1 << 28  # bytes that are taken without asking how many are free
SHARE: Final = 0.8  # of the free memory


def has_room(nbytes: float, limit: float | None = None) -> bool:
    """Whether a number of bytes may be taken: up to a limit or, by default, 80 % of the free memory."""
    return nbytes <= SMALL or nbytes <= available_memory() if limit is None else nbytes <= limit


def available_memory() -> float:
    """Bytes that may be taken by default: 80 % of the free memory of the machine or the container."""
    return SHARE * free_memory()


def free_memory(proc: Path = PROC, cgroup: Path = CGROUP) -> int:
    """Bytes that can be taken without swapping: of the machine, and on Linux of the container.

    Parameters
    ----------
    proc, cgroup : path
        Where Linux reports memory and control groups, versions 1 and 2.

    Returns
    -------
    nbytes : int
        Never negative. On macOS free and inactive pages; where a system does not report it, half of its memory.
    """
    if sys.platform == "win32":
        return int(_windows_memory().ullAvailPhys)
    if sys.platform == "darwin":
        output = subprocess.run(["/usr/bin/vm_stat"], capture_output=True, text=True, check=True).stdout
        return vm_stat_free(output)
    try:
        machine = _field(proc / "meminfo", "MemAvailable") * 1024
    except (OSError, ValueError):
        return total_memory() // 2
    return max(0, min([machine, *_room(proc, cgroup)]))


def total_memory() -> int:
    """Bytes of memory that the machine has."""
    if sys.platform == "win32":
        return int(_windows_memory().ullTotalPhys)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def peak_memory() -> int:
    """Most bytes that this process has held at once.

    Read from /proc where there is one: on Linux ``ru_maxrss`` of a child starts at what its parent held.
    """
    if sys.platform == "win32":
        return _windows_peak()
    try:
        return _field(PROC / "self" / "status", "VmHWM") * 1024
    except (OSError, ValueError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def vm_stat_free(output: str) -> int:
    r"""Bytes of free and inactive pages, from the words of macOS's ``vm_stat``.

    >>> vm_stat_free("(page size of 16384 bytes)\nPages free: 3.\nPages active: 9.\nPages inactive: 2.\n")
    81920
    """
    page = re.search(r"page size of (\d+) bytes", output)
    pages = re.findall(r"^Pages (?:free|inactive):\s+(\d+)", output, flags=re.MULTILINE)
    if page is None or not pages:
        return total_memory() // 2
    return int(page[1]) * sum(map(int, pages))


def _field(path: Path, name: str) -> int:
    """A number of a file of lines ``name: number`` or ``name number``."""
    found = re.search(rf"^{name}:?\s+(\d+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if found is None:
        raise ValueError(f"{path} names no {name}.")
    return int(found[1])


def _room(proc: Path, cgroup: Path) -> Iterator[int]:
    """What each limited control group of this process leaves: its limit, less what is used and cannot be dropped."""
    for group, files in _groups(proc, cgroup):
        limit, usage, droppable = files
        try:
            most = int((group / limit).read_text(encoding="utf-8"))
            used = int((group / usage).read_text(encoding="utf-8")) - _field(group / "memory.stat", droppable)
        except (OSError, ValueError):  # "max", or a group that is seen from outside this mount
            continue
        yield most - used


def _groups(proc: Path, cgroup: Path) -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """Folders of the groups that bound this process's memory, innermost first, with the names of their files."""
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, files = cgroup, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = cgroup / "memory"
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        inner = Path(path.lstrip("/"))
        for group in (inner, *inner.parents) if inner.parts else (inner,):
            yield root / group, files


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    class _Status(ctypes.Structure):
        """MEMORYSTATUSEX of the Windows API."""

        _fields_ = (
            ("dwLength", wintypes.DWORD),
            ("dwMemoryLoad", wintypes.DWORD),
            ("ullTotalPhys", ctypes.c_uint64),
            ("ullAvailPhys", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 5),
        )

    class _Counters(ctypes.Structure):
        """PROCESS_MEMORY_COUNTERS of the Windows API."""

        _fields_ = (
            ("cb", wintypes.DWORD),
            ("PageFaultCount", wintypes.DWORD),
            ("PeakWorkingSetSize", ctypes.c_size_t),
            ("others", ctypes.c_size_t * 7),
        )

    def _windows_memory() -> _Status:
        status = _Status(dwLength=ctypes.sizeof(_Status))
        if not ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
            raise ctypes.WinError()
        return status

    def _windows_peak() -> int:
        counters = _Counters(cb=ctypes.sizeof(_Counters))
        kernel = ctypes.windll.kernel32
        kernel.GetCurrentProcess.restype = wintypes.HANDLE
        ask = kernel.K32GetProcessMemoryInfo
        ask.argtypes = (wintypes.HANDLE, ctypes.c_void_p, wintypes.DWORD)
        if not ask(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.cb):
            raise ctypes.WinError()
        return int(counters.PeakWorkingSetSize)

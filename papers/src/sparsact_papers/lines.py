"""Lines at the end of a file to which several processes append: each whole, or not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from sparsact.files import flush_folder, naming

if sys.platform == "win32":
    import msvcrt
    import time

    FAR = 1 << 30  # a locked byte cannot be read, so it lies where no row does

    def _lock(file: FileIO, *, shared: bool) -> None:
        while True:
            file.seek(FAR)
            with suppress(PermissionError):  # another process has it
                return msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            time.sleep(0.01)

    def _unlock(file: FileIO) -> None:
        file.seek(FAR)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: FileIO, *, shared: bool) -> None:
        with suppress(OSError):  # network file systems without locks: as good as no other process is there
            fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)

    def _unlock(file: FileIO) -> None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def locked(file: FileIO, *, shared: bool = False) -> Iterator[None]:
    """Wait for the lock of an open unbuffered file and hold it; the system takes it from a process that is killed.

    Readers share it: they wait for writers only (on Windows for each other too).
    """
    _lock(file, shared=shared)
    try:
        yield
    finally:
        _unlock(file)


def append_line(path: Path, line: bytes) -> None:
    """Add a line, which ends in a line break, to a file, and see it on the disk. A last line cut short is ended first.

    On an error the lines before are as they were; an ``OSError`` names the file.
    """
    with naming(path), _open_at_end(path) as file:
        end = file.seek(0, os.SEEK_END)
        rest = memoryview(b"\n" + line if _is_cut(file, end) else line)
        try:
            while rest:
                rest = rest[file.write(rest) :]
        except BaseException:
            with suppress(OSError):
                file.truncate(end)  # of half a line nothing
            raise
        os.fsync(file.fileno())
        if not end:
            flush_folder(path.parent)


@contextmanager
def _open_at_end(path: Path) -> Iterator[FileIO]:
    """The file, made if need be, for this process alone: not one that was put aside while it waited."""
    while True:
        with path.open("a+b", buffering=0) as file, locked(file):
            if _is_still(file, path):
                yield file
                return


def _is_still(file: FileIO, path: Path) -> bool:
    """Whether a path leads to that open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _is_cut(file: FileIO, end: int) -> bool:
    """Whether the last line of an open file has no end."""
    if not end:
        return False
    file.seek(end - 1)
    return file.read(1) != b"\n"

"""One process at a time in a file that several append to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO

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
    """Wait for the lock of an open file and hold it; the system takes it from a process that is killed.

    Parameters
    ----------
    file : FileIO
        Unbuffered. Its position may change.
    shared : bool, default=False
        For readers, who only wait for writers (on Windows for each other too).
    """
    _lock(file, shared=shared)
    try:
        yield
    finally:
        _unlock(file)

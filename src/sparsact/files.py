"""Files written whole or not at all: a reader, or a process that was killed meanwhile, never leaves half of one."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

FULL: Final = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
SUFFIX: Final = ".unfinished"
# Seconds without a write, after which an unfinished file belongs to a process that was killed.
ABANDONED: Final = 86_400.0


def write(path: str | Path, content: bytes | str) -> None:
    """Write a file; an existing one is replaced whole or, on any failure, not at all.

    Parameters
    ----------
    path : path-like
        See :func:`replacing`.
    content : bytes or str
        Text is written in UTF-8, its line ends as they are.
    """
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write into, that takes the place of ``path`` when the block ends, and goes away when it fails.

    The new content is in a file ``.NAME.0123abcd.unfinished`` of the same folder until it is on the disk; then it is
    renamed. A process that is killed leaves ``path`` as it was, and at most that file: the next write of the same
    ``path`` removes it once it is a day old. One flush of the file and one of the folder to the disk.

    Parameters
    ----------
    path : path-like
        A link is followed, and stays a link. An existing file hands on its permissions; a new one gets them from the
        process's umask. Devices, pipes, stdout and stderr are written to as they are.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.
    OSError
        If the file cannot be written, with its name; the disk may be full.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, replacing(Path(folder) / "x.txt") as file:
    ...     _ = file.write(b"whole")
    ...     print([path.suffix for path in Path(folder).iterdir()])
    ['.unfinished']
    """
    try:
        known = os.stat(path)  # noqa: PTH116 - not resolved: /dev/stdout leads to where no path does
    except FileNotFoundError:
        known = None
    with naming(path):
        if known is not None and _is_a_stream(known):
            with open(path, "wb") as stream:  # noqa: PTH123
                yield stream
        else:
            with _beside(Path(os.path.realpath(path)), known) as file:
                yield file


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Give errors this file in place of the unfinished one, or of none, and a full disk its remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL and error.filename is None:
            remedy = f"{error.strerror or 'no space'}; free some space and run this again"
            raise OSError(error.errno, remedy, str(path)) from error
        if str(error.filename).endswith(SUFFIX):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def flush_folder(folder: Path) -> None:
    """Write to the disk which files a folder has, where folders can be flushed."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _beside(path: Path, known: os.stat_result | None) -> Iterator[BinaryIO]:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} of {path.name} does not exist; make it first.")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if known is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    _sweep(path)
    unfinished = path.with_name(_start(path) + secrets.token_hex(4) + SUFFIX)
    try:
        with unfinished.open("xb") as file:  # the permissions of the umask, which a threaded program cannot read safely
            yield file
            file.flush()
            os.fsync(file.fileno())
        if known is not None:
            unfinished.chmod(stat.S_IMODE(known.st_mode))
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    flush_folder(path.parent)


def _is_a_stream(known: os.stat_result) -> bool:
    """Whether it is no regular file, or one that the process writes its answers to."""
    if not stat.S_ISREG(known.st_mode):
        return not stat.S_ISDIR(known.st_mode)
    for standard in (1, 2):
        with suppress(OSError):  # it may be closed
            if os.path.samestat(os.fstat(standard), known):
                return True
    return False


def _start(path: Path) -> str:
    """Start of the names of its unfinished files; short, since a name may have 255 bytes."""
    return f".{path.name[:50]}."


def _sweep(path: Path) -> None:
    """Remove what processes that were killed have left of this file."""
    start, before = _start(path), time.time() - ABANDONED
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.name.startswith(start) and entry.name.endswith(SUFFIX) and entry.stat().st_mtime < before:
                Path(entry).unlink()

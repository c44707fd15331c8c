"""Files that a command will write: checked before the work, not after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_writable(path: Path | None, suffixes: tuple[str, ...] = ()) -> None:
    """Raise if a file cannot be written there.

    Raises
    ------
    ValueError
        If its folder is missing, it is a folder itself, it may not be written, or its name has the wrong end.
    """
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(f"cannot write {str(path)!r}: its name must end in {' or '.join(suffixes)}.")
    if path.is_dir():
        raise ValueError(f"cannot write {str(path)!r}: it is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}; make it first.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"cannot write {str(path)!r}: permission denied; choose another place.")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the system name the file that the user knows, and not a temporary one, or none."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error

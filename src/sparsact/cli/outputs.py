"""Files that a command will write: checked before the work, not after it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

REPORT_SUFFIXES = (".html", ".htm")
REPORT_NEEDS = ("jinja2", "markupsafe", "matplotlib")  # the extra `report`


def check_report(path: Path | None) -> None:
    """Raise if a report cannot be written there, or not at all."""
    if path is None:
        return
    check_writable(path, REPORT_SUFFIXES)
    missing = [name for name in REPORT_NEEDS if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"a report needs {', '.join(missing)}, not installed here; install sparsact[report] "
            "(pip install 'sparsact[report]')."
        )


def check_writable(path: Path | None, suffixes: tuple[str, ...] = ()) -> None:
    """Raise if a file cannot be written there."""
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


def check_apart(written: Mapping[str, Path | None], read: Iterable[Path] = ()) -> None:
    """Raise if a file that is written, by the name of its option, is also read, or written by another option."""
    taken = {os.path.realpath(path): "is read" for path in read}
    for option, path in written.items():
        if path is None or (path.exists() and not path.is_file()):
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise ValueError(f"cannot write {str(path)!r} by {option}: it {taken[place]} too; name another file.")
        taken[place] = f"is written by {option}"

"""The ``sparsact`` command: one file a command. Bad input ends with status 2 and one line on stderr."""

from __future__ import annotations

import os
import sys
from codecs import backslashreplace_errors, register_error
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sparsact.extras import EXTRAS, missing
from sparsact.files import FULL

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["main", "run"]

INTERRUPTED: Final = 130
PLAIN: Final = {"²": "2", "×": "x", "−": "-", "–": "-", "≤": "<=", "≥": ">=", "…": "...", "·": ".", "±": "+-", "µ": "u"}


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status. ``SPARSACT_DEBUG=1`` lets errors pass, with their traceback."""

    def load() -> Typer:
        from sparsact.cli.app import app

        return app

    return run(load, "sparsact", (sys.argv[1:] if args is None else args) or ["--help"])


def run(load: Callable[[], Typer], name: str, args: Sequence[str] | None = None) -> int:
    """Exit status of an application of this name, with the errors and signals of ``sparsact``."""
    from sparsact.cli.terminal import as_options, shown
    from sparsact.environment import Interrupted

    register_error("plainly", _plainly)
    _open_streams()
    words = list(sys.argv[1:] if args is None else args)
    try:
        from typer.main import get_command

        status = get_command(load()).main(args=words, prog_name=name, standalone_mode=False, obj=words)
        if status == INTERRUPTED:  # typer has made this of Ctrl-C
            raise KeyboardInterrupt
        _flush()
    except BrokenPipeError:  # whoever read the answer has seen enough: sparsact ... | head
        return 1
    except Exception as error:
        if os.environ.get("SPARSACT_DEBUG") or not _is_for_the_user(error):
            raise
        print(f"{name}: error: {shown(as_options(_line(error)))}", file=sys.stderr)
        with suppress(OSError):
            _flush()
        return 2
    except Interrupted as stop:
        print(f"{name}: {stop}", file=sys.stderr)
        return stop.status
    except KeyboardInterrupt:
        print(f"{name}: stopped.", file=sys.stderr)
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def _open_streams() -> None:
    """Give the command streams that take every character: a closed one goes nowhere, others spell what they lack."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 # as long as the process
        elif isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="plainly")


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that a stream cannot encode: the library's own by ASCII, others by their numbers."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign = error.object[error.start]
    error.end = error.start + 1
    return (PLAIN[sign], error.end) if sign in PLAIN else backslashreplace_errors(error)


def _flush() -> None:
    """Write what is left of the answer; what cannot be written is not tried again, with a traceback, as Python ends."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        raise


def _is_for_the_user(error: Exception) -> bool:
    """Whether bad input or a missing extra explains it: Arrow raises ValueErrors or OSErrors; typer formats its own."""
    if isinstance(error, ImportError):
        return error.name in EXTRAS or error.name is None  # None: raised by this library, with its own words
    return isinstance(error, ValueError | OSError | MemoryError) or hasattr(error, "format_message")


def _line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, OSError) and error.errno in FULL:
        return f"{error.strerror}; free some space and run this again."
    if isinstance(error, ImportError) and error.name in EXTRAS:
        return missing("this", error.name)
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    return " ".join(message.replace("Value error, ", "").split()) or type(error).__name__

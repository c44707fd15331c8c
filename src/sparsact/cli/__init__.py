"""The ``sparsact`` command: one file a command. Bad input ends with status 2 and one line on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status. ``SPARSACT_DEBUG=1`` lets errors pass, with their traceback."""
    from typer.main import get_command

    from sparsact.cli.app import app
    from sparsact.cli.terminal import shown

    words = list(sys.argv[1:] if args is None else args)
    try:
        status = get_command(app).main(args=words or ["--help"], prog_name="sparsact", standalone_mode=False, obj=words)
    except Exception as error:
        if os.environ.get("SPARSACT_DEBUG") or not _is_for_the_user(error):
            raise
        print(f"sparsact: error: {shown(_line(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("sparsact: stopped.", file=sys.stderr)
        return 130
    return status if isinstance(status, int) else 0


def _is_for_the_user(error: Exception) -> bool:
    """Whether bad input explains it: Arrow's errors are ValueErrors or OSErrors, those of typer format themselves."""
    return isinstance(error, ValueError | OSError | MemoryError) or hasattr(error, "format_message")


def _line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    return " ".join(message.replace("Value error, ", "").split()) or type(error).__name__

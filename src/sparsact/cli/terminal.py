"""What a person sees on a terminal: safe names, versions, and a clean end on Ctrl-C or SIGTERM."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Control characters but line feeds, which move and colour and erase; separators of lines; turns of the direction of
# writing; halves of characters, which no encoding holds.
_OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: object) -> str:
    r"""A text in which whatever a terminal would obey is spelled out.

    >>> shown("\x1b[2Jred\u202e")
    '\\x1b[2Jred\\u202e'
    """
    return _OBEYED.sub(lambda match: ascii(match[0])[1:-1], str(text))


def say(text: object) -> None:
    """Write a line, or several, for a person."""
    print(shown(text))


def terminal() -> Console:
    """Where tables for a person go; brackets and colons in names are brackets and colons there."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


class Stopped(BaseException):
    """Not an Exception: no handler of errors may take it for one.

    ``status`` is what shells expect of a process that a signal ended.
    """

    def __init__(self, signal: int, where: str = "") -> None:
        super().__init__(f"stopped: {where}" if where else "stopped.")  # `where` may end with a command to be copied
        self.status = 128 + signal


def versions() -> tuple[tuple[str, str], ...]:
    """Versions that decide the result."""
    from sparsact import __version__
    from sparsact.kernels import description

    libraries = ((name, version(name)) for name in ("numpy", "scipy", "scikit-learn", "pyarrow"))
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return (("sparsact", __version__), ("kernels", description()), ("Python", python), *libraries)


def command_line(words: Sequence[str]) -> str:
    """The command as typed, with the folders of absolute paths left out.

    >>> command_line(["fit", "/tables/my table.csv", "--out=/tmp/m.sparsact"])
    "sparsact fit 'my table.csv' --out=m.sparsact"
    """
    return shlex.join(["sparsact", *map(_without_folder, words)])


def _without_folder(word: str) -> str:
    option, equals, value = word.partition("=")
    if option.startswith("--") and equals:
        return f"{option}={_without_folder(value)}"
    return PurePath(word).name if PurePath(word).is_absolute() else word

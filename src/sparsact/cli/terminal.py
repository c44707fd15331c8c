"""What a person sees on a terminal: names without control characters, tables, the command as typed."""

from __future__ import annotations

import re
import shlex
from ast import literal_eval
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from sparsact.fit.options import OPTION_NAMES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Control characters but line feeds, which move and colour and erase; separators of lines; turns of the direction of
# writing; halves of characters, which no encoding holds.
_OBEYED: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(text: object) -> str:
    r"""The text with everything spelled out that a terminal would obey.

    >>> shown("\x1b[2Jred\u202e")
    '\\x1b[2Jred\\u202e'
    """
    return _OBEYED.sub(lambda match: ascii(match[0])[1:-1], str(text))


_TEXT: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""  # of Python
_ARGUMENTS: Final = re.compile(rf"\b({'|'.join((*OPTION_NAMES, 'measured'))})=(?:(True)|(False)|({_TEXT}))")


def as_options(text: str) -> str:
    r"""The text with arguments of :func:`sparsact.fit_table` written as options of ``sparsact fit``.

    >>> as_options("pass drop_missing=True, log_target=False or ignore='free text'")
    "pass --drop-missing, --no-log-target or --ignore 'free text'"
    """

    def option(match: re.Match[str]) -> str:
        name, (yes, no, value) = match[1].replace("_", "-"), match.groups()[1:]
        return f"--{name}" if yes else f"--no-{name}" if no else f"--{name} {shlex.quote(literal_eval(value))}"

    return _ARGUMENTS.sub(option, text.replace("see to_frame()", "add --out FILE, then sparsact inspect FILE"))


def say(text: object) -> None:
    """Write a line, or several, for a person."""
    print(shown(text))


def terminal() -> Console:
    """Where tables for a person go; brackets and colons in names are brackets and colons there."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def grid(words: Sequence[str], numbers: Sequence[str], title: str | None = None) -> Table:
    """A table without rows: columns of words, then columns of numbers."""
    from rich.table import Table

    table = Table(*words, title=None if title is None else shown(title), title_justify="left")
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


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

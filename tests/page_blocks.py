"""Blocks of code and output on a page, and which of them no test would run."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from textwrap import dedent

DIRECTIVES = "code-block|code|sourcecode|parsed-literal|literalinclude|program-output|prompt"
DIRECTIVE = re.compile(rf"^( *)\.\. (?:{DIRECTIVES})::[ ]*(\S*)\n((?:\1 +:.*\n)*)((?:\1 +.*\n|\s*\n)+)", re.MULTILINE)
LITERAL = re.compile(r"^( *)(?!\.\. |>>>|\.\.\. )\S.*::\n\n((?:\1 +.*\n|\s*\n)+)", re.MULTILINE)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^\.\. code-block:: console\n\n((?:(?:   .*)?\n)+)", re.MULTILINE)
PROGRAMS = {"git", "make", "pip", "python", "sparsact", "zcat"}  # of blocks of commands, which show no output


def sessions(page: str) -> Iterator[tuple[str, str]]:
    """Each command of the console blocks, ``$ sparsact ...``, with the output that the page shows."""
    for body in CONSOLE.findall(page):
        for part in re.split(r"^\$ ", dedent(body), flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output.rstrip() + "\n"


def of_commands(body: str) -> bool:
    lines = [shlex.split(line, comments=True) for line in body.replace("\\\n", " ").splitlines()]
    return all(words[0] in PROGRAMS for words in lines if words)


def is_python(body: str) -> bool:
    try:
        ast.parse(dedent(body))
    except SyntaxError:
        return False
    return True


def not_run(page: str) -> Iterator[str]:
    """Blocks of a page in reStructuredText that may show output and that no test runs.

    Output stands behind the prompt ``>>>`` or in a console block, whose sessions a test runs. Python without a prompt
    and blocks of commands show none.
    """
    consoles = {dedent(body).strip() for body in CONSOLE.findall(page)}
    for _, language, _, body in DIRECTIVE.findall(page):
        text = dedent(body).strip()
        runs = {
            "console": text in consoles and text.startswith("$ "),
            "python": is_python(body),
            "sh": of_commands(text),
            "bibtex": text.startswith("@"),
        }
        if not runs.get(language, False):
            yield text
    yield from (dedent(body).strip() for _, body in LITERAL.findall(page))


def not_run_in_markdown(page: str) -> Iterator[str]:
    """The same for Markdown; text behind a block of Python or of commands is output that a test compares."""
    before = ""
    for language, body in FENCED.findall(page):
        runs = {"python": is_python(body), "sh": of_commands(body), "text": before in ("python", "sh")}
        if not runs.get(language, False):
            yield body.strip()
        before = language

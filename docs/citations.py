"""Keep citations local to their docstring, because Sphinx has one [A] for all pages; keep initials as they are."""

from __future__ import annotations

import re
import sys
from typing import Any

DEFINED = re.compile(r"^ *\.\. \[([A-Z]+|\d+)\] (.*(?:\n {3,}\S.*)*)", re.MULTILINE)
SECTION = "\n\nReferences\n----------\n"
INITIAL = re.compile(r"^( *(?:(?:\.\. \[\w+\]|:\w+ [^:\n]+:)\s+)?)(?=[A-Za-z]\.(?: |$))", re.MULTILINE)


def initials(app: Any, name: str, source: list[str]) -> None:
    """Keep an author's initial, or a symbol with its full stop, from becoming the number of a list, "A., B., C."."""
    source[0] = INITIAL.sub(r"\1\\", source[0])


def local_citations(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Turn citations into plain text, and add entries that only the docstring of the module defines."""
    text = INITIAL.sub(r"\1\\", "\n".join(lines))
    cited = set(re.findall(r"\[([A-Z]+|\d+)\]_", text))
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    here, above = dict(DEFINED.findall(text)), dict(DEFINED.findall((module and module.__doc__) or ""))
    missing = [entry(label, above[label]) for label in sorted((cited - here.keys()) & above.keys())]
    text = DEFINED.sub(lambda match: entry(*match.groups()), text)
    text = re.sub(r"\[([A-Z]+|\d+)\]_", r"[\1]", text)
    if missing:
        head, _, tail = text.partition(SECTION)
        text = head + SECTION + "\n".join([*missing, tail])
    lines[:] = [*text.splitlines(), ""]


def entry(label: str, cited: str) -> str:
    """A citation as an item of a list, on one line: numpydoc takes other forms for citations of its own."""
    return f"- [{label}] {' '.join(cited.split())}"

"""The prose of a page: reStructuredText or Markdown without code, formulas, output and inserted figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

CODE = ("code-block", "math", "doctest", "testcode", "include", "literalinclude", "raw", "role", "image", "plot")
INLINE = re.compile(r"``.*?``|:math:`.*?`|:given:`.*?`|\|[a-z][^|\n]*?\||`[^`]*?`_|\]\([^)]*\)|`[^`]*`", re.DOTALL)
UNIT = (
    r"times(?= (?:as|the|less|more|faster|slower|fewer|smaller|larger))|x(?= as\b)|%|ms|milliseconds?|us|µs"
    r"|microseconds?|s(?! n)|seconds?|minutes?|hours?|days?|GB|MB|KB|kB|nats?"
)
# A number with a unit that measurements have, or behind the name of a score.
MEASURED = re.compile(
    rf"(?<![\w.,-])\d[\d,.]*(?:(?: to | and |-)\d[\d,.]*)?\s(?:{UNIT})(?!\w)|\b(?:RMSE|R²|R2)(?: of)? -?0?\.\d+"
)


def prose(text: str) -> str:
    """The page with code, formulas, output and inserted figures as blanks; lines stay where they are.

    A block under ``.. class:: given`` is left out, like what the role ``:given:`` marks: goals, settings, theorems.
    """
    kept, indent, in_code, in_example, given = [], 0, False, False, False
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip())
        if in_code and line.strip() and depth <= indent:
            in_code = False
        if in_example and not line.strip():
            in_example = False
        directive = re.match(r"\s*\.\. (\S+?)::", line)
        starts = directive and (directive[1] in CODE or given)
        if line.strip():
            given = line.strip() == ".. class:: given"
        if line.lstrip().startswith(">>>"):
            in_example = True
        kept.append("" if in_code or in_example or starts or line.lstrip().startswith("|") else line)
        if starts or (not in_code and line.rstrip().endswith("::") and not directive):
            in_code, indent = True, depth
    page = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), "\n".join(kept), flags=re.DOTALL)
    return INLINE.sub(lambda one: re.sub(r"[^\n]", " ", one[0]), page)


def measured_in(text: str) -> Iterator[tuple[int, str]]:
    """(line, words) of every number in the prose that reads as measured."""
    page = prose(text)
    for found in MEASURED.finditer(page):
        yield page[: found.start()].count("\n") + 1, " ".join(found[0].split())

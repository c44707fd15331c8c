"""Measured figures in docstrings and comments of a source file, and the rows that they name as their source.

A figure needs ``(results/FILE.jsonl, benchmark NAME)`` in its paragraph. A quantity that follows from sizes is written
as a formula, in a literal or as mathematics, which the search leaves out. Orders of magnitude such as "some seconds",
which say what a constant is for, have no number.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prose import prose

WORDS = "two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|sixty|hundred"
NUMBER = rf"(?:(?<![\w.^])\.?\d(?:[\d,.]*\d)?(?:e\d+)?|\b(?:{WORDS})\b)"
TIME = r"ns|nanoseconds?|us|µs|microseconds?|ms|milliseconds?|s(?! n| [<>=])|seconds?|minutes?|hours?"
SIZE = r"[kKMGT]i?B|(?:kilo|mega|giga)bytes?"
SPEED = r"fast|faster|long|longer|slow|slower|slowly|quick|quicker|quickly|the time"
FIGURE = re.compile(
    rf"{NUMBER}(?:(?: to | or |-){NUMBER})? (?:{TIME}|{SIZE})(?!\w)"
    rf"|{NUMBER} (?:[\w-]+ ){{1,3}}a second\b"
    rf"|(?:{NUMBER} (?:times|%)|\b(?:twice|half|a third|a quarter))(?: as| of)? (?:{SPEED})\b"
    rf"|{NUMBER} (?:times|%)(?: of)? the (?:memory|bytes)\b|\berrors? of {NUMBER} %|\b(?:RMSE|R²|R2)(?: of)? -?0?\.\d+"
)
SOURCE = re.compile(r"\(results/(\w+)\.jsonl, benchmark (\w+)\)")


class Paragraph(NamedTuple):
    line: int
    text: str

    @property
    def figures(self) -> list[str]:
        """Words of every figure in the prose."""
        return [" ".join(found[0].split()) for found in FIGURE.finditer(" ".join(prose(self.text).split()))]

    @property
    def sources(self) -> list[tuple[str, str]]:
        """(file, benchmark) of the rows that it names."""
        return SOURCE.findall(" ".join(self.text.split()))


def paragraphs(path: Path) -> Iterator[Paragraph]:
    """Paragraphs of all docstrings and comments; comments on lines that follow each other are one paragraph."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ()
        comments = [(token.start[0], token.string[1:]) for token in tokens if token.type == tokenize.COMMENT]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                for part in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                    yield Paragraph(getattr(node, "lineno", 1), part)
    else:
        lines = enumerate(text.split("\n"), 1)
        comments = [(number, line.partition("//")[2]) for number, line in lines if "//" in line]
    last, block = 0, Paragraph(0, "")
    for number, words in comments:
        if number == last + 1:
            block = Paragraph(block.line, f"{block.text}\n{words.strip()}")
        else:
            yield block
            block = Paragraph(number, words.strip())
        last = number
    yield block

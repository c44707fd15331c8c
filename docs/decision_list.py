"""The decision records by subject, from their first headings and ``docs/decisions/subjects.toml``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parent / "decisions"
SOURCE = "https://github.com/sparsact/sparsact/blob/main/docs/decisions"  # the pages are no part of this documentation
NUMBER = re.compile(r"^\d+[.:]?\s+")  # older records repeat their number in the heading


def records() -> dict[int, Path]:
    """The file of each record, by its number."""
    return {int(path.name[:4]): path for path in sorted(FOLDER.glob("[0-9]*.md"))}


def subjects() -> dict[str, list[int]]:
    """The numbers of the records of each subject."""
    return tomllib.loads((FOLDER / "subjects.toml").read_text(encoding="utf-8"))


def title(path: Path) -> str:
    """The first heading of a record, without its number and marks of code."""
    heading = NUMBER.sub("", path.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# "))
    return heading.replace("`", "")


def decision_list(path: Path) -> None:
    """Write a section for each subject, to be included by ``decisions.rst``."""
    found, page = records(), []
    for subject, numbers in subjects().items():
        page += [subject, "-" * len(subject), ""]
        page += [f"- `{number:04} {title(found[number])} <{SOURCE}/{found[number].name}>`__" for number in numbers]
        page.append("")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")

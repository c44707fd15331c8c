"""The statements of both papers with their names, tests and experiments: from data to definition lists."""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from verdict_table import plain

PAPERS = ("a", "b")


@dataclass(frozen=True)
class Statement:
    """One statement of a paper.

    Attributes
    ----------
    label, says, mended
        Its number or place, a gloss in our words, and how its text is mended, empty where it stands as printed.
    names
        Public names that hold it, below :mod:`sparsact` or ``sparsact_papers``.
    tests
        ``"file::function"``.
    experiments
        Names for ``sparsact reproduce --only``.
    absent
        Why there is no name, empty where there is one.
    """

    label: str
    says: str
    names: tuple[str, ...]
    tests: tuple[str, ...]
    experiments: tuple[str, ...]
    mended: str = ""
    absent: str = ""


def statements(paper: str) -> tuple[Statement, ...]:
    """All statements of paper ``"a"`` or ``"b"``, in the order of its text."""
    read = tomllib.loads((Path(__file__).parent / "papers" / f"paper_{paper}.toml").read_text(encoding="utf-8"))
    return tuple(
        Statement(**{key: tuple(value) if isinstance(value, list) else value for key, value in one.items()})
        for one in read["statement"]
    )


def whole(name: str) -> str:
    """The whole of a name below :mod:`sparsact`, or of one below ``sparsact_papers``, which is whole."""
    return name if name.startswith("sparsact_papers.") else f"sparsact.{name}"


def named(name: str) -> Any:
    """What a name stands for."""
    module, _, last = whole(name).rpartition(".")
    return getattr(import_module(module), last)


def theory_map(folder: Path) -> None:
    """Write the list of each paper into ``folder``, to be included by ``theory.rst``."""
    folder.mkdir(exist_ok=True)
    for paper in PAPERS:
        lines = [".. rst-class:: statements", ""]
        lines += [line for statement in statements(paper) for line in _entry(statement)]
        (folder / f"theory_map_{paper}.inc").write_text("\n".join([*lines, ""]), encoding="utf-8")


def _entry(one: Statement) -> list[str]:
    """One term of a definition list, a line for each thing that is said of it."""
    said = [plain(one.says)]
    said += [f"*Mended:* {plain(one.mended)}"] * bool(one.mended)
    said += [", ".join(f":obj:`~{whole(name)}`" for name in one.names)] * bool(one.names)
    said += [f"*Not implemented.* {plain(one.absent)}"] * bool(one.absent)
    said += [f"Tests: {_listed(one.tests)}"] * bool(one.tests)
    said += [f"Measured: {', '.join(f'``{name}``' for name in one.experiments)}"] * bool(one.experiments)
    return [plain(one.label), *(f"  | {line}" for line in said), ""]


def _listed(tests: tuple[str, ...]) -> str:
    """How many tests each file has."""
    counted = Counter(test.partition("::")[0] for test in tests)
    return ", ".join(f"{count} in ``{file}``" for file, count in counted.items())

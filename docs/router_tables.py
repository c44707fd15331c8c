"""Tables for who builds with routers: which router to take, and faults elsewhere with their tests."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from sparsact import routing

HERE = Path(__file__).parent
COLUMNS = 512
CAUSAL = {
    "itself": "yes",
    "earlier": "yes, but the capacity grows with the number of inputs",
    "later": "no, it reads later inputs",
}


def routers() -> list[dict[str, Any]]:
    """A record of each router, in the order of the table."""
    found: list[dict[str, Any]] = _read("routers")["router"]
    return found


def faults(name: str) -> list[dict[str, Any]]:
    """A record of each fault: what goes wrong, where that is known from, what happens here, and ``file::test``."""
    found: list[dict[str, Any]] = _read(name)["fault"]
    return found


def router_table(path: Path) -> None:
    """Write which router suits which model: ``routed.rst`` includes it."""
    _write(path, [(["router"], ["what a model must know"]), *map(_router, routers())])


def fault_table(name: str, path: Path) -> None:
    """Write faults and the tests against them: ``feed_forward.rst`` and ``lsh_updates.rst`` include one each."""
    _write(path, [(["fault"], ["here"]), *map(_fault, faults(name))])


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


def _write(path: Path, rows: list[tuple[list[str], list[str]]]) -> None:
    """A table of two columns, which a telephone shows whole; each cell a paragraph a line."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 45 55", "   :class: paired", ""]
    for left, right in rows:
        for mark, cell in (("* -", left), ("  -", right)):
            lines += [f"   {'   ' if n else mark} | {line}" for n, line in enumerate(cell)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _router(one: dict[str, Any]) -> tuple[list[str], list[str]]:
    columns, router = one.get("columns", COLUMNS), routing.from_dict(one["record"])
    learns = ", ".join(f"``{name}``" for name in router.trainable) or "nothing"
    causal = [CAUSAL[one["reads"]], *(f"{case['when']}: {CAUSAL[case['reads']]}" for case in one.get("case", ()))]
    return (
        [f":obj:`~sparsact.routing.{one['kind']}`", f"Chooses {one['chooses']}.", f"*{one['source']}*"],
        [
            f"Take it {one['take']}.",
            f"**Needs** {one['needs']}.",
            f"**Causal**: {'; '.join(causal)}.",
            f"**Learns** {learns}. **Balance**: {one['balance']}.",
            f"**Operations**: {router.flops(columns):,}, for inputs of {columns} number{'s' * (columns > 1)}.",
        ],
    )


def _fault(one: dict[str, Any]) -> tuple[list[str], list[str]]:
    left = [one["fault"], *([f"Source: {one['known']}."] if one["known"] else [])]
    return left, [one["here"], *(f"``{test.rpartition('::')[2]}``" for test in one["tests"])]

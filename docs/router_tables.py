"""Tables for who builds with routers: which router to take, and faults of mixtures of experts with their tests."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from routed_table import write_cells

from sparsact import routing

HERE = Path(__file__).parent
COLUMNS = 512
HEAD = (
    "router",
    "chooses",
    "take it",
    "needs",
    "causal",
    "learns",
    "balance",
    f"operations for one of 64 units at {COLUMNS} columns",
    "source",
)
CAUSAL = {
    "itself": "yes",
    "earlier": "yes, but room grows with the number of inputs",
    "later": "no, it reads later inputs",
}
FAULT_HEAD = ("fault", "known from", "what sparsact does", "tests")


def routers() -> list[dict[str, Any]]:
    """A record of each router, in the order of the table."""
    found: list[dict[str, Any]] = _read("routers")["router"]
    return found


def faults() -> list[dict[str, Any]]:
    """A record of each fault: what goes wrong, where that is known from, what happens here, and ``file::test``."""
    found: list[dict[str, Any]] = _read("mixture_faults")["fault"]
    return found


def router_table(path: Path) -> None:
    """Write which router suits which model: ``routed.rst`` includes it."""
    write_cells(path, [HEAD, *map(_line, routers())])


def fault_table(path: Path) -> None:
    """Write the faults and the tests against them: ``feed_forward.rst`` includes it."""
    lines = [(one["fault"], one["known"] or "–", one["here"], ", ".join(map(_test, one["tests"]))) for one in faults()]
    write_cells(path, [FAULT_HEAD, *lines])


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


def _test(test: str) -> str:
    return f"``{test.rpartition('::')[2]}``"


def _line(one: dict[str, Any]) -> tuple[str, ...]:
    columns = one.get("columns", COLUMNS)
    router = routing.from_dict(one["record"])
    at = "" if columns == COLUMNS else f" (at {columns})"
    causal = [CAUSAL[one["reads"]], *(f"{case['when']}: {CAUSAL[case['reads']]}" for case in one.get("case", ()))]
    return (
        f":obj:`~sparsact.routing.{one['kind']}`",
        one["chooses"],
        one["take"],
        one["needs"],
        "; ".join(causal),
        ", ".join(f"``{name}``" for name in router.trainable) or "nothing",
        one["balance"],
        f"{router.flops(columns):,}{at}",
        one["source"],
    )

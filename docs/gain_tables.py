"""Tables of what sparsity gains in trained models, and the public families by the origin of their zeros."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from list_table import list_table

from benchmarks.table.cells import starting
from benchmarks.table.kept import kept

SHARES = (1, 3, 10, 30, 100)  # % of the units that are active
SIZE = re.compile(r"\d+ x (\d+)-(\d+) (float32|bfloat16) (\d+)% active")
INT8 = re.compile(r"\d+ x \d+-\d+, (\d+)% active")
MODELS = "models: "
LAYERS = "layers with mostly zero inputs"


def sparsify_gains(path: Path) -> None:
    """Write what ``auto`` gains by size and density of a block, to be included by ``my_models.rst``."""
    gains: dict[str, dict[int, float]] = defaultdict(dict)
    for work, row in starting(kept(), "auto (").items():
        if found := SIZE.fullmatch(work):
            inputs, units, dtype, share = found.groups()
            gains[f"{int(inputs):,}, {int(units):,}, {dtype}"][int(share)] = row["value"]
    lines = [[size, *(f"{found[share]:.1f}" for share in SHARES)] for size, found in gains.items()]
    _write(path, [["inputs, units", *(f"{share}\N{NO-BREAK SPACE}%" for share in SHARES)], *lines])


def int8_gains(path: Path) -> None:
    """Write what int8 weights gain with and without zeros, to be included by ``my_models.rst``."""
    rows = kept()
    lines = [["units on", "all weights read", "zeros left out"]]
    for work, row in starting(rows, "sparse int8, times as fast as float32").items():
        if found := INT8.fullmatch(work):
            dense = rows[work, "float32, us"]["value"] / rows[work, "own dense int8, us"]["value"]
            lines.append([f"{found[1]} %", f"{dense:.1f}", f"{row['value']:.1f}"])
    _write(path, lines)


def _write(path: Path, lines: list[list[str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*list_table(lines), ""]), encoding="utf-8")


def public_families(path: Path) -> None:
    """Write the families below the origin of their zeros, to be included by ``my_models.rst``."""
    rows = kept()
    groups: dict[str, dict[str, float | None]] = defaultdict(dict)
    for name in (work for work, quantity in rows if quantity == LAYERS and work.startswith(MODELS)):
        family, _, origin = name.removeprefix(MODELS).rpartition(": ")
        bound = rows.get((name, "a block at most at 3%"))
        dense = bound is None and not origin.startswith("none")
        head = origin.removeprefix("none (").rstrip(")") + (", read by convolutions alone" if dense else "")
        groups[head][re.sub(": (.*)", r" (\1)", family)] = bound["value"] if bound else None
    page: list[str] = []
    for head, families in groups.items():
        page += [head[0].upper() + head[1:], f"  {_gain(families)}: {'; '.join(families)}.", ""]
    layers, missed = (
        sum(row["value"] for (work, quantity), row in rows.items() if work.startswith(MODELS) and quantity == each)
        for each in (LAYERS, "mostly zero layers that measure misses at 3%")
    )
    page += [
        f"Hooks found {layers:.0f} layers with inputs that are mostly zero; ``measure`` misses {missed:.0f} of these.",
        "",
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")


def _gain(families: dict[str, float | None]) -> str:
    """What a block of these families gains at most."""
    bounds = sorted({f"{bound:.1f}" for bound in families.values() if bound}, key=float)
    if not bounds:
        return "No gain from zeros"
    return f"A block is at most {' to '.join(dict.fromkeys((bounds[0], bounds[-1])))} times as fast"

"""Run benchmarks one after another, each in an interpreter of its own, so that none meets the memory of another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.registry import BENCHMARKS, Benchmark
from benchmarks.table.cells import Rows


def chosen(names: Sequence[str]) -> list[Benchmark]:
    """Those of the names, or all when there are none.

    Raises
    ------
    ValueError
        If a name is no benchmark's, or if one that was named lacks a package.
    """
    for name in names:
        if name not in BENCHMARKS:
            raise ValueError(f"{name!r} is no benchmark; choose of {', '.join(BENCHMARKS)}.")
        if missing := BENCHMARKS[name].missing():
            raise ValueError(f"{name} is measured beside or with {' and '.join(missing)}: install that first.")
    return [BENCHMARKS[name] for name in names or BENCHMARKS]


def run(benchmark: Benchmark, rows: Path, *, quick: bool, quiet: bool) -> int:
    """Exit status of one benchmark: 0 when every judged bar was met; its rows are appended to a file."""
    command = [sys.executable, "-m", benchmark.module, "--out", str(rows.resolve()), *["--quick"] * quick]
    folder = Path(__file__).parents[1]  # that of this package: Python finds it there
    return subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL if quiet else None, check=False).returncode


def ratios(rows: Rows) -> Iterator[tuple[str, str, str, str]]:
    """(work, figure, ratio with its spread, verdict) of every row that compares two sides."""
    for (work, quantity), row in rows.items():
        if row["unit"] != "x":
            continue
        spread = f" [{min(row['samples']):.3g} ... {max(row['samples']):.3g}]" if len(row["samples"]) > 1 else ""
        yield work, quantity, f"{row['value']:.3g}{spread}", {True: "met", False: "MISSED", None: ""}[row["met"]]

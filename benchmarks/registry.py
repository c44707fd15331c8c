"""Every benchmark, in the order in which they run, the packages that are its peers or that it is made of, its run."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from benchmarks.table.cells import Rows


@dataclass(frozen=True)
class Benchmark:
    """A module of this package that measures.

    Attributes
    ----------
    name, takes : str
        Its name, which is its module's, and the time of a run.
    needs : tuple of str
        Modules, beside what the library itself needs, without which there is nothing to measure.
    """

    name: str
    takes: str
    needs: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Where to import it from."""
        return f"benchmarks.{self.name}"

    @property
    def goal(self) -> str:
        """The first line of its documentation; the module is read, not run."""
        text = Path(__file__).with_name(f"{self.name}.py").read_text(encoding="utf-8")
        return (ast.get_docstring(ast.parse(text)) or "").split("\n", 1)[0].replace("``", "")

    def missing(self) -> tuple[str, ...]:
        """What it needs and is not installed."""
        return tuple(module for module in self.needs if find_spec(module) is None)


BENCHMARKS: Final = {
    name: Benchmark(name, takes, needs)
    for name, takes, needs in (
        ("walsh_hadamard", "2 min", ("fht_cpu",)),
        ("brightness", "", ()),
        ("least_squares", "3 min", ()),
        ("large", "3 min", ()),
        ("cross_validation", "2 min", ()),
        ("enumeration", "10 s", ()),
        ("gather", "3 min", ("torch",)),
        ("screen", "5 min", ("torch",)),
        ("largest", "", ("torch",)),
        ("trained", "5 min", ("torch",)),
        ("minilm", "30 min", ("torch", "transformers")),
        ("packaged_models", "10 min", ("torch",)),
        ("gpu", "1 min", ("torch", "triton")),
        ("neurons", "5 min", ("torch",)),
        ("sparsify", "20 min", ("torch",)),
        ("convolutions", "1 min", ("torch",)),
        ("models", "3 min", ("torch", "transformers")),
        ("gemma3n", "", ("torch", "transformers")),
        ("autoencoders", "", ("torch",)),
        ("int8", "4 min", ("torch",)),
        ("int4", "2 min", ("torch",)),
        ("network_values", "1 min", ()),
        ("sparse_fourier", "15 min", ()),
        ("cube_gp", "8 min", ()),
        ("landscapes", "hours", ("lightgbm", "xgboost")),
        ("configurations", "hours", ("lightgbm", "xgboost")),
        ("next_rows", "20 min", ()),
        ("fit_seconds", "30 min", ()),
        ("effect_intervals", "hours", ()),
        ("letters", "60 min", ()),
        ("sequences", "", ("lightgbm",)),
        ("measurement_models", "15 min", ()),
        ("shared_traits", "2 min", ()),
        ("units", "1 min", ()),
        ("monte_carlo", "1 min", ()),
        ("certificates", "10 s", ()),
        ("planted", "hours", ()),
        ("top_k", "1 min", ("torch",)),
        ("mixture", "2 min", ("torch", "transformers")),
        ("mixtral", "4 min", ("torch", "transformers")),
        ("memories", "1 min", ("torch",)),
        ("regression", "hours", ("lightgbm",)),
        ("updates", "6 min", ("lightgbm",)),
        ("distil", "20 min", ()),
        ("lsh_slopes", "4 min", ()),
        ("scaling", "2 min", ("dask", "distributed")),
        ("busy", "", ()),
    )
}


def chosen(names: Sequence[str]) -> list[Benchmark]:
    """Those of the names, or all when there are none.

    Raises
    ------
    ValueError
        If a name is no benchmark's, or if one that was named lacks a package.
    """
    for name in names:
        if name not in BENCHMARKS:
            raise ValueError(f"{name!r} is no benchmark; choose from {', '.join(BENCHMARKS)}.")
        if missing := BENCHMARKS[name].missing():
            raise ValueError(f"{name} needs {' and '.join(missing)}, which is not installed: install it first.")
    return [BENCHMARKS[name] for name in names or BENCHMARKS]


def run(benchmark: Benchmark, rows: Path, *, quick: bool, quiet: bool) -> int:
    """Exit status of one benchmark in its own interpreter, 0 when every target was met; rows go into the file."""
    command = [sys.executable, "-m", benchmark.module, "--out", str(rows.resolve()), *["--quick"] * quick]
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(command, cwd=Path(__file__).parents[1], stdout=output, check=False).returncode


def ratios(rows: Rows) -> Iterator[tuple[str, str, str, str]]:
    """(work, figure, ratio with its spread, verdict) of every row that compares two sides."""
    for (work, quantity), row in rows.items():
        if row["unit"] != "x":
            continue
        spread = f" [{min(row['samples']):.3g} ... {max(row['samples']):.3g}]" if len(row["samples"]) > 1 else ""
        yield work, quantity, f"{row['value']:.3g}{spread}", {True: "met", False: "MISSED", None: ""}[row["met"]]

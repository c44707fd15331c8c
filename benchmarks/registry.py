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
    name : str
        Its name, and its module's.
    needs : tuple of str
        Modules, beside what the library itself needs, without which there is nothing to measure.
    """

    name: str
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
    name: Benchmark(name, needs)
    for name, needs in (
        ("walsh_hadamard", ("fht_cpu",)),
        ("brightness", ()),
        ("least_squares", ()),
        ("large", ()),
        ("cross_validation", ()),
        ("enumeration", ()),
        ("gather", ("torch",)),
        ("screen", ("torch",)),
        ("largest", ("torch",)),
        ("trained", ("torch",)),
        ("minilm", ("torch", "transformers")),
        ("packaged_models", ("torch",)),
        ("gpu", ("torch", "triton")),
        ("neurons", ("torch",)),
        ("sparsify", ("torch",)),
        ("convolutions", ("torch",)),
        ("models", ("torch", "transformers")),
        ("gemma3n", ("torch", "transformers")),
        ("autoencoders", ("torch",)),
        ("int8", ("torch",)),
        ("int4", ("torch",)),
        ("network_values", ()),
        ("sparse_fourier", ()),
        ("cube_gp", ()),
        ("landscapes", ("lightgbm", "xgboost")),
        ("configurations", ("lightgbm", "xgboost")),
        ("next_rows", ()),
        ("fit_seconds", ()),
        ("effect_intervals", ()),
        ("letters", ()),
        ("sequences", ("lightgbm",)),
        ("measurement_models", ()),
        ("shared_traits", ()),
        ("units", ()),
        ("monte_carlo", ()),
        ("certificates", ()),
        ("planted", ()),
        ("top_k", ("torch",)),
        ("mixture", ("torch", "transformers")),
        ("mixtral", ("torch", "transformers")),
        ("memories", ("torch",)),
        ("regression", ("lightgbm",)),
        ("updates", ("lightgbm",)),
        ("distil", ()),
        ("lsh_slopes", ()),
        ("scaling", ("dask", "distributed")),
        ("busy", ()),
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
            raise ValueError(f"{name!r} is no benchmark; choose of {', '.join(BENCHMARKS)}.")
        if missing := BENCHMARKS[name].missing():
            raise ValueError(f"{name} is measured beside or with {' and '.join(missing)}: install that first.")
    return [BENCHMARKS[name] for name in names or BENCHMARKS]


def run(benchmark: Benchmark, rows: Path, *, quick: bool, quiet: bool) -> int:
    """Exit status of one benchmark in its own interpreter, 0 when every judged bar was met; rows go into the file."""
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

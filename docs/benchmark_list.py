"""The catalogue of benchmarks, from their registry, their docstrings and the kept rows."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Final

from benchmarks.registry import BENCHMARKS, Benchmark
from benchmarks.table.kept import kept

MODULES = Path(__file__).parents[1] / "benchmarks"
GROUPS: Final = {  # heading: the names of its benchmarks
    "Tables of yes/no features and letters": (
        *("landscapes", "configurations", "brightness", "letters", "sequences", "measurement_models", "shared_traits"),
        *("effect_intervals", "next_rows", "planted", "sparse_fourier", "cube_gp", "least_squares", "cross_validation"),
        *("large", "walsh_hadamard", "fit_seconds", "busy", "scaling"),
    ),
    "Tables of numbers": ("regression", "updates", "distil", "lsh_slopes"),
    "Trained networks": (
        *("sparsify", "neurons", "screen", "largest", "int8", "int4", "gather", "gpu", "trained", "minilm"),
        *("packaged_models", "gemma3n", "autoencoders", "models", "convolutions"),
    ),
    "Layers in training": ("mixture", "mixtral", "memories", "top_k"),
    "Exact analysis of networks": ("certificates", "enumeration", "network_values", "units", "monte_carlo"),
}


def method(name: str) -> str:
    """The docstring of a benchmark below its first line; a reference is plain text."""
    text = (MODULES / f"{name}.py").read_text(encoding="utf-8")
    _, _, rest = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")
    rest = re.sub(r" \[\d\]_", "", rest)
    rest = re.sub(r"\n\n(?=    python )", "\n\n.. code-block:: sh\n\n", rest)
    rest = re.sub(r"\b((?:Targets?|Units?|Roofline|Floor)\b[^.:`\n]{0,40}:)(?=\s)", r"**\1**", rest)
    # A line that begins with an initial would be a list of letters.
    return re.sub(r"^\.\. \[\d\] (.*)\n +", r"\\\1 ", rest, flags=re.MULTILINE)


def benchmark_list(path: Path) -> None:
    """Write a list of definitions for each group, with a fold for each method, included by ``benchmark_list.rst``.

    Raises
    ------
    ValueError
        If a benchmark is in no group, or in two.
    """
    if sorted(name for names in GROUPS.values() for name in names) != sorted(BENCHMARKS):
        raise ValueError("each benchmark of benchmarks/registry.py must be in one group of docs/benchmark_list.py.")
    judged = [(row["benchmark"], row["met"]) for row in kept().values() if row["met"] is not None]
    targets, missed = Counter(name for name, _ in judged), Counter(name for name, met in judged if not met)
    page = []
    for heading, names in GROUPS.items():
        page += [heading, "-" * len(heading), ""]
        for name in names:
            page += _definition(BENCHMARKS[name], targets[name], missed[name])
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(page), encoding="utf-8")


def _misses(missed: int, targets: int) -> str:
    """How many targets the newest rows miss, as a sentence."""
    if missed:
        return f"Misses {missed} of {targets} targets."
    return f"Meets all {targets} targets." if targets > 1 else "Meets its target."


def _definition(benchmark: Benchmark, targets: int, missed: int) -> list[str]:
    """The name and what is compared; then run time, misses and packages; the method in a fold."""
    facts = [f"Takes {benchmark.takes}."] if benchmark.takes else []
    facts += [f"Needs {' and '.join(f'``{module}``' for module in benchmark.needs)}."] if benchmark.needs else []
    facts += [_misses(missed, targets)] if targets else []
    body = [benchmark.goal, *facts, "", ".. dropdown:: Method", "   :class-container: claim", ""]
    body += [f"   {line}".rstrip() for line in method(benchmark.name).splitlines()]
    return [f"``{benchmark.name}``", *(f"   {line}".rstrip() for line in body), ""]

"""Every benchmark, in the order in which they run, and the packages that are its peers or that it is made of."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


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


BENCHMARKS = {
    name: Benchmark(name, needs)
    for name, needs in (
        ("walsh_hadamard", ("fht_cpu",)),
        ("least_squares", ()),
        ("large", ()),
        ("cross_validation", ()),
        ("enumeration", ()),
        ("gather", ("torch",)),
        ("screen", ("torch",)),
        ("predictors", ("torch",)),
        ("trained", ("torch",)),
        ("minilm", ("torch", "transformers")),
        ("packaged_models", ("torch",)),
        ("gpu", ("torch", "triton")),
        ("neurons", ("torch",)),
        ("sparsify", ("torch",)),
        ("int8", ("torch",)),
        ("int4", ("torch",)),
        ("network_values", ()),
        ("bucket_kernels", ()),
        ("packed", ()),
        ("sparse_fourier", ()),
        ("cube_gp", ()),
        ("landscapes", ("lightgbm", "xgboost")),
        ("letters", ()),
        ("measurement_models", ()),
        ("pac", ()),
        ("units", ()),
        ("monte_carlo", ()),
        ("certificates", ()),
        ("planted", ()),
        ("top_k", ("torch",)),
        ("mixture", ("torch", "transformers")),
        ("dsm", ("torch",)),
        ("regression", ("lightgbm",)),
        ("updates", ("lightgbm",)),
        ("lsh_slopes", ()),
        ("scaling", ("dask", "distributed")),
        ("busy", ()),
    )
}

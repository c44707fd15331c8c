"""Choose native or reference kernels, once, and call the chosen ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from sparsact.kernels import reference

native: Any
try:
    native = import_module("sparsact.kernels._native")
except ImportError:  # built without a C++ compiler
    native = None

_chosen: Any = reference


def backend() -> str:
    """Name of the kernels in use: ``"native"`` or ``"reference"``."""
    return "reference" if _chosen is reference else "native"


def description() -> str:
    """Kernels in use and the instruction set they run on, for people."""
    return "reference (NumPy)" if _chosen is reference else f"native ({native.isa()})"


def _choose(name: str) -> None:
    global _chosen
    if name not in ("", "native", "reference"):
        raise ValueError(f"SPARSACT_KERNELS={name!r} is neither 'native' nor 'reference'.")
    if name == "native" and native is None:
        raise ImportError(
            "SPARSACT_KERNELS=native, but sparsact was built without a C++ compiler: "
            "install one and reinstall, or unset SPARSACT_KERNELS."
        )
    _chosen = reference if name == "reference" or native is None else native


@contextmanager
def using(name: str, isa: str | None = None) -> Iterator[None]:
    """Run a block on the named kernels (and instruction set); for tests and benchmarks."""
    before, before_isa = backend(), None if native is None else native.isa()
    try:
        _choose(name)
        if isa is not None:
            native.use_isa(isa)
        yield
    finally:
        _choose(before)
        if native is not None:
            native.use_isa(before_isa)


def walsh_hadamard(table: NDArray[Any], *, n_threads: int = 1) -> None:
    """Transform every row of ``table`` (rows, 2**n), C-contiguous, in place and unnormalised."""
    _chosen.walsh_hadamard(table, n_threads)


_choose(os.environ.get("SPARSACT_KERNELS", ""))

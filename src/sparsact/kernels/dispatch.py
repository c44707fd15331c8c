"""Choose native or reference kernels, once, and call the chosen ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
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


def exponent_range(values: NDArray[np.float64]) -> tuple[int, int]:
    """(low, high): every value is a multiple of 2**low and below 2**high in magnitude; (0, 0) if all are zero."""
    low, high = _chosen.exponent_range(values)
    return low, high


def add_products(
    limbs: NDArray[np.int64],
    base: int,
    index: NDArray[np.uint64] | None,
    a: NDArray[np.float64],
    b: NDArray[np.float64] | None,
) -> None:
    """Add the exact a[i] * b[i] to column index[i] (None: column i) of ``limbs`` (L, cells), in place.

    Limb l counts units of 2**(32 * (base + l)); the caller has made room for every digit of every product.
    """
    _chosen.add_products(limbs, base, index, a, b)


_choose(os.environ.get("SPARSACT_KERNELS", ""))

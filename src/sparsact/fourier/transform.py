"""Temporary stand-in for the transform that is written on another branch."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsact import kernels


def walsh_hadamard(
    values: ArrayLike, axis: int = -1, *, normalize: bool = True, overwrite: bool = False, n_jobs: int | None = None
) -> NDArray[np.float64]:
    """Fourier coefficients of tables of values along ``axis``."""
    moved = np.moveaxis(np.array(values, dtype=np.float64), axis, -1)
    table = np.ascontiguousarray(moved).reshape(-1, moved.shape[-1])
    kernels.walsh_hadamard(table)
    if normalize:
        table /= table.shape[1]
    return np.moveaxis(table.reshape(moved.shape), -1, axis)

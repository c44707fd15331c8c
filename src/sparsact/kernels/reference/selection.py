"""The largest values of each row, by a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def top_k(values: NDArray[Any], k: int, absolute: bool, places: NDArray[np.int64], n_threads: int) -> None:
    """Fill ``places`` (m, k); see :func:`sparsact.kernels.top_k`."""
    ranked = np.argsort(-(np.abs(values) if absolute else values), axis=1, kind="stable")
    places[:] = np.sort(ranked[:, :k], axis=1)


def top_k_dot(
    values: NDArray[Any], A: NDArray[Any], k: int, absolute: bool, dots: NDArray[Any], n_threads: int
) -> None:
    """Fill ``dots`` (m, T); see :func:`sparsact.kernels.top_k_dot`."""
    places = np.empty((len(values), k), dtype=np.int64)
    top_k(values, k, absolute, places, n_threads)
    chosen = np.take_along_axis(values, places, axis=1)
    for target, row in enumerate(A):
        dots[:, target] = np.sum(chosen * row[places], axis=1)


def top_k_masked(values: NDArray[Any], k: int, absolute: bool, masked: NDArray[Any], n_threads: int) -> None:
    """Fill ``masked`` (m, t); see :func:`sparsact.kernels.top_k_masked`."""
    places = np.empty((len(values), k), dtype=np.int64)
    top_k(values, k, absolute, places, n_threads)
    masked[:] = 0
    np.put_along_axis(masked, places, np.take_along_axis(values, places, axis=1), axis=1)

"""The Walsh-Hadamard transform of tables of values, in place."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sparsact.kernels import dispatch


def walsh_hadamard(table: NDArray[Any], *, n_threads: int = 1) -> None:
    """Transform every row of ``table`` (rows, 2**n), C-contiguous, in place and unnormalised.

    Parameters
    ----------
    table : ndarray of shape (rows, 2**n)
        Changed in place.
    n_threads : int
        Threads over rows.
    """
    dispatch.chosen.walsh_hadamard(table, n_threads)


@dispatch.kernel
def _walsh_hadamard(table: NDArray[Any], n_threads: int) -> None:
    """Butterflies from the lowest coordinate up; this order of additions defines the rounding."""
    rows, length = table.shape
    half = 1
    while half < length:
        pairs = table.reshape(rows, length // (2 * half), 2, half)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        difference = low - high
        low += high
        high[...] = difference
        half *= 2

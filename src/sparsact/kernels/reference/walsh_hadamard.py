"""Walsh-Hadamard transform."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def walsh_hadamard(table: NDArray[Any], n_threads: int) -> None:
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

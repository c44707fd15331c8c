"""Polynomials of a table that is updated: each bucket is solved when a row first meets it after a change."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.bucket_values import Unsolved
from sparsact.learners.lsh.layout import Array, Layout

CACHE_LINE: Final = 8  # numbers


class LiveSolution:
    """Coefficients and weights of buckets, and which of them are out of date.

    A bucket is solved from its sums alone, whatever changed them: bit-identical to solving all buckets again. Kernels
    write to the arrays without the interpreter's lock, so nothing else reads them: a copy of a table begins unsolved.

    Attributes
    ----------
    records : (room, D * targets + 1)
        Coefficients in the units of y, and the weight, as :func:`sparsact.kernels.bucket_values.packed` has them.
    stale : (room,)
        1 for a bucket to be solved, 2 while a thread solves it, else 0.
    alpha, least : float, int
        Ridge penalty, and the rows from which on a bucket counts.
    """

    def __init__(self, layout: Layout, room: int, alpha: float, least: int) -> None:
        self.layout, self.alpha, self.least = layout, alpha, least
        self.records = _cache_aligned(room, layout.n_features * layout.n_targets + 1)
        self.stale = np.ones(room, dtype=np.uint8)

    def grow(self, room: int) -> None:
        """Make room for more buckets."""
        old, held = self.records, len(self.stale)
        self.records = _cache_aligned(room, old.shape[1])
        self.records[:held] = old
        self.stale = np.concatenate([self.stale, np.ones(room - held, dtype=np.uint8)])

    def unsolved(self, counts: NDArray[np.int64], sums: Array) -> Unsolved:
        """What the kernels solve buckets from."""
        n, unit = len(counts), np.ascontiguousarray(self.layout.unit)
        return Unsolved(self.stale[:n], counts, sums, unit, self.least, self.alpha)


def _cache_aligned(n: int, width: int) -> Array:
    """Zeros (n, width), the first on a cache line: a record of eight numbers then fills one, not two halves."""
    flat = np.zeros(n * width + CACHE_LINE)
    start = -(flat.ctypes.data // 8) % CACHE_LINE
    return flat[start : start + n * width].reshape(n, width)

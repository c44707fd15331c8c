"""Polynomials of a table that is updated: each bucket is solved when a row first meets it after a change."""

from __future__ import annotations

from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import bucket_statistics
from sparsact.kernels.bucket_values import Unsolved, packed
from sparsact.learners.lsh.layout import Array, Layout

CACHE_LINE: Final = 8  # numbers


class LiveSolution:
    """Coefficients and weights of buckets, and which of them are out of date.

    A bucket is solved from its sums alone, whatever changed them: the bits are those of solving all buckets anew.

    Attributes
    ----------
    records : (room, D * targets + 1)
        Coefficients in the units of y, and the weight, as :func:`sparsact.kernels.bucket_values.packed` has them.
    residual : (room, targets)
        Sums of squares about the polynomials, in squares of the layout's units.
    stale : (room,)
        1 for a bucket to be solved, else 0.
    alpha, least : float, int
        Ridge penalty, and the rows from which on a bucket counts.
    """

    def __init__(self, layout: Layout, room: int, alpha: float, least: int) -> None:
        self.layout, self.alpha, self.least = layout, alpha, least
        self.records = _cache_aligned(room, layout.n_features * layout.n_targets + 1)
        self.residual = np.zeros((room, layout.n_targets))
        self.stale = np.ones(room, dtype=np.uint8)

    def grow(self, room: int) -> None:
        """Make room for more buckets."""
        old, held = self.records, len(self.stale)
        self.records = _cache_aligned(room, old.shape[1])
        self.records[:held] = old
        self.residual = np.concatenate([self.residual, np.zeros((room - held, self.residual.shape[1]))])
        self.stale = np.concatenate([self.stale, np.ones(room - held, dtype=np.uint8)])

    def some(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> LiveSolution:
        """A copy, of some of the buckets."""
        other = copy(self)
        records = self.records[kept]
        other.records = _cache_aligned(*records.shape)
        other.records[:] = records
        other.residual, other.stale = self.residual[kept].copy(), self.stale[kept].copy()
        return other

    def unsolved(self, counts: NDArray[np.int64], sums: Array) -> Unsolved:
        """What the kernels solve buckets from."""
        n, unit = len(counts), np.ascontiguousarray(self.layout.unit)
        return Unsolved(self.stale[:n], counts, sums, unit, self.residual[:n], self.least, self.alpha)

    def finish(self, counts: NDArray[np.int64], sums: Array) -> None:
        """Solve all buckets that are out of date."""
        layout, ids = self.layout, np.flatnonzero(self.stale[: len(counts)])
        coefficients, residual = bucket_statistics.solve(
            sums[ids], layout.n_local, layout.degree, layout.n_targets, self.alpha
        )
        weights = np.where(counts[ids] >= self.least, sums[ids, layout.n_local], 0.0)
        self.records[ids] = packed(coefficients * layout.unit, weights)
        self.residual[ids], self.stale[ids] = residual, 0


def _cache_aligned(n: int, width: int) -> Array:
    """Zeros (n, width), the first on a cache line: a record of eight numbers then fills one, not two halves."""
    flat = np.zeros(n * width + CACHE_LINE)
    start = -(flat.ctypes.data // 8) % CACHE_LINE
    return flat[start : start + n * width].reshape(n, width)

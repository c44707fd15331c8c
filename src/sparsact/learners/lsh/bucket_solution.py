"""Polynomials of the buckets of a table: all solved at once, or each when a row first meets it after a change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import bucket_statistics
from sparsact.kernels.bucket_index import BucketIndex
from sparsact.kernels.bucket_values import Unsolved
from sparsact.learners.lsh.compiled import Slots
from sparsact.learners.lsh.layout import Array, Layout

CACHE_LINE: Final = 8  # numbers


@dataclass(frozen=True)
class BucketSolution:
    """A polynomial in each bucket, with values in the units of y.

    Attributes
    ----------
    coefficients : (B, D, targets)
    weights : (B,)
        0 for a bucket that counts as empty.
    variances : (B, targets)
        Variance of a target about its polynomial, in squares of the layout's units.
    """

    coefficients: Array
    weights: Array
    variances: Array

    @classmethod
    def of(cls, layout: Layout, counts: NDArray[np.int64], sums: Array, alpha: float, least: int) -> BucketSolution:
        """Ridge polynomials of the buckets; a bucket of fewer than ``least`` rows counts as empty."""
        p, weight = layout.n_local, sums[:, layout.n_local]
        coefficients, residual = bucket_statistics.solve(sums, p, layout.degree, layout.n_targets, alpha)
        variances = _variances(counts, weight, layout.n_features, residual)
        return cls(coefficients * layout.unit, np.where(counts >= least, weight, 0.0), variances)


def _variances(counts: NDArray[np.int64], weight: Array, D: int, residual: Array) -> Array:
    """Variance about the polynomial in each bucket, shrunk to that of all rows, which count as D rows."""
    enough, row_weight = counts > D, weight / np.maximum(counts, 1)
    free = np.maximum(counts - D, 0) * np.where(counts > 0, row_weight, 0.0)
    # Where no bucket has more rows than coefficients, the variance about the trend has to do.
    pooled = residual[enough].sum(axis=0) / free.sum() if free.any() else np.ones(residual.shape[1])
    prior = D * np.where(counts > 0, row_weight, 1.0)
    variances: Array = (np.where(enough[:, None], residual, 0.0) + prior[:, None] * pooled) / (free + prior)[:, None]
    return variances


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

    def storage(self, index: BucketIndex, counts: NDArray[np.int64], sums: Array) -> Slots:
        """The records as they predict, each solved from counts and sums when a row first meets it."""
        n, unit = len(counts), np.ascontiguousarray(self.layout.unit)
        unsolved = Unsolved(self.stale[:n], counts, sums, unit, self.least, self.alpha)
        return Slots(index.slots, self.records[:n], self.layout.n_targets, unsolved)


def _cache_aligned(n: int, width: int) -> Array:
    """Zeros (n, width), the first on a cache line: a record of eight numbers then fills one, not two halves."""
    flat = np.zeros(n * width + CACHE_LINE)
    start = -(flat.ctypes.data // 8) % CACHE_LINE
    return flat[start : start + n * width].reshape(n, width)

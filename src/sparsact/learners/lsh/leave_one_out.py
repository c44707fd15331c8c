"""Values of tables at rows that they were filled with, as if they had never seen them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import bucket_statistics, hashing
from sparsact.kernels.hashing import BucketPlaces
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.layout import Array


class LeftOut:
    """Rows (m, d) of a table, with their targets in its units, to be left out again.

    One by one: each is taken from its buckets, which are solved again, ``m * T`` solutions of :math:`D^3` steps. By
    folds: all rows of a fold are taken away at once, and each bucket that they share is solved once, which is cheaper
    where buckets hold many rows and polynomials many coefficients.
    """

    def __init__(self, table: BucketTable, X: Array, residual: Array, weights: Array) -> None:
        self.table, self.residual, self.weights = table, residual, weights
        self.found = hashing.places(X, table.layout.hashes)
        self.ids = table.index.find(self.found.keys)

    def values(self, alpha: float, min_count: int, folds: int | None = None) -> Array:
        """Values (m, targets) in units of the table; 0 where every bucket is empty. Without ``folds``, one by one."""
        table = self.table
        if folds is None:
            return bucket_statistics.leave_one_out(
                self.found,
                self.ids,
                self.residual,
                self.weights,
                table.layout.degree,
                alpha,
                min_count,
                table.counts,
                table.sums,
            )[0]
        values = np.empty(self.residual.shape)
        for part in np.array_split(np.arange(len(values)), folds):
            values[part] = self._fold(part, alpha, min_count)
        return values

    def _fold(self, part: NDArray[np.int64], alpha: float, min_count: int) -> Array:
        """Values at some rows, all of them taken away."""
        table, layout = self.table, self.table.layout
        found = BucketPlaces(self.found.Z[part], self.found.V[part], self.found.keys[part])
        weights = self.weights[part]
        touched, places = np.unique(self.ids[part], return_inverse=True)
        ids: NDArray[np.int32] = places.reshape(len(part), layout.n_tables).astype(np.int32)
        counts, sums = table.counts[touched], table.sums[touched]
        bucket_statistics.accumulate(found, ids, self.residual[part], weights, -1, layout.degree, counts, sums)
        coefficients, _ = bucket_statistics.solve(sums, layout.n_local, layout.degree, layout.n_targets, alpha)
        held = np.where(counts >= max(min_count, 1), sums[:, layout.n_local], 0.0)
        coefficients[held == 0] = 0.0
        phi = bucket_statistics.features(found.V, layout.degree)[:, np.arange(layout.n_tables) % found.V.shape[1]]
        values: Array = np.einsum("mt,mtk->mk", held[ids], np.einsum("mtd,mtdk->mtk", phi, coefficients[ids]))
        bucket_statistics.average_over_weights(values, held[ids].sum(axis=1))
        return values

"""Monomials of the rows of a latent polynomial, less their means: dense, or sparse where most rows agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from scipy.sparse import csc_array, csr_array

from sparsact.hypercube import Subset
from sparsact.learners.gp.kernel import Array
from sparsact.learners.points import Points, unpack

SPARSE: Final = 1 / 16  # share of unequal entries, up to which sparse products are quicker than dense ones


@dataclass(frozen=True, eq=False)
class CentredMonomials:
    """A matrix of m rows and p monomials, from which ``shift`` (p,) is still to be subtracted, row by row."""

    matrix: Array | csr_array
    shift: Array

    @classmethod
    def of(cls, points: Points, subsets: list[Subset], weights: Array) -> tuple[CentredMonomials, Array]:
        """The monomials of points less their means over rows of weights (m,), and the means (p,).

        Variants of one sequence have most bits in common. Only rows with the rarer sign are kept.
        """
        m = points.n_rows
        parities = [np.bitwise_xor.reduce(points.columns[list(subset)], axis=0) for subset in subsets]
        words = np.array(parities, dtype=np.uint64).reshape(len(subsets), points.columns.shape[1])
        minus = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
        others = np.minimum(minus, m - minus)
        if others.sum() >= SPARSE * m * len(subsets):
            signs = np.ascontiguousarray(unpack(Points(words, m)), dtype=np.float64)
            means = np.average(signs, axis=0, weights=weights)
            return cls(signs - means, np.zeros(len(subsets))), means
        signs = np.where(minus > m / 2, -1.0, 1.0)
        bits = (np.unpackbits(own.view(np.uint8), count=m, bitorder="little") for own in words)
        rows = [np.flatnonzero(own == (sign > 0)).astype(np.int32) for own, sign in zip(bits, signs, strict=True)]
        starts = np.concatenate([[0], np.cumsum(others)])
        entries = csc_array((np.repeat(-2 * signs, others), np.concatenate(rows), starts), shape=(m, len(subsets)))
        matrix = csr_array(entries.tocsr())
        shift = weights @ matrix / weights.sum()
        return cls(matrix, shift), signs + shift

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def values(self, b: Array) -> Array:
        """Sums over the monomials of each row (m,), with coefficients (p,)."""
        return np.asarray(self.matrix @ b - self.shift @ b)

    def sums(self, v: Array) -> Array:
        """Sums over the rows (p,) or (p, k), of weights v (m,) or (m, k)."""
        return np.asarray(self.matrix.T @ v - np.multiply.outer(self.shift, v.sum(axis=0)))

    def products(self, weights: Array) -> Array:
        """Sums over the rows (p, p) of products of two monomials, of weights (m,) of any sign."""
        if isinstance(self.matrix, np.ndarray):
            return np.asarray((self.matrix * weights[:, None]).T @ self.matrix)
        columns = self._transposed
        weighted = csr_array((columns.data * weights[columns.indices], columns.indices, columns.indptr), columns.shape)
        sums = columns @ weights
        found = (weighted @ self.matrix).toarray() + weights.sum() * np.outer(self.shift, self.shift)
        return np.asarray(found - np.outer(self.shift, sums) - np.outer(sums, self.shift))

    @cached_property
    def _transposed(self) -> Any:
        return csr_array(self.matrix.T)

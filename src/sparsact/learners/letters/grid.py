r"""Solutions of :math:`(K + D)\, \alpha = y` at some cells of a grid of letters, by products of the sites' kernels.

K times a table over all cells is one small product a site. Of tables that are zero at the cells without a row, it gives
K of the rows, whose matrix is never made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.cube_gp.conjugate_gradients import conjugate_gradients, squares
from sparsact.learners.letters.kernel import Array, Codes, LetterKernel

Table = NDArray[np.float32]
STEPS = 400
TOLERANCE = 1e-3  # of residuals, which noise makes irrelevant


def along_sites(tables: Table, factors: Sequence[Table]) -> Table:
    """Tables (k, cells) multiplied by a matrix (q_i, q_i) along every site."""
    before = len(tables)
    result = tables
    for factor in factors:
        result = np.matmul(factor, result.reshape(before, len(factor), -1))
        before *= len(factor)
    return result.reshape(tables.shape)


def letters_seen(codes: Codes, sizes: Sequence[int]) -> list[Codes]:
    """For each site places (q_i,) of its letters among those that rows of letters (m, n) have; -1 of the others."""
    found = []
    for letters, size in zip(codes.T, sizes, strict=True):
        seen = np.isin(np.arange(size), letters)
        found.append(np.where(seen, seen.cumsum() - 1, -1))
    return found


class Grid:
    """The covariance matrix of rows by a kernel, as a part of that of all combinations of their letters.

    Parameters
    ----------
    kernel : LetterKernel
        Covariance and noise.
    codes : ndarray of shape (m, n)
        Letters of distinct rows.
    """

    def __init__(self, kernel: LetterKernel, codes: Codes) -> None:
        self.places = letters_seen(codes, [len(factor) for factor in kernel.factors])
        seen = [places >= 0 for places in self.places]
        self.factors = [
            factor[np.ix_(one, one)].astype(np.float32) for factor, one in zip(kernel.factors, seen, strict=True)
        ]
        self.factors[0] *= np.float32(kernel.variance)
        self.shape = tuple(map(len, self.factors))
        self.cells = self.cells_of(codes)

    def cells_of(self, codes: Codes) -> NDArray[np.intp]:
        """Numbers (m,) of the cells of rows of letters (m, n); -1 where the fitted rows lack a letter at its site."""
        places = [of_site[letters] for of_site, letters in zip(self.places, codes.T, strict=True)]
        found = np.ravel_multi_index([np.maximum(one, 0) for one in places], self.shape)
        return np.where(np.min(places, axis=0) < 0, -1, found)

    def values(self, alpha: Table) -> Table:
        """K times dual coefficients (k, m) of the rows, at all cells (k, cells)."""
        tables = np.zeros((len(alpha), int(np.prod(self.shape))), np.float32)
        tables[:, self.cells] = alpha
        return along_sites(tables, self.factors)

    def solve(self, targets: Table, masks: Table, noise: Array) -> tuple[Table, int]:
        """Dual coefficients (k, m) of targets (k, m), each from the rows that its mask does not leave out, and steps.

        By conjugate gradients, without a preconditioner.
        """
        diagonal = noise.astype(np.float32)

        def product(vectors: Table) -> Table:
            image = self.values(vectors)[:, self.cells]
            image *= masks
            image += diagonal * vectors
            return image

        right = targets * masks
        return conjugate_gradients(product, right, TOLERANCE**2 * squares(right), STEPS)

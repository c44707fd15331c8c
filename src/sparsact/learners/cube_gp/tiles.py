r"""Products with the covariance matrix of many rows, which is never held: tiles of it in single precision.

With the signs :math:`s = 1 - 2x` of the rows, a component depends on :math:`\sum_i w_i s_i s_i'` alone: a product
kernel is its exponential with :math:`w_i = -\frac12 \log |\rho_i|`, a kernel of degrees a function of the Hamming
distance. A product computes the :math:`m (m + 1) / 2` covariances, a tile at a time, and multiplies each by all
vectors.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sparsact.kernels.threads import in_threads
from sparsact.learners.cube_gp.component import Component
from sparsact.learners.gp.kernel import Array
from sparsact.statistics.solved import Product

_TILE: Final = 512  # rows and columns: a megabyte, which fits into the cache of a core
_TASKS: Final = 4  # which share the tiles; sums do not depend on the number of threads


def tiled_products(component: Component, bits: Array) -> Product:
    """The covariance matrix (m, m) of rows of bits (m, n) by a component, as a function of vectors (k, m)."""
    signs, ones = 1 - 2 * bits, np.ones((len(bits), 1))
    weights, constant, character, of_products = component.of_signs()
    left = np.hstack([signs * weights, constant * ones]).astype(np.float32)
    right = np.hstack([signs, ones]).astype(np.float32)
    flipped = signs[:, character].prod(axis=1)

    def products(vectors: Array) -> Array:
        numbers = np.ascontiguousarray((flipped * vectors).T, dtype=np.float32)

        def part(task: int) -> Array:
            sums = np.zeros(numbers.shape)
            for start in range(task * _TILE, len(numbers), _TASKS * _TILE):
                rows = slice(start, start + _TILE)
                for other in range(start, len(numbers), _TILE):
                    columns = slice(other, other + _TILE)
                    tile = of_products(left[rows] @ right[columns].T)
                    sums[rows] += tile @ numbers[columns]
                    if other > start:
                        sums[columns] += tile.T @ numbers[rows]
            return sums

        return np.asarray(flipped * np.sum(list(in_threads(part, range(_TASKS))), axis=0).T)

    return products

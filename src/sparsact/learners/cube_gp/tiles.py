r"""Products with the covariance matrix of many rows, which is never held: tiles of it in single precision.

With the signs :math:`s = 1 - 2x` of the rows, a component depends on :math:`\sum_i w_i s_i s_i'` alone: a product
kernel is its exponential with :math:`w_i = -\frac12 \log |\rho_i|`, a kernel of degrees a function of the Hamming
distance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.threads import in_threads
from sparsact.learners.cube_gp.component import Component
from sparsact.learners.gp.kernel import Array

Single = NDArray[np.float32]

_TILE: Final = 512  # rows and columns: a megabyte, which fits into the cache of a core
_TASKS: Final = 4  # which share the tiles; sums do not depend on the number of threads


@dataclass(frozen=True, eq=False)
class TiledComponent:
    """A component at some rows: a function of products of ``left`` and ``right``, (m, n + 1), and signs of rows."""

    left: Single
    right: Single
    signs: Array | None
    of_products: Callable[[Single], Single]

    @classmethod
    def of(cls, component: Component, bits: Array) -> Self:
        """The component at rows of bits (m, n)."""
        signs, ones = 1 - 2 * bits, np.ones((len(bits), 1))
        weights, constant, character, of_products = component.of_signs()
        left = np.hstack([signs * weights, constant * ones]).astype(np.float32)
        right = np.hstack([signs, ones]).astype(np.float32)
        flipped = signs[:, character].prod(axis=1) if character.any() else None
        return cls(left, right, flipped, of_products)

    def add(self, rows: slice, columns: slice, vectors: Single, out: Array, sums: Array) -> None:
        """Add the products of a tile with vectors (m, k) to ``out``, and those of its transpose to ``sums``."""
        tile = self.of_products(self.left[rows] @ self.right[columns].T)
        out[rows] += tile @ vectors[columns]
        if columns.start > rows.start:
            sums[columns] += tile.T @ vectors[rows]


class TiledCovariance:
    """Covariance matrix (m, m) of rows of bits (m, n) by a kernel without a table, as a linear map.

    A product computes the :math:`m (m + 1) / 2` covariances, a tile at a time, and multiplies each by all vectors.
    """

    def __init__(self, components: Sequence[Component], bits: Array) -> None:
        self._components = [TiledComponent.of(component, bits) for component in components]
        self._starts = range(0, len(bits), _TILE)

    def __call__(self, vectors: Array) -> Array:
        """Products with vectors (k, m)."""
        return np.asarray(sum(self._product(component, vectors.T) for component in self._components)).T

    def _product(self, component: TiledComponent, vectors: Array) -> Array:
        signs = None if component.signs is None else component.signs[:, None]
        numbers = np.ascontiguousarray(vectors if signs is None else signs * vectors, dtype=np.float32)

        def part(task: int) -> Array:
            sums = np.zeros(numbers.shape)
            for start in self._starts[task::_TASKS]:
                rows = slice(start, start + _TILE)
                for other in range(start, len(numbers), _TILE):
                    component.add(rows, slice(other, other + _TILE), numbers, sums, sums)
            return sums

        total = np.sum(list(in_threads(part, range(_TASKS))), axis=0)
        return np.asarray(total if signs is None else signs * total)

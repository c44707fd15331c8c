"""Coefficients of all 2**n subsets, in one table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier.ordering import strongest
from sparsact.fourier.transform import walsh_hadamard
from sparsact.fourier.weights import Weights
from sparsact.hypercube import Masks, Subset

BLOCK = 2**16  # coefficients looked at together: they and their sizes stay in the cache


@dataclass(frozen=True, eq=False)
class DenseCoefficients:
    """Table of coefficients in table order, read-only. Every method works in blocks and leaves the table unchanged."""

    coefficients: NDArray[np.float64]

    def __post_init__(self) -> None:
        self.coefficients.setflags(write=False)

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.coefficients.size.bit_length() - 1

    def masks(self) -> Masks:
        """Masks of the stored subsets (N, words)."""
        return np.arange(self.coefficients.size, dtype=np.uint64)[:, None]

    def coefficient(self, subset: Subset) -> float:
        """Coefficient of a sorted subset of valid coordinates."""
        return float(self.coefficients[sum(1 << i for i in subset)])

    def weights(self) -> Weights:
        """Sums of squared coefficients of each size."""
        return Weights.of(
            lambda: ((high + sizes, block) for high, sizes, block in self._blocks(self.coefficients)), self.n
        )

    def influences(self) -> NDArray[np.float64]:
        """Folds the squares, highest coordinate first: ``2**(n + 1)`` additions for all coordinates together."""
        influences = np.zeros(self.n)
        with np.errstate(over="ignore"):  # a sum with an infinite square is infinite
            squares = self.coefficients * self.coefficients
        for i in reversed(range(self.n)):
            without, holding = squares[: 2**i], squares[2**i :]
            influences[i] = holding.sum()
            squares = without + holding
        return influences

    def degree(self, tolerance: float) -> int:
        """Largest size of a coefficient above ``tolerance`` in magnitude, else 0."""
        degree = 0
        for high, sizes, block in self._blocks(self.coefficients):
            degree = max(degree, high + int(sizes[np.abs(block) > tolerance].max(initial=-high)))
        return degree

    def strongest(self, k: int, min_degree: int) -> tuple[Masks, NDArray[np.float64]]:
        """Masks and coefficients of the k strongest, strongest first."""
        numbers = strongest(self.coefficients, subset_sizes(self.n), _masks_of_numbers, k, min_degree)
        return _masks_of_numbers(numbers), self.coefficients[numbers]

    def scaled(self, factors: NDArray[np.float64]) -> DenseCoefficients:
        """Each coefficient times ``factors[|S|]``."""
        scaled = self.coefficients.copy()
        for high, sizes, block in self._blocks(scaled):
            block *= factors[high + sizes]
        return DenseCoefficients(scaled)

    def truncated(self, degree: int) -> DenseCoefficients:
        """Only the coefficients of size at most ``degree``."""
        low = self.coefficients.copy()
        for high, sizes, block in self._blocks(low):
            block[high + sizes > degree] = 0.0
        return DenseCoefficients(low)

    def restricted(self, signs: dict[int, int]) -> DenseCoefficients:
        """On the other coordinates, with these signs fixed."""
        table = self.coefficients
        for i in sorted(signs, reverse=True):  # from the top, so that lower coordinates keep their place
            halves = table.reshape(-1, 2, 2**i)
            table = (halves[:, 0] + signs[i] * halves[:, 1]).ravel()
        return DenseCoefficients(table.copy() if table is self.coefficients else table)

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Values at all points, in table order; made once and kept."""
        values = walsh_hadamard(self.coefficients, normalize=False)
        values.setflags(write=False)
        return values

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values (m,) at signs (m, n)."""
        numbers = (X < 0) @ (1 << np.arange(self.n, dtype=np.int64))
        return self.values[numbers]

    def __add__(self, other: DenseCoefficients) -> DenseCoefficients:
        return DenseCoefficients(self.coefficients + other.coefficients)

    def __mul__(self, factor: float) -> DenseCoefficients:
        return DenseCoefficients(self.coefficients * factor)

    def _blocks(self, table: NDArray[np.float64]) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.float64]]]:
        """Views of ``table``, each with the size of its high coordinates and the sizes of its low ones."""
        blocks = table.reshape(-1, min(BLOCK, table.size))
        sizes = subset_sizes(blocks.shape[1].bit_length() - 1).astype(np.intp)
        for number, block in enumerate(blocks):
            yield number.bit_count(), sizes, block


def subset_sizes(n: int) -> NDArray[np.uint8]:
    """Number of coordinates in each of the 2**n subsets, in table order, one byte each.

    >>> subset_sizes(3)
    array([0, 1, 1, 2, 1, 2, 2, 3], dtype=uint8)
    """
    sizes = np.zeros(2**n, dtype=np.uint8)
    for i in range(n):
        np.add(sizes[: 2**i], 1, out=sizes[2**i : 2 ** (i + 1)])
    return sizes


def _masks_of_numbers(numbers: NDArray[np.intp]) -> Masks:
    return numbers.astype(np.uint64)[:, None]

"""Rows of the cube and an integer target, whose sums with monomials and their products are exact counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.hypercube import Masks
from sparsact.kernels.packed_bits import packed_rows
from sparsact.learners.points import Points
from sparsact.statistics.column_scales import exponents_of

Array = NDArray[np.float64]

TARGET_BITS: Final = 20  # of an integer target: one unit is a millionth of the largest target
RESIDUAL_BITS: Final = 8  # of a residual by which candidates are ranked


@dataclass(frozen=True)
class IntegerSample:
    """Points and a target of integers.

    Attributes
    ----------
    points : Points
        The rows, m of them.
    target : ndarray of shape (m,), float64
        Integers of mean about 0 and ``TARGET_BITS`` bits.
    n_threads : int
        Threads of the kernels.
    """

    points: Points
    target: Array
    n_threads: int = 1

    @classmethod
    def of(cls, points: Points, y: Array, *, rng: np.random.Generator, n_threads: int = 1) -> IntegerSample:
        """A target y (m,), about its mean and scaled, rounded at random.

        Rounded to the nearest, a target without noise would leave an error that is a function of the same coordinates,
        with a spectrum of its own. Rounding at random makes it noise.
        """
        scaled = np.ldexp(y, -exponents_of(y))  # neither mean nor squares overflow
        centred = scaled - scaled.mean()
        largest = float(np.abs(centred).max())
        unit = 2.0 ** (TARGET_BITS - 1) - 2
        integers = np.floor(centred * (unit / largest) + rng.random(len(y))) if largest > 0 else np.zeros(len(y))
        return cls(points, integers, n_threads)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.points.n_rows

    def means(self, masks: Masks, values: Array | None = None, bits: int = TARGET_BITS) -> Array:
        """Means of the target (or of ``bits``-bit integers) times each monomial, (N,), from exact sums."""
        values = self.target if values is None else values
        planes = packed_rows(values.astype(np.int64) >> np.arange(bits)[:, None] & 1)
        weights = 2.0 ** np.arange(bits)
        weights[-1] *= -1  # two's complement
        odd = weights @ self._odd(masks, planes)
        return np.asarray((values.sum() - 2 * odd) / self.n_rows)

    def ranking(self, masks: Masks, residual: Array) -> Array:
        """Means of a residual times each monomial, (N,), rounded to ``RESIDUAL_BITS`` bits."""
        unit = float(np.abs(residual).max()) / (2 ** (RESIDUAL_BITS - 1) - 1) or 1.0
        return unit * self.means(masks, np.rint(residual / unit), RESIDUAL_BITS)

    def products(self, masks: Masks, others: Masks) -> Array:
        """Means of products of monomials, (N, len(others))."""
        everywhere = packed_rows(np.ones((1, self.n_rows), dtype=np.uint8))
        columns = [self._odd(masks ^ other, everywhere)[0] for other in others]
        return 1 - 2 * np.array(columns).T.reshape(len(masks), len(others)) / self.n_rows

    def _odd(self, masks: Masks, planes: NDArray[np.uint64]) -> NDArray[np.int64]:
        return kernels.parity_counts(self.points.columns, planes, np.ascontiguousarray(masks), n_threads=self.n_threads)

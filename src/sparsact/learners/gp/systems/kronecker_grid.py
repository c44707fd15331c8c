r"""Systems K + D at points of a grid, by conjugate gradients with Kronecker products.

A product kernel on all :math:`q_1 \cdots q_n` combinations of levels is the Kronecker product of its factors
(q_i, q_i): a product with it costs :math:`\sum_i q_i` multiplications a cell, in single precision, and takes a few
numbers a cell. Better than a matrix where there are more than a thousand points and the cells are not a few thousand
times as many; a system of little noise takes hundreds of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.gp.kernel import Array, Codes, Kernel
from sparsact.learners.gp.systems.system import System
from sparsact.statistics.solved import Solved, conjugate_gradients, norms

Table = NDArray[np.float32]
MAX_STEPS: Final = 2_000  # ill-conditioned kernels of little noise need hundreds


class ProductKernel(Kernel, Protocol):
    """A kernel that is its variance times a factor (q_i, q_i) between the levels of each coordinate."""

    @property
    def factors(self) -> list[Array]:
        """Factors with ones on the diagonal."""


@dataclass(eq=False)
class GridSystem(System):
    """System K + D at points of levels (m, n), embedded in K at all combinations of their levels."""

    kernel: ProductKernel

    tolerance: ClassVar[float] = 1e-3  # which noise makes irrelevant
    solver: ClassVar[str] = "conjugate gradients on a grid of letters"
    remedy: ClassVar[str] = "average targets of the same letters, or fit fewer rows"

    def __post_init__(self) -> None:
        self.places: list[Codes] = []  # of the levels along the grid, -1 where no point has one
        self.factors: list[Table] = []  # kernels between the others, the first times the variance
        for factor, levels in zip(self.kernel.factors, map(np.unique, self.points.T), strict=True):
            self.places.append(np.full(len(factor), -1))
            self.places[-1][levels] = np.arange(len(levels))
            self.factors.append(factor[np.ix_(levels, levels)].astype(np.float32))
        self.factors[0] *= np.float32(self.kernel.variance)
        self.cells = self.cells_of(self.points)

    def cells_of(self, codes: Codes) -> Codes:
        """Numbers (m',) of the cells of points (m', n); -1 where one has a level that no point of the system has."""
        places = [of_site[levels] for of_site, levels in zip(self.places, codes.T, strict=True)]
        strides = np.cumprod([1, *map(len, self.factors[:0:-1])])[::-1]  # NumPy's own arrays have 64 axes at most
        found = strides @ np.maximum(places, 0)
        return np.where(np.min(places, axis=0) < 0, -1, found)

    def products(self, alpha: Table) -> Table:
        """K times dual coefficients (k, m), at all cells (k, cells)."""
        found = np.zeros((len(alpha), int(np.prod([len(factor) for factor in self.factors]))), np.float32)
        found[:, self.cells] = alpha
        before = len(alpha)
        for factor in self.factors:
            found = np.matmul(factor, found.reshape(before, len(factor), -1))
            before *= len(factor)
        return found.reshape(len(alpha), -1)

    def values(self, alpha: Array, points: Codes) -> Array:
        """K between points (m', n) and the system's, times dual coefficients (m,)."""
        cells = self.cells_of(points)
        found = np.asarray(self.products(alpha[None].astype(np.float32))[0, cells], dtype=np.float64)
        found[cells < 0] = super().values(alpha, points[cells < 0])
        return found

    def solve(
        self, targets: Array, tolerance: float, noise: Array | None = None, *, max_steps: int = MAX_STEPS
    ) -> Solved[Array]:
        """Inverse times targets (k, m); points of infinite ``noise`` (k, m), by default D, are left out.

        By conjugate gradients, without a preconditioner. As single precision lets their residuals drift from what the
        matrix leaves, they begin again from that until it is small.
        """
        noise = np.broadcast_to(self.noise, targets.shape) if noise is None else noise
        there = np.isfinite(noise).astype(np.float32)
        diagonal = np.where(there, noise, 0.0).astype(np.float32)

        def product(vectors: Table) -> Table:
            image = self.products(vectors)[:, self.cells]
            image *= there
            image += diagonal * vectors
            return image

        right = targets.astype(np.float32) * there
        size, found, steps = norms(right), np.zeros_like(right), 0
        while True:
            left = right - product(found)
            part = conjugate_gradients(product, left, tolerance / 2, max_steps - steps, size=size)
            found, steps = found + part.value, steps + part.steps
            true = norms(right - product(found))
            residual = float(np.divide(true, size, out=np.zeros_like(true), where=size > 0).max())
            if residual <= tolerance or steps >= max_steps or not part.steps:
                return Solved(found.astype(np.float64), steps, residual, tolerance, residual <= tolerance)

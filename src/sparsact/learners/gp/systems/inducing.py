r"""Systems K + D too large for a dense matrix: exact means, and variances by inducing points.

With inducing points u among the rows, :math:`Q = K_{fu} K_{uu}^{-1} K_{uf}` and the diagonal R of :math:`K - Q`, the
matrix :math:`Q + R + D` (FITC [1]_) is near :math:`K + D`. Divided by it, conjugate gradients on K + D take tens of
steps, each a product that computes the :math:`m^2 / 2` covariances again. Means have no other error than the tolerance
of the solution. Better than a matrix where that would take more memory, or its m**3 / 3 multiplications more time.

Variances given Q + R + D are too large, by a factor that hardly varies between points. It is learned from some rows,
whose variances given all others,

.. math:: \mathrm{Var}(f_i \mid y_{-i}) = 1 / (K + D)^{-1}_{ii} - D_{ii},

conjugate gradients give exactly.

References
----------
.. [1] J. Quinonero-Candela, C. E. Rasmussen, "A unifying view of sparse approximate Gaussian process regression",
       JMLR 6, 2005.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.gp.cholesky import Cholesky
from sparsact.learners.gp.kernel import Array, Kernel, Points
from sparsact.learners.gp.systems.system import System
from sparsact.statistics.solved import Product, Solved, conjugate_gradients, norms

MAX_STEPS: Final = 200
_JITTER: Final = 1e-9  # of the variance, on the diagonal of the inducing points
_ROWS_AT_ONCE: Final = 1 << 12
_SCALED_BY: Final = 16  # rows whose exact variances scale the variances by inducing points
_SCALE_TOLERANCE, _EFFECT_TOLERANCE = 1e-2, 1e-3  # whose squares are errors of variances
_EFFECTS_AT_ONCE: Final = 64
_LEFT_OUT: Final = 1_024


class TiledKernel(Kernel, Protocol):
    """A kernel that multiplies vectors by covariances without holding them."""

    def products(self, points: Points) -> Product:
        """A function of vectors (k, m): their products with the covariances (m, m) of points."""


class LowRank:
    r"""The matrix :math:`Q + R + D` of a system's rows, whose Q has the rank of its inducing points."""

    def __init__(self, system: InducingSystem, at_once: int = _ROWS_AT_ONCE) -> None:
        self.kernel, points, noise = system.kernel, system.points, system.noise
        self._points = points[system.inducing]
        matrix = np.asfortranarray(self.kernel.covariance(self._points, self._points))
        self._factor = Cholesky.of(matrix, jitter=_JITTER)
        self.left = np.empty(len(points))  # diagonal of K - Q
        self._half = np.empty((len(matrix), len(points)))
        inner = np.eye(len(matrix))
        self.noise = noise.copy()
        for start in range(0, len(points), at_once):
            block = slice(start, start + at_once)
            half = self.halved(points[block])
            self.left[block] = np.maximum(self.kernel.variance - np.einsum("uk,uk->k", half, half), 0.0)
            self.noise[block] += self.left[block]
            self._half[:, block] = half
            half /= np.sqrt(self.noise[block])
            inner += half @ half.T
        self._matrix, self._inner = inner, Cholesky.of(inner.copy(order="F"))

    def halved(self, points: Points) -> Array:
        """Covariances (M, k) of points with the inducing ones, divided by the root of these points' matrix."""
        return self._factor.halved(self.kernel.covariance(self._points, points))

    def inverse(self, vectors: Array) -> Array:
        """The inverse times vectors (k, m)."""
        solved = self._inner.solve(self._half @ (vectors / self.noise).T)
        return np.asarray((vectors - solved.T @ self._half) / self.noise)

    def inverse_given(self, noise: Array) -> Product:
        """The inverse for each row of ``noise`` (k, m) in place of D, times vectors (k, m), in a function."""
        noise = noise + self.left
        factors: list[Cholesky] = []
        for own in noise:
            other = np.flatnonzero(own != self.noise)
            half = self._half[:, other]
            matrix = self._matrix - half * (1 / self.noise - 1 / own)[other] @ half.T
            factors.append(Cholesky.of(np.asfortranarray(matrix)))

        def inverse(vectors: Array) -> Array:
            scaled = vectors / noise
            inner = (self._half @ scaled.T).T
            solved = np.stack([factor.solve(one) for factor, one in zip(factors, inner, strict=True)])
            return np.asarray(scaled - solved @ self._half / noise)

        return inverse

    def known(self, half: Array) -> Array:
        """Posterior variances (k,) of the parts of quantities that inducing points explain; see :meth:`halved`."""
        left = self._inner.halved(half)
        return np.asarray(np.einsum("uk,uk->k", left, left))

    def covariance(self, half: Array) -> Array:
        """Posterior covariances (k, k) of the parts of quantities that inducing points explain; see :meth:`halved`."""
        left = self._inner.halved(half)
        return np.asarray(left.T @ left)


@dataclass(eq=False)
class InducingSystem(System):
    """System K + D of many rows; ``inducing`` (M,) holds the places of the inducing points among them."""

    kernel: TiledKernel
    inducing: NDArray[np.intp]

    tolerance: ClassVar[float] = 1e-3  # predictions change by less than a hundredth of their errors
    solver: ClassVar[str] = "conjugate gradients"
    remedy: ClassVar[str] = "raise max_inducing or noise_variance"

    def solve(
        self, targets: Array, tolerance: float, noise: Array | None = None, *, max_steps: int = MAX_STEPS
    ) -> Solved[Array]:
        """Inverse times targets (k, m); points of infinite ``noise`` (k, m), by default D, are left out."""
        return self._solved(targets, tolerance, noise, max_steps)[0]

    def _solved(
        self, targets: Array, tolerance: float, noise: Array | None = None, max_steps: int = MAX_STEPS
    ) -> tuple[Solved[Array], Array]:
        """Solutions and residuals (k, m)."""
        inverse = self._low_rank.inverse if noise is None else self._low_rank.inverse_given(noise)
        noise = self.noise if noise is None else noise
        there = np.isfinite(noise)
        added = np.where(there, noise, 0.0)

        def product(vectors: Array) -> Array:
            return np.asarray(there * self.products(vectors) + added * vectors)

        start = inverse(targets)
        right = targets - product(start)
        found = conjugate_gradients(product, right, tolerance, max_steps, size=norms(targets), inverse=inverse)
        return replace(found, value=start + found.value), right

    def _quadratic(self, vectors: Array, tolerance: float) -> Array:
        """Products (k,) of vectors (k, m) with the inverse matrix on both sides; errors are second order."""
        solved, residuals = self._solved(vectors, tolerance)
        return np.asarray(np.einsum("km,km->k", vectors + residuals, solved.checked(self.solver, self.remedy)))

    def variances(self, points: Points, at_once: int = _ROWS_AT_ONCE) -> Array:
        """Posterior variances (m',) at points (m', n), by inducing points, scaled: M**2 products a point."""
        found = np.empty(len(points))
        for start in range(0, len(points), at_once):
            block = slice(start, start + at_once)
            half = self._low_rank.halved(points[block])
            left = self.kernel.variance - np.einsum("uk,uk->k", half, half)
            found[block] = self._scale * (np.maximum(left, 0.0) + self._low_rank.known(half))
        return found

    def covariance(self, points: Points) -> Array:
        """Posterior covariances (m', m') of the values at distinct points (m', n), by inducing points, scaled."""
        half = self._low_rank.halved(points)
        found = self.kernel.covariance(points, points) - half.T @ half + self._low_rank.covariance(half)
        return np.asarray(self._scale * found)

    def explained(self, cross: Array) -> Array:
        """Variance (k,) that the rows explain of quantities of covariances (m, k) with them: a solution for each."""
        starts = range(0, cross.shape[1], _EFFECTS_AT_ONCE)
        blocks = (cross[:, start : start + _EFFECTS_AT_ONCE].T for start in starts)
        return np.concatenate([self._quadratic(block, _EFFECT_TOLERANCE) for block in blocks])

    def left_out_errors(self, alpha: Array) -> Array:
        """Errors of up to 1,024 rows, each predicted from all others, over their deviations."""
        places = self._places(_LEFT_OUT)
        return np.asarray(alpha[places] * np.sqrt(self._scale * self._left_out(places) + self.noise[places]))

    @cached_property
    def products(self) -> Product:
        """K times vectors (k, m)."""
        return self.kernel.products(self.points)

    @cached_property
    def _low_rank(self) -> LowRank:
        return LowRank(self)

    @cached_property
    def _scale(self) -> float:
        """Mean ratio of exact to inducing-point variances at rows left out."""
        places = self._places(_SCALED_BY)
        if not len(places):
            return 1.0
        units = np.zeros((len(places), len(self)))
        units[np.arange(len(places)), places] = 1.0
        exact = 1 / self._quadratic(units, _SCALE_TOLERANCE) - self.noise[places]
        return float(np.maximum(exact, 0.0).sum() / self._left_out(places).sum())

    def _left_out(self, places: NDArray[np.intp]) -> Array:
        """Variances by inducing points of the function at rows, given all other rows."""
        low_rank = self._low_rank
        known = low_rank.known(low_rank.halved(self.points[places]))
        return low_rank.left[places] + 1 / np.maximum(1 / known - 1 / low_rank.noise[places], np.finfo(float).tiny)

    def _places(self, most: int) -> NDArray[np.intp]:
        """Evenly spaced places of up to ``most`` rows that are not inducing points."""
        others = np.setdiff1d(np.arange(len(self)), self.inducing)
        return np.asarray(others[np.linspace(0, len(others) - 1, min(most, len(others))).astype(np.intp)])

r"""Posterior from more rows than a matrix holds: exact means, and variances by inducing points.

With inducing points u among the rows, :math:`Q = K_{fu} K_{uu}^{-1} K_{uf}` and the diagonal R of :math:`K - Q`, the
matrix :math:`Q + R + D` (FITC [1]_) is near :math:`K + D`. Divided by it, conjugate gradients on K + D take tens of
steps, each a product of :mod:`.tiles`. Means have no other error than the tolerance of the solution.

Variances given Q + R + D are too large, by a factor that hardly varies between points. It is learned from some rows,
whose variances given all others,

.. math:: \mathrm{Var}(f_i \mid y_{-i}) = 1 / (K + D)^{-1}_{ii} - D_{ii},

conjugate gradients give exactly.

References
----------
.. [1] J. Quinonero-Candela, C. E. Rasmussen, "A unifying view of sparse approximate Gaussian process regression",
       JMLR 6, 2005.
.. [2] A. Artemev, D. R. Burt, M. van der Wilk, "Tighter bounds on the log marginal likelihood of Gaussian process
       regression using conjugate gradients", ICML 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsact.hypercube import Subset
from sparsact.learners.cube_gp.component import Array
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.cube_gp.likelihood import LOG_2PI, Cholesky, repeats_log_likelihood
from sparsact.learners.cube_gp.posterior import RowPosterior
from sparsact.learners.cube_gp.rows import DistinctRows
from sparsact.learners.cube_gp.tiles import TiledCovariance
from sparsact.statistics.solved import Product, conjugate_gradients, norms

_JITTER: Final = 1e-9  # of the kernel's variance, on the diagonal of the inducing points
_ROWS_AT_ONCE: Final = 1 << 12
MAX_STEPS: Final = 200
_TOLERANCE: Final = 1e-3  # of residuals: predictions change by less than a hundredth of their errors
_PROBES: Final = 16  # rows whose exact variances scale the variances by inducing points
_PROBE_TOLERANCE, _EFFECT_TOLERANCE = 1e-2, 1e-3  # whose squares are errors of variances
_SUBSETS_AT_ONCE: Final = 64
_LEFT_OUT: Final = 1_024


class InducingCovariance:
    r"""The matrix :math:`Q + E` of all rows, with the rank of the inducing points.

    Parameters
    ----------
    kernel : CubeKernel
        Prior covariance.
    rows : DistinctRows
        All m rows.
    inducing : ndarray of shape (M,)
        Places of the inducing points.
    noise : ndarray of shape (m,)
        Diagonal of D.
    corrected : bool
        Whether E is R + D, else D.
    """

    def __init__(
        self, kernel: CubeKernel, rows: DistinctRows, inducing: NDArray[np.intp], noise: Array, *, corrected: bool
    ) -> None:
        self.kernel, self._points = kernel, rows.bits[inducing]
        matrix = kernel.covariance(self._points, self._points)
        matrix[np.diag_indices(len(matrix))] += _JITTER * kernel.variance
        self._lower = Cholesky.of(np.asfortranarray(matrix)).lower
        self.left = np.empty(len(rows))  # diagonal of K - Q
        self._half = np.empty((len(inducing), len(rows)))
        inner = np.eye(len(inducing))
        self.noise = noise.copy()
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            half = self.halved(rows.bits[block])
            self.left[block] = np.maximum(kernel.variance - np.einsum("uk,uk->k", half, half), 0.0)
            if corrected:
                self.noise[block] += self.left[block]
            self._half[:, block] = half
            half /= np.sqrt(self.noise[block])
            inner += half @ half.T
        self._matrix, self._inner = inner, Cholesky.of(inner.copy(order="F"))

    def halved(self, bits: Array) -> Array:
        """Covariances (M, k) of points with the inducing ones, divided by the root of these points' matrix."""
        cross = self.kernel.covariance(self._points, bits)
        return np.asarray(solve_triangular(self._lower, cross, lower=True, check_finite=False))

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
        """Variance (k,) that the rows leave of what the inducing points tell of quantities; see :meth:`halved`."""
        left = self._left(half)
        return np.asarray(np.einsum("uk,uk->k", left, left))

    def covariance(self, half: Array) -> Array:
        """Posterior covariances (k, k) of what the inducing points tell of quantities; see :meth:`halved`."""
        left = self._left(half)
        return np.asarray(left.T @ left)

    def _left(self, half: Array) -> Array:
        return np.asarray(solve_triangular(self._inner.lower, half, lower=True, check_finite=False))

    def log_determinant(self) -> float:
        """Logarithm of the determinant."""
        return self._inner.log_determinant() + float(np.log(self.noise).sum())


@dataclass(frozen=True, eq=False)
class InducingPosterior(RowPosterior):
    """Posterior for any number of columns and many rows.

    Attributes
    ----------
    inducing : ndarray of shape (M,)
        Places of the inducing points among the rows.
    max_steps : int
        Most steps of conjugate gradients.
    """

    inducing: NDArray[np.intp] = field(kw_only=True)
    max_steps: int = field(default=MAX_STEPS, kw_only=True)

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be computed again, 8 m M bytes."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"known_alpha": self.alpha}

    @cached_property
    def alpha(self) -> Array:
        """Inverse covariance matrix of the rows times their targets, (m,)."""
        return self.solve(self.rows.y[None], _TOLERANCE)[0] if self.known_alpha is None else self.known_alpha

    def solve(self, targets: Array, tolerance: float) -> Array:
        """Inverse covariance matrix of the rows times targets (k, m); residuals have at most a relative norm."""
        return self._solved(targets, tolerance)[0]

    def _solved(self, targets: Array, tolerance: float, noise: Array | None = None) -> tuple[Array, Array]:
        """Solutions and residuals (k, m); rows of infinite ``noise`` (k, m), by default D, are left out."""
        inverse = self._low_rank.inverse if noise is None else self._low_rank.inverse_given(noise)
        noise = self._noise if noise is None else noise
        there = np.isfinite(noise)
        added = np.where(there, noise, 0.0)

        def product(vectors: Array) -> Array:
            return np.asarray(there * self._covariance(vectors) + added * vectors)

        start = inverse(targets)
        right = targets - product(start)
        found = conjugate_gradients(product, right, tolerance, self.max_steps, size=norms(targets), inverse=inverse)
        return start + found.checked("conjugate gradients", "raise max_inducing or noise_variance"), right

    def _quadratic(self, vectors: Array, tolerance: float) -> Array:
        """Products (k,) of vectors (k, m) with the inverse covariance matrix on both sides; errors are second order."""
        solved, residuals = self._solved(vectors, tolerance)
        return np.asarray(np.einsum("km,km->k", vectors + residuals, solved))

    def variances(self, bits: Array) -> Array:
        """Variances at points of bits (m', n), by inducing points, scaled: M**2 products a point."""
        found = np.empty(len(bits))
        for start in range(0, len(bits), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            half = self._low_rank.halved(bits[block])
            left = self.kernel.variance - np.einsum("uk,uk->k", half, half)
            found[block] = self._factor * (np.maximum(left, 0.0) + self._low_rank.known(half))
        return found

    def draws_at(self, bits: Array, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws (n_samples, m') of the values at distinct points, from their joint covariance by inducing points."""
        half = self._low_rank.halved(bits)
        covariance = self.kernel.covariance(bits, bits) - half.T @ half + self._low_rank.covariance(half)
        eigenvalues, vectors = np.linalg.eigh(self._factor * covariance)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        return np.asarray(self.values(bits) + rng.standard_normal((n_samples, len(bits))) @ root.T)

    def coefficient_moments(self, subsets: list[Subset]) -> tuple[Array, Array]:
        """Means and variances (N,) of the coefficients of some subsets, which are kept: each takes a solution."""
        known = self._known_moments
        if new := [subset for subset in dict.fromkeys(subsets) if subset not in known]:
            known |= dict(zip(new, np.transpose(super().coefficient_moments(new)), strict=True))
        means, variances = np.reshape([known[subset] for subset in subsets], (-1, 2)).T
        return means, variances

    @cached_property
    def _known_moments(self) -> dict[Subset, Array]:
        return {}

    def _explained(self, cross: Array) -> Array:
        """Variance that the rows explain of quantities of covariances (m, k) with them, by a solution for each."""
        starts = range(0, cross.shape[1], _SUBSETS_AT_ONCE)
        blocks = (cross[:, start : start + _SUBSETS_AT_ONCE].T for start in starts)
        return np.concatenate([self._quadratic(block, _EFFECT_TOLERANCE) for block in blocks])

    def out_of_fold(self, y: Array, weights: Array, place: NDArray[np.intp], folds: NDArray[np.intp]) -> Array:
        """Means (r,) at measurements of targets y (r,), each from those of other folds, all folds in one solution.

        ``place`` (r,) are the measurements' points among the rows, and ``folds`` (r,) numbers from 0.
        """
        others = folds != np.arange(folds.max() + 1)[:, None]
        count = len(self.rows)
        total = np.stack([np.bincount(place, weights * other, count) for other in others])
        sums = np.stack([np.bincount(place, weights * y * other, count) for other in others])
        with np.errstate(divide="ignore"):
            noise = np.where(total > 0, self.noise_variance / total, np.inf)
        targets = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
        return np.asarray(self._covariance(self._solved(targets, _TOLERANCE, noise)[0])[folds, place])

    @cached_property
    def left_out_errors(self) -> Array:
        """Errors of up to 1,024 rows, each predicted from all others, over their deviations."""
        places = self._places(_LEFT_OUT)
        deviation = np.sqrt(self._factor * self._left_out_variances(places) + self._noise[places])
        return np.asarray(self.alpha[places] * deviation)

    def log_likelihood_bound(self) -> float:
        """A lower bound of the log marginal likelihood of the targets [2]_."""
        low_rank = InducingCovariance(self.kernel, self.rows, self.inducing, self._noise, corrected=False)
        residual = self.rows.y - self._covariance(self.alpha[None])[0] - self._noise * self.alpha
        rest = float(residual @ low_rank.inverse(residual[None])[0])
        fit = float((self.rows.y + residual) @ self.alpha) + rest
        rank = max(1, len(self.rows) - len(self.inducing))  # of K - Q, so that many eigenvalues share its trace
        unexplained = float((low_rank.left / self._noise).sum())
        determinant = low_rank.log_determinant() + rank * float(np.log1p(unexplained / rank))
        repeats, _ = repeats_log_likelihood(self.noise_variance, self.rows)
        return -0.5 * (fit + determinant + len(self.rows) * LOG_2PI) + repeats

    @cached_property
    def _low_rank(self) -> InducingCovariance:
        return InducingCovariance(self.kernel, self.rows, self.inducing, self._noise, corrected=True)

    @cached_property
    def _covariance(self) -> TiledCovariance:
        return TiledCovariance(self.kernel, self.rows.bits)

    @cached_property
    def _factor(self) -> float:
        """Mean ratio of exact variances of rows left out to those by inducing points."""
        places = self._places(_PROBES)
        if not len(places):
            return 1.0
        units = np.zeros((len(places), len(self.rows)))
        units[np.arange(len(places)), places] = 1.0
        exact = 1 / self._quadratic(units, _PROBE_TOLERANCE) - self._noise[places]
        return float(np.maximum(exact, 0.0).sum() / self._left_out_variances(places).sum())

    def _left_out_variances(self, places: NDArray[np.intp]) -> Array:
        """Variances by inducing points of the function at rows, given all other rows."""
        low_rank = self._low_rank
        known = low_rank.known(low_rank.halved(self.rows.bits[places]))
        return low_rank.left[places] + 1 / np.maximum(1 / known - 1 / low_rank.noise[places], np.finfo(float).tiny)

    def _places(self, most: int) -> NDArray[np.intp]:
        """Places of up to ``most`` rows that are no inducing points, evenly spaced."""
        others = np.setdiff1d(np.arange(len(self.rows)), self.inducing)
        return np.asarray(others[np.linspace(0, len(others) - 1, min(most, len(others))).astype(np.intp)])

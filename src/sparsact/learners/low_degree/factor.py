"""Factors of Gram matrices: Cholesky where they are well conditioned, else the eigenvectors that rounding left."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack, norm, svd

from sparsact.kernels.dispatch import blas_threads

_EPS: Final = float(np.finfo(float).eps)
_WELL_CONDITIONED: Final = 1e-7  # reciprocal condition from which rounding neither hides a direction nor makes one up


class Factor:
    r"""A factorisation of :math:`G + \alpha I`: Cholesky when it is well conditioned, else eigenvectors.

    On all points of the cube, equally often, characters are orthogonal: G is diagonal, and division is all there is.

    Parameters
    ----------
    gram : ndarray of shape (D, D)
        G, positive semidefinite.
    alpha : float
        The penalty.
    rank : callable, default=None
        Returns the rank of G. It is called only where rounding leaves a doubt. None: the number of eigenvalues above
        ``noise`` of G with each feature in its own unit.
    noise : float or ndarray of shape (D,), default=0.0
        What rounding may have done to the diagonal of G, besides ``D * eps`` times its entry; to another entry, the
        root of the product of its two.

    Attributes
    ----------
    method : str
        ``"division"``, ``"Cholesky"`` or ``"eigenvectors"``.
    rank : int
        Rank of G where it was needed, else D.
    """

    def __init__(
        self,
        gram: NDArray[np.float64],
        alpha: float,
        rank: Callable[[], int] | None = None,
        *,
        noise: float | NDArray[np.float64] = 0.0,
    ) -> None:
        self._gram = gram
        self._alpha = alpha
        self._values: NDArray[np.float64]
        size = self.rank = len(gram)
        if size == 0 or _well_conditioned_diagonal(gram, noise):
            self.method, self._values = "division", gram.diagonal()
            return
        with blas_threads(size**3):
            self._factorise(rank, noise)

    def _factorise(self, rank: Callable[[], int] | None, noise: float | NDArray[np.float64]) -> None:
        gram, alpha, size = self._gram, self._alpha, len(self._gram)
        shifted = gram.T.copy(order="F")  # symmetric: its rows are its columns
        shifted.ravel(order="K")[:: size + 1] += alpha
        diagonal = shifted.diagonal().copy()
        # With a penalty, (|G| + alpha) / alpha bounds the condition, which then need not be estimated.
        surely = rank is not None and alpha > _WELL_CONDITIONED * diagonal.sum()
        length = 0.0 if surely else float(norm(shifted, 1, check_finite=False))
        self._cholesky, failed = lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)
        if rank is None:  # each feature in its own unit
            failed = failed or bool((diagonal <= noise).any())
            least = np.inf if failed else 10 * (size * _EPS + float(np.sum(noise / diagonal)) / size)
            accurate = not failed and (
                alpha > least * size * diagonal.max() or self._condition(length, diagonal) > least
            )
        else:
            accurate = not failed and (surely or self._is_well_conditioned(length))
        if not accurate and rank is not None:
            self.rank = rank()
            accurate = not failed and self.rank == size
        self.method = "Cholesky" if accurate else "eigenvectors"
        if accurate:
            return
        if rank is None:
            self._values, self._vectors = _graded_eigenvectors(gram, np.broadcast_to(noise, size))
            self.rank = len(self._values)
            return
        values, vectors = eigh(gram)
        kept = np.arange(size) >= size - self.rank
        kept &= values > size * _EPS * values[-1]  # the others are there, but lost to rounding
        self._values, self._vectors = values[kept], vectors[:, kept]

    def _is_well_conditioned(self, length: float) -> bool:
        """Whether the reciprocal condition is above 1e-7, by the determinant if that shows it.

        The mean of the others bounds the least eigenvalue from below, and sqrt(D) over it the norm of the inverse.
        """
        pivots, size = self._cholesky.diagonal() ** 2, len(self._gram)
        mean = float(self._gram.trace() + size * self._alpha) / max(size - 1, 1)
        least = mean * np.exp(np.log(pivots / mean).sum())
        return bool(least > _WELL_CONDITIONED * np.sqrt(size) * length) or self._condition(length) > _WELL_CONDITIONED

    def _condition(self, length: float, diagonal: NDArray[np.float64] | None = None) -> float:
        """Reciprocal condition by LAPACK or, where that is blind to a column that nearly depends on others, by pivots.

        ``length`` is the largest sum of a column. With a diagonal, of the matrix whose features are in units in which
        that is 1.
        """
        gram, factor, own = self._gram, self._cholesky, self._gram.diagonal() + self._alpha
        if diagonal is not None:
            inverse = 1 / np.sqrt(diagonal)
            length = float((np.abs(gram) @ inverse * inverse).max()) + float((self._alpha / diagonal).max())
            factor = factor * inverse[:, None]
        estimate = float(lapack.dpocon(factor, length, uplo="L")[0])
        return min(estimate, float((self._cholesky.diagonal() ** 2 / own).min()))

    def solve(self, rhs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solution (D, T); of least norm where G is singular."""
        if self.method == "division":
            return np.asarray(rhs / (self._values + self._alpha)[:, None])
        with blas_threads(len(rhs) ** 3):  # as for the factor, whose threads still wait
            if self.method == "Cholesky":
                return np.asarray(lapack.dpotrs(self._cholesky, rhs, lower=1)[0])
            return np.asarray(self._vectors @ ((self._vectors.T @ rhs) / (self._values + self._alpha)[:, None]))

    @cached_property
    def projection(self) -> NDArray[np.float64]:
        """Orthogonal projection on the range of G, D x D."""
        return self._vectors @ self._vectors.T if self.method == "eigenvectors" else np.eye(len(self._gram))

    @cached_property
    def inverse(self) -> NDArray[np.float64]:
        """The (pseudo-)inverse, D x D; ``2 D**3 / 3`` multiplications."""
        if self.method == "division":
            return np.diag(1 / (self._values + self._alpha))
        with blas_threads(len(self._gram) ** 3):
            if self.method == "Cholesky":
                lower = lapack.dpotri(self._cholesky, lower=1)[0]
                return np.asarray(np.tril(lower) + np.tril(lower, -1).T)
            return np.asarray((self._vectors / (self._values + self._alpha)) @ self._vectors.T)

    @cached_property
    def unscaled_covariance(self) -> NDArray[np.float64]:
        """Covariance of the coefficients per unit of residual variance."""
        if self._alpha == 0:
            return self.inverse
        with blas_threads(len(self._gram) ** 3):
            return np.asarray(self.inverse @ self._gram @ self.inverse)

    @cached_property
    def effective_parameters(self) -> float:
        r"""Trace of the smoother, :math:`\operatorname{tr}((G + \alpha I)^{-1} G)`; the rank when alpha is 0."""
        if self._alpha == 0:
            return float(self.rank)
        if self.method != "Cholesky":
            return float((self._values / (self._values + self._alpha)).sum())
        return float(np.einsum("ij,ji->", self.inverse, self._gram))


def _graded_eigenvectors(
    gram: NDArray[np.float64], noise: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Eigenvalues (k,) and eigenvectors (D, k) of G after rounding; rank is decided in units of the features.

    With units r and an eigenvector v of :math:`G_{ST} / (r_S r_T)`, rounding moved its eigenvalue by at most
    :math:`(\sum_S |v_S| \sqrt{\text{noise}_S} / r_S)^2`.
    """
    there = gram.diagonal() > noise
    units = np.sqrt(np.where(there, gram.diagonal(), np.inf))
    values, vectors = eigh(gram / units / units[:, None])
    rounding = (np.abs(vectors.T) @ (np.sqrt(noise) / units)) ** 2
    kept = values > np.maximum(rounding, len(gram) ** 2 * _EPS)
    roots = np.where(there, units, 0.0)[:, None] * vectors[:, kept] * np.sqrt(values[kept])
    directions, sizes, _ = svd(roots, full_matrices=False)
    return sizes**2, directions


def _well_conditioned_diagonal(gram: NDArray[np.float64], noise: float | NDArray[np.float64]) -> bool:
    """Whether a matrix is diagonal, and no entry so small that rounding may have made it."""
    diagonal = gram.diagonal()
    if gram[0, 1:].any() or not ((diagonal > noise) & (diagonal > _WELL_CONDITIONED * diagonal.max())).all():
        return False
    return bool(np.count_nonzero(gram) == len(gram))

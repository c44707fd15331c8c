r"""Least squares and ridge from sums of products.

With :math:`\phi(x) = (\chi_S(x))_{S}` and weights w, the minimiser of
:math:`\sum_i w_i (y_i - \beta_0 - \langle\beta, \phi(x_i)\rangle)^2 + \alpha \|\beta\|^2` solves
:math:`(G + \alpha I)\beta = r`, where G and r are the inner products of the centred features and targets (not centred
when there is no intercept). The intercept is not penalised. When G is singular, :math:`\alpha = 0` gives the solution
of least norm, the limit of ridge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import frexp
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack, norm

from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.low_degree.identification import RowSpace
from sparsact.learners.low_degree.polynomial import Design, Family
from sparsact.statistics.exact_sum import ExactSum

_ROWS_AT_ONCE: Final = 64
_FEW_DIGITS: Final = 1e-6  # of the weight: features of a variance below it are centred exactly
_SAME: Final = 1e-8  # of a length: closer than that, a vector lies in the space that rounded sums span
_WELL_CONDITIONED: Final = 1e-7  # reciprocal condition from which rounding neither hides a direction nor makes one up


@dataclass(frozen=True, eq=False)
class NormalEquations(Design):
    """Centred inner products of features and targets.

    Attributes
    ----------
    gram : ndarray of shape (D, D)
        Of the features.
    rhs : ndarray of shape (D, T)
        Of features and targets.
    feature_mean, target_mean : ndarray of shape (D,), (T,)
        What was subtracted: weighted means, or zeros without an intercept.
    target_squares : ndarray of shape (T,)
        Weighted squares of the centred targets.
    weight, n_rows : float, int
        Total weight; rows of positive weight.
    fit_intercept : bool
        Whether there is an intercept.
    row_space : RowSpace or None
        What decides rank exactly; None for real columns, whose sums are rounded.
    noise : float
        What rounding may have done to the eigenvalues of ``gram``, where ``row_space`` is None.
    """

    gram: NDArray[np.float64]
    rhs: NDArray[np.float64]
    feature_mean: NDArray[np.float64]
    target_mean: NDArray[np.float64]
    target_squares: NDArray[np.float64]
    weight: float
    n_rows: int
    fit_intercept: bool
    row_space: RowSpace | None = None
    noise: float = 0.0
    _factors: dict[float, Factor] = field(default_factory=dict, init=False)

    def leading(self, n: int) -> NormalEquations:
        """The equations of the first n features alone."""
        return replace(
            self,
            gram=self.gram[:n, :n],
            rhs=self.rhs[:n],
            feature_mean=self.feature_mean[:n],
            row_space=None if self.row_space is None else self.row_space.leading(n),
        )

    def factor(self, alpha: float) -> Factor:
        """Factor of ``gram + alpha``; the last one is kept."""
        if alpha not in self._factors:
            self._factors.clear()
            rank = None if self.row_space is None else self.row_space.rank
            self._factors[alpha] = Factor(self.gram, alpha, rank, noise=self.noise)
        return self._factors[alpha]

    def effective_parameters(self, alpha: float) -> float:
        """Effective parameters of ridge, the intercept not counted."""
        return self.factor(alpha).effective_parameters

    def all_variances(self, alpha: float) -> NDArray[np.float64]:
        """Variance per unit of residual variance of each coefficient of the empty subset and the features, (D + 1,).

        NaN where the rows do not determine the coefficient.
        """
        covariance, mean = self.factor(alpha).unscaled_covariance, self.feature_mean
        own = self.fit_intercept / self.weight + mean @ covariance @ mean
        variances = np.concatenate([[own], covariance.diagonal()])
        variances[~self.identified] = np.nan
        return variances

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Whether the rows determine each coefficient of the empty subset and the features, (D + 1,)."""
        factor = self.factor(0.0)
        if factor.rank == len(self.gram):
            return np.ones(len(self.gram) + 1, dtype=bool)
        if self.row_space is not None:
            return self.row_space.identified
        missed = np.diag(factor.projection) < 1 - _SAME
        own = self.feature_mean - factor.projection @ self.feature_mean
        return np.concatenate([[norm(own) <= _SAME * norm(self.feature_mean)], ~missed])

    def squared_error(
        self, coef: NDArray[np.float64], feature_mean: NDArray[np.float64], target_mean: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Weighted squared error on these rows, per target, of ``target_mean + (features - feature_mean) @ coef``.

        Means are subtracted from means, so that nothing large cancels.
        """
        shift = (self.target_mean - target_mean) - (self.feature_mean - feature_mean) @ coef
        fitted = np.einsum("dt,dt->t", coef, self.gram @ coef - 2 * self.rhs)
        return np.asarray(np.maximum(self.target_squares + fitted + self.weight * shift**2, 0.0))


def exact_equations(statistic: Any, family: Family, *, fit_intercept: bool, n_threads: int) -> NormalEquations:
    """The equations of a family of monomials from exact sums; D x D floats."""
    gram = statistic.gram(family, n_threads=n_threads)
    correlations = statistic.correlations(family, n_threads=n_threads)
    weight = float(gram[0, 0])
    if fit_intercept and weight > 0:
        sums, (scale, exponent) = gram[0, 1:].copy(), frexp(weight)
        feature_mean, target_mean = sums / weight, correlations[:, 0] / weight
        rhs = correlations[:, 1:] - np.outer(target_mean, sums)
        centred, shares = gram[1:, 1:], np.ldexp(sums, -exponent)
        for start in range(0, len(centred), _ROWS_AT_ONCE):  # in place: no second D x D array
            block = centred[start : start + _ROWS_AT_ONCE]
            block *= scale  # W G - s s' first: of counts below 2**26 these are integers, and exact
            block -= np.outer(sums[start : start + _ROWS_AT_ONCE], shares)
            block /= scale
        if not (weight < 2.0**26 and weight == round(weight) and (sums == np.round(sums)).all()):
            small = np.flatnonzero(centred.diagonal() < _FEW_DIGITS * weight)
            if len(small):
                _centre_exactly(centred, statistic, family, small)
    else:
        feature_mean, target_mean = np.zeros(len(family)), np.zeros(statistic.n_targets)
        centred, rhs = gram[1:, 1:], correlations[:, 1:]
    squares = np.maximum(statistic.totals.squares_about(target_mean), 0.0)
    row_space = RowSpace(statistic, family, fit_intercept)
    means = feature_mean, target_mean
    return NormalEquations(centred, rhs.T.copy(), *means, squares, weight, statistic.n_rows, fit_intercept, row_space)


def _centre_exactly(gram: NDArray[np.float64], statistic: Any, family: Family, small: NDArray[np.intp]) -> None:
    """Replace a centred Gram matrix by ``(W c_ST - c_S c_T) / W``, rounded once.

    ``small`` are the features of so small a variance that few of its digits are right. If they are but constant, zeros
    are all that it takes.
    """
    kept: list[ExactSum] = []

    def places(moments: ExactSum) -> NDArray[np.float64]:
        kept.append(moments)
        return np.arange(moments.shape[0], dtype=np.float64)

    place = statistic.gram(family, read=places).astype(np.intp)
    moments = kept[0]
    moments.normalize()
    weight, sums = moments.take(place[0, :1]), moments.take(place[0, 1:])
    if _constant(weight, sums.take(small)):
        gram[small], gram[:, small] = 0.0, 0.0
        return
    for start in range(0, len(family), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        products = moments.take(place[1:][rows, 1:])
        block = ExactSum.zeros(products.shape)
        for higher, limb in enumerate(weight.limbs.astype(np.float64)):
            block.add_multiples(products, limb, weight.base + higher)
        for higher, limb in enumerate(sums.limbs[:, rows].astype(np.float64)):
            block.add_multiples(sums, -limb[:, None], sums.base + higher)
        gram[rows] = block.to_float() / weight.to_float()


def _constant(weight: ExactSum, sums: ExactSum) -> bool:
    """Whether all features of these weighted sums are 1 everywhere, or -1 everywhere."""
    off = np.ones(sums.shape, dtype=bool)
    for sign in (1.0, -1.0):
        rest = sums.copy()
        rest.add_multiples(weight, np.array(sign))
        off &= rest.nonzero()
    return not off.any()


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
        ``noise``.
    noise : float, default=0.0
        What rounding may have done to the eigenvalues of G, besides ``D * eps`` times the largest.

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
        noise: float = 0.0,
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

    def _factorise(self, rank: Callable[[], int] | None, noise: float) -> None:
        gram, alpha, size = self._gram, self._alpha, len(self._gram)
        shifted = gram.T.copy(order="F")  # symmetric: its rows are its columns
        shifted.ravel(order="K")[:: size + 1] += alpha
        bound = float(shifted.trace())  # of the 2-norm
        self._cholesky, failed = lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)
        noise = max(noise, size * np.finfo(float).eps * bound)
        least = 10 * noise / bound if rank is None and bound else _WELL_CONDITIONED
        # With a penalty, (|G| + alpha) / alpha bounds the condition, which then need not be estimated.
        accurate = not failed and (alpha > least * bound or self._reciprocal_condition(gram) > least)
        if not accurate and rank is not None:
            self.rank = rank()
            accurate = not failed and self.rank == size
        self.method = "Cholesky" if accurate else "eigenvectors"
        if not accurate:
            values, vectors = eigh(gram)
            if rank is None:
                self.rank = int(np.count_nonzero(values > noise))
            kept = np.arange(size) >= size - self.rank
            kept &= values > size * np.finfo(float).eps * values[-1]  # the others are there, but lost to rounding
            self._values, self._vectors = values[kept], vectors[:, kept]

    def _reciprocal_condition(self, gram: NDArray[np.float64]) -> float:
        """LAPACK's estimate or, where that is blind to a column that nearly depends on those before, its pivot."""
        estimate = float(lapack.dpocon(self._cholesky, norm(gram, 1, check_finite=False) + self._alpha, uplo="L")[0])
        pivots = self._cholesky.diagonal() ** 2
        return min(estimate, float((pivots / (gram.diagonal() + self._alpha)).min()))

    def solve(self, rhs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solution (D, T); of least norm where G is singular."""
        if self.method == "division":
            return np.asarray(rhs / (self._values + self._alpha)[:, None])
        with blas_threads(rhs.size * len(rhs)):
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


def _well_conditioned_diagonal(gram: NDArray[np.float64], noise: float) -> bool:
    """Whether a matrix is diagonal, and no entry so small that rounding may have made it."""
    diagonal = gram.diagonal()
    if gram[0, 1:].any() or not diagonal.min() > max(noise, _WELL_CONDITIONED * diagonal.max()):
        return False
    return bool(np.count_nonzero(gram) == len(gram))

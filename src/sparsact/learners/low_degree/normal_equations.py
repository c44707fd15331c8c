r"""Least squares and ridge from sums of products.

With :math:`\phi(x) = (\chi_S(x))_{S}` and weights w, the minimiser of
:math:`\sum_i w_i (y_i - \beta_0 - \langle\beta, \phi(x_i)\rangle)^2 + \alpha \|\beta\|^2` solves
:math:`(G + \alpha I)\beta = r`, where G and r are the inner products of the centred features and targets (not centred
when there is no intercept). The intercept is not penalised. When G is singular, :math:`\alpha = 0` gives the solution
of least norm, the limit of ridge.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import frexp
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import norm

from sparsact.learners.low_degree.design import Design
from sparsact.learners.low_degree.factor import Factor
from sparsact.learners.low_degree.identification import RowSpace
from sparsact.learners.low_degree.polynomial import Family
from sparsact.statistics.exact_sum import ExactSum

_ROWS_AT_ONCE: Final = 64
_FEW_DIGITS: Final = 1e-6  # of the weight: features of a variance below it are centred exactly
_SAME: Final = 1e-8  # of a length: closer than that, a vector lies in the space that rounded sums span


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
    noise : ndarray of shape (D,)
        What rounding may have done to the diagonal of ``gram``, where ``row_space`` is None.
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
    noise: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    _factors: dict[float, Factor] = field(default_factory=dict, init=False)

    def leading(self, n: int) -> NormalEquations:
        """The equations of the first n features alone."""
        return replace(
            self,
            gram=self.gram[:n, :n],
            rhs=self.rhs[:n],
            feature_mean=self.feature_mean[:n],
            row_space=None if self.row_space is None else self.row_space.leading(n),
            noise=np.broadcast_to(self.noise, len(self.gram))[:n],
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

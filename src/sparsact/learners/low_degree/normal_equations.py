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
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import norm

from sparsact.learners.low_degree.coefficient_precision import SAME, Design, InnerProducts
from sparsact.learners.low_degree.factor import Factor
from sparsact.learners.low_degree.identification import Gram, RowSpace
from sparsact.learners.low_degree.polynomial import Family
from sparsact.statistics.exact_sum import ExactSum

ROWS_AT_ONCE: Final = 64


@dataclass(frozen=True, eq=False)
class NormalEquations(Design):
    """Centred inner products of features and targets.

    Attributes
    ----------
    gram : ndarray of shape (D, D)
        Products of the features.
    rhs : ndarray of shape (D, T)
        Products of features and targets.
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

    def products(self, alpha: float) -> InnerProducts | None:
        """The inner products, where their rank is decided exactly."""
        return None if self.row_space is None else InnerProducts(self.gram, self.factor(alpha).rank)

    @cached_property
    def identified(self) -> NDArray[np.bool_]:
        """Whether the rows determine each coefficient of the empty subset and the features, (D + 1,)."""
        factor = self.factor(0.0)
        if factor.rank == len(self.gram):
            return np.ones(len(self.gram) + 1, dtype=bool)
        if self.row_space is not None:
            return self.row_space.identified
        missed = np.diag(factor.projection) < 1 - SAME
        own = self.feature_mean - factor.projection @ self.feature_mean
        return np.concatenate([[norm(own) <= SAME * norm(self.feature_mean)], ~missed])

    def squared_error(
        self, coef: NDArray[np.float64], feature_mean: NDArray[np.float64], target_mean: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Weighted squared error on these rows, per target, of ``target_mean + (features - feature_mean) @ coef``.

        Means are subtracted from means, so that nothing large cancels.
        """
        shift = (self.target_mean - target_mean) - (self.feature_mean - feature_mean) @ coef
        fitted = np.einsum("dt,dt->t", coef, self.gram @ coef - 2 * self.rhs)
        return np.asarray(np.maximum(self.target_squares + fitted + self.weight * shift**2, 0.0))


def centre_exactly(centred: NDArray[np.float64], gram: Gram, family: Family, small: NDArray[np.intp]) -> None:
    """Replace a centred Gram matrix by ``(W c_ST - c_S c_T) / W``, rounded once.

    ``small`` are the features of so small a variance that few of its digits are right. If all of them are constant,
    zeros are put there.
    """
    kept: list[ExactSum] = []

    def places(moments: ExactSum) -> NDArray[np.float64]:
        kept.append(moments)
        return np.arange(moments.shape[0], dtype=np.float64)

    place = gram(family, read=places).astype(np.intp)
    moments = kept[0]
    moments.normalize()
    weight, sums = moments.take(place[0, :1]), moments.take(place[0, 1:])
    if _constant(weight, sums.take(small)):
        centred[small], centred[:, small] = 0.0, 0.0
        return
    for start in range(0, len(family), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        products = moments.take(place[1:][rows, 1:])
        block = ExactSum.zeros(products.shape)
        for higher, limb in enumerate(weight.limbs.astype(np.float64)):
            block.add_multiples(products, limb, weight.base + higher)
        for higher, limb in enumerate(sums.limbs[:, rows].astype(np.float64)):
            block.add_multiples(sums, -limb[:, None], sums.base + higher)
        centred[rows] = block.to_float() / weight.to_float()


def _constant(weight: ExactSum, sums: ExactSum) -> bool:
    """Whether all features of these weighted sums are 1 everywhere, or -1 everywhere."""
    off = np.ones(sums.shape, dtype=bool)
    for sign in (1.0, -1.0):
        rest = sums.copy()
        rest.add_multiples(weight, np.array(sign))
        off &= rest.nonzero()
    return not off.any()

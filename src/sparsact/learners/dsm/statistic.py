r"""What the closed form keeps of its rows: weight, means, and sums of products about them.

.. math:: G = \sum_i w_i (\varphi_i - \bar\varphi)(\varphi_i - \bar\varphi)^\top, \qquad
          R = \sum_i w_i (y_i - \bar y)(\varphi_i - \bar\varphi)^\top

over masked features :math:`\varphi_i = \operatorname{mask}(x_i) \circ \phi(x_i)`. Two such sums join by the update of
[1]_, with nothing large to cancel, so rows may come in any pieces: the same up to rounding.

References
----------
.. [1] T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
   1979.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.low_degree.normal_equations import Factor
from sparsact.saving.schema import ArrayField, Arrays, add_prefix, as_n_rows, read_arrays

Array = NDArray[np.float64]
_SUMS = {
    "feature_mean": ArrayField("t"),
    "target_mean": ArrayField("T"),
    "gram": ArrayField("t t"),
    "cross": ArrayField("T t"),
    "weight": ArrayField("1", finite=True, nonnegative=True),
}


class RidgeStatistic:
    """Additive sums of ridge regression on t features and T targets; t**2 + t T floats.

    Attributes
    ----------
    n_rows, weight : int, float
        Rows of positive weight, and the sum of their weights.
    feature_mean, target_mean : ndarray of shape (t,), (T,)
        Weighted means.
    gram : ndarray of shape (t, t)
        Of the centred features.
    cross : ndarray of shape (T, t)
        Of the centred targets and features.
    """

    def __init__(self, t: int, n_targets: int) -> None:
        self.n_rows, self.weight = 0, 0.0
        self.feature_mean, self.target_mean = np.zeros(t), np.zeros(n_targets)
        self.gram, self.cross = np.zeros((t, t)), np.zeros((n_targets, t))

    def add(self, features: Array, targets: Array, weights: Array) -> None:
        """Add rows: features (m, t), which are overwritten, targets (m, T), weights (m,), some of them positive."""
        batch = RidgeStatistic.__new__(RidgeStatistic)
        batch.n_rows, batch.weight = int(np.count_nonzero(weights)), float(weights.sum())
        shares = weights / batch.weight
        batch.feature_mean, batch.target_mean = shares @ features, shares @ targets
        root = np.sqrt(weights)[:, None]
        features -= batch.feature_mean
        features *= root
        with blas_threads(features.size * features.shape[1]):
            batch.gram = features.T @ features  # one triangle is computed and copied: BLAS syrk
            batch.cross = (root * (targets - batch.target_mean)).T @ features
        self.merge(batch)

    def merge(self, other: Self) -> None:
        """Add the rows of another, in new arrays: a shallow copy shares the old ones."""
        if not other.weight:
            return
        weight = self.weight + other.weight
        share = other.weight / weight
        apart, targets_apart = other.feature_mean - self.feature_mean, other.target_mean - self.target_mean
        gram, cross = self.gram + other.gram, self.cross + other.cross
        if self.weight:
            between = self.weight * share
            gram += np.outer(between * apart, apart)
            cross += np.outer(between * targets_apart, apart)
        self.gram, self.cross = gram, cross
        self.feature_mean = self.feature_mean + share * apart
        self.target_mean = self.target_mean + share * targets_apart
        self.n_rows, self.weight = self.n_rows + other.n_rows, weight

    def state(self, arrays: Arrays) -> int:
        """The number of rows; the sums are put among the arrays."""
        sums = {name: getattr(self, name) for name in _SUMS if name != "weight"} | {"weight": np.array([self.weight])}
        arrays |= add_prefix("sums", sums)
        return self.n_rows

    @classmethod
    def from_state(cls, n_rows: Any, arrays: Arrays, t: int, n_targets: int) -> Self:
        """The sums that :meth:`state` wrote, of that many features and targets."""
        sums = cls(t, n_targets)
        vars(sums).update(read_arrays(_SUMS, arrays, "sums.", t=t, T=n_targets))
        sums.n_rows, sums.weight = as_n_rows(n_rows, "rows"), float(arrays["sums.weight"][0])
        return sums

    def copy(self) -> Self:
        """An independent copy."""
        twin = type(self)(len(self.feature_mean), len(self.target_mean))
        twin.merge(self)
        return twin

    def solve(self, alpha: float, *, fit_intercept: bool) -> tuple[Array, Array]:
        r"""Top layer A (T, t) and intercept (T,) that minimise the penalised squared error.

        The penalty is :math:`\alpha \tau \|A\|^2`, with :math:`\tau` the mean of the diagonal of the Gram matrix (the
        centred one, with an intercept). By Cholesky; of least norm where the matrix is numerically singular.
        """
        gram, cross = self.gram, self.cross
        if not fit_intercept:
            gram = gram + np.outer(self.weight * self.feature_mean, self.feature_mean)
            cross = cross + np.outer(self.weight * self.target_mean, self.feature_mean)
        A = Factor(gram, alpha * float(gram.trace()) / len(gram)).solve(cross.T).T
        intercept = self.target_mean - A @ self.feature_mean if fit_intercept else np.zeros(len(A))
        return np.ascontiguousarray(A), intercept

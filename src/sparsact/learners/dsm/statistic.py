"""What the closed form keeps of its rows, and the top layer that it finds."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np

from sparsact.learners.low_degree.normal_equations import Factor
from sparsact.saving.schema import ArrayField, Arrays, add_prefix, as_n_rows, read_arrays
from sparsact.statistics.centred import Array, CentredSums

_SUMS = {
    "feature_mean": ArrayField("t"),
    "target_mean": ArrayField("T"),
    "gram": ArrayField("t t"),
    "cross": ArrayField("T t"),
    "weight": ArrayField("1", finite=True, nonnegative=True),
}


class RidgeStatistic(CentredSums):
    """Additive sums of ridge regression of T targets on t masked features ``mask(x) * phi(x)``; t**2 + t T floats."""

    def add(self, features: Array, targets: Array, weights: Array) -> None:
        """Add rows: features (m, t), which are overwritten, targets (m, T), weights (m,), some of them positive."""
        batch = copy(self)
        batch.replace(features, targets, weights)
        self.join(batch)

    def merge(self, other: Self) -> None:
        """Add the rows of another."""
        self.join(other)

    def state(self, arrays: Arrays) -> int:
        """The number of rows; the sums are put among the arrays."""
        sums = {name: getattr(self, name) for name in ("feature_mean", "target_mean", "gram")}
        sums |= {"cross": np.ascontiguousarray(self.rhs.T), "weight": np.array([self.weight])}
        arrays |= add_prefix("sums", sums)
        return self.n_rows

    @classmethod
    def from_state(cls, n_rows: Any, arrays: Arrays, t: int, n_targets: int) -> Self:
        """The sums that :meth:`state` wrote, of that many features and targets; the squares of targets are not kept."""
        sums = cls(t, n_targets)
        found = read_arrays(_SUMS, arrays, "sums.", t=t, T=n_targets)
        sums.n_rows, sums.weight = as_n_rows(n_rows, "rows"), float(found.pop("weight")[0])
        sums.rhs = found.pop("cross").T
        vars(sums).update(found)
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
        its = self.about(mean=fit_intercept)
        A = Factor(its.gram, alpha * float(its.gram.trace()) / len(its.gram)).solve(its.rhs).T
        intercept = self.target_mean - A @ self.feature_mean if fit_intercept else np.zeros(len(A))
        return np.ascontiguousarray(A), intercept

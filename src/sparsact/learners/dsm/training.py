r"""Fitting the top layer: sums of products block by block, or RMSProp on shuffled mini-batches.

.. math:: v \leftarrow \rho v + (1 - \rho) g^2, \qquad A \leftarrow A - \eta\, g / (\sqrt v + \varepsilon)

The gradient of the loss is a product of matrices: there is nothing to differentiate automatically.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.dsm.features import Array, SparseLayer
from sparsact.learners.low_degree.factor import Factor
from sparsact.saving.schema import ArrayField, Arrays, State, add_prefix, as_n_rows, read_arrays
from sparsact.statistics.centred import CentredSums
from sparsact.statistics.statistic import Batch

_SUMS: Final = {
    "feature_mean": ArrayField("t"),
    "target_mean": ArrayField("T"),
    "gram": ArrayField("t t"),
    "cross": ArrayField("T t"),
    "weight": ArrayField("1", finite=True, nonnegative=True),
}
ADDED_AT_ONCE: Final = 2**22  # values of a block of the closed form; its products of matrices are fast for tall blocks
KEPT: Final = 2**26  # values that training keeps from epoch to epoch: half a gigabyte


class RidgeStatistic(CentredSums):
    """Additive sums of ridge regression of T targets on t masked features ``mask(x) * phi(x)``; t**2 + t T floats."""

    def add(self, batch: Batch) -> None:
        """Add rows of features (m, t), which are overwritten; some weights are positive."""
        sums = copy(self)
        sums.replace(batch.X, batch.y, batch.row_weights())
        self.join(sums)

    def merge(self, other: Self) -> None:
        """Add the rows of another."""
        self.join(other)

    def empty(self) -> Self:
        """Return sums of the same layout without rows."""
        return type(self)(*self.rhs.shape)

    def state(self) -> tuple[State, Arrays]:
        """Return the sums as JSON and arrays; the squares of targets are not kept."""
        sums = {name: getattr(self, name) for name in ("feature_mean", "target_mean", "gram")}
        sums |= {"cross": np.ascontiguousarray(self.rhs.T), "weight": np.array([self.weight])}
        return {"rows": self.n_rows}, add_prefix("sums", sums)

    def restore(self, state: State, arrays: Arrays) -> None:
        """Restore the sums from a saved state."""
        t, n_targets = self.rhs.shape
        found = read_arrays(_SUMS, arrays, "sums.", t=t, T=n_targets)
        self.n_rows, self.weight = as_n_rows(state["rows"], "rows"), float(found.pop("weight")[0])
        self.rhs = found.pop("cross").T
        vars(self).update(found)

    def solve(self, alpha: float, *, fit_intercept: bool) -> tuple[Array, Array]:
        r"""Top layer A (T, t) and intercept (T,) that minimise the penalised squared error.

        The penalty is :math:`\alpha \tau \|A\|^2`, with :math:`\tau` the mean of the diagonal of the Gram matrix (the
        centred one, with an intercept). By Cholesky; of least norm where the matrix is numerically singular.
        """
        its = self.about(mean=fit_intercept)
        A = Factor(its.gram, alpha * float(its.gram.trace()) / len(its.gram)).solve(its.rhs).T
        intercept = self.target_mean - A @ self.feature_mean if fit_intercept else np.zeros(len(A))
        return np.ascontiguousarray(A), intercept


@dataclass(frozen=True)
class RMSProp:
    """Step size, memory of squared gradients, and what keeps the quotient finite."""

    learning_rate: float
    rho: float
    epsilon: float

    def step(self, weights: Array, gradient: Array, velocity: Array) -> None:
        """Change weights and velocity in place; the gradient is overwritten."""
        velocity *= self.rho
        velocity += (1 - self.rho) * gradient**2
        gradient *= self.learning_rate
        gradient /= np.sqrt(velocity) + self.epsilon
        weights -= gradient


@dataclass(eq=False)
class TopLayer:
    """The trained layer and the state of its training.

    Attributes
    ----------
    A, intercept : ndarray of shape (T, t), (T,)
        Weights; the intercept stays 0 when it is not fitted.
    velocity, intercept_velocity : ndarray of shape (T, t), (T,)
        Running means of squared gradients.
    losses : list of float
        Mean loss of each epoch over its batches, as they were met.
    """

    A: Array
    intercept: Array
    velocity: Array
    intercept_velocity: Array
    losses: list[float]

    @classmethod
    def glorot(cls, t: int, n_targets: int, *, rng: np.random.Generator) -> Self:
        r"""Glorot's uniform weights, within :math:`\pm\sqrt{6 / (t + T)}`; intercept 0."""
        limit = np.sqrt(6 / (t + n_targets))
        A = rng.uniform(-limit, limit, size=(n_targets, t))
        return cls(A, np.zeros(n_targets), np.zeros_like(A), np.zeros(n_targets), [])

    @blas_threads(0)  # small batches
    def epoch(
        self,
        features: Callable[[NDArray[np.intp]], Array],
        targets: Array,
        weights: Array,
        optimiser: RMSProp,
        *,
        batch_size: int,
        fit_intercept: bool,
        rng: np.random.Generator,
    ) -> None:
        """One pass over m rows in a fresh order: ``features`` maps rows to features (b, t); targets (m, T)."""
        order, loss = rng.permutation(len(targets)), 0.0
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            rows = features(batch)
            errors = rows @ self.A.T + self.intercept - targets[batch]
            slopes = weights[batch, None] * errors
            loss += float((slopes * errors).sum())
            slopes *= 2 / (weights[batch].sum() * errors.shape[1])
            optimiser.step(self.A, slopes.T @ rows, self.velocity)
            if fit_intercept:
                optimiser.step(self.intercept, slopes.sum(axis=0), self.intercept_velocity)
        self.losses.append(loss / float(weights.sum() * targets.shape[1]))


def add_rows(statistic: RidgeStatistic, layer: SparseLayer, X: Array, targets: Array, weights: Array) -> None:
    """Add rows (m, d), targets (m, T) and positive weights (m,) to the sums."""
    rows = max(256, ADDED_AT_ONCE // layer.bottom.t)
    for start in range(0, len(X), rows):
        block = slice(start, start + rows)
        statistic.add(Batch(layer.features(X[block]), targets[block], weights[block]))


def features_by_rows(
    layer: SparseLayer, X: Array, n_epochs: int, most_kept: int = KEPT
) -> Callable[[NDArray[np.intp]], Array]:
    """Map from rows of X (m, d) to their features: up to ``most_kept`` values are kept between epochs."""
    if n_epochs == 1 or len(X) * layer.bottom.t > most_kept:
        return lambda batch: layer.features(X[batch])
    kept = np.empty((len(X), layer.bottom.t))
    for block in layer.blocks(len(X)):
        kept[block] = layer.features(X[block])
    return kept.__getitem__

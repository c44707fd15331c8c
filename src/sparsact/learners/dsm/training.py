r"""Fitting the top layer: sums of products block by block, or RMSProp on shuffled mini-batches.

.. math:: v \leftarrow \rho v + (1 - \rho) g^2, \qquad A \leftarrow A - \eta\, g / (\sqrt v + \varepsilon)

The gradient of the loss is a product of matrices: there is nothing to differentiate automatically.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.kernels.descent import Units
from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.dsm.features import Array, SparseLayer, stream
from sparsact.learners.low_degree.normal_equations import Factor
from sparsact.routing import TopK
from sparsact.routing.selection import EMPTY
from sparsact.saving.schema import ArrayField, Arrays, add_prefix, as_n_rows, read_arrays
from sparsact.statistics.centred import CentredSums

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
        """One pass over m rows in a fresh order: ``features`` gives those of some rows, (b, t); targets (m, T)."""
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


ADDED_AT_ONCE = 2**22  # values of a block of the closed form: 32 MB; its products of matrices want tall blocks
KEPT = 2**26  # values that training keeps from epoch to epoch: half a gigabyte


def add_rows(statistic: RidgeStatistic, layer: SparseLayer, X: Array, targets: Array, weights: Array) -> None:
    """Add rows (m, d), targets (m, T) and positive weights (m,) to the sums."""
    rows = max(256, ADDED_AT_ONCE // layer.bottom.t)
    for start in range(0, len(X), rows):
        block = slice(start, start + rows)
        statistic.add(layer.features(X[block]), targets[block], weights[block])


def train(
    top: TopLayer,
    layer: SparseLayer,
    sample: tuple[Array, Array, Array],
    optimiser: RMSProp,
    *,
    epochs: int,
    batch_size: int,
    fit_intercept: bool,
    seed: tuple[int, ...],
) -> None:
    """Train for some epochs on rows (m, d), targets (m, T), weights (m,).

    The order of an epoch follows from the seed and the number of epochs before it, so that training goes on after a
    pause as it would have without.
    """
    X, targets, weights = sample
    kept = _all_features(layer, X) if epochs > 1 and len(X) * layer.bottom.t <= KEPT else None
    for _ in range(epochs):
        top.epoch(
            (lambda batch: layer.features(X[batch])) if kept is None else kept.__getitem__,
            targets,
            weights,
            optimiser,
            batch_size=batch_size,
            fit_intercept=fit_intercept,
            rng=stream(seed, "order", len(top.losses)),
        )


def _all_features(layer: SparseLayer, X: Array) -> Array:
    features = np.empty((len(X), layer.bottom.t))
    for block in layer.blocks(len(X)):
        features[block] = layer.features(X[block])
    return features


@dataclass(frozen=True, eq=False)
class FrozenFeatures:
    r""":math:`\operatorname{mask}(x) \circ \phi(x)` of m inputs, rounded to float32; t units, a of them active.

    Attributes
    ----------
    values : ndarray of shape (m, t) or (m, a), float32
        All features, or the active ones.
    units : ndarray of shape (m, a), uint16 or uint32, or None
        Which units are active, in increasing order; None if all are.
    t : int
        Number of units.

    Notes
    -----
    ``4 m t`` bytes, or ``6 m a`` (``8 m a`` beyond 65,536 units).
    """

    values: NDArray[np.float32]
    units: Units | None
    t: int

    @classmethod
    def of(cls, layer: SparseLayer, X: Array) -> Self:
        """Features of rows (m, d); the layer's router must switch on the same number of units for every row."""
        m, t, a = len(X), layer.bottom.t, layer.n_active
        values = np.empty((m, a), dtype=np.float32)
        units = np.empty((m, a), dtype=np.uint16 if t <= 2**16 else np.uint32)
        for block in layer.blocks(m):
            z = layer.bottom.preactivations(X[block])
            if a == t:
                values[block] = layer.bottom.activate(z)
                continue
            places, weights = _active(layer, X[block], z)
            units[block] = places
            values[block] = layer.bottom.activate(np.take_along_axis(z, places, axis=1)) * weights
        return cls(values, units if a < t else None, t)

    def train(
        self,
        top: TopLayer,
        y: Array,
        optimiser: RMSProp,
        *,
        epochs: int,
        batch_size: int,
        fit_intercept: bool,
        rng: np.random.Generator,
    ) -> None:
        """Train a top layer of one target, y (m,), for some epochs, each in a fresh order; it changes in place."""
        state = np.array([top.intercept[0], top.intercept_velocity[0]])
        for _ in range(epochs):
            order = rng.permutation(len(y)).astype(np.int64)
            loss = kernels.descend(
                self.values,
                self.units,
                y,
                order,
                (top.A[0], top.velocity[0], state),
                fit_intercept=fit_intercept,
                batch_size=batch_size,
                learning_rate=optimiser.learning_rate,
                rho=optimiser.rho,
                epsilon=optimiser.epsilon,
            )
            top.losses.append(loss)
        top.intercept[0], top.intercept_velocity[0] = state

    def ridge(self, y: Array, alpha: float, *, fit_intercept: bool) -> tuple[Array, float]:
        """Weights (t,) and intercept of the penalised optimum, as :meth:`RidgeStatistic.solve` defines it."""
        statistic = RidgeStatistic(self.t, 1)
        for block in self._blocks(max(256, ADDED_AT_ONCE // self.t)):
            statistic.add(self.dense(block), y[block, None], np.ones(len(y[block])))
        A, intercept = statistic.solve(alpha, fit_intercept=fit_intercept)
        return A[0], float(intercept[0])

    def predict(self, A: Array, intercept: float) -> Array:
        """Values (m,) under a top layer A (t,)."""
        values = np.empty(len(self.values))
        for block in self._blocks(max(1, ADDED_AT_ONCE // self.values.shape[1])):
            rows = self.values[block]
            values[block] = rows @ A if self.units is None else np.einsum("ij,ij->i", rows, A[self.units[block]])
        return values + intercept

    def dense(self, block: slice) -> Array:
        """Features (rows, t) of some rows in double precision, 0 where a unit is off."""
        rows = self.values[block].astype(np.float64)
        if self.units is None:
            return rows
        dense = np.zeros((len(rows), self.t))
        np.put_along_axis(dense, self.units[block].astype(np.intp), rows, axis=1)
        return dense

    def _blocks(self, size: int) -> Iterator[slice]:
        return (slice(start, start + size) for start in range(0, len(self.values), size))


def _active(layer: SparseLayer, X: Array, z: Array) -> tuple[NDArray[np.int64], Array | float]:
    """Places (m, a) of the active units, and their weights in the mask."""
    if isinstance(layer.router, TopK):
        return kernels.top_k(z, layer.router.n_active, absolute=layer.router.absolute), 1.0
    chosen = layer.router.select(z if layer.by_values else X, layer.state)
    if (chosen.indices == EMPTY).any():
        raise ValueError(
            f"frozen features need as many active units for every input; {layer.router!r} left places empty: "
            "choose another router, or DSMRegressor."
        )
    return chosen.indices, chosen.weights

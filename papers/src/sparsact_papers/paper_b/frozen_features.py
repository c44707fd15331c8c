"""Features of a layer that is frozen, computed once: what is trained and solved on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.kernels.rmsprop_epoch import Units
from sparsact.learners.dsm.features import SparseLayer
from sparsact.learners.dsm.training import ADDED_AT_ONCE, RidgeStatistic, RMSProp, TopLayer
from sparsact.routing import TopK
from sparsact.routing.selection import EMPTY
from sparsact.statistics.statistic import Batch

Array = NDArray[np.float64]


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
            statistic.add(Batch(self.dense(block), y[block, None]))
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

"""An epoch of RMSProp on frozen features, batch by batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def descend_dense(
    values: NDArray[np.float32],
    y: Array,
    order: NDArray[np.int64],
    A: Array,
    velocity: Array,
    intercept: Array,
    fit_intercept: bool,
    batch_size: int,
    learning_rate: float,
    rho: float,
    epsilon: float,
) -> float:
    """Change the layer in place; the sum of squared errors. See :func:`sparsact.kernels.descend`."""

    def step(weights: Array, v: Array, gradient: Array) -> None:
        v[:] = rho * v + (1 - rho) * gradient**2
        weights -= learning_rate * gradient / (np.sqrt(v) + epsilon)

    loss = 0.0
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        rows = values[batch].astype(np.float64)
        errors = rows @ A + (intercept[0] if fit_intercept else 0.0) - y[batch]
        loss += float(errors @ errors)
        slopes = 2 / len(batch) * errors
        step(A, velocity, slopes @ rows)
        if fit_intercept:
            step(intercept[:1], intercept[1:], slopes.sum(keepdims=True))
    return loss


def descend_compact(
    values: NDArray[np.float32],
    units: NDArray[np.unsignedinteger],
    y: Array,
    order: NDArray[np.int64],
    A: Array,
    *rest: object,
) -> float:
    """:func:`descend_dense` on rows that name their active units."""
    dense = np.zeros((len(values), len(A)), dtype=np.float32)
    np.put_along_axis(dense, units.astype(np.intp), values, axis=1)
    return descend_dense(dense, y, order, A, *rest)  # type: ignore[arg-type]

"""Training of a linear layer on frozen features: an epoch of RMSProp."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels import dispatch

Array = NDArray[np.float64]

Order = NDArray[np.int64]
Units = NDArray[np.uint16] | NDArray[np.uint32]


def descend(
    values: NDArray[np.float32],
    units: Units | None,
    y: Array,
    order: Order,
    layer: tuple[Array, Array, Array],
    *,
    fit_intercept: bool,
    batch_size: int,
    learning_rate: float,
    rho: float,
    epsilon: float,
) -> float:
    r"""Train the layer in place for one epoch of mini-batches, and return the mean squared error on the way.

    .. math:: g = \frac{2}{b} \sum_i e_i \varphi(x_i), \qquad
              v \leftarrow \rho v + (1 - \rho) g^2, \qquad A \leftarrow A - \eta\, g / (\sqrt v + \varepsilon)

    Parameters
    ----------
    values : ndarray of shape (m, t) or (m, a), float32
        Features, or the active units' features of each row. C-contiguous, as all arrays here.
    units : ndarray of shape (m, a), uint16 or uint32, or None
        Which units these are, each at most once in a row; None if they are all.
    y : ndarray of shape (m,), float64
    order : ndarray of shape (m,), int64
        Rows as they are met; b is the size of their batch, also of a last short one.
    layer : tuple of ndarrays of shape (t,), (t,), (2,), float64
        Weights A, velocities v, and the intercept with its velocity, which stay if ``fit_intercept`` is false.
    fit_intercept : bool
        Whether the intercept takes part.
    batch_size, learning_rate, rho, epsilon
        At least 1; the eta, rho and epsilon of the formula.

    Returns
    -------
    loss : float
        Mean squared error of the batches as they were met.

    Notes
    -----
    About ``4 m a`` operations and ``t`` roots a batch. Batches come from memory once: where A and a batch fit the
    second-level cache that is the cost. Any instruction set gives the same bits; the reference agrees up to rounding.
    """
    kernels = dispatch.chosen
    settings = (fit_intercept, batch_size, learning_rate, rho, epsilon)
    if units is None:
        loss = kernels.descend_dense(values, y, order, *layer, *settings)
    else:
        loss = kernels.descend_compact(values, units, y, order, *layer, *settings)
    return float(loss) / len(y)


@dispatch.kernel
def _descend_dense(
    values: NDArray[np.float32], y: Array, order: Order, A: Array, velocity: Array, intercept: Array, *settings: Any
) -> float:
    """The sum of squared errors."""
    fit_intercept, batch_size, learning_rate, rho, epsilon = settings

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


@dispatch.kernel
def _descend_compact(
    values: NDArray[np.float32], units: NDArray[np.unsignedinteger], y: Array, order: Order, A: Array, *rest: Any
) -> float:
    dense = np.zeros((len(values), len(A)), dtype=np.float32)
    np.put_along_axis(dense, units.astype(np.intp), values, axis=1)
    return _descend_dense(dense, y, order, A, *rest)

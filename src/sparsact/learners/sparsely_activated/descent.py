r"""Descent from any start to a network that is k-sparse on the rows.

.. math:: \min_\theta \ \frac{1}{2 m} \sum_i \big(h_\theta(a_i) - y_i\big)^2
          + \frac{\mu}{2 m} \sum_i \sum_{j \notin \mathrm{top}_k(i)} \sigma(\langle \theta_j, a_i \rangle)^2

by L-BFGS, with :math:`\mu` raised step by step: at first units may share rows and sort out which row is whose, at the
end what is left of the excess is small, and :func:`separated` takes it away by raising thresholds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sparsact.learners.sparsely_activated.leaf_models import Array, TrainingSample
from sparsact.learners.sparsely_activated.to_network import GateUnits, NormLimits

PENALTIES = (0.1, 1.0, 10.0, 100.0)
CLEARANCE = 1e-9  # by which a raised threshold exceeds the pre-activation that it is to switch off, relatively


def descend(
    start: GateUnits, sample: TrainingSample, max_active: int, limits: NormLimits, *, max_iter: int, tol: float
) -> tuple[GateUnits, int]:
    """A k-sparse network near ``start`` of less squared error, and the iterations spent.

    Weights that are zero stay zero.

    Notes
    -----
    An iteration costs ``4 m s n`` multiplications and holds some arrays of m x s.
    """
    shares = sample.weights / sample.total
    theta, iterations = start.theta.ravel(), 0
    free = start.theta != 0
    penalties = PENALTIES if len(start) > max_active else PENALTIES[:1]
    for penalty in penalties:
        found = minimize(
            _objective,
            theta,
            args=(sample, shares, start.signs, free, max_active, penalty, limits),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max(1, max_iter // len(penalties)), "ftol": tol * 1e-2, "gtol": 1e-9},
        )
        theta, iterations = found.x, iterations + found.nit
    units = GateUnits(start.signs, limits.shrunk(theta.reshape(start.theta.shape)))
    return separated(units, sample, max_active), iterations


def _objective(
    flat: Array,
    sample: TrainingSample,
    shares: Array,
    signs: Array,
    free: NDArray[np.bool_],
    max_active: int,
    penalty: float,
    limits: NormLimits,
) -> tuple[float, Array]:
    """The penalised error and its gradient."""
    theta = flat.reshape(len(signs), -1)
    factors, gradients = limits.shrinkage(theta)
    shrunk = factors[:, None] * theta
    outputs = np.maximum(sample.design @ shrunk.T, 0.0)
    errors = outputs @ signs - sample.targets
    residuals = shares * errors
    excess = penalty * shares[:, None] * excess_of(outputs, max_active)
    value = 0.5 * float(residuals @ errors) + 0.5 * float((excess * outputs).sum())
    slopes = ((outputs > 0) * residuals[:, None] * signs + excess).T @ sample.design
    along = (slopes * theta).sum(axis=1)
    return value, (free * (factors[:, None] * slopes + along[:, None] * gradients)).ravel()


def excess_of(outputs: Array, max_active: int) -> Array:
    """Outputs of the units (m, s), those of each row's ``max_active`` largest set to zero."""
    if outputs.shape[1] <= max_active:
        return np.zeros_like(outputs)
    excess = outputs.copy()
    largest = np.argpartition(outputs, -max_active, axis=1)[:, -max_active:]
    np.put_along_axis(excess, largest, 0.0, axis=1)
    return excess


def separated(units: GateUnits, sample: TrainingSample, max_active: int) -> GateUnits:
    """The units with thresholds raised until no row has more than ``max_active`` above zero."""
    theta = units.theta.copy()
    excess = excess_of(np.maximum(sample.design @ theta.T, 0.0), max_active).max(axis=0, initial=0.0)
    theta[:, -1] -= excess * (1 + CLEARANCE)
    return GateUnits(units.signs, theta)


def scattered(sample: TrainingSample, n_units: int, max_active: int, rng: np.random.Generator) -> GateUnits:
    """Units in random directions, each on at a random share of the rows, with signs in equal numbers."""
    theta = rng.normal(size=(n_units, sample.n + 1))
    theta[:, -1] = 0.0
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    shares = rng.uniform(0.02, min(0.6, max(0.05, 3 * max_active / n_units)), n_units)
    linear = sample.design @ theta.T
    order = np.argsort(linear, axis=0)
    covered = np.cumsum(sample.weights[order], axis=0) / sample.total
    place = np.argmax(covered >= 1 - shares, axis=0)
    theta[:, -1] = -np.take_along_axis(linear, order, axis=0)[place, np.arange(n_units)]
    signs = np.where(rng.permutation(n_units) % 2, 1.0, -1.0)
    return GateUnits(signs, theta)

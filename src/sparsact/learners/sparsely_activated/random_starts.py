r"""Random units that mini-batches of rows move, by Adam [1]_ in float32, towards a k-sparse network.

Two starts go side by side, in one product of matrices a step, and the better is taken. Units have sizes and signs
:math:`u_j` of their own here, and a penalty on the activity of all but the k largest contributions
:math:`|u_j| \sigma(\cdot)` of a row is raised from none at a fifth of the steps to its full size at seven tenths: at
first units share rows and sort out whose is which.

The columns are whitened, so that what is found depends on the rows' correlations as little as it can.

References
----------
.. [1] D. Kingma, J. Ba, "Adam: a method for stochastic optimization", 2015.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.sparsely_activated.leaf_models import Array, TrainingSample
from sparsact.learners.sparsely_activated.to_network import GateUnits

N_STARTS: Final = 2
BATCH: Final = 256  # rows
RATE: Final = 0.06
BETAS: Final = (0.9, 0.99)
EPSILON: Final = 1e-8
WARM_UP: Final = 50  # steps
RAMP: Final = (0.2, 0.7)  # shares of the steps between which the penalty rises
LAST_RATE: Final = 0.005  # of the first
FLOOR: Final = 1e-2  # of the mean variance, added to that of each direction
N_JUDGED: Final = 4000  # rows on which the starts are compared
Floats = NDArray[np.float32]


def random_units(
    sample: TrainingSample, n_units: int, max_active: int, penalty: float, n_steps: int, rng: np.random.Generator
) -> GateUnits:
    """The better of two networks of ``n_units`` that start at random, over the design of the sample."""
    whiten = _whitening(sample)
    rows = (sample.design @ whiten).astype(np.float32)
    size = float(np.sqrt(sample.variation() / sample.total)) or 1.0
    targets = (sample.targets / size).astype(np.float32)
    weights = (sample.weights * (len(sample) / sample.total)).astype(np.float32)
    shape = (N_STARTS * n_units, rows.shape[1])
    theta = (rng.standard_normal(shape) / np.sqrt(max(shape[1] - 1, 1))).astype(np.float32)
    theta[:, -1] = rng.uniform(-1.2, 0.8, len(theta))
    u = (rng.standard_normal(len(theta)) / np.sqrt(n_units)).astype(np.float32)
    _descend((rows, targets, weights), theta, u, max_active, penalty, n_steps, rng)
    some = slice(N_JUDGED)
    errors = _summed(np.maximum(rows[some] @ theta.T, 0) * u) - targets[some, None]
    best = int(np.argmin(np.nan_to_num((weights[some, None] * errors**2).mean(axis=0), nan=np.inf)))
    mine = slice(best * n_units, (best + 1) * n_units)
    theta64 = theta[mine].astype(np.float64) @ whiten.T * (np.abs(u[mine, None]) * size)
    return GateUnits(np.where(u[mine] < 0, -1.0, 1.0), np.nan_to_num(theta64))


def _whitening(sample: TrainingSample) -> Array:
    """Matrix (n + 1, r + 1) that maps the design to uncorrelated columns of variance about one, and ones."""
    mean = np.average(sample.design[:, :-1], axis=0, weights=sample.weights)
    centred = sample.design[:, :-1] - mean
    values, vectors = np.linalg.eigh(centred.T @ (centred * (sample.weights / sample.total)[:, None]))
    kept = values > 1e-9 * max(values[-1], 1e-30)
    root = vectors[:, kept] / np.sqrt(values[kept] + FLOOR * values.mean())
    return np.block([[root, np.zeros((len(root), 1))], [-mean @ root, np.ones(1)]])


def _summed(contributions: Floats) -> Floats:
    """Sums of the units of each start, (m, starts)."""
    return np.asarray(contributions.reshape(len(contributions), N_STARTS, -1).sum(axis=2))


def _descend(
    data: tuple[Floats, Floats, Floats],
    theta: Floats,
    u: Floats,
    max_active: int,
    penalty: float,
    n_steps: int,
    rng: np.random.Generator,
) -> None:
    """Move ``theta`` and ``u`` in place; the data are rows, targets and weights."""
    rows, targets, weights = data
    size = min(BATCH, len(rows))
    order, at = rng.permutation(len(rows)), 0
    moments: list[Any] = [(each, np.zeros_like(each), np.zeros_like(each)) for each in (theta, u)]
    for step in range(1, n_steps + 1):
        if at + size > len(rows):
            order, at = rng.permutation(len(rows)), 0
        batch = order[at : at + size]
        at += size
        ramp = min(1.0, max(0.0, (step / n_steps - RAMP[0]) / (RAMP[1] - RAMP[0])))
        along = slopes(rows[batch], targets[batch], weights[batch], theta, u, max_active, penalty * ramp)
        now = RATE * (0.5 * (1 + np.cos(np.pi * step / n_steps)) + LAST_RATE) * min(1.0, step / WARM_UP)
        corrections = [1 - beta**step for beta in BETAS]
        for (values, first, second), slope in zip(moments, along, strict=True):
            first += (1 - BETAS[0]) * (slope - first)
            second += (1 - BETAS[1]) * (slope * slope - second)
            values -= (now / corrections[0]) * first / (np.sqrt(second / corrections[1]) + EPSILON)


def slopes(
    rows: Floats, targets: Floats, weights: Floats, theta: Floats, u: Floats, max_active: int, penalty: float
) -> tuple[Floats, Floats]:
    """Gradient of the mean penalised error of a batch."""
    outputs = rows @ theta.T
    np.maximum(outputs, 0, out=outputs)
    contributions = outputs * u
    scale = (2 / len(rows)) * weights[:, None]
    errors = scale * (_summed(contributions) - targets[:, None])
    n_units = len(u) // N_STARTS
    each = np.repeat(errors, n_units, axis=1)
    if penalty and n_units > max_active:
        sizes = np.abs(contributions).reshape(len(rows), N_STARTS, n_units)
        if max_active == 1:
            largest = sizes.max(axis=2, keepdims=True)
        else:
            largest = np.partition(sizes, n_units - max_active, axis=2)[:, :, -max_active, None]
        excess = contributions.reshape(sizes.shape) * (sizes < largest)
        each += (np.float32(penalty) * scale) * excess.reshape(outputs.shape)
    along_u = np.einsum("ij,ij->j", outputs, each)
    each *= outputs > 0
    each *= u
    return each.T @ rows, along_u

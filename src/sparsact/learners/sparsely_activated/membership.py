"""The last step: over X itself, k-sparse on every row by exact count, and within the scale."""

from __future__ import annotations

import numpy as np

from sparsact.learners.sparsely_activated.gates import GateUnits
from sparsact.learners.sparsely_activated.limits import row_norms
from sparsact.learners.sparsely_activated.sample import Array, TrainingSample
from sparsact.network import SparselyActivatedNetwork

ROWS_AT_ONCE = 4096
LARGEST = 1e307  # sum of magnitudes in a pre-activation


def network_of(
    units: GateUnits,
    sample: TrainingSample,
    X: Array,
    max_active: int,
    max_weight: float | None,
    max_bias: float | None,
) -> SparselyActivatedNetwork:
    """The network over X, with what rounding spoilt put right.

    Rounding on the way from the design to X may switch a unit on at a row where its gates held it at zero. Its
    threshold is raised past that row; a unit that would leave the scale by that is dropped, and so is one that would
    overflow. At least one unit stays, as a network has a unit even when it is zero.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        W, b = sample.in_columns_of_x(units.theta)
        there = np.abs(W) @ np.maximum(np.abs(X).max(axis=0), 1.0) + np.abs(b) < LARGEST
    network = SparselyActivatedNetwork(units.signs[there], W[there], b[there])
    while True:
        network = _within_scale(network, max_weight, max_bias)
        raised = _thresholds(network, X, max_active)
        if np.array_equal(raised, network.b):
            return network
        network = SparselyActivatedNetwork(network.u, network.W, raised)


def _thresholds(network: SparselyActivatedNetwork, X: Array, max_active: int) -> Array:
    """Thresholds raised at every row that has more than ``max_active`` units on, by exact count."""
    raised = network.b.copy()
    for rows in np.array_split(X, -(-len(X) // ROWS_AT_ONCE)):
        active = network.active(rows)
        crowded = active.sum(axis=1) > max_active
        if not crowded.any():
            continue
        linear = rows[crowded] @ network.W.T
        heights = np.where(active[crowded], linear - network.b, -np.inf)
        smaller = np.argsort(-heights, axis=1, kind="stable")[:, max_active:]
        surplus = np.zeros_like(heights, dtype=bool)
        np.put_along_axis(surplus, smaller, True, axis=1)
        surplus &= active[crowded]
        doubt = 4 * rows.shape[1] * np.finfo(float).eps * (np.abs(rows[crowded]) @ np.abs(network.W.T))
        lift = np.where(surplus, linear + doubt, -np.inf).max(axis=0)
        raised = np.where(lift >= raised, np.nextafter(np.maximum(lift, raised), np.inf), raised)
    return raised


def _within_scale(
    network: SparselyActivatedNetwork, max_weight: float | None, max_bias: float | None
) -> SparselyActivatedNetwork:
    """The network without the units that exceed a limit."""
    norms = row_norms(network.W)
    kept = np.ones(network.s, dtype=bool)
    if max_weight is not None:
        kept &= norms <= max_weight
    if max_bias is not None:
        kept &= np.abs(network.b) <= max_bias
    if kept.all() and network.s:
        return network
    if not kept.any():
        return SparselyActivatedNetwork(np.ones(1), np.zeros((1, network.n)), np.zeros(1))
    return SparselyActivatedNetwork(network.u[kept], network.W[kept], network.b[kept])

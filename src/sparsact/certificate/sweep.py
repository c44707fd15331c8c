"""Count the active units at every state of a reduction, block by block, and settle what floating point cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsact.certificate.inputs import Inputs
from sparsact.certificate.reduction import Reduction
from sparsact.exact_sign import is_exact

if TYPE_CHECKING:
    from sparsact.network import SparselyActivatedNetwork

NUMBERS_AT_ONCE = 2**21
SETTLED_AT_MOST = 2**19  # points, and as many again of those that matter most


def rounding_bound(network: SparselyActivatedNetwork) -> NDArray[np.float64]:
    """Error of a computed pre-activation on the cube, (s,): 0 for units whose sums are exact, in any order."""
    total = np.asarray(abs(network.W).sum(axis=1)) + np.abs(network.b)
    bound = 4 * (network.n + 2) * np.finfo(np.float64).eps * total  # features are sums that rounded already
    return np.where(network.has_exact_weights(), 0.0, bound)


@dataclass(eq=False)
class Tally:
    """What a sweep has found so far; -1 units while it has met no allowed input.

    ``upper`` exceeds ``lower`` only where doubtful points were too many to settle.
    """

    lower: int = -1
    upper: int = -1
    witness: NDArray[np.int8] | None = None
    settled: int = 0
    unsettled: int = 0
    histogram: NDArray[Any] | None = None


def sweep(network: SparselyActivatedNetwork, inputs: Inputs, reduction: Reduction) -> Tally:
    """The most active units over all states, and how many inputs have how many.

    Cost: ``n_states * s * F`` multiplications, and an exact sum for each doubtful pre-activation, of at most
    ``SETTLED_AT_MOST`` points.
    """
    tally = Tally(histogram=np.zeros(network.s + 1, dtype=np.int64))
    tolerance = rounding_bound(network)
    sides_are_exact = bool(is_exact(inputs.normals, inputs.offsets).all())
    step = max(1, NUMBERS_AT_ONCE // max(1, network.s, network.n))
    for start in range(0, reduction.n_states, step):
        states = np.arange(start, min(start + step, reduction.n_states))
        features = reduction.features(states)
        if len(inputs.offsets):
            if sides_are_exact:
                allowed = (features @ reduction.normals.T >= inputs.offsets).all(axis=1)
            else:
                allowed = inputs.contains(reduction.points(states))
            states, features = states[allowed], features[allowed]
        if len(states):
            _count(tally, network, reduction, states, features @ reduction.weights.T - network.b, tolerance)
    return tally


def _count(
    tally: Tally,
    network: SparselyActivatedNetwork,
    reduction: Reduction,
    states: NDArray[np.int64],
    values: NDArray[np.float64],
    tolerance: NDArray[np.float64],
) -> None:
    lower = np.count_nonzero(values > tolerance, axis=1)
    upper = lower if not tolerance.any() else np.count_nonzero(values > -tolerance, axis=1)
    doubtful = np.flatnonzero(upper > lower)
    if tally.settled + len(doubtful) > SETTLED_AT_MOST:
        known = max(tally.lower, int(lower.max()))
        matter = doubtful[upper[doubtful] > known]
        chosen = matter[: max(0, 2 * SETTLED_AT_MOST - tally.settled)]
    else:
        chosen = doubtful
    if len(chosen):
        lower[chosen] = upper[chosen] = network.n_active(reduction.points(states[chosen]))
    tally.settled += len(chosen)
    tally.unsettled += len(doubtful) - len(chosen)
    best = int(lower.argmax())
    if lower[best] > tally.lower:
        tally.lower, tally.witness = int(lower[best]), reduction.points(states[best : best + 1])[0]
    tally.upper = max(tally.upper, int(upper.max()))
    multiplicities = reduction.multiplicities(states)
    if multiplicities is None or tally.unsettled or tally.histogram is None:
        tally.histogram = None
    else:
        tally.histogram = tally.histogram.astype(multiplicities.dtype, copy=False)
        np.add.at(tally.histogram, lower, multiplicities)

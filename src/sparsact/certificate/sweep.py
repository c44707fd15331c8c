"""Count the active units at every point of the cube, or at every state of a reduction, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.activity import Certificate
from sparsact.certificate.inputs import Inputs
from sparsact.certificate.preactivations import MOST_VALUES, separated
from sparsact.certificate.symmetry import Orbits, Reduction
from sparsact.exact_sign import dense, is_exact, two_parts
from sparsact.hypercube import bits_to_signs
from sparsact.network import SparselyActivatedNetwork

NUMBERS_AT_ONCE: Final = 2**20


@dataclass(frozen=True)
class Effort:
    """How much work doubt is worth: points to settle, multiplications of a sweep, values of a unit to list."""

    settled: int = 2**19  # and as many again that matter most
    for_verdict: int = 2**33
    for_distribution: int = 2**28
    values: int = MOST_VALUES


EFFORT: Final = Effort()


@dataclass(eq=False)
class SweepCount:
    """What a sweep has found so far; -1 units while it has met no allowed input.

    ``upper`` exceeds ``lower`` only where points that rounding leaves in doubt were too many to settle.
    """

    lower: int = -1
    upper: int = -1
    witness: NDArray[np.int8] | None = None
    settled: int = 0
    unsettled: int = 0
    most_settled: int = 0
    histogram: NDArray[Any] | None = None

    def certificate(self, n_units: int, inputs: str, method: str, proof: str) -> Certificate:
        """What a count of every point or orbit proves."""
        if self.witness is None:
            return Certificate(0, 0, None, method, proof, inputs, n_units, vacuous=True)
        doubt = ""
        if self.lower < self.upper:
            doubt = f"at least {self.unsettled:,} points within rounding error of a tie are left in doubt"
        elif self.settled:
            doubt = f"at least {self.settled:,} points within rounding error of a tie were settled by exact sums"
        counts = None if self.histogram is None else tuple(self.histogram[: self.lower + 1].tolist())
        return Certificate(
            self.lower, self.upper, self.witness, method, proof, inputs, n_units, doubt=doubt, distribution=counts
        )


class Signs:
    """Pre-activations at the features of a reduction whose signs are the true ones.

    Units that rounding could mislead are summed in two parts, each exact; ``fear`` bounds the error of the few units
    whose numbers differ too much in size even for that, and is 0 for all others.
    """

    def __init__(self, network: SparselyActivatedNetwork, reduction: Reduction, most_values: int) -> None:
        self.b, fear = separated(network, most_values)
        self.weights, self.split = reduction.weights, np.flatnonzero(fear)
        high, low, fits = two_parts(network.W[self.split], network.b[self.split])
        self.parts = [(reduction.reduced(W), b) for W, b in (high, low)]
        fear[self.split[fits]] = 0.0
        self.fear = fear

    def __call__(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pre-activations (m, s), of the right sign wherever they are beyond ``fear``."""
        values = features @ self.weights.T - self.b
        if len(self.split):
            high, low = (features @ W.T - b for W, b in self.parts)
            values[:, self.split] = high + low
        return np.asarray(values)


def sweep(
    network: SparselyActivatedNetwork, inputs: Inputs, reduction: Reduction, effort: Effort = EFFORT
) -> SweepCount:
    """The most active units over all states, and how many inputs have how many.

    Cost: ``n_states * s * F`` multiplications, thrice that for units that rounding could mislead.
    """
    tally = SweepCount(histogram=np.zeros(network.s + 1, dtype=np.int64), most_settled=effort.settled)
    signs = Signs(network, reduction, effort.values)
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
            _count(tally, network, reduction, states, signs(features), signs.fear)
    return tally


def _count(
    tally: SweepCount,
    network: SparselyActivatedNetwork,
    reduction: Reduction,
    states: NDArray[np.int64],
    values: NDArray[np.float64],
    fear: NDArray[np.float64],
) -> None:
    """Count states; doubtful points one by one, candidates for the maximum first when they are too many."""
    lower = np.count_nonzero(values > fear, axis=1)
    upper = np.count_nonzero(values > -fear, axis=1) if fear.any() else lower
    chosen = doubtful = np.flatnonzero(upper > lower)
    if tally.settled + len(doubtful) > tally.most_settled:
        matter = doubtful[upper[doubtful] > max(tally.lower, int(lower.max()))]
        chosen = matter[: max(0, 2 * tally.most_settled - tally.settled)]
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


MOST_INPUTS: Final = 26
MOST_UNITS: Final = 2**15 - 1  # of the kernel


def enumerated(
    network: SparselyActivatedNetwork, inputs: Inputs, *, n_threads: int, effort: Effort = EFFORT
) -> SweepCount:
    """The most active units over the whole cube, and how many points have how many.

    Where the kernel leaves points in doubt, all points are counted again by :func:`~sparsact.certificate.sweep.sweep`,
    which settles them; where that is too much work, an interval remains.
    """
    if network.s > MOST_UNITS:
        return sweep(network, inputs, Orbits(network.W, inputs, merge=False), effort)
    thresholds = separated(network, effort.values)
    counts = kernels.count_active(np.ascontiguousarray(dense(network.W)), *thresholds, n_threads=n_threads)
    numbers = np.array([counts.lower_witness, counts.upper_witness])
    witnesses = bits_to_signs(numbers[:, None] >> np.arange(network.n) & 1)
    exact = network.n_active(witnesses)
    best, upper = int(exact.argmax()), int(np.flatnonzero(counts.upper_histogram)[-1])
    differ = int(np.abs(counts.lower_histogram - counts.upper_histogram).sum()) // 2
    work = 2**network.n * network.s * network.n
    if differ and work <= (effort.for_verdict if exact[best] < upper else effort.for_distribution):
        tally = sweep(network, inputs, Orbits(network.W, inputs, merge=False), effort)
        tally.settled = max(tally.settled, differ)
        return tally
    return SweepCount(
        lower=int(exact[best]),
        upper=upper,
        witness=witnesses[best],
        unsettled=differ,
        histogram=None if differ else counts.lower_histogram,
    )

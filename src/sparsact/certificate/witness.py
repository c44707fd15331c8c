"""An input that switches on many units, by local search: where every interval starts from below."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.certificate.inputs import Inputs
from sparsact.exact_sign import dense
from sparsact.hypercube import bits_to_signs
from sparsact.network import SparselyActivatedNetwork

WALKERS: Final = 64
MULTIPLICATIONS: Final = 2**31
MOST_STEPS: Final = 512


def searched_witness(
    network: SparselyActivatedNetwork, inputs: Inputs, *, rng: np.random.Generator
) -> tuple[int, NDArray[np.int8] | None]:
    """Units that the best input found switches on, counted exactly, and that input; (0, None) if none was allowed.

    A few dozen walkers start at random inputs and at the inputs that favour one unit most. Each step flips one
    coordinate (of y, for a lift) of every walker, and is kept where no unit is lost.
    """
    walkers = _starts(network, inputs, rng)
    points = _inputs_behind(walkers, inputs)
    allowed = inputs.contains(points)
    walkers, points = walkers[allowed], points[allowed]
    if not len(walkers):
        return 0, None
    counts = _counts(network, points)
    steps = min(MOST_STEPS, MULTIPLICATIONS // (1 + network.n * network.s * len(walkers)))
    for _ in range(steps):
        moved = walkers.copy()
        moved[np.arange(len(moved)), rng.integers(moved.shape[1], size=len(moved))] *= -1
        points = _inputs_behind(moved, inputs)
        better = _counts(network, points)
        kept = (better >= counts) & inputs.contains(points)
        walkers[kept], counts[kept] = moved[kept], better[kept]
    points = _inputs_behind(walkers, inputs)
    exact = network.n_active(points)
    best = int(exact.argmax())
    return int(exact[best]), points[best]


def _starts(network: SparselyActivatedNetwork, inputs: Inputs, rng: np.random.Generator) -> NDArray[np.int8]:
    width = network.n if inputs.lift is None else inputs.lift.m
    walkers = bits_to_signs(rng.integers(2, size=(WALKERS, width)))
    if inputs.lift is None and network.s:
        units = rng.choice(network.s, size=min(network.s, WALKERS // 2), replace=False)
        favoured = np.sign(dense(network.W[units])).astype(np.int8)
        head = walkers[: len(units)]
        head[favoured != 0] = favoured[favoured != 0]
    return walkers


def _inputs_behind(walkers: NDArray[np.int8], inputs: Inputs) -> NDArray[np.int8]:
    return walkers if inputs.lift is None else inputs.lift(walkers)


def _counts(network: SparselyActivatedNetwork, points: NDArray[np.int8]) -> NDArray[np.intp]:
    return np.asarray(np.count_nonzero(network.preactivations(points) > 0, axis=1))

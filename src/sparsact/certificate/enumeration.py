"""Every point of the cube, by the kernel that counts active units; points that it cannot decide are settled exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from sparsact import kernels
from sparsact.certificate.inputs import Inputs
from sparsact.certificate.orbits import Orbits
from sparsact.certificate.sweep import SweepCount, sweep
from sparsact.certificate.thresholds import separated
from sparsact.hypercube import bits_to_signs

if TYPE_CHECKING:
    from sparsact.network import SparselyActivatedNetwork

MOST_INPUTS = 26
MOST_UNITS = 2**15 - 1  # of the kernel
SWEEP_AT_MOST = 2**33  # multiplications, to settle the verdict
SWEEP_GLADLY = 2**28  # to know the distribution as well


def enumerated(network: SparselyActivatedNetwork, inputs: Inputs, *, n_threads: int) -> SweepCount:
    """The most active units over the whole cube, and how many points have how many.

    Where the kernel leaves points in doubt, all points are counted again by :func:`~sparsact.certificate.sweep.sweep`,
    which settles them; where that is too much work, an interval remains.
    """
    if network.s > MOST_UNITS:
        return sweep(network, inputs, Orbits(network.W, inputs, merge=False))
    weights: Any = network.W
    W = np.ascontiguousarray(weights.toarray() if isinstance(weights, sp.csr_array) else weights)
    counts = kernels.count_active(W, *separated(network), n_threads=n_threads)
    witnesses = _points([counts.lower_witness, counts.upper_witness], network.n)
    exact = network.n_active(witnesses)
    best, upper = int(exact.argmax()), int(np.flatnonzero(counts.upper_histogram)[-1])
    differ = int(np.abs(counts.lower_histogram - counts.upper_histogram).sum()) // 2
    work = 2**network.n * network.s * network.n
    if differ and work <= (SWEEP_AT_MOST if exact[best] < upper else SWEEP_GLADLY):
        tally = sweep(network, inputs, Orbits(network.W, inputs, merge=False))
        tally.settled = max(tally.settled, differ)
        return tally
    return SweepCount(
        lower=int(exact[best]),
        upper=upper,
        witness=witnesses[best],
        unsettled=differ,
        histogram=None if differ else counts.lower_histogram,
    )


def _points(numbers: list[int], n: int) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    return bits_to_signs(np.array(numbers)[:, None] >> np.arange(n) & 1)

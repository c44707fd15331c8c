"""Average sensitivity of networks with 10,000 inputs, estimated from samples: time to a standard error of 1 %.

The networks have s = 1,000 units; the table shows their share of active units at a random point. Target on one thread:
under 30 s. Unit: seconds, medians of repeats, each with its own seed. For comparison, the same estimate for a function
that can only be called: each sample evaluates a point and its n neighbours, and the total time is extrapolated.

Roofline of a sample: the pre-activations of one point, n * s multiplications in a dense matrix product, timed alone, or
one multiplication for each nonzero weight. The noise sensitivity needs that product twice.

The estimate is checked on a network whose units share no input, where the influences are known exactly: the figure is
its distance from the truth in standard errors, which exceeds 6 once in 5e8 runs.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from benchmarks.figures import CallSeconds, Check, Figure
from benchmarks.harness import timed
from benchmarks.program import program
from sparsact import SparselyActivatedNetwork
from sparsact.fourier import Estimate, Neuron, estimate_average_sensitivity, estimate_noise_sensitivity, estimate_within
from sparsact.hypercube import bits_to_signs

SIZE, QUICK = (10_000, 1_000), (400, 40)
RELATIVE_ERROR, BAR_SECONDS = 0.01, 30.0
READS: Final = 9  # inputs of a unit in the sparse network
RHO, NOISE_SAMPLES, POINTS = 0.9, 4_000, 400


def gaussian(n: int, s: int, threshold: float) -> SparselyActivatedNetwork:
    """Dense rows of norm about 1, so that a unit is on with the probability of a normal tail."""
    rng = np.random.default_rng(n)
    return SparselyActivatedNetwork(
        rng.choice([-1.0, 1.0], s), rng.normal(size=(s, n)) / np.sqrt(n), np.full(s, threshold)
    )


def disjoint(n: int, s: int) -> tuple[SparselyActivatedNetwork, float]:
    """Units that read ``READS`` inputs each and share none, and the exact average sensitivity of their sum."""
    rng = np.random.default_rng(s)
    weights, u = rng.integers(1, 4, READS), rng.normal(size=s)
    place = np.repeat(np.arange(s), READS), rng.permutation(n)[: s * READS]
    threshold = float(weights.sum() - 6)
    W = sp.csr_array((np.tile(weights, s), place), shape=(s, n))
    exact = float(u @ u) * Neuron(weights, threshold).total_influence()
    return SparselyActivatedNetwork(u, W, np.full(s, threshold)), exact


def repeated(call: Callable[[np.random.Generator], Any], repeats: int) -> tuple[CallSeconds, Any]:
    """Seconds of a call with each of some seeds, and its last result."""
    calls = [timed(partial(call, np.random.default_rng(seed))) for seed in range(repeats)]
    return CallSeconds([seconds for _, seconds in calls]), calls[-1][0]


def precise(net: SparselyActivatedNetwork, rng: np.random.Generator) -> Estimate:
    """The average sensitivity to the wanted error."""
    return estimate_within(
        RELATIVE_ERROR, lambda m: estimate_average_sensitivity(net, n_samples=m, rng=rng), n_samples=512
    )


def measure(name: str, net: SparselyActivatedNetwork, exact: float | None, arguments: Any) -> list[Figure]:
    """Figures of one network."""
    rng = np.random.default_rng(1)
    X = bits_to_signs(rng.integers(2, size=(POINTS, net.n))).astype(np.float64)
    seconds, found = repeated(lambda rng: precise(net, rng), arguments.repeats)
    floor, _ = repeated(lambda rng: net.W @ X.T, 3)
    called, _ = repeated(
        lambda rng: estimate_average_sensitivity(lambda X: net(X), net.n, n_samples=2, n_flips=net.n, rng=rng), 1
    )
    noise, noisy = repeated(lambda rng: estimate_noise_sensitivity(net, None, RHO, n_samples=NOISE_SAMPLES, rng=rng), 1)
    on = 100 * net.n_active(X).mean() / net.s
    work = f"n={net.n:,} s={net.s:,} {name}, {on:.2g} % on"
    figures = [
        Figure.of(work, "average sensitivity to 1 %", seconds, "s", most=BAR_SECONDS),
        Figure(work, "relative standard error", found.standard_error / found.value, "", most=RELATIVE_ERROR),
        Figure(work, "samples", found.n_samples, ""),
        Figure(work, "a sample", 1e3 * median(seconds) / found.n_samples, "ms"),
        Figure(work, "its product with the weights", 1e3 * min(floor) / POINTS, "ms"),
        Figure(work, "by calls alone, EXTRAPOLATED", called[0] / 2 * found.n_samples, "s"),
        Figure(work, f"noise sensitivity, rho = {RHO}: a sample", 1e3 * noise[0] / NOISE_SAMPLES, "ms"),
        Figure(
            work, f"relative standard error of {NOISE_SAMPLES} samples of it", noisy.standard_error / noisy.value, ""
        ),
    ]
    if exact is not None:
        distance = abs(found.value - exact) / found.standard_error
        figures.append(Check(work, "standard errors from the truth", distance, "", most=6))
    return figures


@program(repeats=3)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    n, s = QUICK if arguments.quick else SIZE
    networks: dict[str, tuple[SparselyActivatedNetwork, float | None]] = {
        f"dense, b = {b}": (gaussian(n, s, float(b)), None) for b in (1, 2, 3)
    }
    networks[f"sparse, {READS} inputs a unit"] = disjoint(n, s)
    return [figure for name, given in networks.items() for figure in measure(name, *given, arguments)]

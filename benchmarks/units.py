"""Time of exact Fourier analysis of networks too large for a table of values, with floats and with fractions.

Targets on one thread: with weights 1 ... 10, all influences (hence the average sensitivity) of a halfspace and of a
neuron with 2,000 weights in under 1 s with floats and under 30 s with fractions; one coefficient of three coordinates
in under 0.2 s and 5 s; all 2**20 + 1 coefficients of Index_10 (1,034 inputs) in under 30 s. Unit: seconds, medians.

Floor: the distribution of n weights with sum A takes n * A / 2 additions, and the influences need one distribution for
each magnitude of a weight; a float addition reads or writes 6 numbers. Fractions add Python integers of up to n bits.

Floats are checked against fractions: the figure is the largest relative error of an influence, in units of 2**-53,
next to the bound n + 50.
"""

from __future__ import annotations

from argparse import Namespace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from benchmarks.figures import Check, Figure
from benchmarks.harness import interleaved, timed
from benchmarks.program import program
from sparsact import SparselyActivatedNetwork
from sparsact.fourier import Halfspace, Neuron, Spectrum
from sparsact.fourier.halfspaces import Unit
from sparsact.hypercube import points

SIZE, QUICK = (2_000, 10), (200, 6)
LARGEST_WEIGHT: Final = 10


def figures_of(kind: type[Unit], n: int, arguments: Any) -> list[Figure]:
    """Figures of one kind of unit."""
    rng = np.random.default_rng(n)
    w = rng.integers(1, LARGEST_WEIGHT + 1, n) * rng.choice([-1, 1], n)
    calls, bars = {}, {}
    for numbers, coefficient_seconds, influence_seconds in ((float, 0.2, 1.0), (Fraction, 5.0, 30.0)):
        for name, bar, answer in (
            ("a coefficient", coefficient_seconds, lambda unit: unit.coefficient((1, 5, 9))),
            ("influences", influence_seconds, lambda unit: unit.influences()),
        ):
            title = f"{name}, {numbers.__name__.lower()}s"
            calls[title] = lambda answer=answer, numbers=numbers: answer(kind(w, 7, numbers))
            bars[title] = bar
    seconds = interleaved(calls, arguments.repeats, warm_up=False)
    work = f"{kind.__name__} n={n:,} weights 1...{LARGEST_WEIGHT}"
    pairs = zip(kind(w, 7).influences().tolist(), kind(w, 7, Fraction).influences(), strict=True)
    error = max(abs(Fraction(rounded) / exact - 1) for rounded, exact in pairs)
    return [
        *(Figure.of(work, title, times, "s", most=bars[title]) for title, times in seconds.items()),
        Check(work, "largest relative error of floats, in 2^-53", float(error * 2**53), "", most=n + 50),
    ]


def index_network(b: int) -> Figure:
    """Seconds of every coefficient of Index_b."""
    addresses = sp.csr_array(points(b).astype(float))
    W = sp.hstack([addresses, sp.eye_array(2**b)])
    net = SparselyActivatedNetwork(np.ones(2**b), W, np.full(2**b, float(b)))
    spectrum, seconds = timed(lambda: Spectrum.of(net))
    work = f"Index_{b}: {net.n:,} inputs, {len(spectrum.coefficients):,} coefficients"
    return Figure(work, "spectrum", seconds, "s", most=30.0)


@program(repeats=3)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    n, b = QUICK if arguments.quick else SIZE
    figures = [figure for kind in (Halfspace, Neuron) for figure in figures_of(kind, n, arguments)]
    return [*figures, index_network(b)]

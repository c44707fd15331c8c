"""Time to count the active units at all 2^24 inputs of a network with 64 units, on one thread.

Target: at most 2 s. Unit: seconds, medians of repeats in turns on every instruction set of this processor. One network
has integer weights, whose ties are decided exactly; the other has real weights, with a tolerance for rounding.

Roofline: ranks of 16 bits are compared and counted, with two vector instructions for each vector of them. A Gray code
adds and compares doubles, four times as wide, and each step waits for the one before.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import Check, Figure
from benchmarks.harness import interleaved
from benchmarks.program import program
from sparsact import kernels
from sparsact.kernels import dispatch
from sparsact.kernels.enumeration import ROUNDING_STEPS

Units = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def networks(n: int, s: int) -> dict[str, Units]:
    """Weights, thresholds and tolerances of each network."""
    rng = np.random.default_rng(2024)
    signs, real = rng.integers(-1, 2, size=(s, n)).astype(float), rng.normal(size=(s, n))
    b = rng.normal(size=s) + 3
    rounding = ROUNDING_STEPS * np.finfo(np.float64).eps * (np.abs(real).sum(axis=1) + np.abs(b))
    return {"integer weights": (signs, np.full(s, 4.0), np.zeros(s)), "real weights": (real, b, rounding)}


def same(found: list[kernels.ActiveCounts]) -> bool:
    """Whether all have the same histograms and witnesses."""
    return all(
        np.array_equal(np.asarray(a), np.asarray(b))
        for other in found[1:]
        for a, b in zip(found[0], other, strict=True)
    )


def measure(work: str, units: Units, repeats: int, quick: bool) -> list[Figure]:
    """Every figure of one network."""
    isas = dispatch.ISAS[: dispatch.ISAS.index(dispatch.native.widest_isa()) + 1]
    found: dict[str, kernels.ActiveCounts] = {}

    def on(name: str, isa: str | None) -> Callable[[], None]:
        def run() -> None:
            with kernels.using(name, isa):
                found[isa or name] = kernels.count_active(*units)

        return run

    calls = {isa: on("native", isa) for isa in isas}
    if quick:
        calls["reference"] = on("reference", None)
    times = interleaved(calls, repeats)
    return [
        Figure.of(work, "seconds", times[isas[-1]], "s", most=2.0),
        *(Figure.of(work, f"seconds, {isa}", times[isa], "s") for isa in times if isa != isas[-1]),
        Check(work, "all agree", float(same(list(found.values()))), "", least=1.0),
    ]


@program(repeats=5)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    n, s = (13, 37) if arguments.quick else (24, 64)
    return [
        figure
        for name, units in networks(n, s).items()
        for figure in measure(f"n={n} s={s} {name}", units, arguments.repeats, arguments.quick)
    ]

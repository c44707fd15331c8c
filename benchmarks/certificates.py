"""Time to prove the largest number of active units in networks of the papers.

Targets on one thread: under 60 s each for mixed-integer programming on Index_4 (n = 20, s = 16) and on the parity of
eight lifted bits (n = 64, s = 9), over the cube and over the lift. Unit: seconds, medians of repeats. The table also
shows what was proved, and whether another method proves the same; a certificate that is not exact misses its target.
``benchmarks.enumeration`` measures enumeration.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.figures import CallSeconds, Check, Figure
from benchmarks.harness import first_and_later
from benchmarks.program import program
from sparsact import SparselyActivatedNetwork
from sparsact.constructions import indexing, parity
from sparsact.lift import Lift

MOST_SECONDS: Final = 60


@dataclass(frozen=True, eq=False)
class CertificateWork:
    """A network, the inputs to certify it over, and the method that must agree with the program."""

    name: str
    network: SparselyActivatedNetwork
    rival: str
    inputs: Lift | None = None


def works(quick: bool) -> list[CertificateWork]:
    """What is measured."""
    b, m = (3, 4) if quick else (4, 8)
    on_lift, lift = parity(range(m), m, signs=True), Lift.quadratic(m)
    title = f"lifted parity of {m} bits, n={m * m} s={m + 1}"
    return [
        CertificateWork(f"Index_{b}, n={b + 2**b} s={2**b}", indexing(b), "enumeration"),
        CertificateWork(f"{title}, over the cube", on_lift, "orbits"),
        CertificateWork(f"{title}, over the lift", on_lift, "enumeration", lift),
    ]


def certifying(index: int, quick: bool) -> Callable[[], object]:
    """The proof of one of the works."""
    work = works(quick)[index]
    return partial(work.network.certify, "milp", inputs=work.inputs, time_limit=MOST_SECONDS)


def measure(work: CertificateWork, repeats: int) -> list[Figure]:
    """Seconds, what was proved, and how far the bounds and the rival are from it."""
    certificates = [work.network.certify("milp", inputs=work.inputs, time_limit=MOST_SECONDS) for _ in range(repeats)]
    best = certificates[0].max_active
    print(f"{work.name}: {certificates[0]}")
    apart = max(each.upper - best for each in certificates)
    apart += abs(work.network.certify(work.rival, inputs=work.inputs, n_threads=1).max_active - best)
    seconds = CallSeconds([each.seconds for each in certificates])
    return [
        Figure.of(work.name, "seconds", seconds, "s", most=MOST_SECONDS),
        Figure(work.name, "most active units", best, ""),
        Check(work.name, f"bounds apart, and from {work.rival}", apart, "", most=0),
    ]


@program(repeats=3)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    works_, repeats = works(arguments.quick), arguments.repeats
    figures = first_and_later(works_[0].name, "certify", repeats, certifying, 0, arguments.quick)
    return [*figures, *(figure for work in works_ for figure in measure(work, repeats))]

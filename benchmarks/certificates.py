"""Certificates of the papers' networks: the most units that any input switches on, proved.

Goal, on one thread: under 60 s each for mixed-integer programming on Index_4 (n = 20, s = 16) and on the parity of
eight lifted bits (n = 64, s = 9), over the cube and over the lift; under 2 s for the enumeration of random integer and
real networks at n = 24, s = 64. Unit: seconds, medians of repeats. Beside each stands what was proved, and whether it
is what another method proves; a certificate that is not exact is a bar missed.

    python benchmarks/certificates.py [--quick] [--out results/certificates.jsonl]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from figures import Figure, judged, options, report
from threadpoolctl import threadpool_limits

from sparsact import SparselyActivatedNetwork
from sparsact.hypercube import bits_to_signs
from sparsact.lift import Lift


@dataclass(frozen=True, eq=False)
class Work:
    """A network, the inputs to certify it over, the method, its bar, and a method that must agree, if one can."""

    name: str
    network: SparselyActivatedNetwork
    method: str
    seconds: float
    inputs: Any = None
    rival: str | None = None


def index(b: int) -> SparselyActivatedNetwork:
    """Index_b: a unit for each of 2**b addresses, on where its data bit is +1."""
    addresses = bits_to_signs(np.arange(2**b)[:, None] >> np.arange(b) & 1)
    return SparselyActivatedNetwork(np.ones(2**b), np.hstack([addresses, np.eye(2**b) / 2]), np.full(2**b, b - 0.5))


def lifted_parity(m: int) -> SparselyActivatedNetwork:
    """The parity of m bits on their quadratic lift: a unit for each sum that they can have."""
    a = np.arange(-m, m + 1, 2)
    W = np.full((m + 1, m, m), -1.0)
    W[:, np.arange(m), np.arange(m)] = 2 * a[:, None]
    return SparselyActivatedNetwork((-1.0) ** np.arange(m + 1), W.reshape(m + 1, -1), m + a**2 - 0.5)


def random_network(n: int, s: int, *, integers: bool) -> SparselyActivatedNetwork:
    """Units that are on at a few percent of the points."""
    rng = np.random.default_rng(n)
    W = rng.integers(-3, 4, (s, n)).astype(float) if integers else rng.normal(size=(s, n))
    return SparselyActivatedNetwork(np.ones(s), W, np.rint(2 * np.linalg.norm(W, axis=1)))


def works(quick: bool) -> list[Work]:
    """What is measured."""
    b, m, n, s = (3, 4, 14, 9) if quick else (4, 8, 24, 64)
    parity, lift = lifted_parity(m), Lift.quadratic(m)
    title = f"lifted parity of {m} bits, n={m * m} s={m + 1}"
    return [
        Work(f"Index_{b}, n={b + 2**b} s={2**b}", index(b), "milp", 60, rival="enumeration"),
        Work(f"{title}, over the cube", parity, "milp", 60, rival="orbits"),
        Work(f"{title}, over the lift", parity, "milp", 60, inputs=lift, rival="enumeration"),
        Work(f"random integers, n={n} s={s}", random_network(n, s, integers=True), "enumeration", 2),
        Work(f"random reals, n={n} s={s}", random_network(n, s, integers=False), "enumeration", 2),
    ]


def measure(work: Work, repeats: int, quick: bool) -> list[Figure]:
    """Seconds of the method, what it proved, and how far the bounds and the rival are from it."""
    certificates = [
        work.network.certify(work.method, inputs=work.inputs, time_limit=work.seconds, n_jobs=1) for _ in range(repeats)
    ]
    best, last = certificates[0].max_active, certificates[-1]
    print(f"{work.name}: {last}")
    apart = max(each.upper - each.max_active for each in certificates)
    if work.rival is not None:
        apart += abs(work.network.certify(work.rival, inputs=work.inputs, n_jobs=1).max_active - best)
    name = f"{work.method}, {work.name}"
    return [
        Figure.of(name, "seconds", [each.seconds for each in certificates], "s", most=judged(work.seconds, quick)),
        Figure(name, "most active units", best, "units"),
        Figure(name, "bounds apart, and from another method", apart, "units", most=0),
    ]


def main() -> int:
    """Measure each, print the table, keep the rows."""
    arguments = options(__doc__, repeats=3).parse_args()
    with threadpool_limits(1):
        figures = [
            figure for work in works(arguments.quick) for figure in measure(work, arguments.repeats, arguments.quick)
        ]
    return report("certificates", figures, arguments.out)


if __name__ == "__main__":
    raise SystemExit(main())

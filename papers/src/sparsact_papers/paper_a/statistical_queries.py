"""Hidden parities and what learners need (Theorems 3 and 14): statistical queries, examples, values.

A parity of m bits is a one-sparse network on the quadratic lift, so the class of these networks is as hard for
statistical queries as parities are: ``tau**2 (N - 9)`` queries are necessary where N parities are possible, ``2**m`` of
any size or ``binomial(m, |S|)`` of a known one, by the same argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import comb
from typing import Any, Final

import numpy as np

from sparsact.constructions import parity
from sparsact.hardness import statistical_queries_needed
from sparsact.lift import Lift
from sparsact_papers.charts import Chart, Frame, curve_plot, curves, joined, panel_plot, panelled
from sparsact_papers.common import parities as learners
from sparsact_papers.common.parities import TOLERANCE, Cost
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import mean_of
from sparsact_papers.paper_a.statistical_queries_claims import (
    ANY,
    CHANCE,
    CHARACTERS,
    CLAIMS,
    ELIMINATION,
    JUNTAS,
    LIFTED,
    LOW,
    LOWER,
    MEMBERSHIP,
    NETWORK,
)

NOISE: Final = 0.1
SHARED: Final = 9  # parities that one hypothesis can be right about, within error 1/3
SIZES: Final = {Scale.SMOKE: (2, 3), Scale.QUICK: (3, 4), Scale.FULL: (3, 4, 5)}
BITS: Final = {Scale.SMOKE: (8, 10, 12), Scale.QUICK: (8, 12, 16), Scale.FULL: (8, 12, 16, 24, 32)}
ANY_BITS: Final = {Scale.SMOKE: (7, 8, 9), Scale.QUICK: (8, 10, 12, 14), Scale.FULL: (8, 10, 12, 14, 16)}
LIFTS: Final = {Scale.SMOKE: (3,), Scale.QUICK: (3, 4, 6), Scale.FULL: (3, 4, 6, 8, 10)}
LARGEST_CUBE: Final = 4  # bits whose m * m signs are all tried
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}


def parameters(scale: Scale) -> Iterator[dict[str, Any]]:
    """Every learner at every number of bits; size 0 stands for parities of any size."""
    for seed in range(SEEDS[scale]):
        for m in ANY_BITS[scale]:
            yield from ({"learner": one, "size": 0, "m": m, "noise": 0.0, "seed": seed} for one in ANY)
        for size, m in product(SIZES[scale], BITS[scale]):
            for one in (LOW, LOWER, JUNTAS, MEMBERSHIP, ELIMINATION, LIFTED):
                yield {"learner": one, "size": size, "m": m, "noise": 0.0, "seed": seed}
            for one in (LOW, ELIMINATION):
                yield {"learner": one, "size": size, "m": m, "noise": NOISE, "seed": seed}
        for m in LIFTS[scale]:
            yield {"learner": NETWORK, "size": m, "m": m, "noise": 0.0, "seed": seed}


def measure(*, learner: str, size: int, m: int, noise: float, seed: int) -> dict[str, float | None]:
    """Queries, examples and error of one learner with the lower bound on queries; or certificates of the network."""
    subset = np.sort(np.random.default_rng([seed, 1]).permutation(m)[:size]).tolist()
    if learner == NETWORK:
        return _certified(subset, m)
    cost = _cost(learner, subset, m, noise, np.random.default_rng([seed, 2]))
    return cost._asdict() | {"bound": bound(size, m)}


def bound(size: int, m: int) -> float:
    """Queries without which no learner finds every parity of this size, or of any, to error 1/3."""
    return max(0.0, TOLERANCE**2 * (comb(m, size) - SHARED)) if size else statistical_queries_needed(m, TOLERANCE)


def _certified(subset: list[int], m: int) -> dict[str, float | None]:
    """Most active units of the network with values 0 and 1, and of that with +-1: the greater one on the lift."""
    both = [parity(subset, m, signs=signs) for signs in (False, True)]
    lifted = max(network.certify(inputs=Lift.quadratic(m)).upper for network in both)
    cube = [network.certify().upper if m <= LARGEST_CUBE else None for network in both]
    return {"on_lift": lifted, "on_cube": cube[0], "on_cube_signs": cube[1]}


def _cost(learner: str, subset: list[int], m: int, noise: float, rng: np.random.Generator) -> Cost:
    if learner in ANY:
        search = learners.by_characters if learner == CHARACTERS else learners.by_bent_functions
        return search(m, rng)
    if learner in (LOW, LOWER):
        return learners.by_low_degree(subset, m, len(subset) - (learner == LOWER), noise, rng)
    if learner == JUNTAS:
        return learners.by_juntas(subset, m, rng)
    if learner == MEMBERSHIP:
        return learners.by_membership(subset, m, rng)
    if learner in (ELIMINATION, LIFTED):
        return learners.by_elimination(subset, m, noise, rng, lifted=learner == LIFTED)
    raise ValueError(f"a learner of this experiment is meant; got {learner!r}.")


BOUND: Final = "lower bound"
KNOWN: Final = (LOW, LOWER, JUNTAS, MEMBERSHIP, ELIMINATION, LIFTED)


def _of(rows: Rows, learners: tuple[str, ...]) -> Rows:
    return Rows(row for one in learners for row in rows.where(learner=one))


def _any_frame(rows: Rows) -> Frame:
    found = _of(rows, ANY)
    bound = curves(found, BOUND, "m", "bound", "used")
    return joined(curves(found, "{learner}", "m", "queries", "used"), bound)


def _known_frame(rows: Rows) -> Frame:
    found = Rows(row for row in _largest(rows) if not row["noise"] and row["learner"] not in (LOWER, LIFTED))
    above = Rows(row for row in found.where(learner=LOW) if row["bound"] > 0)
    bound = curves(above, BOUND, "m", "bound", "used")
    return joined(
        curves(
            found,
            lambda row: f"{row['learner']} ({('examples' if row['examples'] else 'queries')})",
            "m",
            lambda row: float(row["examples"] or row["queries"]),
            "used",
        ),
        bound,
    )


def _error_frame(rows: Rows) -> Frame:
    found = Rows(
        row.with_values(labels=f"{row['noise']:.0%} of the labels turned" if row["noise"] else "no noise")
        for row in _largest(rows)
    )
    return panelled(
        {one: curves(found.where(learner=one), "{labels}", "m", "error", interval=mean_of) for one in KNOWN}, "learner"
    )


def _largest(rows: Rows) -> Rows:
    found = _of(rows, KNOWN)
    return found.where(size=max(found.column("size"), default=0))


EXPERIMENT: Final = Experiment(
    name="sq-ledger",
    paper="A",
    place="Section 4, Theorems 3 and 14",
    title="Hidden parities: what learners need",
    summary="Parities of m bits, of any size or of 3 to 5 bits, are hidden from learners with statistical queries "
    "(tolerance 0.124, adversarial answers), from correlations of one sample, membership queries, and elimination "
    "over GF(2), on the bits and on the lift. For any size the oracle is the adversary of the lower bound, which has "
    "no parity in mind until one is left. Noise turns 10 % of the labels. Learners without a hypothesis have error "
    "1/2. The lifted network, S = [m], is certified on lifted points and, up to m = 4, on the whole cube.",
    parameters=parameters,
    measure=measure,
    claims=CLAIMS,
    charts=(
        Chart(
            "any-parity",
            "Statistical queries for any parity, against bits",
            "Answers come from the adversary of the lower bound. Points: median over seeds; bars: its interval. The "
            "bound is tau^2 (2^m - 9) with tau = 0.124.",
            _any_frame,
            curve_plot("bits m", "statistical queries", log=(0, 10), lines=(BOUND,), size=(5.4, 4.2)),
        ),
        Chart(
            "known-size",
            "Queries or examples for parities of known size, against bits",
            "The greatest size of S that was run. Correlations of one sample are as many as the queries of low "
            "degree; elimination on the lift needs as many examples as on the bits. The bound, tau^2 (binomial(m, "
            "|S|) - 9), is on statistical queries alone. Points: median over seeds; bars: its interval.",
            _known_frame,
            curve_plot(
                "bits m", "queries, or examples, as the legend says", log=(0, 10), lines=(BOUND,), size=(5.8, 4.8)
            ),
        ),
        Chart(
            "error",
            "Error against bits",
            "Share of wrong signs at 4000 fresh points without noise, mean over seeds with its 95 % interval; 1/2 "
            "where a learner has no hypothesis. The greatest size of S that was run.",
            _error_frame,
            panel_plot(
                "bits m",
                "share of wrong signs",
                levels={"guessing": CHANCE},
                columns=3,
                panel=(2.8, 2.2),
                limits=(-0.05, 0.6),
            ),
        ),
    ),
    order=310,
)

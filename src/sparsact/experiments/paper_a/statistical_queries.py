r"""What learners of a lifted parity ask for: statistical queries against bits, Theorem 14, and elimination beside it.

The learners are those of :func:`sparsact.hardness.parity_contest`, with an oracle that answers adversarially.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sparsact.experiments import Claim, Experiment, Rows, Scale, Verdict, mean_of, needed, range_of, within
from sparsact.hardness import (
    InconsistentLabelsError,
    learn_parity,
    parity_contest,
    parity_distribution,
    statistical_queries_needed,
)

TOLERANCE = 0.1
BUDGET = 2**18
NOISE = 0.1  # share of flipped labels
NOISY_EXAMPLES = 200  # beyond the bits: all labels are right with probability under 1e-9
LEARNED = 1 / 3  # most error of a learner that counts as successful, as in Theorem 14
TEST_EXAMPLES = 2000
QUERIES = "statistical queries"
BITS = {Scale.SMOKE: (4, 6), Scale.QUICK: (4, 6, 8, 10), Scale.FULL: (6, 8, 10, 12, 14, 16)}
SEEDS = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}


def parameters(scale: Scale) -> Iterator[dict[str, int]]:
    """A parity of half of the bits for each seed and number of bits."""
    for seed in range(SEEDS[scale]):
        for m in BITS[scale]:
            yield {"m": m, "size": m // 2, "seed": seed}


def measure(*, m: int, size: int, seed: int) -> dict[str, Any]:
    """Queries, examples and error of every learner; and whether elimination survives flipped labels."""
    subset = np.random.default_rng([seed, 1]).choice(m, size=size, replace=False).tolist()
    rng = np.random.default_rng([seed, 2])
    learners = parity_contest(m, subset, rng=rng, tolerance=TOLERANCE, budget=BUDGET)
    return {
        "learner": [row.learner for row in learners],
        "inputs": [row.inputs for row in learners],
        "access": [row.access for row in learners],
        "queries": [row.queries for row in learners],
        "examples": [row.examples for row in learners],
        "error": [row.error for row in learners],
        "needed": statistical_queries_needed(m, TOLERANCE),
        "noisy_error": noisy_elimination_error(m, subset, rng),
    }


def noisy_elimination_error(m: int, subset: list[int], rng: np.random.Generator) -> float:
    """Error of elimination from flipped labels; 1/2, that of a guess, where it finds no parity that fits them."""
    distribution = parity_distribution(subset, m, lifted=True)
    X, y = distribution.sample(m + NOISY_EXAMPLES, rng=rng)
    flips = np.where(rng.random(len(y)) < NOISE, -1, 1)
    try:
        learned = learn_parity(X, y * flips)
    except InconsistentLabelsError:
        return 0.5
    X, y = distribution.sample(TEST_EXAMPLES, rng=rng)
    return float(np.mean(learned(X) != y))


def contestants(rows: Rows, **equal: str) -> list[dict[str, Any]]:
    """Every learner of every row as a dictionary with ``m``, ``seed`` and ``needed``; those equal to what is given."""
    names = ("learner", "inputs", "access", "queries", "examples", "error")
    found = [
        dict(zip(names, values, strict=True)) | {"m": row["m"], "seed": row["seed"], "needed": row["needed"]}
        for row in rows
        for values in zip(*(row[name] for name in names), strict=True)
    ]
    return [one for one in found if all(one[name] == value for name, value in equal.items())]


def successful_queries(rows: Rows) -> list[dict[str, Any]]:
    """Statistical-query learners that reach an error of at most a third."""
    asked = contestants(needed(rows, "a contest"), access=QUERIES)
    return [one for one in asked if one["error"] is not None and one["error"] <= LEARNED]


def judge_bound(rows: Rows) -> Verdict:
    """Queries of every successful learner over those that are needed."""
    ratios = [one["queries"] / max(one["needed"], 1.0) for one in successful_queries(rows)]
    return within(range_of(ratios), least=1, what="queries / needed, of learners that succeed")


def judge_exponential(rows: Rows) -> Verdict:
    """Doublings of the fewest queries of a successful learner per bit, the slope of each seed."""
    slopes = []
    for (_,), group in needed(rows, "a contest").groups("seed").items():
        fewest = [min(one["queries"] for one in successful_queries(at)) for at in group.groups("m").values()]
        needed(group, "a curve", 2)
        slopes.append(float(np.polyfit(group.distinct("m"), np.log2(fewest), 1)[0]))
    return within(mean_of(np.round(slopes, 12)), least=0.8, what="doublings per bit")


def judge_elimination(rows: Rows) -> Verdict:
    """Error of elimination on the lift, from m + 20 examples."""
    errors = [one["error"] for one in contestants(needed(rows, "a contest"), learner="elimination", inputs="lifted")]
    return within(range_of(errors), most=0, what="error of elimination on the lift")


def judge_noise(rows: Rows) -> Verdict:
    """Error of elimination from flipped labels."""
    noisy = needed(rows, "a contest").column("noisy_error")
    return within(range_of(noisy), least=LEARNED, what="error of elimination from flipped labels")


EXPERIMENT = Experiment(
    name="sq-ledger",
    paper="A",
    place="Section 4, Theorem 14",
    title="Statistical queries for a lifted parity",
    summary=(
        "A hidden parity of half of m bits, on the bits and on the quadratic lift on which one-sparse networks compute "
        "it. Statistical queries are answered by an adversary at tolerance 0.1 and counted; elimination over GF(2) and "
        "membership queries are not of that kind."
    ),
    version=1,
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            "bound",
            "Theorem 14",
            "A statistical-query learner of the class needs 2^m tau^2 queries, up to a constant.",
            "Omega(2^m tau^2)",
            "holds if every learner that reaches error 1/3 asked at least tau^2 (2^m - 9) queries, on every row",
            judge_bound,
        ),
        Claim(
            "exponential",
            "Theorem 14",
            "The queries of those that succeed grow exponentially with the bits.",
            "2^m",
            "holds if the 95 % interval over seeds of the slope of log2(fewest queries) in m lies above 0.8",
            judge_exponential,
        ),
        Claim(
            "elimination",
            "beyond the paper",
            "The bound is one on statistical queries, not on examples: elimination learns from m + 20 examples.",
            "",
            "holds if elimination on the lift has error 0 on fresh points in every row",
            judge_elimination,
        ),
        Claim(
            "noise",
            "beyond the paper",
            "Elimination does not survive noise: with a tenth of the labels flipped it does not learn.",
            "",
            "holds if its error is at least 1/3 in every row; a system without solution counts as a guess, 1/2",
            judge_noise,
        ),
    ),
    order=310,
)

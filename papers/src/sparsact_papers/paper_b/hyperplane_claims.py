"""What paper B says of hyperplane LSH, and the rules by which rows decide it.

Ratios of errors are paired: both errors come from the same draw of target, points and hyperplanes.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Final

from sparsact_papers.claims import Claim, Verdict, every, needed, only_if, within
from sparsact_papers.intervals import median_of, range_of
from sparsact_papers.results import Rows

MANY: Final = 2048  # buckets from which on the paper says that LSH wins
TARGETS: Final = ("polynomial", "hypercube")


def hashed(rows: Rows, *, offset: str = "none", trained: bool = False, **equal: object) -> Rows:
    """LSH models: the closed form with hyperplanes through the origin, unless asked otherwise."""
    return Rows(row for row in rows.where(model="LSH", offset=offset, **equal) if (row["epochs"] > 0) == trained)


def sizes(rows: Rows, least: int, at_least: int = 1) -> list[int]:
    """Numbers of buckets that were measured, from the least given on, in ascending order."""
    kept = Rows(row for row in hashed(rows) if row["n_units"] >= least)
    found = kept.distinct("n_units")
    needed(kept if len(found) >= at_least else Rows(()), f"LSH with {least} buckets or more", at_least)
    return [int(n) for n in found]


def over(found: Rows, others: Rows) -> list[float]:
    """Errors over the errors of other models on the same draw; draws that only one side has are left out."""
    pairs = needed(found.paired(others, "target", "seed"), "a pair of errors")
    return [row["mse"] / other["mse"] for row, other in pairs]


def over_linear(found: Rows) -> list[float]:
    """Errors as shares of the best linear predictor's of the same draw."""
    return [row["mse / linear_mse"] for row in needed(found, "LSH errors")]


def _judge_wins(rows: Rows, target: str) -> Verdict:
    many = {n: hashed(rows, target=target, n_units=n) for n in sizes(rows, MANY)}
    linear = every(*(within(median_of(over_linear(found)), most=1, what=f"{n}:") for n, found in many.items()))
    layers = {
        biases: rows.where(model="dense ReLU", target=target, offset=offset)
        for biases, offset in (("without biases", "none"), ("with biases", "uniform"))
    }
    relu = [
        within(median_of(over(found, layer)), most=1, what=f"{n} against ReLU {biases}:")
        for biases, layer in layers.items()
        for n, found in many.items()
    ]
    told = Verdict(linear.outcome, f"error over the best linear predictor's, at buckets {linear.measured}")
    return only_if("the dense layer has no activation, so that it is linear", told, every(*relu))


def _judge_threshold(rows: Rows) -> Verdict:
    found = hashed(rows, target="polynomial", n_units=MANY // 2)
    verdict = within(median_of(over_linear(found)), least=1, what=f"{MANY // 2} buckets, error over linear:")
    ratios = {n: over_linear(hashed(rows, target="polynomial", n_units=n)) for n in sizes(rows, 0)}
    first = next((n for n, ratio in ratios.items() if median_of(ratio).estimate < 1), None)
    told = f"the median is first below 1 at {first} buckets" if first else "no median is below 1"
    return Verdict(verdict.outcome, f"{verdict.measured}; {told}")


def _judge_improves(rows: Rows, target: str) -> Verdict:
    found = {n: hashed(rows, target=target, n_units=n) for n in sizes(rows, 0, at_least=2)}
    return every(
        *(within(median_of(over(found[b], found[a])), most=1, what=f"{a} to {b}:") for a, b in pairwise(found))
    )


def _judge_training(rows: Rows, target: str) -> Verdict:
    found = {n: hashed(rows, target=target, n_units=n, trained=True) for n in sizes(rows, MANY)}
    whole = every(*(within(median_of(over_linear(trained)), most=1, what=f"{n}:") for n, trained in found.items()))
    return Verdict(whole.outcome, f"error over the best linear predictor's, at buckets {whole.measured}")


def _judge_cells(rows: Rows) -> Verdict:
    found = needed(Rows([*hashed(rows), *hashed(rows, offset="uniform")]), "LSH")
    verdict = within(range_of([row["n_non_empty / n_cells"] for row in found]), most=1, what="met over cells:")
    most = max(hashed(rows), key=lambda row: int(row["n_units"]))
    told = f"through the origin {most['n_cells']} cells of {most['n_units']} patterns, {most['n_non_empty']} met"
    return Verdict(verdict.outcome, f"{verdict.measured}; {told}")


def _judge_offsets(rows: Rows) -> Verdict:
    n = sizes(rows, 0)[-1]
    parts = []
    for target in TARGETS:
        shifted, central = (hashed(rows, target=target, n_units=n, offset=offset) for offset in ("uniform", "none"))
        parts.append(within(median_of(over(shifted, central)), most=1, what=f"{target}, {n} buckets:"))
    return every(*parts)


MEDIANS: Final = "all by the order-statistic interval of the median over draws of errors paired by draw"
WINS: Final = (
    f"holds if at every number of buckets from {MANY} on the closed form's error is at most that of the best linear "
    f"predictor and of ReLU layers of equal draws; only if, where it is so of the former alone; {MEDIANS}"
)
IMPROVES: Final = f"holds if each number of buckets has no more error than the one before; {MEDIANS}"
TRAINING: Final = f"holds if RMSProp's error is at most the best linear one at every number from {MANY} on; {MEDIANS}"


def claims_of(target: str, function: str, figure: str) -> tuple[Claim, ...]:
    """What the figure of one target function shows: LSH wins, improves with its buckets, and can be trained."""
    return (
        Claim(
            name=f"wins-{target}",
            place=f"Figures {figure} and 4",
            statement=f"LSH has less error than a dense layer from {MANY} buckets on ({function}).",
            printed="a figure without numbers",
            rule=WINS,
            refuted_if="at some number of buckets from 2048 on the error is significantly above the best linear "
            "predictor's",
            judge=partial(_judge_wins, target=target),
        ),
        Claim(
            name=f"improves-{target}",
            place=f"Figure {figure}",
            statement=f"The error falls as buckets increase ({function}).",
            printed="a figure without numbers",
            rule=IMPROVES,
            refuted_if="some number of buckets significantly errs more than the one before",
            judge=partial(_judge_improves, target=target),
        ),
        Claim(
            name=f"training-{target}",
            place=f"Figure {figure} with the training of A.1",
            statement=f"Trained as the paper trains, LSH beats a linear dense layer from {MANY} buckets on ({target}).",
            printed="a figure without numbers",
            rule=TRAINING,
            refuted_if="at some number from 2048 on RMSProp significantly errs more than the best linear predictor",
            judge=partial(_judge_training, target=target),
        ),
    )


_POLYNOMIAL: Final = claims_of("polynomial", "polynomial", "1b")
CLAIMS: Final = (
    _POLYNOMIAL[0],
    Claim(
        name="threshold",
        place="Figure 1b",
        statement=f"Beating the dense layer takes {MANY} buckets: half as many do not beat it (polynomial).",
        printed=f"number of buckets is large (>= {MANY})",
        rule=f"holds if {MANY // 2} buckets have at least the best linear error; {MEDIANS}",
        refuted_if="1024 buckets significantly err less than the best linear predictor",
        judge=_judge_threshold,
    ),
    *_POLYNOMIAL[1:],
    *claims_of("hypercube", "hypercube function", "2b"),
    Claim(
        name="cells",
        statement="m hyperplanes do not make 2^m buckets: through the origin they cut R^8 into 2 sum_(i<8) C(m-1, i) "
        "cells, with offsets into sum_(i<=8) C(m, i); no more are ever met.",
        printed="2^m buckets (Section 2.2)",
        rule="holds if no row has more buckets with a point in them than there are cells",
        refuted_if="some row has more buckets than there are cells",
        judge=_judge_cells,
    ),
    Claim(
        name="offsets",
        statement="Hyperplanes through uniform points of the cube beat hyperplanes through the origin.",
        rule=f"holds if at the most buckets they have no more error, on both targets; {MEDIANS}",
        refuted_if="at the most buckets offsets significantly err more on some target",
        judge=_judge_offsets,
    ),
)

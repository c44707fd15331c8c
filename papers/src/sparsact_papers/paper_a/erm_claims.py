"""What is claimed of risk minimisation in H_{n,s,k} against dense networks, boosted trees and polynomials."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from sparsact_papers.claims import Claim, Verdict, every, needed, within
from sparsact_papers.common.learners import DENSE, RIVALS, SPARSE
from sparsact_papers.common.planted import CAPS, CELLS, MEMBERS, REAL, ROTATED
from sparsact_papers.intervals import mean_of, share_of, slope_of
from sparsact_papers.results import Rows

FAMILIES: Final = (ROTATED, CELLS, CAPS, MEMBERS, REAL)
FLOOR: Final = 1e-4  # of the variance: smaller errors and gaps count as this
AMPLE: Final = 8  # samples for each weight
ENOUGH: Final = 0.1  # of the variance: the error of a network that was learned


def log_ratios(rows: Rows, column: str, other: str, *cell: str) -> list[float]:
    """For each seed the mean over its cells of log2 (sparse / other), on the same points."""
    pairs = rows.where(learner=SPARSE).paired(rows.where(learner=other), "seed", *cell)
    by_seed: dict[int, list[float]] = {}
    for sparse, rival in pairs:
        ratio = np.log2(max(sparse[column], FLOOR) / max(rival[column], FLOOR))
        by_seed.setdefault(sparse["seed"], []).append(float(ratio))
    return [float(np.mean(ratios)) for ratios in by_seed.values()]


def _against_each(rows: Rows, what: str, *, ample: bool) -> Verdict:
    """Whether the sparse class errs less than each rival, with samples ``ample`` for its weights or with fewer."""
    cells = needed(Rows(row for row in rows if (row["m"] >= AMPLE * row["s"] * (row["n"] + 1)) is ample), what)
    ratios = {rival: log_ratios(cells, "share", rival, "family", "m") for rival in RIVALS}
    return every(*(within(mean_of(each), most=0, what=f"{rival}:") for rival, each in ratios.items()))


def _judge_less(rows: Rows, *, family: str) -> Verdict:
    return _against_each(rows.where(family=family), f"{family}: errors", ample=True)


def _most(rows: Rows, family: str) -> Rows:
    found = needed(rows.where(learner=SPARSE, family=family), f"{family}: errors")
    return found.where(m=max(found.column("m")))


def _judge_learned(rows: Rows, *, family: str) -> Verdict:
    return within(mean_of(_most(rows, family).array("share")), most=ENOUGH, what="error / variance")


def _judge_minimum(rows: Rows) -> Verdict:
    """Whether the search fits the rows at least as well as the planted network, which is a member of the class."""
    runs = needed(Rows(row for family in FAMILIES for row in rows.where(learner=SPARSE, family=family)), "runs")
    verdicts = [
        within(
            share_of(sum(row["train"] <= row["planted_train"] for row in group), len(group)),
            least=0.9,
            what=f"m = {m}:",
        )
        for (m,), group in runs.groups("m").items()
    ]
    return every(*verdicts)


def _judge_gap(rows: Rows) -> Verdict:
    ratios = log_ratios(needed(rows, "gaps"), "gap", DENSE, "family", "m")
    return within(mean_of(ratios), most=0, what="log2 of the gap over that of dense networks")


def _judge_rate(rows: Rows) -> Verdict:
    found = needed(rows.where(learner=SPARSE), "gaps")
    curves = []
    for group in found.groups("seed").values():
        sizes = group.groups("m")
        gaps = [float(np.exp2(np.mean(np.log2(np.maximum(one.array("gap"), FLOOR))))) for one in sizes.values()]
        curves.append(([float(m) for (m,) in sizes], gaps))
    needed([curve for curve in curves if len(curve[0]) > 1], "a power of m", 2)
    return within(slope_of(curves), most=-0.5, what="power of m:")


PRINTED: Final = "O(k s n / epsilon^2) samples against Omega(s^2 / epsilon^2)"
RULE: Final = (
    "log2 of the ratio of errors at new points, a mean over {} of each seed: holds if the 95 % interval of its mean "
    "over seeds lies below 0 for each rival"
)


def _of(family: str) -> tuple[Claim, ...]:
    short = family.replace(" ", "-")
    return (
        Claim(
            name=f"less-{short}",
            place="Theorem 5",
            statement=f"{family.capitalize()}: risk minimisation in the sparse class errs less than dense networks, "
            "boosted trees and polynomials from as many samples.",
            printed=PRINTED,
            rule=RULE.format(f"numbers of samples of at least {AMPLE} for each of the s (n + 1) weights"),
            judge=partial(_judge_less, family=family),
            refuted_if="the sparse class significantly errs more than one of them",
        ),
        Claim(
            name=f"learned-{short}",
            place="Theorem 17",
            statement=f"{family.capitalize()}: the sparse class learns it, to a tenth of the variance, from 2,000 "
            "samples.",
            printed="O((W R + B)^2 k s n / epsilon^2) samples",
            rule="holds if from the most samples the 95 % interval of error / variance at new points lies below "
            f"{ENOUGH}",
            judge=partial(_judge_learned, family=family),
            refuted_if="error / variance is significantly above the limit",
        ),
    )


CLAIMS: Final = (
    *(claim for family in FAMILIES for claim in _of(family)),
    Claim(
        name="few-samples",
        place="Theorem 5",
        statement=f"The sparse class also errs less than its rivals from fewer than {AMPLE} samples for each weight.",
        printed=PRINTED,
        rule=RULE.format("families"),
        judge=lambda rows: _against_each(rows, "few samples", ample=False),
        refuted_if="the sparse class significantly errs more than one of them",
    ),
    Claim(
        name="minimum",
        place="Theorem 17, beyond the paper",
        statement="This library's search is a risk minimiser: it fits the rows no worse than the planted network.",
        rule="over all families, share of runs whose training error is at most the error of the planted network, a "
        "member of the class: holds if the 95 % interval lies above 0.9 for each number of samples, fails if below for "
        "one. Where it fails, errors compare algorithms, not classes",
        judge=_judge_minimum,
        refuted_if="for some number of samples significantly more than a tenth of the runs fit worse than it does",
    ),
    Claim(
        name="gap",
        place="Theorems 17 and 19",
        statement="The gap between error on new labels and on those seen is smaller than that of dense networks.",
        printed="Rademacher complexity sqrt(s n k log(k m (R + B)) / m) against s / sqrt(m)",
        rule="log2 of the ratio of gaps, a mean over families and numbers of samples of each seed: holds if the 95 % "
        "interval of its mean over seeds lies below 0",
        judge=_judge_gap,
        refuted_if="the gap of the sparse class is significantly larger",
    ),
    Claim(
        name="gap-rate",
        place="Theorem 19",
        statement="The gap falls at least as fast as the bound on it, 1 / sqrt(m).",
        printed="sqrt(s n k log(k m (R + B)) / m)",
        rule="slope of log gap (a mean over families) in log m of each seed; holds if the 95 % interval of its mean "
        "lies below -0.5 (a slope over two sizes does not confirm an upper bound)",
        judge=_judge_rate,
        refuted_if="the mean slope of log gap in log m is significantly above -0.5",
    ),
)

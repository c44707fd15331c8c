"""What is claimed of risk minimisation in H_{n,s,k} against dense networks and polynomials."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sparsact_papers.claims import Claim, Outcome, Verdict, needed, only_if, within
from sparsact_papers.common.learners import DENSE, LOW_DEGREE, SPARSE, WIDE
from sparsact_papers.intervals import mean_of, slope_of
from sparsact_papers.paper_a.uniform_and_general import UNIFORM, samples_needed
from sparsact_papers.results import MissingRowsError, Rows

RANDOM = "random"
NOISE = 0.25  # variance of the noise, in variances of the target
FLOOR = 1e-3  # errors below this part of the variance count as this: an exact fit would decide every mean alone
CLEAN: dict[str, Any] = {"noise": 0.0, "distribution": UNIFORM}


def log_ratios(rows: Rows, column: str, other: str) -> list[float]:
    """Of each seed: mean over targets and numbers of samples of log2 (sparse / other), the same points for both."""
    found = []
    for group in rows.groups("seed").values():
        cells = group.groups("target", "s", "k", "noise", "distribution", "m").values()
        pairs = [(cell.where(learner=SPARSE), cell.where(learner=other)) for cell in cells]
        logs = [_log(one[0][column]) - _log(two[0][column]) for one, two in pairs if one and two]
        if logs:
            found.append(float(np.mean(logs)))
    return found


def _log(value: float) -> float:
    return float(np.log2(max(value, FLOOR)))


def _below(rows: Rows, column: str, other: str, k: int) -> Verdict:
    ratios = log_ratios(rows.where(k=k), column, other)
    return within(mean_of(ratios), most=0, what=f"k = {k}: log2 of the {column} over that of {other!r}")


def _judge_less(rows: Rows, *, other: str, column: str = "share", **cell: Any) -> Verdict:
    asked = needed(rows.where(**cell), str(cell))
    return only_if("k = 1", _below(asked, column, other, 1), _below(asked, column, other, 2))


def _judge_minimum(rows: Rows, *, learner: str) -> Verdict:

    def share(k: int) -> Verdict:
        runs = needed(rows.where(learner=learner, k=k, **CLEAN), f"k = {k}")
        by_seed = runs.groups("seed").values()
        fits = [float(np.mean(one.array("train") <= FLOOR * one.array("variance"))) for one in by_seed]
        return within(mean_of(fits), least=0.9, what=f"k = {k}: share of runs")

    return only_if("k = 1", share(1), share(2))


def _plain(rows: Rows, **cell: Any) -> Rows:
    return rows.where(target=RANDOM, **CLEAN, **cell)


def growth(rows: Rows, learner: str) -> tuple[list[tuple[list[float], list[float]]], int]:
    """Of each seed: units, and samples from which on the error is at most a tenth of the variance.

    Networks not learned from the most samples count as twice these; their number is the second value.
    """
    found = _plain(rows, learner=learner, k=1)
    units = [float(s) for s in needed(found, learner).distinct("s")]
    table = np.array([samples_needed(found.where(s=s)) for s in units])
    if len(units) < 2:
        raise MissingRowsError("a power of s wants two sizes")
    return [(units, curve.tolist()) for curve in table.T], int(np.sum(table > max(found.column("m"))))


def _judge_growth(rows: Rows) -> Verdict:
    curves, n_unknown = growth(rows, SPARSE)
    verdict = within(slope_of(curves), most=2 - 1e-9, what="power of s:")
    if not n_unknown:
        return verdict
    told = f"{verdict.measured}; {n_unknown} networks need more than the most samples, and count as twice these"
    outcome = Outcome.UNDECIDED if verdict.outcome is Outcome.HOLDS else verdict.outcome
    return replace(verdict, outcome=outcome, measured=told)


def _judge_rate(rows: Rows) -> Verdict:
    noisy = needed(rows.where(learner=SPARSE, noise=NOISE, k=1), "noisy labels")
    by_seed = [
        (group.distinct("m"), [float(np.mean(one.array("gap"))) for one in group.groups("m").values()])
        for group in noisy.groups("seed").values()
    ]
    if any(min(gaps) <= 0 for _, gaps in by_seed):
        raise MissingRowsError("gaps above 0: a power needs them")
    return within(slope_of(by_seed), most=-0.5, what="power of m:")


BELOW_RULE = (
    "log2 of the ratio ({what} below 0.001 of the variance count as this), a mean over targets and numbers of samples "
    "of each seed: holds if the 95 % interval of its mean over seeds lies below 0; for k = 1 and k = 2 apart"
)


def _against(name: str, place: str, statement: str, *, what: str = "errors", printed: str = "", **asked: Any) -> Claim:
    return Claim(
        name,
        place=place,
        statement=statement,
        printed=printed,
        rule=BELOW_RULE.format(what=what),
        judge=partial(_judge_less, **asked),
        refuted_if="the sparse class significantly errs more (or has the larger gap)",
    )


def _minimum(name: str, statement: str, learner: str) -> Claim:
    rule = (
        "share of runs whose training error is at most 0.001 of the variance: holds if the 95 % interval of its mean "
        "over seeds lies above 0.9, fails if below; for k = 1 and k = 2 apart. Where it fails, a difference of errors "
        "is of algorithms, and not of classes"
    )
    return Claim(
        name,
        statement=statement,
        rule=rule,
        judge=partial(_judge_minimum, learner=learner),
        refuted_if="the share of such runs is significantly below 0.9",
    )


CLAIMS = (
    _against(
        "dense",
        "Theorem 5",
        "Risk minimisation in the sparse class errs less than in the dense class of s units from as many samples.",
        printed="O(k s n / epsilon^2) samples against Omega(s^2 / epsilon^2)",
        other=DENSE,
        **CLEAN,
    ),
    _against(
        "wide",
        "beyond the paper",
        "It errs less than a wide dense network with weight decay by cross-validation.",
        other=WIDE,
        **CLEAN,
    ),
    _against(
        "polynomial",
        "Theorems 5 and 8",
        "It errs less than a polynomial whose degree is chosen by cross-validation.",
        printed="O(k s n / epsilon^2) samples against n^poly(k W B log(n s) / epsilon)",
        other=LOW_DEGREE,
        **CLEAN,
    ),
    _against(
        "noise",
        "beyond the paper",
        "With noisy labels it errs less than the dense network of s units.",
        other=DENSE,
        noise=NOISE,
    ),
    _minimum(
        "minimum",
        "The search is a risk minimiser: without noise it fits every label, as the planted network does.",
        SPARSE,
    ),
    _minimum("dense-minimum", "So is the dense network of s units, whose class holds the planted network too.", DENSE),
    Claim(
        name="growth",
        place="Theorem 5",
        statement="Samples needed grow more slowly with s than the dense bound, s^2.",
        printed="of order s against s^2",
        rule="random networks, k = 1: slope of log samples (from which on the error is at most 0.1 variance) in log s "
        "of each seed; holds if the 95 % interval of its mean lies below 2; a network not learned from the most "
        "samples counts as twice these, and then the claim may fail but not hold",
        refuted_if="the mean slope is significantly 2 or more",
        judge=_judge_growth,
    ),
    _against(
        "gap",
        "Theorems 17 and 19",
        "The gap between error on new points and on those seen is smaller in the sparse class than in the dense.",
        what="gaps",
        printed="Rademacher complexity sqrt(s n k log(k m (R + B)) / m) against s / sqrt(m)",
        other=DENSE,
        column="gap",
        **CLEAN,
    ),
    Claim(
        name="gap-rate",
        place="Theorem 19",
        statement="The gap falls at least as fast as the bound on it, 1 / sqrt(m).",
        printed="sqrt(s n k log(k m (R + B)) / m)",
        rule="noisy labels, k = 1: slope of log gap (a mean over targets) in log m of each seed; holds if the 95 % "
        "interval of its mean lies below -0.5",
        refuted_if="the mean slope of log gap in log m is significantly above -0.5",
        judge=_judge_rate,
    ),
)

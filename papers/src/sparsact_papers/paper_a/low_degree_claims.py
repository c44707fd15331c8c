"""What is claimed of low-degree least squares: its formula, with noise, and with corrupted labels."""

from __future__ import annotations

import numpy as np

from sparsact_papers.claims import Claim, Verdict, bounded, needed, only_if, within
from sparsact_papers.common.learners import GATED
from sparsact_papers.intervals import mean_of, range_of
from sparsact_papers.results import Row, Rows

CLEAN, GAUSSIAN, OBLIVIOUS, ALIGNED = "clean", "Gaussian noise", "corrupted at random", "corrupted against the degree"
FEW = 8  # a sample is small compared with the cube if it is at most this part of its points


def _is_small(row: Row) -> bool:
    return bool(FEW * row["m"] <= 2 ** row["n"])


def _farthest(rows: Rows, what: str) -> Verdict:
    """The point of the curves whose mean ratio of measured to predicted is farthest from 1, with its interval."""
    groups = needed(rows, what).groups("target", "n", "degree", "ratio")
    means = [mean_of(group.array("error") / group.array("predicted")) for group in groups.values()]
    worst = max(means, key=lambda mean: abs(np.log(mean.estimate)))
    return within(worst, least=0.9, most=1.1, what=f"measured / predicted farthest from 1 of {len(means)}, {what},")


def judge_formula(rows: Rows) -> Verdict:
    """The worst mean over seeds, gated, degree 3 and more, m >= 2 N; apart where the cube is not much larger."""
    asked = [row for row in rows.where(target=GATED, labels=CLEAN) if row["degree"] >= 3 and row["ratio"] >= 2]
    small = Rows(row for row in asked if _is_small(row))
    large = Rows(row for row in asked if not _is_small(row))
    condition = "the sample is at most an eighth of the cube's points"
    return only_if(condition, _farthest(small, "m <= 2^n / 8"), _farthest(large, "larger m"))


def _excess(rows: Rows, labels: str) -> Verdict:
    """The largest excess over the noise of any degree, for each seed."""
    found = needed(rows.where(labels=labels), labels)
    largest = [
        float(np.max((one.array("least_risk") - one.array("noise")) / one.array("tail")))
        for one in found.groups("seed").values()
    ]
    return within(mean_of(largest), most=1.0, what=f"largest (least risk - noise) / tail, {labels},")


def judge_triangle(rows: Rows) -> Verdict:
    """The least risk against (sqrt(noise) + sqrt(tail))^2, on every corrupted row."""
    found = needed(Rows(row for row in rows if row["labels"] in (OBLIVIOUS, ALIGNED)), "corrupted labels")
    limit = (np.sqrt(found.array("noise")) + np.sqrt(found.array("tail"))) ** 2
    return bounded(range_of(found.array("least_risk") / limit), "least risk / bound")


def judge_constant(rows: Rows) -> Verdict:
    """Error against the tail, on every clean row with m >= 4 N."""
    found = [row for row in needed(rows.where(labels=CLEAN), "clean labels") if row["ratio"] >= 4]
    return within(range_of([row["error"] / row["tail"] for row in found]), most=2.0, what="error / tail")


CLAIMS = (
    Claim(
        name="constant",
        place="Lemma 7",
        statement="With order of N samples, the squared error is O(tail), the weight above the degree.",
        printed="O(n^d C^2 log(1/delta) / epsilon) samples for an error of O(epsilon)",
        rule="holds if on every row without noise and with m >= 4 N the error is at most 2 tail: the tail itself, "
        "which no polynomial avoids, and as much again for the estimate",
        refuted_if="some row without noise and with m >= 4 N errs by more than twice the tail",
        judge=judge_constant,
    ),
    Claim(
        name="formula",
        statement="Without noise the error is tail (1 + N / (m - N)), gated network, degree >= 3, m >= 2 N.",
        rule="over all n, degree >= 3 and m >= 2 N, the mean over seeds of measured / predicted that is farthest from "
        "1: holds if its 95 % interval lies within [0.9, 1.1]; judged apart for samples of at most an eighth of the "
        "cube's points, and for larger ones",
        refuted_if="measured / predicted is significantly outside the limits for small samples, too",
        judge=judge_formula,
    ),
    Claim(
        name="noise",
        statement="With noise of variance v the error against the function is tail + (tail + v) N / (m - N).",
        rule="holds if the 95 % interval of measured / predicted, m >= 2 N, lies within [0.9, 1.1]",
        refuted_if="measured / predicted is significantly outside the limits",
        judge=lambda rows: within(
            mean_of(
                [
                    float(np.mean(one.array("error") / one.array("predicted")))
                    for one in Rows(
                        [row for row in needed(rows.where(labels=GAUSSIAN), "noisy labels", 2) if row["ratio"] >= 2]
                    )
                    .groups("seed")
                    .values()
                ]
            ),
            least=0.9,
            most=1.1,
            what="measured / predicted",
        ),
    ),
    Claim(
        name="agnostic",
        statement="Where labels are corrupted the best polynomial's risk is at most the noise plus the tail.",
        rule="the largest (least risk of a degree - mean squared corruption) / tail over the degrees: holds if the 95 "
        "% interval of its mean over seeds lies below 1, where corruption adds up with the tail as independent noise "
        "does; judged apart for random corruption and for one that is aligned with the target's high degrees",
        refuted_if="the mean is significantly above 1 with corruption at random, too",
        judge=lambda rows: only_if(
            "the corruption does not depend on the target", _excess(rows, OBLIVIOUS), _excess(rows, ALIGNED)
        ),
    ),
    Claim(
        name="agnostic-bound",
        statement="By the triangle inequality that risk is at most (sqrt(noise) + sqrt(tail))^2, always.",
        rule="holds if no corrupted row exceeds it by more than rounding",
        refuted_if="some corrupted row exceeds the bound by more than rounding",
        judge=judge_triangle,
    ),
)

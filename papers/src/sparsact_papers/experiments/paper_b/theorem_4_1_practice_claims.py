"""Claims about Theorem 4.1 in practice: misses and samples, the literal learner and its rivals."""

from __future__ import annotations

from sparsact_papers.experiments import Claim, Rows, Verdict, every, mean_of, needed, slope_of, within

MISSES, RIVALS = "misses", "rivals"
NOTICEABLE = 0.001  # share of misses from which on a prediction is compared
NEAR = 0.1


def finest(rows: Rows) -> Rows:
    """Curves of misses at the least width."""
    found = needed(rows.where(part=MISSES), "curves of misses", 2)
    return found.where(width=min(found.column("width")))


def judge_prediction(rows: Rows) -> Verdict:
    """Predicted against measured misses, at every number of samples that leaves a noticeable share."""
    curves = finest(rows)
    parts = []
    for i, m in enumerate(curves[0]["samples"]):
        average = mean_of([row["misses"][i] for row in curves]).estimate
        if average > NOTICEABLE:
            excess = mean_of([(row["unbiased"][i] - row["misses"][i]) / average for row in curves])
            parts.append(within(excess, least=-NEAR, most=NEAR, what=f"{m} samples:"))
    return every(*parts)


def judge_proof(rows: Rows) -> Verdict:
    """How the share of misses at the proof's number of samples changes with the width."""
    curves = needed(rows.where(part=MISSES), "curves of misses", 2).groups("seed").values()
    needed(rows if min(len(curve) for curve in curves) > 1 else Rows([]), "two widths of a seed")
    slope = slope_of((curve.column("width"), curve.column("proof_misses")) for curve in curves)
    verdict = within(slope, least=0.0, what="power of the width in the misses:")
    last = finest(rows)
    share = mean_of(last.array("proof_misses"))
    return Verdict(verdict.outcome, f"{verdict.measured}; at width {last[0]['width']:g} {share} of the points")


def judge_ratio(rows: Rows, model: str, rival: str, **limits: float) -> Verdict:
    """Error of a model over that of a rival on the same rows, at every size."""
    found = needed(rows.where(part=RIVALS), "tasks with rivals", 2)
    return every(
        *(
            within(mean_of([row[model] / row[rival] for row in group]), what=f"d = {d}, {m} rows:", **limits)
            for (d, m), group in found.groups("ambient", "rows").items()
        )
    )


CLAIMS = (
    Claim(
        name="misses",
        place="beyond the paper",
        statement="The share of fresh points in empty buckets is sum_b p_b (1 - p_b)^m, which another sample of four "
        "times the most samples predicts without bias.",
        printed="",
        rule="predicted less measured share, over the mean measured one; holds if the 95 % interval of its mean over "
        f"seeds lies within +- {NEAR:g} at every number of samples that leaves more than {NOTICEABLE:.1%} of "
        "misses on average, at the finest width",
        refuted_if="at some number of samples the predicted share is significantly farther from the measured "
        "one than the limit",
        judge=judge_prediction,
    ),
    Claim(
        name="samples-of-the-proof",
        place="Theorem 4.1, proof",
        statement="After the proof's k V ln V samples empty buckets are a rare scenario: ever rarer as eps falls.",
        printed="a rare scenario; V = O((2 Gamma L sqrt(d) / eps)^k)",
        rule="share of misses at k V ln V samples, eps the gap of the hyperplanes, L = 1 and the constant Gamma 1, "
        "predicted without bias from another sample; holds if the 95 % interval of the mean over seeds of the slope "
        "of its logarithm in log eps lies above 0",
        refuted_if="the share of misses grows significantly as eps falls",
        judge=judge_proof,
    ),
    Claim(
        name="literal-and-nearest",
        place="beyond the paper",
        statement="The literal learner, one table of constants with the best gap, loses to the nearest neighbour.",
        printed="",
        rule="its root mean squared error over that of 1-NN on the same rows; holds if the 95 % interval of the mean "
        "over seeds lies above 1 at every size",
        refuted_if="the literal learner significantly errs less than the nearest neighbour at some size",
        judge=lambda rows: judge_ratio(rows, "literal", "nearest", least=1.0),
    ),
    Claim(
        name="recommended-and-eight-nearest",
        place="beyond the paper",
        statement="The recommended learner, 16 adapted tables of lines, beats the mean of eight nearest neighbours.",
        printed="",
        rule="its root mean squared error over that of 8-NN on the same rows; holds if the 95 % interval of the mean "
        "over seeds lies below 1 at every size",
        refuted_if="the recommended learner significantly errs more than eight nearest neighbours at some size",
        judge=lambda rows: judge_ratio(rows, "recommended", "eight_nearest", most=1.0),
    ),
)

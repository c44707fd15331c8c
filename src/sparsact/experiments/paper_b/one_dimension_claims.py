"""What is claimed of the one-dimensional example, and the rules by which rows decide it."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from sparsact.experiments import Claim, Rows, Verdict, every, mean_of, median_of, needed, only_if, within

CONSTANTS, LINES, DENSE = "constants", "lines", "dense ReLU"
FOURFOLD = (3.5, 4.5)
ARRIVED = 1.1  # trained constants have arrived when their median error is within this many times the closed form's


def of(rows: Rows, model: str, *, trained: bool = False) -> Rows:
    """Rows of a model: of the closed form, or trained."""
    return Rows(row for row in rows.where(model=model) if (row["epochs"] > 0) == trained)


def judge_falls(rows: Rows, model: str, least: float, most: float, *, trained: bool = False) -> Verdict:
    """The factor by which the error falls per doubling, from the fewest to the most buckets of each seed."""
    found = needed(of(rows, model, trained=trained), f"errors of {model}")
    factors = [_factor(curve) for curve in found.groups("seed").values()]
    verdict = within(mean_of(factors), least=least, most=most, what="factor per doubling")
    return Verdict(verdict.outcome, f"{verdict.measured}; {_steps(found)}")


def judge_trained_falls(rows: Rows) -> Verdict:
    """RMSProp over all buckets; and over as many as it brings to where the closed form is."""
    whole = judge_falls(rows, CONSTANTS, *FOURFOLD, trained=True)
    trained, arrived = of(rows, CONSTANTS, trained=True), []
    for n in trained.distinct("n_units"):
        closed = of(rows, CONSTANTS).where(n_units=n)
        if np.median(_over(trained.where(n_units=n), closed)) > ARRIVED:
            break
        arrived.append(n)
    if len(arrived) < 2 or arrived == trained.distinct("n_units"):
        return whole
    some = Rows(row for row in rows if row["n_units"] <= arrived[-1])
    condition = f"there are no more than {arrived[-1]} buckets: with more, the steps taken do not reach the means"
    return only_if(condition, judge_falls(some, CONSTANTS, *FOURFOLD, trained=True), whole)


def _factor(curve: Rows) -> float:
    by_size = dict(zip(curve.column("n_units"), curve.column("mse"), strict=True))
    few, many = min(by_size), max(by_size)
    needed(curve if few < many else Rows(()), "two numbers of buckets", 2)
    return float((by_size[few] / by_size[many]) ** (1 / np.log2(many / few)))


def _steps(found: Rows) -> str:
    """Median errors as shares of the variance, size by size."""
    sizes = found.groups("n_units")
    share = {n: float(np.median(same.array("mse") / same.array("variance"))) for (n,), same in sizes.items()}
    falls = ", ".join(f"{share[a] / share[b]:.2f} ({a} to {b})" for a, b in pairwise(share))
    return f"falls of the median: {falls}"


def judge_one_active(rows: Rows) -> Verdict:
    """The fewest buckets against a dense layer of one unit."""
    dense = needed(rows.where(model=DENSE, n_units=1), "dense layers of one unit")
    n = min(needed(of(rows, CONSTANTS), "constants").distinct("n_units"))
    return within(median_of(_over(of(rows, CONSTANTS).where(n_units=n), dense)), most=1, what=f"{n} buckets:")


def judge_same_width(rows: Rows) -> Verdict:
    """N constants against N units that are all active, at every size that both have."""
    closed, dense = needed(of(rows, CONSTANTS), "constants"), rows.where(model=DENSE)
    return every(
        *(
            within(median_of(_over(closed.where(n_units=n), dense.where(n_units=n))), most=1, what=f"{n}:")
            for n in closed.distinct("n_units")
        )
    )


def _over(found: Rows, others: Rows) -> list[float]:
    """Errors as shares of another model's of the same seed."""
    beside = {row["seed"]: row["mse"] for row in others}
    paired = needed(Rows(row for row in found if row["seed"] in beside), "a pair of errors")
    return [row["mse"] / beside[row["seed"]] for row in paired]


MEDIANS = "by the interval of the median over seeds of errors paired by seed"
CLAIMS = (
    Claim(
        name="fourfold",
        place="Section 1",
        statement="More buckets approximate better: the squared error falls fourfold per doubling of the buckets.",
        printed="a figure without numbers",
        rule="holds if the 95 % interval of the factor per doubling, a mean over seeds, lies within [3.5, 4.5]",
        refuted_if="the factor per doubling is significantly outside the limits",
        judge=partial(judge_falls, model=CONSTANTS, least=FOURFOLD[0], most=FOURFOLD[1]),
    ),
    Claim(
        name="fourfold-trained",
        place="Section 1 with the training of A.1",
        statement="So it does when the constants are trained as the paper trains them.",
        printed="a figure without numbers",
        rule="the same, of RMSProp, whose steps are at most about three learning rates; only if, where it is so of as "
        "many buckets as have a median error within 1.1 times the closed form's, and not of all",
        refuted_if="the factor per doubling is significantly outside the limits where training has converged, too",
        judge=judge_trained_falls,
    ),
    Claim(
        name="one-active-unit",
        place="Section 1",
        statement="With one active unit a model of buckets has less error than a dense layer.",
        printed="a figure without numbers",
        rule=f"holds if the fewest buckets have at most the error of a frozen ReLU layer of one unit, {MEDIANS}",
        refuted_if="the fewest buckets significantly err more than the frozen unit",
        judge=judge_one_active,
    ),
    Claim(
        name="same-width",
        place="beyond the paper",
        statement="N constants, one of them active, have no more error than N frozen ReLU units that are all active.",
        printed="",
        rule=f"holds if it is so at every N, {MEDIANS}",
        refuted_if="at some N the constants significantly err more than the frozen units",
        judge=judge_same_width,
    ),
    Claim(
        name="sixteenfold",
        place="beyond the paper",
        statement="With a line in each bucket (degree 1) the squared error falls sixteenfold per doubling.",
        printed="",
        rule="holds if the 95 % interval of the factor per doubling, a mean over seeds, lies within [14, 18]",
        refuted_if="the factor per doubling is significantly outside the limits",
        judge=partial(judge_falls, model=LINES, least=14.0, most=18.0),
    ),
)

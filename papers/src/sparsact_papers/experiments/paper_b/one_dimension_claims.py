"""What is claimed of the one-dimensional example, and the rules by which rows decide it."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from sparsact_papers.experiments import Claim, Rows, Verdict, every, median_of, needed, slope_of, within
from sparsact_papers.experiments.rates import HALF

CONSTANTS, LINES, DENSE = "constants", "lines", "dense ReLU"


def of(rows: Rows, model: str, *, trained: bool = False) -> Rows:
    """Rows of a model: of the closed form, or trained."""
    return Rows(row for row in rows.where(model=model) if (row["epochs"] > 0) == trained)


def judge_falls(rows: Rows, model: str, power: int) -> Verdict:
    """Power of 1 / buckets with which the squared error of each seed falls."""
    found = needed(of(rows, model), f"errors of {model}")
    curves = found.groups("seed").values()
    needed(found if min(len(curve) for curve in curves) > 1 else Rows([]), "two numbers of buckets")
    slope = slope_of((curve.column("n_units"), curve.column("mse")) for curve in curves)
    verdict = within(slope, least=-power - HALF, most=-power + HALF, what="power of the buckets")
    return Verdict(verdict.outcome, f"{verdict.measured}; {_steps(found)}")


def judge_improves(rows: Rows, *, trained: bool) -> Verdict:
    """Constants in each number of buckets against those in half as many."""
    found = needed(of(rows, CONSTANTS, trained=trained), "constants").groups("n_units")
    steps = [(few, many) for (few,), (many,) in pairwise(found)]
    return every(
        *(within(median_of(_over(found[many,], found[few,])), most=1, what=f"{few} to {many}:") for few, many in steps)
    )


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
        name="improves",
        place="Section 1",
        statement="More buckets approximate better.",
        printed="a figure without numbers",
        rule=f"closed form; holds if each number of buckets has no more error than half as many, {MEDIANS}",
        refuted_if="some number of buckets significantly errs more than half as many",
        judge=partial(judge_improves, trained=False),
    ),
    Claim(
        name="improves-trained",
        place="Section 1 with the training of A.1",
        statement="So they do when the constants are trained as the paper trains them.",
        printed="a figure without numbers",
        rule="the same, of RMSProp",
        refuted_if="some number of buckets significantly errs more than half as many",
        judge=partial(judge_improves, trained=True),
    ),
    Claim(
        name="fourfold",
        place="beyond the paper",
        statement="The squared error falls like 1/buckets^2, fourfold per doubling: the square of Theorem 4.1's rate.",
        printed="",
        rule="slope of log squared error in log buckets of each seed, closed form; holds if the 95 % interval of its "
        "mean lies within 1/2 of -2",
        refuted_if="the slope is significantly farther than 1/2 from -2",
        judge=partial(judge_falls, model=CONSTANTS, power=2),
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
        statement="With a line in each bucket (degree 1) the squared error falls like 1/buckets^4, sixteenfold per "
        "doubling.",
        printed="",
        rule="the same; holds if the 95 % interval lies within 1/2 of -4",
        refuted_if="the slope is significantly farther than 1/2 from -4",
        judge=partial(judge_falls, model=LINES, power=4),
    ),
)

"""Claims about hidden parities: who finds them, at what price, beside the lower bound."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.hardness.parity_comparison import SPARE_EXAMPLES
from sparsact_papers.claims import Claim, Verdict, every, needed, only_if, within
from sparsact_papers.intervals import Interval, mean_of, range_of, slope_of
from sparsact_papers.results import Rows

CHARACTERS, BENT = "all characters", "bent functions"
LOW, LOWER = "low degree, d = |S|", "low degree, d = |S| - 1"
JUNTAS, MEMBERSHIP = "correlations of a sample", "membership queries"
ELIMINATION, LIFTED, NETWORK = "elimination", "elimination on the lift", "network"
ANY: Final = (CHARACTERS, BENT)  # learners that know nothing of the size
CHANCE: Final = 0.5  # the error of guessing


def _of(rows: Rows, learners: tuple[str, ...], noise: float = 0.0) -> Rows:
    found = Rows(row for row in rows if row["learner"] in learners and row["noise"] == noise)
    return needed(found, " and ".join(learners))


def _steps(rows: Rows) -> tuple[float, float, float]:
    """Slope of log queries in log m at the two least and the two greatest m; there also that of log2 queries in m."""
    order = np.argsort(rows.array("m"))
    m, queries = (rows.array(name)[order] for name in ("m", "queries"))
    slopes: NDArray[np.float64] = np.diff(np.log(queries)) / np.diff(np.log(m))
    return float(slopes[0]), float(slopes[-1]), float(np.log2(queries[-1] / queries[-2]) / (m[-1] - m[-2]))


def _judge_bound(rows: Rows) -> Verdict:
    found = Rows(row for row in _of(rows, (*ANY, LOW)) if row["error"] < 1 / 3 and row["bound"] > 0)
    ratio = needed(found, "learners that succeed").array("queries") / found.array("bound")
    return within(range_of(ratio), least=1, what="queries / lower bound")


def _judge_powers(rows: Rows) -> Verdict:
    found = _of(rows, ANY)
    steps = [_steps(needed(group, "numbers of bits", 3)) for group in found.groups("learner", "seed").values()]
    return every(
        within(range_of(found.array("error")), most=0, what="error"),
        within(range_of([last - first for first, last, _ in steps]), least=1e-9, what="growth of the slope"),
        within(range_of([bit for *_, bit in steps]), least=0.5, what="log2 of the factor a bit at the greatest m"),
    )


def _judge_sizes(rows: Rows) -> Verdict:
    found = _of(rows, (LOW,))
    slopes = {size: _slope(found.where(size=size)) for size in found.distinct("size")}
    needed(found[: len(slopes)], "sizes of S", 2)
    estimates = list(slopes.values())
    told = ", ".join(f"|S| = {size}: {slope}" for size, slope in slopes.items())
    steps = [above.low - below.high for below, above in pairwise(estimates)]
    return within(range_of(steps), least=1e-9, what=f"slopes {told}; step between intervals")


def _slope(rows: Rows) -> Interval:
    groups = rows.groups("seed").values()
    return slope_of((needed(group, "numbers of bits", 2).column("m"), group.column("queries")) for group in groups)


def _judge_tight(rows: Rows) -> Verdict:
    found = _of(rows, (BENT,))
    largest = found.where(m=max(found.column("m")))
    return within(range_of(largest.array("queries / bound")), most=2, what="queries / lower bound")


def _judge_elimination(rows: Rows) -> Verdict:
    clean = _of(rows, (ELIMINATION, LIFTED))
    spoiled = Rows(row for row in rows.where(learner=ELIMINATION) if row["noise"] > 0)
    error = needed(spoiled, "elimination with noise").array("error")
    under = every(
        within(range_of(clean.array("error")), most=0, what="error"),
        within(range_of(clean.array("examples") - clean.array("m")), most=SPARE_EXAMPLES, what="examples - m"),
    )
    return only_if("the labels have no noise", under, within(mean_of(error), most=1 / 3, what="mean error with noise"))


def _judge_membership(rows: Rows) -> Verdict:
    found = _of(rows, (MEMBERSHIP,))
    slopes = [_slope(found.where(size=size)) for size in found.distinct("size")]
    return every(
        within(range_of(found.array("error")), most=0, what="error"),
        *(within(slope, most=2, what="slope of log queries in log m") for slope in slopes),
    )


def _judge_network(rows: Rows) -> Verdict:
    found = _of(rows, (NETWORK,))
    cube = needed(Rows(row for row in found if row["on_cube"] is not None), "certificates on the cube")
    return only_if(
        "inputs are lifted points",
        within(range_of(found.array("on_lift")), most=1, what="certified active units"),
        every(
            within(range_of(cube.array("on_cube")), most=1, what="on the whole cube, values 0 and 1,"),
            within(range_of(cube.array("on_cube_signs")), most=1, what="values +-1,"),
        ),
    )


CLAIMS: Final = (
    Claim(
        "bound",
        place="Theorem 14",
        statement="No statistical-query learner finds parities with fewer queries than the lower bound.",
        printed="Omega(2^m tau^2), without a constant",
        rule="holds if on every row with error below 1/3 queries / (tau^2 (N - 9)) >= 1, N the parities that were "
        "possible",
        judge=_judge_bound,
        refuted_if="some learner finds a parity with fewer queries than the bound requires",
    ),
    Claim(
        "no-power",
        place="Theorems 3 and 14",
        statement="Queries for any parity of m bits grow faster than every fixed power of m.",
        printed="2^Omega(m) queries",
        rule="holds if for every learner and seed log queries against log m is steeper at the greatest m than at the "
        "least, and there each bit multiplies queries by sqrt 2 at least (a power of m plus a constant steepens as "
        "well)",
        judge=_judge_powers,
        refuted_if="for some learner and seed log queries does not steepen in log m, or a bit multiplies queries by "
        "less than sqrt 2",
    ),
    Claim(
        "sizes",
        statement="For parities of fixed size the power of m grows with |S|.",
        rule="holds if the 95 % intervals of the slope of log queries in log m lie apart, in ascending order of |S|",
        judge=_judge_sizes,
        refuted_if="a larger |S| has significantly no larger slope",
    ),
    Claim(
        "tight",
        statement="The bound is tight up to a factor 2: bent functions test 1 / tau^2 parities with each query.",
        rule="holds if at the greatest m on every row queries / (tau^2 (2^m - 9)) <= 2",
        judge=_judge_tight,
        refuted_if="some row needs more than twice the bound at the greatest m",
    ),
    Claim(
        "below",
        place="Section 4",
        statement="All correlations of degree below |S| together tell nothing of the parity.",
        rule="holds if on every row the error at degree |S| - 1 is at least 1/3",
        judge=lambda rows: within(
            range_of(_of(rows, (LOWER,)).array("error")), least=1 / 3, what="error at degree |S| - 1"
        ),
        refuted_if="some row errs by less than 1/3 at degree |S| - 1",
    ),
    Claim(
        "elimination",
        statement="Elimination, which is not statistical, finds the parity from m + O(1) examples, also on the lift.",
        rule=f"holds if on every row the error is 0 and examples - m <= {SPARE_EXAMPLES}, and with noise the 95 % "
        "interval of the mean error lies below 1/3 (few examples may have no wrong label by chance)",
        judge=_judge_elimination,
        refuted_if="some row errs or needs more examples than the rule allows, or noise significantly defeats it",
    ),
    Claim(
        "noise",
        statement="Statistical queries do not mind the noise: the low-degree algorithm finds the parity all the same.",
        rule="holds if on every row with noise its error against the labels without noise is 0",
        judge=lambda rows: within(
            range_of(
                needed(
                    Rows(row for row in rows.where(learner=LOW) if row["noise"] > 0), "queries about noisy labels"
                ).array("error")
            ),
            most=0,
            what="error with noise",
        ),
        refuted_if="some row with noise errs against the labels without noise",
    ),
    Claim(
        "membership",
        statement="Membership queries find the parity in polynomial number.",
        rule="holds if on every row the error is 0 and the 95 % interval of the slope of log queries in log m is "
        "below 2",
        judge=_judge_membership,
        refuted_if="some row errs, or the slope of log queries in log m is significantly 2 or more",
    ),
    Claim(
        "one-sparse",
        place="Section 4",
        statement="Parity on the quadratic lift is a one-sparse network.",
        printed="H_{m^2, O(m), 1}",
        rule="holds if on every row one unit at most is active by proof: on lifted points; and on all of {-1, 1}^(m m)",
        judge=_judge_network,
        refuted_if="two units are active at some lifted point",
    ),
)

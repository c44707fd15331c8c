"""Rules by which measured Rademacher complexities decide the claims of Section 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sparsact_papers.claims import Outcome, Verdict, bounded, every, needed, within
from sparsact_papers.intervals import Interval, mean_of, percent, range_of, slope_of, tail
from sparsact_papers.results import MissingRowsError, Rows

MOST_GROWTH: Final = float(np.sqrt(8))  # from one unit to eight, as sqrt(s)
MOST_POWER: Final = 0.5
ROUNDING: Final = 1e-9  # units that are searched for together are made of the same convex problems
ACCURACY: Final = 1e-9  # rounding of exact maxima
Case = tuple[int, int, float]  # n, k, B / (W R)
Maxima = NDArray[np.float64]  # of every draw, for every number of units


def cases(rows: Rows) -> dict[Case, Rows]:
    """Rows on cubes by n, k and B / (W R)."""
    return needed(rows.where(sample="cube"), "complexities on a cube").groups("n", "k", "bias")


def maxima_of(rows: Rows) -> Maxima:
    """Maxima of all draws of some rows, one below the other."""
    return np.concatenate([np.asarray(row["maxima"], dtype=np.float64) for row in rows])


def whole(rows: Rows) -> Rows:
    """Rows in which all signs were taken: nothing is left to chance."""
    return rows.where(draws=None)


def drawn(rows: Rows) -> Rows:
    """Rows in which signs were drawn."""
    return Rows(row for row in rows if row["draws"] is not None)


def average(rows: Rows, values: Maxima) -> Interval:
    """The mean of values that belong to the draws of these rows: an interval without width, if all signs were taken."""
    if whole(rows):
        mean = float(values.mean())
        return Interval(mean, mean, mean, len(values), "all signs")
    return mean_of(values)


def complexities(rows: Rows) -> list[Interval]:
    """Complexities of one case for every number of units: over all signs if some row has them, else over drawn ones."""
    chosen = whole(rows) or rows
    return [average(chosen, column) for column in maxima_of(chosen).T]


def ratio_of(above: Maxima, below: Maxima) -> Interval:
    """Ratio of two means over the same draws with its 95 % interval, by the delta method.

    >>> ratio_of(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0]))
    Interval(estimate=2.0, low=2.0, high=2.0, n=3, kind='95 % interval of the ratio of means')
    """
    if len(above) < 2:
        raise MissingRowsError(f"a ratio of means needs 2 draws, there are {len(above)}")
    ratio = float(above.mean() / below.mean())
    error = float(stats.sem(above - ratio * below) / below.mean())
    half = float(stats.t.ppf(1 - tail(), len(above) - 1)) * error
    return Interval(ratio, ratio - half, ratio + half, len(above), f"{percent()} of the ratio of means")


def judge_growth(rows: Rows) -> Verdict:
    """The most units against one, for each B, on the largest cube whose rows have all signs."""
    of_one_active = {case: group for case, group in cases(rows).items() if case[1] == 1}
    n = max(row["n"] for row in needed(whole(rows.where(sample="cube", k=1)), "a cube with all signs"))
    verdicts: dict[float, Verdict] = {}
    for (at, _, bias), group in of_one_active.items():
        if at != n:
            continue
        sample = maxima_of(needed(drawn(group), "drawn signs"))
        exact = maxima_of(needed(whole(group), "all signs")).mean(axis=0)
        verdicts[bias] = every(
            within(ratio_of(sample[:, -1], sample[:, 0]), most=MOST_GROWTH, what=f"n = {n}, B = {bias:g} WR:"),
            within(range_of([exact[-1] / exact[0]]), most=MOST_GROWTH, what="over all signs"),
        )
    return _where_it_holds(verdicts)


def _where_it_holds(verdicts: Mapping[float, Verdict]) -> Verdict:
    """Join verdicts for each B: "holds only if" B is one of some, if all are decided and some fail."""
    together = every(*verdicts.values())
    held = [f"{bias:g}" for bias, verdict in verdicts.items() if verdict.outcome is Outcome.HOLDS]
    failed = [bias for bias, verdict in verdicts.items() if verdict.outcome is Outcome.DOES_NOT_HOLD]
    if not (held and failed and len(held) + len(failed) == len(verdicts)):
        return Verdict(Outcome.UNDECIDED if held and failed else together.outcome, together.measured)
    tried = ", ".join(f"{bias:g}" for bias in verdicts)
    return Verdict(Outcome.HOLDS_ONLY_IF, together.measured, f"B / (WR) is {' or '.join(held)}, of {tried} tried")


def judge_power(rows: Rows) -> Verdict:
    """The fitted power of s for each cube and B, over blocks of drawn signs."""
    verdicts = []
    for (n, k, bias), group in cases(rows).items():
        blocks = drawn(group)
        if k == 1 and len(blocks):
            curves = [maxima_of(Rows([block])).mean(axis=0) for block in needed(blocks, "blocks of signs", 2)]
            power = slope_of((range(1, len(curve) + 1), curve) for curve in curves)
            verdicts.append(within(power, most=MOST_POWER, what=f"n = {n}, B = {bias:g} WR: power"))
    return every(*verdicts)


def judge_dense(rows: Rows) -> Verdict:
    """Units searched for together over s times one unit, on every draw."""
    found = needed(rows.where(sample="dense"), "units searched for together")
    verdicts = []
    for (s,), group in found.groups("s").items():
        alone = np.concatenate([np.asarray(row["one_unit"]) for row in group])
        share = range_of(maxima_of(group) / (s * alone))
        verdicts.append(within(share, least=1 - ROUNDING, most=1 + ROUNDING, what=f"s = {s}: R / (s R_1)"))
    return every(*verdicts)


def shares(rows: Rows, of: str) -> dict[tuple[Case, int], Interval]:
    """Complexity over a bound, for every case and number of units; of at least k units."""
    found = {}
    for case, group in cases(rows).items():
        for at, complexity in enumerate(complexities(group)):
            bound, n_units = group[0][of][at], at + 1
            if n_units < case[1]:
                continue  # the class with k = s, which is another case
            low, middle, high = (float(end / bound) for end in (complexity.low, complexity.estimate, complexity.high))
            found[case, n_units] = Interval(middle, low, high, complexity.n, complexity.kind)
    return found


def _judge_share(rows: Rows, of: str, what: str) -> Verdict:
    found = shares(rows, of)
    judged = {key: within(share, most=1 + ACCURACY) for key, share in found.items()}
    worst = max(found, key=lambda key: found[key].high)
    (n, k, bias), s = worst
    n_held = sum(verdict.outcome is Outcome.HOLDS for verdict in judged.values())
    where = f"n = {n}, k = {k}, s = {s}, B = {bias:g} WR"
    told = f"{n_held} of {len(judged)} lie within; the largest {what}: {judged[worst].measured} at {where}"
    together = every(*judged.values())
    return replace(bounded(found[worst], "") if together.outcome is Outcome.HOLDS else together, measured=told)


judge_bound = partial(_judge_share, of="bound", what="complexity / (15)")
judge_explicit_bound = partial(_judge_share, of="explicit_bound", what="complexity / bound")
judge_conjecture = partial(_judge_share, of="conjecture", what="complexity / conjecture")


def judge_orthogonal(rows: Rows) -> Verdict:
    """What members of the class reach over what the conjecture allows; the exact maxima, where there are some."""
    found = needed(rows.where(sample="orthogonal", is_of_the_class=True, most_active=1), "networks of the class")
    reached = {row["n"]: range_of(np.array(row["reached"]) / row["conjecture"]) for row in found}
    exact = {row["n"]: range_of(np.array(row["exact"]) / row["conjecture"]) for row in found if row["exact"]}
    refuting = sorted(m for m, share in reached.items() if share.low > 1 + ACCURACY)
    known = len(exact) == len(reached) and all(share.high <= 1 + ACCURACY for share in exact.values())
    outcome = Outcome.DOES_NOT_HOLD if refuting else Outcome.HOLDS if known else Outcome.UNDECIDED
    told = [f"{reached[m]} times on {m} points" for m in sorted({*refuting[:1], max(reached)})]
    told += [f"exactly {share} times on {m}" for m, share in exact.items()]
    return Verdict(outcome, f"networks of the class reach {'; '.join(told)} (least and greatest over the draws)")

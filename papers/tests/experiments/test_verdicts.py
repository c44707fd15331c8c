"""Intervals cover what they promise; verdicts follow from them."""

import numpy as np
import pytest
from reproduced import LINE, made_up
from scipy import stats

from sparsact_papers.claims import repetitions_needed
from sparsact_papers.experiments import (
    Claim,
    Interval,
    MissingRowsError,
    Outcome,
    Rows,
    Verdict,
    bounded,
    every,
    mean_of,
    median_of,
    needed,
    only_if,
    range_of,
    slope_of,
    within,
)
from sparsact_papers.intervals import mean_of_splits

HOLDS, FAILS, OPEN, IF = Outcome.HOLDS, Outcome.DOES_NOT_HOLD, Outcome.UNDECIDED, Outcome.HOLDS_ONLY_IF


def interval(low, high):
    return Interval((low + high) / 2, low, high, 5, "made up")


@pytest.mark.parametrize(("of", "truth"), [(mean_of, 1.0), (median_of, 1.0)])
def test_intervals_cover_the_truth(of, truth):
    """500 normal samples: coverage of 91 % or less has probability under 1e-3 where it is truly 95 %."""
    rng = np.random.default_rng(1)
    found = [of(rng.normal(truth, 2.0, 9)) for _ in range(500)]
    covered = np.mean([one.low <= truth <= one.high for one in found])
    assert covered > 0.91
    assert all(one.low <= one.estimate <= one.high and one.n == 9 for one in found)


def test_the_mean_interval_matches_students_test():
    sample = np.random.default_rng(0).normal(size=7)
    low, high = stats.ttest_1samp(sample, 0).confidence_interval(0.95)
    assert (mean_of(sample).low, mean_of(sample).high) == pytest.approx((low, high))


@pytest.mark.parametrize("n", range(2, 40))
def test_the_median_interval_is_the_shortest_of_order_statistics_that_suffices(n):
    found = median_of(np.arange(1, n + 1))
    below = int(found.low)
    assert found.high == n + 1 - below

    def sure(j):
        return 1 - 2 * stats.binom.cdf(j - 1, n, 0.5)

    assert sure(below) >= 0.95 or below == 1
    assert below + 1 > (n + 1) // 2 or sure(below + 1) < 0.95
    assert f"{100 * sure(below):.0f} %" in found.kind


def test_the_interval_over_splits_covers_the_mean_over_tables_where_students_does_not():
    """Two models by least squares on tables of 100 rows, with 12 splits each, four fifths to learn from."""
    rng = np.random.default_rng(0)

    def table():
        X = np.column_stack([np.ones(100), rng.normal(size=(100, 5))])
        return X, X @ [1, 1, 0.5, 0.3, 0, 0] + rng.normal(size=100)

    def ratio(X, y):
        order = rng.permutation(100)
        test, train = order[:20], order[20:]
        some, all_ = (
            np.mean((X[test, :n] @ np.linalg.lstsq(X[train, :n], y[train], rcond=None)[0] - y[test]) ** 2)
            for n in (3, 6)
        )
        return np.log2(some / all_)

    truth = np.mean([ratio(*table()) for _ in range(4000)])
    samples = [[ratio(*one) for _ in range(12)] for one in (table() for _ in range(300))]

    def covered(intervals):
        return np.mean([one.low <= truth <= one.high for one in intervals])

    assert covered(map(mean_of, samples)) < 0.85
    assert covered(mean_of_splits(values, 0.2) for values in samples) > 0.91


def test_where_every_row_is_in_one_part_the_correction_matches_nadeau_and_bengio():
    values = np.random.default_rng(2).normal(size=15)
    half = stats.t.ppf(0.975, 14) * np.sqrt((1 / 15 + 30 / 90) * values.var(ddof=1))
    found = mean_of_splits(values, 30 / 120)
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half))
    assert found.floor < half
    assert not np.isfinite(mean_of_splits([1.0], 0.2).high)


def test_so_many_splits_as_are_needed_bring_the_interval_to_the_limit():
    found = mean_of_splits(np.random.default_rng(3).normal(size=10), 0.2)
    most = found.estimate + 1.1 * found.floor
    n = repetitions_needed(found, most=most)
    spread = (found.high - found.estimate) / np.sqrt(1 / 10 + 0.25) / stats.t.ppf(0.975, 9)
    half = stats.t.ppf(0.975, n - 1) * spread * np.sqrt(1 / n + 0.25)
    assert half == pytest.approx(most - found.estimate, rel=0.03)
    assert f"about {n} repetitions would decide it" in within(found, most=most).measured


def test_no_number_of_splits_decides_what_lies_nearer_to_a_limit_than_the_floor():
    found = mean_of_splits(np.random.default_rng(3).normal(size=10), 0.2)
    most = found.estimate + 0.9 * found.floor
    assert repetitions_needed(found, most=most) is None
    assert "no number of repetitions would decide it" in within(found, most=most).measured


def test_one_repetition_decides_nothing_about_a_mean():
    assert within(mean_of([0.1]), most=1).outcome is OPEN
    assert within(median_of([0.1]), most=1).outcome is OPEN
    assert "one repetition" in within(mean_of([0.1]), most=1).measured


@pytest.mark.parametrize(("most", "outcome"), [(1.3, HOLDS), (1.0, FAILS), (0.5, FAILS)])
def test_one_repetition_refutes_a_claim_about_every_one(most, outcome):
    assert within(range_of([0.9, 1.2, 0.7]), most=most).outcome is outcome
    assert within(range_of([-0.9, -1.2, -0.7]), least=-most).outcome is outcome


def test_a_slope_matches_the_power_law():
    x = np.array([1.0, 3.0, 10.0])
    found = slope_of((x, c * x**-0.5) for c in (1.0, 2.0, 5.0))
    assert found.estimate == pytest.approx(-0.5)
    assert found.high - found.low < 1e-9


def test_nothing_has_no_interval():
    for of in (mean_of, median_of, range_of):
        with pytest.raises(MissingRowsError):
            of([])


@pytest.mark.parametrize(
    ("limits", "outcome"), [((0, 1), HOLDS), ((1, 2), HOLDS), ((-1, 1.5), OPEN), ((2.5, 3), FAILS), ((-3, -1), FAILS)]
)
def test_within(limits, outcome):
    assert within(interval(*limits), least=0, most=2).outcome is outcome


@pytest.mark.parametrize(
    ("shares", "label"),
    [
        ((0.1, 0.25), "consistent, slack 4"),
        ((0.0, 0.0), "consistent, slack inf"),
        ((0.1, 0.95), "holds"),
        ((0.1, 1.0), "holds"),
        ((0.1, 1.01), "does not hold"),
    ],
)
def test_a_bound_holds_only_where_it_is_attained(shares, label):
    assert bounded(range_of(shares), "share").label == label


def test_slack_comes_from_the_estimate_and_from_several_it_is_the_least():
    assert bounded(interval(0.3, 0.7), "share").label == "consistent, slack 2"
    assert bounded(interval(0.3, 1.1), "share").outcome is OPEN
    parts = [bounded(range_of([share]), "share") for share in (0.1, 0.2)]
    assert every(*parts).label == "consistent, slack 5"
    assert only_if("warm", *parts).label == "consistent, slack 5"


def test_every_takes_the_worst():
    verdicts = {outcome: Verdict(outcome, outcome.value, "c" if outcome is IF else "") for outcome in Outcome}
    assert every(verdicts[HOLDS], verdicts[HOLDS]).outcome is HOLDS
    assert every(verdicts[HOLDS], verdicts[IF]).outcome is IF
    assert every(verdicts[HOLDS], verdicts[IF]).condition == "c"
    assert every(verdicts[IF], verdicts[OPEN]).outcome is OPEN
    assert every(*verdicts.values()) == Verdict(FAILS, "; ".join(outcome.value for outcome in Outcome))
    with pytest.raises(MissingRowsError):
        every()


@pytest.mark.parametrize(
    ("under", "otherwise", "outcome"),
    [
        (HOLDS, FAILS, IF),
        (HOLDS, HOLDS, HOLDS),
        (FAILS, FAILS, FAILS),
        (HOLDS, OPEN, OPEN),
        (OPEN, FAILS, OPEN),
        (FAILS, HOLDS, FAILS),
    ],
)
def test_only_if_needs_both_sides(under, otherwise, outcome):
    found = only_if("warm", Verdict(under, "with"), Verdict(otherwise, "without"))
    assert found.outcome is outcome
    assert found.measured == "with; otherwise without"
    assert found.condition == ("warm" if outcome is IF else "")


def test_a_rule_that_lacks_rows_is_undecided():
    def judge(rows):
        return Verdict(HOLDS, str(len(needed(rows.where(model="none"), "the model none", 2))))

    claim = Claim("c", place="p", statement="s.", printed="", rule="r", judge=judge, refuted_if="never")
    row = made_up(LINE, {"model": "some"}, {"error": 1.0})
    assert claim.verdict(Rows([row])) == Verdict(OPEN, "not enough rows: the model none needs 2, there are 0")
    assert claim.verdict(Rows([])).outcome is OPEN

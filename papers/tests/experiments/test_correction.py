"""Verdicts that theorems imply, and verdicts that survive the correction for their number."""

from dataclasses import replace

import numpy as np
import pytest
from reproduced import LINE, made_up
from scipy import stats

from sparsact_papers.correction import Correction, Standing
from sparsact_papers.experiments import (
    Claim,
    Findings,
    Outcome,
    Rows,
    Scale,
    Verdict,
    every,
    experiments,
    mean_of,
    median_of,
    only_if,
    range_of,
    share_of,
    within,
)  # fmt: skip
from sparsact_papers.implied import IMPLIED, implied_by
from sparsact_papers.intervals import confidence, mean_of_splits, normal_of

ROWS = Rows([made_up(LINE, {"seed": 0}, {"error": 1.0})])


def findings(*judges):
    """One experiment with a claim for each judge."""
    claims = tuple(
        Claim(
            f"claim-{i}", place="p", statement="s.", rule="r", refuted_if="x", judge=lambda rows, judge=judge: judge()
        )
        for i, judge in enumerate(judges)
    )
    return Findings(replace(LINE, name="made-up", claims=claims), Scale.FULL, ROWS, 1)


def sample(p_value, n=9, seed=0):
    """A sample whose two-sided Student test against 0 has this p-value, with a positive mean."""
    values = np.random.default_rng(seed).normal(size=n)
    values = (values - values.mean()) / values.std(ddof=1)
    return values + stats.t.isf(p_value / 2, n - 1) / np.sqrt(n)


def above_0(p_value):
    return lambda: within(mean_of(sample(p_value)), least=0)


def standings(*judges):
    found = findings(*judges)
    correction = Correction.of([found])
    return [correction.standing(found, claim) for claim in found.experiment.claims], correction


@pytest.mark.parametrize(
    "p_values", [(0.011, 0.02, 0.04), (0.001, 0.024, 0.049), (0.001, 0.026, 0.049), (0.04,), (0.3, 0.001, 0.02, 0.0001)]
)
def test_the_survivors_match_holms_method(p_values):
    order = np.sort(p_values)
    thresholds = 0.05 / (len(order) - np.arange(len(order)))
    n = int(np.argmin(np.append(order <= thresholds, False)))  # the first that is not rejected
    found, correction = standings(*map(above_0, p_values))
    for p, standing in zip(p_values, found, strict=True):
        expected = Standing.SURVIVES if p in order[:n] else Standing.OPEN if p > 0.05 else Standing.ALONE
        assert standing is expected
    assert correction.n_surviving == n
    assert correction.n_estimated == len(p_values)
    assert correction.n_by_chance == pytest.approx(0.025 * sum(p < 0.05 for p in p_values))


def test_what_one_of_several_intervals_refutes_must_withstand_their_number():
    """A claim of four parts that fails by one has four chances; one that holds needs all of them."""

    def fails(p):
        return lambda: every(*(within(mean_of(sample(q)), most=0) for q in (p, 0.9, 0.9, 0.9)))

    def holds(p):
        return lambda: every(*(within(mean_of(sample(q)), least=0) for q in (p, p, p, p)))

    assert standings(fails(0.013))[0] == [Standing.ALONE]
    assert standings(fails(0.012))[0] == [Standing.SURVIVES]
    assert standings(holds(0.049))[0] == [Standing.SURVIVES]
    assert standings(fails(0.01))[1].n_by_chance == pytest.approx(0.1)


def test_a_condition_survives_with_both_of_its_sides():
    def judge(p):
        return lambda: only_if("warm", within(mean_of(sample(p)), least=0), within(mean_of(sample(p)), most=0))

    assert standings(judge(0.03))[0] == [Standing.ALONE]
    assert standings(judge(0.02))[0] == [Standing.SURVIVES]


def test_claims_about_every_repetition_and_implied_ones_are_not_corrected(monkeypatch):
    monkeypatch.setitem(IMPLIED, "made-up", {"claim-1": "a theorem"})
    found, correction = standings(lambda: within(range_of([0.5, 1.0]), least=0), above_0(0.01), above_0(0.04))
    assert found == [Standing.EXACT, Standing.EXACT, Standing.SURVIVES]
    assert (correction.n_estimated, correction.n_decided) == (1, 1)


def test_a_theorem_implies_what_agrees_with_it_and_no_failure():
    for outcome in Outcome:
        verdict = Verdict(outcome, "m").implied_by("a theorem")
        agrees = outcome in (Outcome.HOLDS, Outcome.CONSISTENT)
        assert verdict.outcome is (Outcome.IMPLIED if agrees else outcome)
        assert bool(verdict.theorem) is agrees
    assert Verdict(Outcome.HOLDS, "m").implied_by(None).outcome is Outcome.HOLDS


def test_every_implied_claim_exists():
    for name, theorems in IMPLIED.items():
        claims = {claim.name for claim in experiments()[name].claims}
        assert theorems.keys() <= claims
    assert implied_by("average-sensitivity", "growth") is None


@pytest.mark.parametrize("level", [0.95, 0.999])
def test_intervals_have_the_confidence_that_is_set(level):
    values = np.random.default_rng(5).normal(size=12)
    with confidence(level) as counted:
        mean, share, normal, splits = mean_of(values), share_of(3, 8), normal_of(2.0, 3.0), mean_of_splits(values, 0.2)
        range_of(values)
    assert (mean.low, mean.high) == pytest.approx(stats.ttest_1samp(values, 0).confidence_interval(level))
    assert (share.low, share.high) == pytest.approx(stats.binomtest(3, 8).proportion_ci(level, "exact"))
    assert (normal.low, normal.high) == pytest.approx(stats.norm.interval(level, 2, 3))
    assert splits.high - splits.estimate == pytest.approx(
        (mean.high - mean.estimate) * 2
    )  # 1 + 12 / 4 times its square
    assert counted.n_estimates == 4
    assert f"{100 * level:g} %" in mean.kind


def test_a_median_of_few_has_no_interval_of_a_high_confidence():
    values = np.arange(9.0)
    with confidence(0.999):
        assert not np.isfinite(median_of(values).high)  # 1 - 2^-8 is less
    with confidence(0.99):
        assert (median_of(values).low, median_of(values).high) == (0, 8)
    assert median_of(values).high == 7

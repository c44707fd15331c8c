"""The statistical-query experiment: what it counts, and its judges on made-up rows."""

from math import comb

import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.paper_a import statistical_queries as experiment


def row(queries=100, needed=10.0, elimination=0.0, noisy=0.5, m=8, seed=0):
    """One statistical-query learner that succeeds, one that fails, and elimination."""
    values = {
        "learner": ["low degree, d = 4", "low degree, d = 1", "elimination"],
        "inputs": ["bits", "bits", "lifted"],
        "access": [experiment.QUERIES, experiment.QUERIES, "examples"],
        "queries": [queries, 1, 0],
        "examples": [0, 0, 28],
        "error": [0.0, 0.5, elimination],
        "needed": needed,
        "noisy_error": noisy,
    }
    return Row("", "sq-ledger", 1, {"m": m, "size": m // 2, "seed": seed}, values, 1.0, "", {}, {}, "")


def test_low_degree_asks_for_every_small_subset():
    values = experiment.measure(m=6, size=3, seed=0)
    made = Row("", "sq-ledger", 1, {"m": 6, "size": 3, "seed": 0}, values, 1.0, "", {}, {}, "")
    found = experiment.successful_queries(Rows([made]))
    assert min(one["queries"] for one in found if one["inputs"] == "bits") == sum(comb(6, d) for d in range(4))
    assert values == experiment.measure(m=6, size=3, seed=0)


def test_elimination_fails_on_flipped_labels():
    assert experiment.noisy_elimination_error(7, [1, 2, 5], np.random.default_rng(0)) == 0.5


def test_without_flips_it_succeeds(monkeypatch):
    monkeypatch.setattr(experiment, "NOISE", 0.0)
    assert experiment.noisy_elimination_error(7, [1, 2, 5], np.random.default_rng(0)) == 0.0


@pytest.mark.parametrize(
    ("judge", "good", "bad"),
    [
        (experiment.judge_bound, {}, {"queries": 9}),
        (experiment.judge_elimination, {}, {"elimination": 0.1}),
        (experiment.judge_noise, {}, {"noisy": 0.0}),
    ],
)
def test_judges(judge, good, bad):
    assert judge(Rows([row(**good)])).outcome is Outcome.HOLDS
    assert judge(Rows([row(**bad)])).outcome is Outcome.DOES_NOT_HOLD


@pytest.mark.parametrize(("base", "outcome"), [(2.0, Outcome.HOLDS), (1.1, Outcome.DOES_NOT_HOLD)])
def test_exponential(base, outcome):
    rows = [row(queries=base**m, m=m, seed=seed) for m in (4, 6, 8) for seed in (0, 1)]
    assert experiment.judge_exponential(Rows(rows)).outcome is outcome


def test_claims_without_rows_are_undecided():
    assert {c.verdict(Rows([])).outcome for c in experiment.EXPERIMENT.claims} == {Outcome.UNDECIDED}

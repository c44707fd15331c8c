"""The experiment on learning with rounding: against exact facts at tiny size, and its judges on made-up rows."""

import pytest

from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.paper_a import learning_with_rounding as experiment

TINY = {"m": 2, "n_train": 40, "n_test": 50, "seed": 0}


def rows(learner, skill, *, rule="round", mse=0.0, active=1, m=8):
    """Two seeds of one learner."""
    values = {"skill": skill, "mse": mse, "trivial_mse": 1.0, "most_active": active, "coordinates": 64}
    told = [{"rule": rule, "learner": learner, "m": m, "seed": seed} for seed in (0, 1)]
    return [Row("", "learning-with-rounding", 1, one, values, 1.0, "", {}, {}, "") for one in told]


@pytest.mark.parametrize(
    ("rule", "learner", "skill"),
    [
        ("round", experiment.PLANTED, 1.0),
        ("modulo", experiment.PLANTED, 1.0),
        ("modulo", experiment.ELIMINATION, 1.0),
        ("round", experiment.ELIMINATION, 0.0),
    ],
)
def test_what_is_known_of_each_rule(rule, learner, skill):
    values = experiment.measure(rule=rule, learner=learner, **TINY)
    assert values["skill"] == pytest.approx(skill)
    assert values["most_active"] <= 1


def test_learners_share_their_points_and_repeat():
    first, again = (experiment.measure(rule="round", learner="low degree", **TINY) for _ in range(2))
    planted = experiment.measure(rule="round", learner=experiment.PLANTED, **TINY)
    assert first == again
    assert first["trivial_mse"] == planted["trivial_mse"]


def test_every_learner_can_be_made():
    assert set(experiment.estimators(0)) == set(experiment.LEARNERS)


@pytest.mark.parametrize(
    ("mse", "active", "outcome"), [(0, 1, "HOLDS"), (0.1, 1, "DOES_NOT_HOLD"), (0, 2, "DOES_NOT_HOLD")]
)
def test_planted(mse, active, outcome):
    assert (
        experiment.judge_planted(Rows(rows(experiment.PLANTED, 1.0, mse=mse, active=active))).outcome
        is Outcome[outcome]
    )


def test_one_learner_that_predicts_refutes_and_one_that_lacks_decides_nothing():
    learners = experiment.EXPERIMENT.claims[1]
    none = [row for name in experiment.LEARNERS for row in rows(name, -0.1)]
    assert learners.verdict(Rows(none)).outcome is Outcome.HOLDS
    assert learners.verdict(Rows([*none[2:], *rows(experiment.LEARNERS[0], 0.5)])).outcome is Outcome.DOES_NOT_HOLD
    assert learners.verdict(Rows(none[2:])).outcome is Outcome.UNDECIDED
    tiny = [row for name in experiment.LEARNERS for row in rows(name, 0.9, m=2)]
    assert learners.verdict(Rows([*none, *tiny])).outcome is Outcome.HOLDS_ONLY_IF


def test_elimination_is_judged_by_rule():
    printed, rounded = rows(experiment.ELIMINATION, 1.0, rule="modulo"), rows(experiment.ELIMINATION, 0.0)
    assert experiment.judge_printed(Rows(printed + rounded)).outcome is Outcome.DOES_NOT_HOLD
    assert experiment.judge_rounding(Rows(printed + rounded)).outcome is Outcome.HOLDS

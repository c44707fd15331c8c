"""The experiment on learning with rounding: against exact facts at tiny size, and its judge on made-up rows."""

import pytest

from sparsact_papers.experiments import Outcome, Row, Rows
from sparsact_papers.paper_a import learning_with_rounding as experiment

PRIME, SQUARE = {"p": 2, "q": 5}, {"p": 3, "q": 9}


def measured(learner, *, m=2, rule="round", **moduli):
    return experiment.measure(rule=rule, learner=learner, m=m, n_train=60, n_test=50, seed=0, **(moduli or PRIME))


@pytest.mark.parametrize(
    ("rule", "learner", "moduli"),
    [
        ("round", experiment.PLANTED, PRIME),
        ("modulo", experiment.PLANTED, SQUARE),
        ("modulo", experiment.ELIMINATION, SQUARE),
        ("round", experiment.CARRIES, SQUARE),
        *(("round", attack, PRIME) for attack in experiment.ATTACKS),
    ],
)
def test_what_solves_tiny_instances(rule, learner, moduli):
    assert measured(learner, rule=rule, **moduli)["skill"] == pytest.approx(1)


@pytest.mark.parametrize("attack", [experiment.TRIALS, experiment.LINEARISATION])
def test_an_attack_beyond_its_budget_predicts_the_mean(attack):
    values = measured(attack, m=8, p=2, q=17)
    assert (values["tried"], values["skill"]) == (False, 0)
    assert values["operations"] > 1e9


def test_learners_share_their_points_and_repeat():
    first, again = (measured("low degree") for _ in range(2))
    assert first == again
    assert first["trivial_mse"] == measured(experiment.PLANTED)["trivial_mse"]
    assert first["trivial_mse"] == measured(experiment.LATTICE)["trivial_mse"]


def test_every_learner_can_be_made():
    assert set(experiment.estimators(0)) == set(experiment.LEARNERS)


def test_moduli_are_primes_that_grow_with_the_length():
    assert [experiment.modulus(m) for m in (2, 4, 6, 8, 10)] == [5, 11, 13, 17, 23]


def test_any_learner_or_attack_refutes_the_conjecture_and_one_that_lacks_decides_nothing():
    def rows(name, skill, m=10):
        values = {"skill": skill, "operations": 1e6, "tried": True}
        seeds = [{"rule": "round", "learner": name, "m": m, "p": 2, "q": 23, "seed": seed} for seed in (0, 1)]
        return [Row("", "learning-with-rounding", 3, one, values, 1.0, "", {}, {}, "") for one in seeds]

    judge = experiment.EXPERIMENT.claims[1].verdict
    names = experiment.LEARNERS + experiment.ATTACKS
    none = [row for name in names for row in (*rows(name, 0.0), *rows(name, 1.0, m=2))]
    assert judge(Rows(none)).outcome is Outcome.CONSISTENT
    for name in names:
        others = [row for row in none if row["learner"] != name]
        assert judge(Rows([*others, *rows(name, 0.5)])).outcome is Outcome.DOES_NOT_HOLD
        assert judge(Rows(others)).outcome is Outcome.UNDECIDED

from itertools import product

import numpy as np
import pytest

from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.paper_a.noise_sensitivity import (
    EXPERIMENT,
    NOISES,
    judge_claim,
    judge_definition,
    judge_lemma,
    judge_power,
    judge_sharper,
    mean_square_change,
    measure,
)
from sparsact.hypercube import points


def row(sensitivity, seed=0, factor=4.0, tail_over_claim=0.9):
    values = {
        "noise": NOISES,
        "sensitivity": sensitivity,
        "mean_square_change": [factor * value for value in sensitivity],
        "lemma_10": [1.0] * len(NOISES),
        "sharper": list(NOISES),
        "tail_over_claim": tail_over_claim,
    }
    parameters = {"model": "sparse", "n": 6, "s": 8, "k": 1, "seed": seed}
    return Row(str(seed), EXPERIMENT.name, 1, parameters, values, 0, "", {}, {}, "")


def power(exponent, scale=0.5):
    return [scale * noise**exponent for noise in NOISES]


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9, -0.5])
def test_the_definition_is_the_mean_over_all_pairs_of_points(rho):
    X, f = points(4), np.random.default_rng(0).normal(size=16)
    flip = (1 - rho) / 2
    by_pairs = 0.0
    for (x, fx), (y, fy) in product(zip(X, f, strict=True), repeat=2):
        distance = np.count_nonzero(x != y)
        by_pairs += flip**distance * (1 - flip) ** (4 - distance) * (fx - fy) ** 2 / 16
    assert mean_square_change(f, rho) == pytest.approx(by_pairs)


def test_measured_sensitivity_is_a_quarter_of_the_mean_square_change():
    task = {"model": "sparse", "n": 6, "s": 9, "k": 2, "seed": 4}
    found = measure(**task)
    assert found == measure(**task)
    np.testing.assert_allclose(np.array(found["mean_square_change"]) / 4, found["sensitivity"], rtol=1e-9)
    assert np.all(np.array(found["sensitivity"]) <= found["sharper"])
    assert 0 < found["tail_over_claim"] <= 1


def test_copies_lie_on_the_sharper_bound():
    found = measure(model="copies", n=5, s=6, k=3, seed=0)
    np.testing.assert_allclose(found["sensitivity"], found["sharper"])


@pytest.mark.parametrize(("scale", "outcome"), [(0.9, Outcome.HOLDS), (1.5, Outcome.DOES_NOT_HOLD)])
@pytest.mark.parametrize("judge", [judge_lemma, judge_sharper])
def test_bounds_at_every_noise(judge, scale, outcome):
    assert judge(Rows([row(power(1, scale))])).outcome is outcome


@pytest.mark.parametrize(("exponent", "outcome"), [(1.0, Outcome.HOLDS), (0.5, Outcome.DOES_NOT_HOLD)])
def test_the_power_of_the_noise(exponent, outcome):
    assert judge_power(Rows([row(power(exponent), seed) for seed in range(3)])).outcome is outcome


@pytest.mark.parametrize(
    ("factor", "outcome"), [(4.0, Outcome.HOLDS_ONLY_IF), (1.0, Outcome.DOES_NOT_HOLD), (3.0, Outcome.DOES_NOT_HOLD)]
)
def test_the_quarter(factor, outcome):
    assert judge_definition(Rows([row(power(1), factor=factor)])).outcome is outcome


@pytest.mark.parametrize(("share", "outcome"), [(0.99, Outcome.HOLDS), (1.01, Outcome.DOES_NOT_HOLD)])
def test_claim_of_the_tail(share, outcome):
    assert judge_claim(Rows([row(power(1), tail_over_claim=share)])).outcome is outcome

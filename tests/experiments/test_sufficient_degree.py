import numpy as np
import pytest

from sparsact.bounds import degree_for
from sparsact.experiments import Outcome, Row, Rows
from sparsact.experiments.paper_a.spectral_networks import network_of
from sparsact.experiments.paper_a.sufficient_degree import (
    EXPERIMENT,
    SHARES,
    judge_constant,
    judge_order,
    judge_sharper,
    judge_theorem,
    judge_useful,
    measure,
)


def row(measured, *, n=10, seed=0, sharper=20, theorem_8=100):
    values = {
        "measured": [measured] * len(SHARES),
        "sharper": [sharper] * len(SHARES),
        "theorem_8": [theorem_8] * len(SHARES),
    }
    parameters = {"model": "sparse", "n": n, "s": 8, "k": 1, "seed": seed}
    return Row(f"{n} {seed}", EXPERIMENT.name, 1, parameters, values, 0, "", {}, {}, "")


def test_the_degree_is_that_of_the_library():
    task = {"model": "sparse", "n": 7, "s": 12, "k": 2, "seed": 1}
    found = measure(**task)
    assert found == measure(**task)
    expected = [degree_for(network_of(**task), epsilon, k=2).degree for epsilon in found["epsilon"]]
    assert found["measured"] == expected
    assert np.all(np.diff(found["measured"]) >= 0)
    assert found["measured"][-1] > 1


def test_copies_need_degree_one_and_the_bound_knows_their_variance():
    found = measure(model="copies", n=5, s=6, k=3, seed=0)
    assert found["measured"] == [1] * len(SHARES)
    np.testing.assert_allclose(np.array(found["epsilon"]) / SHARES, 36)
    assert found["sharper"][0] == 1


@pytest.mark.parametrize(("measured", "outcome"), [(20, Outcome.HOLDS), (101, Outcome.DOES_NOT_HOLD)])
@pytest.mark.parametrize("judge", [judge_sharper, judge_theorem])
def test_bounds_at_every_epsilon(judge, measured, outcome):
    assert judge(Rows([row(measured)])).outcome is outcome


@pytest.mark.parametrize(("sharper", "outcome"), [(100, Outcome.HOLDS), (102, Outcome.DOES_NOT_HOLD)])
def test_order_of_the_bounds(sharper, outcome):
    assert judge_order(Rows([row(3, sharper=sharper)])).outcome is outcome


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [((5, 9), Outcome.HOLDS), ((5, 100), Outcome.DOES_NOT_HOLD), ((10, 10), Outcome.DOES_NOT_HOLD)],
)
def test_a_bound_of_n_or_more_says_nothing(bounds, outcome):
    sharper, theorem_8 = bounds
    assert judge_useful(Rows([row(3, sharper=sharper, theorem_8=theorem_8)])).outcome is outcome


@pytest.mark.parametrize(("slope", "outcome"), [(0, Outcome.HOLDS), (0.5, Outcome.DOES_NOT_HOLD)])
def test_growth_in_n(slope, outcome):
    rows = Rows([row(3 + slope * n, n=n, seed=seed) for n in (8, 10, 12) for seed in range(3)])
    assert judge_constant(rows).outcome is outcome


def test_growth_wants_two_sizes():
    assert EXPERIMENT.claims[4].verdict(Rows([row(3), row(3, seed=1)])).outcome is Outcome.UNDECIDED

import numpy as np
import pytest
from reproduced import made_up

from sparsact.constructions import random_network
from sparsact.experiments import Outcome, Rows
from sparsact.experiments.paper_a.stacks import EXPERIMENT, judge_bound, judge_growth
from sparsact.experiments.stack import random_stack
from sparsact.fourier import average_sensitivity
from sparsact.hypercube import points

N, S, K = 6, 12, 2


def stack(n_layers, seed=3):
    return random_stack(N, S, K, n_layers, rng=np.random.default_rng(seed))


def test_one_layer_is_the_random_network_up_to_its_output_weights():
    network = random_network(N, S, K, rng=np.random.default_rng(3))
    one = stack(1)
    assert (one.n_active[0] == network.n_active(points(N))).all()
    phi = np.maximum(network.preactivations(points(N)), 0)
    design = np.column_stack([phi, np.ones(len(phi))])
    coefficients = np.linalg.lstsq(design, one.values, rcond=None)[0]
    np.testing.assert_allclose(design @ coefficients, one.values, atol=1e-9)


@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_a_stack_has_variance_one_and_the_activity_it_was_asked_for(n_layers):
    made = stack(n_layers)
    assert (made.values.mean(), made.values.var()) == pytest.approx((0, 1))
    assert len(made.n_active) == n_layers
    assert made.n_active[0].max() == K
    for active in made.n_active[1:]:
        assert active.mean() == pytest.approx(K, abs=S / 2**N)


def test_first_layers_are_shared():
    two, three = stack(2), stack(3)
    for one, other in zip(two.n_active, three.n_active, strict=False):
        assert (one == other).all()


@pytest.mark.parametrize("seed", range(20))
def test_sensitivity_is_within_the_product_bound(seed):
    for n_layers in (1, 2, 3):
        made = stack(n_layers, seed)
        assert average_sensitivity(made.values) <= made.bound * (1 + 1e-9)


def rows(ratios, bound=10.0):
    found = []
    for seed, ratio in enumerate(ratios):
        for n_layers in (1, 3):
            values = {"sensitivity": ratio if n_layers == 3 else 1.0, "tail": 0.1, "bound": bound}
            parameters = {"n": N, "s": 64, "k": 2, "n_layers": n_layers, "degree": 2, "seed": seed}
            found.append(made_up(EXPERIMENT, parameters, values))
    return Rows(found)


def test_judges_see_both_sides():
    assert judge_growth(rows([2.0, 2.1, 1.9])).outcome is Outcome.HOLDS
    assert judge_growth(rows([0.5, 0.6, 0.55])).outcome is Outcome.DOES_NOT_HOLD
    assert judge_growth(rows([0.5, 2.0, 1.0])).outcome is Outcome.UNDECIDED
    assert judge_bound(rows([2.0, 3.0])).outcome is Outcome.HOLDS
    assert judge_bound(rows([2.0, 3.0], bound=1.0)).outcome is Outcome.DOES_NOT_HOLD

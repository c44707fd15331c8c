import numpy as np
import pytest

from sparsact.bounds import stack_sensitivity
from sparsact.fourier import average_sensitivity
from sparsact.hypercube import points
from sparsact.network import SparselyActivatedNetwork
from sparsact.stack import Stack
from sparsact_papers.common.sparse_stacks import path_bound, random_stack
from sparsact_papers.experiments import Row, Rows
from sparsact_papers.paper_a.stacks import (
    EXPERIMENT,
    change,
    measure,
)


def row(depth, seed, *, sensitivity=2.0, over_bound=0.1, tail=0.5, most_active=2):
    values = {
        "sensitivity_share": sensitivity,
        "sensitivity_over_bound": over_bound,
        "sensitivity_over_sharper_bound": over_bound,
        "tail_share": [1.0, 1.0, tail],
        "error_share": [1.0, tail],
        "most_active": most_active,
    }
    parameters = {"n": 7, "address": 2, "k": 2, "depth": depth, "n_sizes": 2, "seed": seed}
    return Row(f"{depth} {seed}", EXPERIMENT.name, 1, parameters, values, 0, "", {}, {}, "")


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_stacks_are_sparse_and_within_the_bounds(k, seed):
    stack = random_stack(7, 3, k, 2, seed=seed, stream=1)
    most = stack.certify("enumeration").max_active
    assert max(most) <= k
    bound = stack_sensitivity(stack, [k] * 3).average
    assert 0 < average_sensitivity(stack(points(7))) <= bound <= path_bound(stack, k)


def test_one_layer_has_the_bound_of_a_network():
    stack = random_stack(6, 1, 2, 2, seed=5, stream=0)
    assert path_bound(stack, 2) == pytest.approx(
        4 * 2**2 * SparselyActivatedNetwork(stack.u, *stack.layers[0][:2]).scale().W ** 2
    )


def test_the_bound_of_two_layers_by_hand():
    """Norms 3 and 1 on the inputs, 5 between, 2 above: sqrt = (2k)^2 2 3 5 + (2k) 2 1."""
    below = ([[3.0, 0], [0, 1]], np.zeros(2))
    above = ([[5.0, 1], [0, 0]], np.zeros(2), [[1.0, 0], [0, 0]])
    assert path_bound(Stack([2.0, -1], [below, above]), 1) == pytest.approx((4 * 30 + 2 * 2) ** 2)


def test_stacks_of_a_seed_share_their_lower_layers():
    low, high = (random_stack(6, depth, 2, 2, seed=1, stream=0) for depth in (1, 2))
    np.testing.assert_array_equal(low.layers[0].W, high.layers[0].W)


def test_a_stack_has_a_layer():
    with pytest.raises(ValueError, match="a layer or more"):
        random_stack(6, 0, 2, 2, seed=1, stream=0)


def test_a_measurement_is_repeatable():
    task = {"n": 6, "address": 2, "k": 1, "depth": 2, "n_sizes": 2, "seed": 0}
    found = measure(**task)
    assert found == measure(**task)
    assert found["tail_share"][0] == pytest.approx(1)
    assert found["error_share"][-1] >= found["tail_share"][2]
    assert found["n_points"] == [44, 88]


def test_change_is_taken_over_pairs():
    rows = Rows(
        [row(1, 0, sensitivity=1), row(3, 0, sensitivity=3), row(1, 1, sensitivity=2), row(3, 1, sensitivity=4)]
    )
    found = change(rows, lambda one: one["sensitivity_share"])
    assert (found.estimate, found.low, found.high) == (2, 2, 2)

"""Bounds of the sensitivity of stacks (documentation, "Average sensitivity of stacks"), against all points."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from stacks import KINDS, by_definition, gated_stack, random_stack

from sparsact.bounds import average_sensitivity_bound, degree_for, degree_from_sensitivity, stack_sensitivity
from sparsact.bounds.stacks import restricted_norm
from sparsact.constructions import random_network
from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact.stack import Stack, most_outputs


def changes_at_all_points(values):
    """|h(x) - h(x^i)| at every coordinate and point, (n, 2**n)."""
    n = len(values).bit_length() - 1
    return np.abs([values - values[np.arange(len(values)) ^ 1 << i] for i in range(n)])


def assert_bounded(stack, active, bounds):
    room = 1 + 1e-9
    values = stack(points(stack.n))
    changes = changes_at_all_points(values)
    assert (changes.max(axis=1) <= bounds.changes * room + 1e-12).all()
    assert ((changes**2).mean(axis=1) / 4 <= bounds.influences * room + 1e-12).all()
    assert (changes**2).mean(axis=1).sum() / 4 <= bounds.average * room + 1e-12
    assert (values**2).mean() <= bounds.second_moment * room + 1e-12
    assert bounds.lowest * room - 1e-12 <= values.min()
    assert values.max() <= bounds.highest * room + 1e-12
    a, X = points(stack.n).astype(float), points(stack.n).astype(float)
    for layer, most in zip(stack.layers, most_outputs(stack, active), strict=True):
        a = np.maximum(layer.preactivations(a, X), 0)
        assert (a <= most * room + 1e-12).all()


DEEPER = [pytest.param(sizes, marks=pytest.mark.grid) for sizes in ((4, 3), (3, 5, 4))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(5,), (2, 3, 2, 4), *DEEPER], ids=str)
def test_bounds_hold_at_all_points(kind, sizes):
    rng = np.random.default_rng(len(sizes))
    for reads_inputs in (True, False):
        for _ in range(8):
            stack = random_stack(kind, sizes, 6, rng, reads_inputs=reads_inputs)
            active = stack.n_active(points(6)).max(axis=0).tolist()
            assert_bounded(stack, active, stack_sensitivity(stack, active))
            assert_bounded(stack, stack.n_units, stack_sensitivity(stack))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_bounds_of_gated_stacks_hold_and_gain_with_depth(k, depth):
    """Over ten stacks the median bound on AS is at most 20 k for one layer, and 40 k times that for each more."""
    loose = []
    for seed in range(10):
        stack = gated_stack(9, depth, k, 2, np.random.default_rng(seed))
        bounds = stack_sensitivity(stack, [k] * depth)
        assert_bounded(stack, [k] * depth, bounds)
        loose.append(bounds.average / Spectrum.of(stack).total_influence())
    assert np.median(loose) <= 20 * k * (40 * k) ** (depth - 1)


def test_in_fractions():
    """AS of small stacks of eighths, exactly."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        stack = random_stack("eighths", (3, 2), 4, rng)
        values = [by_definition(stack, x)[0] for x in points(4)]
        total = sum((values[p] - values[p ^ 1 << i]) ** 2 for p in range(16) for i in range(4)) / Fraction(4 * 16)
        assert total <= Fraction(stack_sensitivity(stack, stack.certify().upper).average) * Fraction(1 + 1e-12)


def test_one_layer_has_no_more_than_the_bound_of_networks():
    for seed in range(20):
        k = 1 + seed % 3
        network = random_network(30, 9, k, rng=np.random.default_rng(seed))
        W = network.W if isinstance(network.W, np.ndarray) else network.W.toarray()
        bounds = stack_sensitivity(Stack(network.u, [(W, network.b)]), [k])
        assert bounds.average <= average_sensitivity_bound(k, network.scale().W) * (1 + 1e-12)


@pytest.mark.parametrize("copies", [1, 3])
def test_the_bound_of_one_layer_is_attained(copies):
    """2 k x_1 by k pairs of units, one of each pair on: AS is 4 k**2."""
    stack = Stack([1, -1] * copies, [([[1], [-1]] * copies, [-1, -1] * copies)])
    assert stack_sensitivity(stack, stack.certify().upper).average == pytest.approx(4 * copies**2)
    assert Spectrum.of(stack).total_influence() == 4 * copies**2


def test_a_chain_of_layers_that_copy_loses_nothing():
    """Further layers that pass x_1 on add nothing to the bound, as each has norm one between pairs of units."""
    copy = (np.eye(2), [0, 0])
    stack = Stack([1, -1], [([[1], [-1]], [-1, -1]), copy, copy])
    assert stack.certify().upper == (1, 1, 1)
    assert stack_sensitivity(stack, (1, 1, 1)).average == pytest.approx(4)


def test_norms_between_sets_of_rows_and_columns():
    rng = np.random.default_rng(5)
    for _ in range(20):
        W = rng.normal(size=(5, 4)) * rng.choice([0.1, 1, 3], (5, 4))
        for rows, columns in ((1, 1), (2, 3), (5, 2), (5, 4)):
            largest = max(
                np.linalg.norm(W[np.ix_(R, C)], 2)
                for R in combinations(range(5), rows)
                for C in combinations(range(4), columns)
            )
            assert largest <= restricted_norm(W, rows, columns) * (1 + 1e-12)
    assert restricted_norm(W, 1, 1) == pytest.approx(np.abs(W).max())


def test_degrees_of_stacks():
    stack = gated_stack(9, 2, 1, 2, np.random.default_rng(0))
    values = stack(points(9))
    found, spectrum = degree_for(stack, 0.3 * values.var(), k=(1, 1)), Spectrum.of(values)
    assert spectrum.tail(found.degree) <= 0.3 * values.var() < spectrum.tail(found.degree - 1)
    assert found.worst_case == degree_from_sensitivity(stack_sensitivity(stack, (1, 1)).average, 0.3 * values.var())
    with pytest.raises(ValueError, match=r"pass k=stack.certify\(\).upper"):
        degree_for(stack, 0.1, k=1)


def test_degrees_of_stacks_on_many_inputs_are_measured():
    """A stack that reads 9 of 40 inputs: the degree is no less than that of the spectrum over these."""
    small = gated_stack(9, 2, 1, 2, np.random.default_rng(3))
    epsilon = 0.4 * small(points(9)).var()
    wide = [np.zeros((4, 40)) for _ in range(2)]
    wide[0][:, 5:14], wide[1][:, 5:14] = small.layers[0].W, small.layers[1].V
    stack = Stack(small.u, [(wide[0], small.layers[0].b), (small.layers[1].W, small.layers[1].b, wide[1])])
    found = degree_for(stack, epsilon, k=(1, 1), n_samples=4000, rng=np.random.default_rng(0))
    assert found.confidence in (0.95, 1.0)
    spectrum = Spectrum.of(small)
    assert spectrum.tail(min(found.degree, 9)) <= epsilon
    assert found.tail <= epsilon
    assert found.degree < 40
    with pytest.raises(ValueError, match="a large stack: the degree is found by sampling; pass `rng`"):
        degree_for(stack, epsilon)


def test_outputs_of_units_that_are_never_on_are_bounded_by_0():
    """V = 0 and b = 5: the premise of (1) without M >= 0 would allow -1, and a = 0 is more."""
    stack = Stack([1, 1, 2], [([[0, 0], [1, 1]], [5, 0]), ([[-1, 1], [1, 0], [0, 1]], [0, 5, -1])])
    most = most_outputs(stack, (1, 1))
    np.testing.assert_allclose(np.concatenate(most), [0, 2, 2, 0, 3])
    assert_bounded(stack, (1, 2), stack_sensitivity(stack, (1, 2)))


def test_active_must_be_a_number_for_each_layer():
    stack = gated_stack(5, 2, 1, 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="each of the 2 layers; got 1"):
        stack_sensitivity(stack, [1])
    with pytest.raises(ValueError, match="must lie between 0 and 2; got 3"):
        stack_sensitivity(stack, [1, 3])
    with pytest.raises(TypeError, match="take a Stack; got SparselyActivatedNetwork"):
        stack_sensitivity(stack.first, [1])

"""Juntas, indexing, gated and random networks: brute force over the whole cube."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact.bounds import average_sensitivity_bound, sufficient_degree, tail_bound
from sparsact.constructions import (
    extremal,
    gate_strength,
    gated,
    gated_failure_probability,
    indexing,
    junta,
    random_network,
    uniform,
)
from sparsact.fourier import Spectrum
from sparsact.hypercube import points


def numbers(X):
    """The number of each point."""
    return (X < 0) @ (1 << np.arange(X.shape[1]))


@pytest.mark.parametrize(
    ("variables", "n"), [((), 3), ((2,), 3), ((0, 1), 5), ((4, 1, 3), 6), ((5, 0, 3, 2), 7), (range(5), 5)]
)
def test_juntas(variables, n):
    p, rng = len(variables), np.random.default_rng(1)
    table = rng.normal(size=2**p)
    table[0] = 0
    net, X = junta(table, variables, n), points(n)
    assert np.array_equal(net(X), table[numbers(X[:, list(variables)])])
    assert (net.n_active(X) == 1).all()
    largest = np.abs(table).max()
    assert net.scale() == pytest.approx((largest * np.sqrt(p) / 2, largest * abs(p - 2) / 2))
    assert net.W.nnz == p * 2**p


@pytest.mark.parametrize("degree", range(8))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_extremal_network_attains_every_tail(degree, k):
    for W in (1.0, 0.3, 7.1e9):
        net, X = extremal(degree, k, W), points(degree + 1)
        spectrum = Spectrum.of(net(X))
        assert spectrum.tail(degree) == pytest.approx(tail_bound(k, W, degree), rel=1e-12)
        assert spectrum.total_influence() == pytest.approx(average_sensitivity_bound(k, W), rel=1e-12)
        assert (net.n_active(X) == k).all()
        assert (net.n, net.s, net.certify().max_active) == (degree + 1, k * 2 ** (degree + 1), k)
        assert net.scale() == pytest.approx((W, W * abs(degree - 1) / np.sqrt(degree + 1)), rel=1e-12)
        assert sufficient_degree(k, W, tail_bound(k, W, degree) * (1 - 1e-12)) == degree + 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((-1, 1, 1.0), "degree `degree` must be 0 or more; got -1"),
        ((2, 0, 1.0), "number `k` of active units must be 1 or more"),
        ((2, 1, np.inf), "`W` must be a finite number above 0; got inf"),
        ((19, 2, 1.0), "more than 1,048,576; lower `degree` or `k`"),
        ((10**9, 1, 1.0), "lower `degree` or `k`"),
    ],
)
def test_strange_extremal_networks_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        extremal(*parameters)


@pytest.mark.parametrize(
    ("table", "variables", "n", "message"),
    [
        ([1, 2, 3], (0, 1), 4, "length 2\\*\\*n"),
        ([1, 2], (0, 1), 4, "over 2 variables has 4 values; got 2"),
        ([1, np.nan], (0,), 4, "finite"),
        ([1, 2], (4,), 4, "names coordinate 4"),
        ([1, 2, 3, 4], (1, 1), 4, "twice"),
    ],
)
def test_strange_juntas_are_refused(table, variables, n, message):
    with pytest.raises(ValueError, match=message):
        junta(table, variables, n)


def test_variables_are_integers():
    with pytest.raises(TypeError):
        junta([1, 2], (0.5,), 3)


@pytest.mark.parametrize("b", range(5))
def test_indexing(b):
    net, rng = indexing(b), np.random.default_rng(2)
    assert (net.n, net.s, net.W.nnz) == (b + 2**b, 2**b, (b + 1) * 2**b)
    X = points(net.n) if b < 4 else uniform(net.n)(3000, rng)
    chosen = X[np.arange(len(X)), b + numbers(X[:, :b])]
    assert np.array_equal(net(X), (1 + chosen) / 2)
    assert np.array_equal(net.n_active(X), chosen > 0)  # a tie at -1
    assert (net.preactivations(X).max(axis=1) == (1 + chosen) / 2).all()
    assert net.scale() == pytest.approx((np.sqrt(b + 0.25), abs(b - 0.5)))
    assert net.has_exact_weights().all()
    assert not net.dead_units().any()


def test_strange_sizes_of_indexing_are_refused():
    for b in (25, -1):
        with pytest.raises(ValueError, match=f"must lie between 0 and 20; got {b}"):
            indexing(b)
    with pytest.raises(TypeError):
        indexing(2.5)


@pytest.mark.parametrize(("n_address", "q"), [(0, 4), (1, 5), (2, 7), (3, 8)])
def test_gated_networks_are_one_sparse_by_default(n_address, q):
    weights = np.random.default_rng(n_address).normal(size=(2**n_address, q))
    net, X = gated(weights, n_address), points(n_address + q)
    addressed = (weights[numbers(X[:, :n_address])] * X[:, n_address:]).sum(axis=1)
    assert net(X) == pytest.approx(np.maximum(addressed, 0))
    assert np.array_equal(net.n_active(X), addressed > 0)
    gamma = gate_strength(weights)
    assert gamma == pytest.approx(np.abs(weights).sum(axis=1).max() / 2)
    assert net.scale() == pytest.approx(
        (np.sqrt(gamma**2 * n_address + (weights**2).sum(axis=1).max()), gamma * n_address)
    )


@pytest.mark.parametrize("weight", [1.0, 0.1, 1 / 3, 3e-20])
def test_gates_hold_at_a_tie(weight):
    """Where the data cancel the gate exactly, or would but for rounding, a second unit stays off."""
    net = gated(np.full((4, 10), weight), 2)
    assert net.n_active(points(12)).max() == 1


@pytest.mark.parametrize(("norm", "share", "n_active"), [(2.0, 1.0, 1), (2.5, 1.0, 2), (1.0, 0.5, 1)])
def test_the_strength_of_the_paper(norm, share, n_active):
    """sqrt(q) suffices for norms up to 2 and fails at 2.5; half of it suffices for norms up to 1."""
    q = 9
    weights = np.full((2, q), norm / np.sqrt(q))
    weights[0, 0] *= -1
    assert gated(weights, 1, gamma=share * np.sqrt(q)).n_active(points(1 + q)).max() == n_active


@pytest.mark.parametrize("failure_probability", [0.3, 0.1])
def test_gates_that_hold_mostly(failure_probability):
    """The exact share of points with two active units is below both bounds, and the strength below the certain one."""
    n_address, q = 3, 11
    weights = np.random.default_rng(3).choice([-1, 1], size=(2**n_address, q)) / np.sqrt(q)
    gamma = gate_strength(weights, failure_probability)
    assert gamma < gate_strength(weights)
    bound = gated_failure_probability(weights, n_address, gamma)
    assert bound <= failure_probability
    share = np.mean(gated(weights, n_address, gamma).n_active(points(n_address + q)) > 1)
    assert 0 <= share <= bound
    weak = gamma / 2
    share = np.mean(gated(weights, n_address, weak).n_active(points(n_address + q)) > 1)
    assert 0 < share <= gated_failure_probability(weights, n_address, weak)


def test_gates_that_hold_mostly_in_many_dimensions():
    """By sampling, at n = 205: no failure in 2000 draws, where each has probability 1e-6 at most."""
    weights = np.random.default_rng(4).normal(size=(32, 200)) / np.sqrt(200)
    gamma = gate_strength(weights, 1e-6)
    assert gamma < 0.6 * gate_strength(weights)
    X = uniform(205)(2000, np.random.default_rng(5))
    assert gated(weights, 5, gamma).n_active(X).max() == 1


def test_the_bound_on_failure_vanishes_where_failure_does():
    weights = np.random.default_rng(6).normal(size=(4, 6))
    assert gated_failure_probability(weights, 2, gate_strength(weights)) == 0
    assert gated_failure_probability(weights, 2, gate_strength(weights) / 4) > 0


@pytest.mark.parametrize(
    ("weights", "n_address", "gamma", "message"),
    [
        ([[1, 2], [3, 4], [5, 6]], 2, None, "one row for each of the 2"),
        ([1, 2], 1, None, "one row for each"),
        (np.zeros((2, 0)), 1, None, "and columns"),
        ([[1, 2], [3, np.inf]], 1, None, "finite"),
        ([[1, 2], [3, 4]], 1, 0.0, "above 0"),
        ([[1, 2], [3, 4]], 1, np.nan, "above 0"),
    ],
)
def test_strange_gates_are_refused(weights, n_address, gamma, message):
    with pytest.raises(ValueError, match=message):
        gated(weights, n_address, gamma)


def test_strange_strengths_are_refused():
    with pytest.raises(ValueError, match="one row a unit"):
        gate_strength([1.0, 2.0])
    with pytest.raises(ValueError, match="above 0"):
        gated_failure_probability([[1.0], [2.0]], 1, -1.0)
    with pytest.raises(ValueError, match="failure_probability"):
        gate_strength([[1.0]], 1.0)


@pytest.mark.parametrize(
    ("n", "s", "k"), [(1, 1, 1), (4, 8, 1), (5, 7, 7), (7, 23, 2), (9, 13, 3), (10, 50, 4), (3, 8, 2), (11, 5, 4)]
)
def test_random_networks(n, s, k):
    net, X = random_network(n, s, k, rng=np.random.default_rng(n)), points(n)
    active = net.active(X)
    assert (net.n, net.s) == (n, s)
    assert active.sum(axis=1).max() == k
    assert active.any(axis=0).all()
    assert not active.all(axis=0).any()
    assert (net.W != 0).all()
    assert k == 1 or (active.T.astype(int) @ active - np.diag(active.sum(axis=0))).any()


def test_a_random_network_depends_on_every_input():
    n = 8
    net, X = random_network(n, 9, 2, rng=np.random.default_rng(0)), points(n)
    for i in range(n):
        flipped = X.copy()
        flipped[:, i] *= -1
        assert (net(X) != net(flipped)).any()


def test_random_networks_of_many_inputs():
    net = random_network(300, 40, 5, rng=np.random.default_rng(1))
    assert not net.dead_units().any()
    assert net.n_active(uniform(300)(500, np.random.default_rng(2))).max() <= 5


def test_random_networks_depend_on_their_seed():
    first, second = (random_network(6, 5, 2, rng=np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first.W, second.W)


@pytest.mark.parametrize(
    ("n", "s", "k", "message"),
    [(5, 3, 4, "between 1 and `n_units` = 3"), (5, 3, 0, "between 1"), (3, 9, 2, "raise `n` or `max_active`")],
)
def test_strange_random_networks_are_refused(n, s, k, message):
    with pytest.raises(ValueError, match=message):
        random_network(n, s, k, rng=np.random.default_rng(0))


@pytest.mark.parametrize("one", [1e-250, 1e-30, 1.0, 1e39, 1e300])
def test_gates_of_any_size(one):
    weights = one * np.array([[3.0, -1.0, 2.0], [1.0, 0.0, 1.0]])
    gamma = gate_strength(weights)
    assert gamma == pytest.approx(max(3 * one, 2.0**-126), rel=1e-7)
    assert gamma >= np.abs(weights).sum(axis=1).max() / 2
    assert gated(weights, 1).n_active(points(4)).max() == 1
    bound = gated_failure_probability(weights, 1, 0.9 * one)
    assert bound == pytest.approx(gated_failure_probability(weights / one, 1, 0.9))
    assert bound > 0


@pytest.mark.parametrize("weight", [0.1, 0.3, 1 / 3, 0.7])
@pytest.mark.parametrize("q", [3, 6, 7, 10])
def test_the_bound_on_failure_holds_at_a_tie_but_for_rounding(weight, q):
    """A gate that holds in floating point alone lets a second unit on at one point of many."""
    weights = np.full((2, q), weight)
    gamma = np.abs(weights).sum(axis=1).max() / 2
    share = np.mean(gated(weights, 1, gamma).n_active(points(1 + q)) > 1)
    assert share <= gated_failure_probability(weights, 1, gamma)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_on_failure_is_a_bound(seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(-3, 4, size=(8, 6)) / 2
    for gamma in (0.3, 0.8, 1.3):
        share = np.mean(gated(weights, 3, gamma).n_active(points(9)) > 1)
        assert 0 < share <= gated_failure_probability(weights, 3, gamma)


def test_sizes_are_integers_of_any_kind():
    assert random_network(np.int64(100), np.int8(100), np.int8(4), rng=np.random.default_rng(0)).s == 100
    assert gated([[1.0], [2.0]], np.int8(1)).n == 2
    assert indexing(np.uint8(0)).scale().B == 0.5
    assert junta([1, 2], np.array([1]), np.int64(3)).n == 3
    with pytest.raises(ValueError, match="number `n` of inputs must be 1 or more"):
        junta([1], (), 0)


def test_the_bound_on_failure_term_by_term():
    """Sum over pairs of addresses, one the point's and one a unit's."""
    weights, n_address, gamma = np.random.default_rng(7).normal(size=(8, 5)), 3, 0.4
    total = 0.0
    for x in points(n_address).astype(int):
        for alpha, w in zip(points(n_address).astype(int), weights, strict=True):
            reach = gamma * (n_address - alpha @ x)  # 2 d gamma
            if 0 < reach < np.abs(w).sum():
                total += np.exp(-(reach**2) / (2 * w @ w))
    assert gated_failure_probability(weights, n_address, gamma) == pytest.approx(total / 8)
    strongest = np.linalg.norm(weights, axis=1).max() * np.sqrt(np.log(8 / 0.2) / 2)
    assert gate_strength(weights, 0.2) == pytest.approx(min(strongest, gate_strength(weights)))
    assert gate_strength(10 * weights[:1], 0.9) == pytest.approx(
        10 * np.linalg.norm(weights[0]) * np.sqrt(np.log(1 / 0.9) / 2)
    )


@pytest.mark.parametrize("seed", range(8))
def test_random_networks_attain_k_where_chance_would_not(seed):
    """Every unit is on at one point of 8; without a common one, 6 trees would meet with probability below 1/8."""
    assert random_network(3, 24, 6, rng=np.random.default_rng(seed)).n_active(points(3)).max() == 6


def test_random_networks_have_units_of_both_signs_and_of_norm_1_behind_their_gates():
    """A mean of 4000 squares of normal numbers, of standard deviation 0.023: beyond 6 of these below 1e-8."""
    n, s = 40, 100
    net = random_network(n, s, s, rng=np.random.default_rng(8))  # one leaf a tree: no gates
    assert set(net.u) == {-1.0, 1.0}
    assert (net.b == 0).all()
    assert np.mean((net.W**2).sum(axis=1)) == pytest.approx(1, abs=0.15)
    gates = random_network(n, s, 50, rng=np.random.default_rng(9))  # two leaves a tree, one gate a unit
    assert (gates.b > 0).all()
    linear = np.where(np.abs(gates.W) == gates.b[:, None], 0, gates.W)
    assert ((linear != 0).sum(axis=1) == n - 1).all()
    assert np.mean((linear**2).sum(axis=1)) == pytest.approx(1, abs=0.15)
    assert gates.b == pytest.approx(np.abs(linear).sum(axis=1) / 2)

"""Intervals that time leaves open, bounds that tolerances cannot break, and the two networks of the speed bars."""

import signal
from fractions import Fraction
from threading import Event, Thread

import numpy as np
import pytest
from random_networks import KINDS, random_network

from sparsact.certificate import milp
from sparsact.certificate.inputs import Inputs
from sparsact.certificate.milp import clique_cover, conflicts
from sparsact.certificate.preactivations import nearest_values, scaled_rows, separated
from sparsact.certificate.symmetry import Orbits
from sparsact.constructions import indexing, parity
from sparsact.exact_sign import exact_signs, two_parts
from sparsact.hypercube import points
from sparsact.lift import Lift
from sparsact.network import SparselyActivatedNetwork


@pytest.mark.parametrize("time_limit", [0, 0.02])
def test_a_short_time_leaves_an_honest_interval(time_limit):
    rng = np.random.default_rng(2)
    open_ones = 0
    for _ in range(6):
        network = random_network("reals", 12, 11, rng)
        most = network.n_active(points(11)).max()
        certificate = network.certify("milp", time_limit=time_limit)
        assert certificate.max_active <= most <= certificate.upper
        assert network.n_active(certificate.witness[None])[0] == certificate.max_active
        if not certificate.exact:
            open_ones += 1
            assert certificate.doubt == "the time limit came first"
            assert str(certificate).startswith(f"between {certificate.max_active} and {certificate.upper} of 12 units")
    assert time_limit or open_ones


@pytest.mark.parametrize("kind", KINDS)
def test_without_search_and_conflicts_the_solver_finds_the_same(kind, monkeypatch):
    """HiGHS alone, from no witness and the trivial bound."""
    monkeypatch.setattr(milp, "searched_witness", lambda *_, **__: (0, None))
    monkeypatch.setattr(milp, "clique_cover", lambda conflict: [np.array([j]) for j in range(len(conflict))])
    rng = np.random.default_rng(6)
    for n, s in ((5, 4), (7, 6)):
        network = random_network(kind, s, n, rng)
        certificate = network.certify("milp")
        assert certificate.max_active == certificate.upper == network.n_active(points(n)).max()


@pytest.mark.parametrize("kind", KINDS)
def test_no_true_point_misses_a_row(kind):
    """The whole argument for the bound: scaled rows hold where their units are active, with room for rounding."""
    rng = np.random.default_rng(9)
    for _ in range(5):
        network = random_network(kind, 5, 7, rng)
        orbits = Orbits(network.W, Inputs.of(None, 7))
        rows = scaled_rows(orbits.weights, orbits.counts, network.W, network.b, strict=True)
        states = np.arange(orbits.n_states)
        values = orbits.features(states) @ rows.weights.T - rows.b
        active = network.active(orbits.points(states))
        assert (values >= rows.threshold)[active].all()
        assert not ((rows.weights != 0) & (np.abs(rows.weights) <= 1e-9)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_conflicts_are_what_they_say(kind):
    rng = np.random.default_rng(10)
    for _ in range(5):
        network = random_network(kind, 8, 6, rng)
        orbits = Orbits(network.W, Inputs.of(None, 6))
        found = conflicts(orbits.weights, orbits.counts, network.W, network.b)
        active = network.active(points(6)).astype(int)
        together = active.T @ active > 0
        off_diagonal = ~np.eye(8, dtype=bool)
        assert not (found & together & off_diagonal).any()
        cliques = clique_cover(found)
        assert set(np.concatenate(cliques)) == set(range(8))
        for clique in cliques:
            assert found[np.ix_(clique, clique)][~np.eye(len(clique), dtype=bool)].all()
            assert active[:, clique].sum(axis=1).max() <= 1 or len(clique) == 1


def test_all_pairs_of_index_units_conflict():
    certificate = indexing(6).certify("milp")
    assert certificate.exact
    assert certificate.max_active == 1
    assert certificate.proof == "pairs of units that are never active together"


@pytest.mark.parametrize("kind", KINDS)
def test_moved_thresholds_decide_the_same_points(kind):
    rng = np.random.default_rng(11)
    for _ in range(5):
        network = random_network(kind, 6, 7, rng)
        b, fear = separated(network)
        values = points(7) @ network.W.T - b
        sure = fear == 0
        np.testing.assert_array_equal((values > 0)[:, sure], network.active(points(7))[:, sure])


def test_nearest_values_are_the_nearest():
    W, b = np.array([[0.1, 0.2, 0.3], [1.0, 1.0, 1.0]]), np.array([0.0, 3.0])
    above, below = nearest_values(W, b, strict=True)
    exact = 0.1 + 0.2 - 0.3 - 2.0**-55  # the float sum rounds the last bit of the true one, 2.8e-17
    assert above[0] == pytest.approx(exact, rel=1e-15)
    assert below[0] == -above[0]
    assert above[1] > 6  # beyond its reach: the unit is dead
    assert below[1] == 0  # a tie is off
    assert nearest_values(W, b, strict=False)[0][1] == 0
    many = np.random.default_rng(0).normal(size=(1, 20))
    assert [float(part[0]) for part in nearest_values(many, np.zeros(1), strict=True)] == [0, 0]


@pytest.mark.parametrize("inputs", [None, Lift.quadratic(8)])
def test_lifted_parity_of_eight_bits(inputs):
    certificate = parity(range(8), 8, signs=True).certify("milp", inputs=inputs)
    assert certificate.exact
    assert certificate.max_active == (7 if inputs is None else 1)
    assert certificate.seconds < 60


def test_beyond_enumeration_the_solver_agrees_with_orbits():
    """Sixty coordinates in three groups, so that both can tell."""
    rng = np.random.default_rng(12)
    W = rng.integers(-3, 4, (7, 3))[:, np.repeat(range(3), 20)] * rng.choice([-1.0, 1.0], 60)
    network = SparselyActivatedNetwork(np.ones(7), W, rng.integers(0, 60, 7))
    assert network.certify("milp").upper == network.certify("orbits").max_active


def sign_of_sum(w, x, b):
    total = sum(Fraction(a) * int(v) for a, v in zip(w, x, strict=True)) - Fraction(b)
    return (total > 0) - (total < 0)


def test_signs_in_two_parts():
    """Sums of two exact parts have the signs that exact sums have."""
    for kind in KINDS:
        network = random_network(kind, 4, 6, np.random.default_rng(13))
        (high, high_b), (low, low_b), fits = two_parts(network.W, network.b)
        assert fits.all() or kind == "far"
        np.testing.assert_array_equal(high + low, network.W)
        X = points(6).astype(float)
        values = (X @ high.T - high_b) + (X @ low.T - low_b)
        truth = np.array([[sign_of_sum(w, x, b) for w, b in zip(network.W, network.b, strict=True)] for x in X])
        np.testing.assert_array_equal(np.sign(values)[:, fits], truth[:, fits])
        np.testing.assert_array_equal(exact_signs(X, network.W, network.b), truth)


def test_an_interrupt_ends_the_solver_at_once(monkeypatch):
    """HiGHS looks at no signal: here it is a call that runs until it is let go."""
    running, let_go = Event(), Event()

    def solver(*_, **__):
        running.set()
        let_go.wait()

    def interrupt():
        running.wait()
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(milp, "milp", solver)
    monkeypatch.setattr(milp, "searched_witness", lambda *_, **__: (0, None))
    network = random_network("reals", 12, 11, np.random.default_rng(2))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            network.certify("milp", time_limit=100)
    finally:
        let_go.set()
        signal.signal(signal.SIGINT, before)


def test_an_error_of_the_solver_is_raised(monkeypatch):
    def solver(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(milp, "milp", solver)
    monkeypatch.setattr(milp, "searched_witness", lambda *_, **__: (0, None))
    with pytest.raises(MemoryError, match="no room"):
        random_network("reals", 12, 11, np.random.default_rng(2)).certify("milp")

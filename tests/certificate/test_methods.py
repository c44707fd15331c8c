"""Every method against brute force: every point, counted exactly."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from grids import few_of
from random_networks import KINDS, random_network

import sparsact
from sparsact import kernels
from sparsact.certificate.inputs import Inputs
from sparsact.certificate.most_active import COMPARISONS
from sparsact.certificate.sweep import Effort, enumerated, sweep
from sparsact.certificate.symmetry import Orbits
from sparsact.constructions import indexing, parity
from sparsact.hypercube import points
from sparsact.lift import Lift
from sparsact.network import SparselyActivatedNetwork

METHODS = ("auto", "enumeration", "orbits", "milp")


def check(certificate, network, X):
    """The certificate says what counting the active units of all allowed inputs X says."""
    counts = network.n_active(X)
    assert certificate.max_active == certificate.upper == counts.max()
    assert certificate.exact
    assert not certificate.vacuous
    assert certificate.confidence == 1
    assert network.n_active(certificate.witness[None])[0] == counts.max()
    assert (certificate.witness == X).all(axis=1).any()
    if certificate.method != "milp":
        assert certificate.distribution == tuple(np.bincount(counts).tolist())


every_kind = pytest.mark.parametrize("kind", few_of(KINDS, ["integers", "tenths", "reals", "far", "subnormal"]))


@every_kind
@pytest.mark.parametrize("method", METHODS)
def test_brute_force(kind, method):
    rng = np.random.default_rng(7)
    for n, s in ((1, 3), (4, 7), (6, 5)):
        network = random_network(kind, s, n, rng)
        check(network.certify(method), network, points(n))


@every_kind
@pytest.mark.parametrize("method", METHODS)
def test_brute_force_over_lifts(kind, method):
    rng = np.random.default_rng(8)
    for n, s, m in ((5, 3, 3), (9, 4, 4)):
        network = random_network(kind, s, n, rng)
        lift = Lift([np.flatnonzero(rng.random(m) < 0.5) for _ in range(n)], m)
        check(network.certify(method, inputs=lift), network, lift(points(m)))


@pytest.mark.parametrize("method", METHODS)
def test_sparse_weights(method):
    network = indexing(2)
    sparse = SparselyActivatedNetwork(network.u, sp.csr_array(network.W), network.b)
    check(sparse.certify(method), network, points(6))


@pytest.mark.parametrize("method", METHODS)
def test_ties_are_off(method):
    """Half of the points of Index_b have a pre-activation of exactly 0: the network is 1-sparse, and off at those."""
    certificate = indexing(2).certify(method)
    assert (certificate.max_active, certificate.upper) == (1, 1)
    if certificate.distribution is not None:
        assert certificate.distribution == (32, 32)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("weights", "threshold", "on"),
    [((0.1, 0.1, 0.5), 0.7, 1), ((0.1, 0.2, 0.3, 0.3), 0.9, 0), ((0.5, 0.6, 0.6), 1.7, 0), ((0.5, 0.25), 0.75, 0)],
)
def test_signs_that_rounding_flips(method, weights, threshold, on):
    """Added from the left, the first looks like a tie and the next two look active; the numbers stored disagree."""
    assert (sum(map(Fraction, weights)) > Fraction(threshold)) == on
    unit = SparselyActivatedNetwork([1.0], [weights], [threshold])
    certificate = unit.certify(method)
    assert (certificate.max_active, certificate.upper) == (on, on)
    twice = SparselyActivatedNetwork([1.0, 1.0], np.vstack([weights, weights]), [threshold, threshold - 0.05])
    assert twice.certify(method).upper == 1 + on


@pytest.mark.parametrize("method", METHODS)
def test_no_units_dead_units_constant_units(method):
    none = SparselyActivatedNetwork([], np.zeros((0, 4)), [])
    dead = SparselyActivatedNetwork([1, 1, 1], np.eye(3, 5), [1, 2, 3])
    always = SparselyActivatedNetwork([1, 1, 1], [[1, 0], [0, 0], [1, 1]], [-2, -1, 2])
    for network, most in ((none, 0), (dead, 0), (always, 2)):
        certificate = network.certify(method)
        assert (certificate.max_active, certificate.upper) == (most, most)
        assert network.n_active(certificate.witness[None])[0] == most


@pytest.mark.parametrize("name", ["reference", "native"])
def test_both_kernels(name):
    if name == "native" and kernels.dispatch.native is None:
        pytest.skip("built without a compiler")
    network = random_network("reals", 11, 9, np.random.default_rng(3))
    with kernels.using(name):
        assert set(COMPARISONS) >= {kernels.backend()}
        check(network.certify("enumeration", n_threads=2), network, points(9))


def test_orbits_are_few_and_cover_the_cube():
    network = random_network("alike", 3, 8, np.random.default_rng(5))
    orbits = Orbits(network.W, Inputs.of(None, 8))
    states = np.arange(orbits.n_states)
    assert orbits.n_states < 2**8
    assert orbits.multiplicities(states).sum() == 2**8
    X = orbits.points(states)
    np.testing.assert_array_equal(orbits.features(states) @ orbits.weights.T, X @ network.W.T)


def test_lifted_parity_is_one_sparse_over_the_lift_alone():
    """m = 3: one unit at each lifted point, up to three elsewhere on the cube, where paper A says one."""
    network, lift = parity(range(3), 3, signs=True), Lift.quadratic(3)
    for method in METHODS:
        check(network.certify(method, inputs=lift), network, lift(points(3)))
        check(network.certify(method), network, points(9))
    assert network.certify(inputs=lift).max_active == 1
    assert network.certify().max_active == 3


def test_orbits_reach_far_beyond_enumeration():
    """m = 8: 2**64 points, groups of 8 and 56 coordinates that may be exchanged, and a distribution that counts all."""
    network = parity(range(8), 8, signs=True)
    certificate = network.certify()
    assert certificate.method == "orbits"
    assert certificate.exact
    assert sum(certificate.distribution) == 2**64
    assert certificate.max_active == network.certify("milp").max_active == 7
    assert f"{(8 + 1) * (56 + 1)} orbits" in str(certificate)


def test_auto_chooses_what_is_cheap():
    rng = np.random.default_rng(0)
    assert indexing(3).certify().method == "enumeration"
    wide = SparselyActivatedNetwork(np.ones(3), rng.normal(size=(3, 40)), np.full(3, 5.0))
    assert wide.certify(time_limit=0.1).method == "milp"
    assert wide.certify(time_limit=np.inf).exact  # no limit
    assert sparsact.certify(indexing(5)).method == "milp"


def test_a_network_is_not_changed_and_the_global_generator_is_left_alone():
    network = random_network("reals", 4, 6, np.random.default_rng(1))
    before = [array.copy() for array in (network.u, network.W, network.b)]
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - that it is not touched is the test
    for method in METHODS:
        network.certify(method)
    for array, old in zip((network.u, network.W, network.b), before, strict=True):
        np.testing.assert_array_equal(array, old)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("kind", ["far", "tenths"])
def test_doubt_that_is_too_much_to_settle_is_told(kind):
    """With next to no work allowed, bounds still hold the truth, and the certificate says what is left open."""
    rng, effort, cube = np.random.default_rng(17), Effort(2, 0, 0, 1), Inputs.of(None, 8)
    doubts = set()
    for _ in range(8):
        network = random_network(kind, 9, 8, rng)
        most = network.n_active(points(8)).max()
        for method in ("enumeration", "orbits"):
            if method == "enumeration":
                tally = enumerated(network, cube, n_threads=1, effort=effort)
            else:
                tally = sweep(network, cube, Orbits(network.W, cube), effort)
            certificate = tally.certificate(network.s, cube.words, method, "")
            assert certificate.max_active <= most <= certificate.upper
            assert network.n_active(certificate.witness[None])[0] == certificate.max_active
            if not certificate.exact:
                assert "left in doubt" in certificate.doubt
                assert certificate.distribution is None
                doubts.add(method)
    assert doubts == ({"enumeration", "orbits"} if kind == "far" else {"enumeration"})


@pytest.mark.parametrize("method", METHODS)
def test_numbers_of_sizes_that_no_float_spans(method):
    """Sums of 1e150 and 3e-200 take over a thousand binary digits; each decision is still the true one."""
    rng = np.random.default_rng(5)
    W = rng.choice([1e150, -1e150, 1.0, 3e-200, -3e-200], (5, 4))
    network = SparselyActivatedNetwork(np.ones(5), W, rng.choice([0.0, 1e150, 3e-200], 5))
    check(network.certify(method), network, points(4))
    largest = SparselyActivatedNetwork([1.0, 1.0], [[1.5e308, 1e307], [-1e307, 5e306]], [1e307, 5e306])
    check(largest.certify(method), largest, points(2))

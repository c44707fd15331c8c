"""Bounds on how often too many units are active."""

import numpy as np
import pytest
from random_networks import random_network
from scipy.optimize import LinearConstraint
from scipy.stats import binom

from sparsact.certificate import Certificate
from sparsact.certificate.sampling import clopper_pearson
from sparsact.constructions import indexing, parity
from sparsact.hypercube import points
from sparsact.lift import Lift
from sparsact.network import SparselyActivatedNetwork


def test_clopper_pearson_is_where_the_binomial_tail_is():
    for exceeded, m, confidence in ((0, 50, 0.9), (3, 70, 0.99), (12, 13, 0.5)):
        p = clopper_pearson(exceeded, m, confidence)
        assert binom.cdf(exceeded, m, p) == pytest.approx(1 - confidence)
    assert clopper_pearson(5, 5, 0.9) == 1


@pytest.mark.grid
def test_coverage():
    """At confidence 0.8 a bound fails in at most one of five samples.

    Each run fails with probability at most 0.2, so more than 110 of 400 fail with probability below 1e-3.
    """
    network = random_network("integers", 6, 7, np.random.default_rng(0))
    counts = network.n_active(points(7))
    k = int(np.median(counts))
    truth = np.mean(counts > k)
    rng = np.random.default_rng(1)
    fails = fails_at_most_seen = 0
    for _ in range(400):
        certificate = network.certify("sampled", n_samples=40, max_active=k, confidence=0.8, rng=rng)
        assert certificate.at_most == k
        fails += certificate.exceed_bound < truth
        seen = network.certify("sampled", n_samples=40, confidence=0.8, rng=rng)
        assert seen.at_most == seen.max_active
        assert seen.exceeded == 0
        fails_at_most_seen += seen.exceed_bound < np.mean(counts > seen.max_active)
    assert binom.sf(110, 400, 0.2) < 1e-3
    assert fails <= 110
    assert fails_at_most_seen <= 110


def test_what_a_sample_says():
    network = indexing(3)
    certificate = network.certify("sampled", n_samples=500, rng=np.random.default_rng(2))
    assert certificate.method == "sampled"
    assert certificate.confidence == 0.99
    assert certificate.max_active == network.n_active(certificate.witness[None])[0] == 1
    assert certificate.upper == 8
    assert not certificate.exact
    assert certificate.exceed_bound == pytest.approx(1 - 0.01 ** (1 / 500))
    text = str(certificate)
    for part in ("with confidence 0.99", "more than 1 of 8 units", "a uniform point of {-1,1}^11", "0 of 500 samples"):
        assert part in text


def test_the_inputs_may_be_a_lift_or_constrained():
    """Over the lift of parity one unit is on; over the cube often more (252 + 140 of 512 points have at most one)."""
    network, rng = parity(range(3), 3, signs=True), np.random.default_rng(3)
    over_lift = network.certify("sampled", inputs=Lift.quadratic(3), n_samples=300, max_active=1, rng=rng)
    over_cube = network.certify("sampled", n_samples=300, max_active=1, rng=rng)
    assert over_lift.exceeded == 0
    assert over_cube.exceed_bound > 120 / 512
    positive = LinearConstraint(np.ones((1, 9)), 7, np.inf)
    constrained = network.certify("sampled", inputs=positive, n_samples=50, rng=rng)
    assert constrained.witness.sum() >= 7
    wide, ones = SparselyActivatedNetwork([1.0], np.ones((1, 60)), [0.0]), LinearConstraint(np.ones(60), 60, 60)
    with pytest.raises(ValueError, match="pass a `distribution`"):
        wide.certify("sampled", inputs=ones, n_samples=5, rng=rng)


def test_real_inputs_of_any_distribution():
    network = random_network("reals", 5, 4, np.random.default_rng(4))
    X = np.random.default_rng(5).normal(size=(60, 4))
    before = X.copy()
    given = network.certify("sampled", distribution=X, max_active=1)
    np.testing.assert_array_equal(X, before)
    drawn = network.certify(
        "sampled", distribution=lambda m, rng: X[:m], n_samples=60, max_active=1, rng=np.random.default_rng(0)
    )
    counts = network.n_active(X)
    for certificate in (given, drawn):
        assert certificate.n_samples == 60
        assert certificate.exceeded == (counts > 1).sum()
        assert certificate.max_active == counts.max()
        assert certificate.upper == 5
        assert certificate.witness.dtype == np.float64
        assert network.n_active(certificate.witness[None])[0] == counts.max()
    with pytest.raises(ValueError, match="not both"):
        network.certify("sampled", distribution=X, inputs=Lift([(0,), (1,), (2,), (3,)], 4))


def test_numbers_of_numpy_are_written():
    network = random_network("integers", 6, 7, np.random.default_rng(0))
    certificate = network.certify(
        "sampled",
        n_samples=np.int64(20),
        max_active=np.int64(2),
        confidence=np.float32(0.5),
        rng=np.random.default_rng(1),
    )
    assert Certificate.from_json(certificate.to_json()).at_most == 2

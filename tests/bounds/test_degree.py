"""degree_for: exact where the function is small, with its confidence where it is measured, refused where it cannot."""

from __future__ import annotations

from math import comb, inf

import networks
import numpy as np
import pytest

from sparsact import LowDegreeRegressor, SparselyActivatedNetwork
from sparsact.bounds import (
    degree_for,
    degree_from_noise,
    sufficient_degree,
    tail_bound,
    uniform_degree,
    upper_confidence_bound,
)
from sparsact.bounds.measured import least_degree_of, proved_of_network
from sparsact.fourier import Estimate, Spectrum
from sparsact.hypercube import points


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01, 1e-9])
def test_a_spectrum_is_exact(epsilon):
    f = Spectrum.of(np.random.default_rng(1).normal(size=2**7))
    found = degree_for(f, epsilon)
    assert f.tail(found.degree) <= epsilon
    assert found.degree == 0 or f.tail(found.degree - 1) > epsilon
    assert found.tail == f.tail(found.degree)
    assert found.measured >= found.degree  # Claim 2.1 is an upper bound
    assert (found.confidence, found.worst_case) == (1.0, None)


def test_an_epsilon_above_the_variance_needs_the_mean_alone():
    found = degree_for([1, 1, 1, -1], 0.75)
    assert (found.degree, found.reason) == (0, "the mean alone leaves no more than epsilon.")
    assert degree_for([1, 1, 1, -1], 0.74).degree > 0


def test_whatever_a_spectrum_can_be_made_of():
    assert degree_for(Spectrum.of({(): 1.0, (0, 70): 0.5}, n=90), 0.2).degree == 2
    model = LowDegreeRegressor(3).fit(points(4), points(4)[:, :3].prod(axis=1))
    assert degree_for(model, 0.5).degree == 3


def test_a_small_network_is_exact_and_stands_beside_the_worst_cases():
    network = networks.index(3)
    found = degree_for(network, 0.05, k=1)
    assert Spectrum.of(network(points(11))).tail(found.degree) == found.tail <= 0.05
    W, B = network.scale()
    assert found.worst_case == sufficient_degree(1, W, 0.05, 8) < sufficient_degree(1, W, 0.05)
    assert found.theorem_8 == uniform_degree(11, 8, 1, W, B, 0.05)
    assert found.degree <= found.measured <= found.worst_case
    assert found.activity < found.worst_case


def test_index_4_is_exact():
    """n = 20: of weight 1/4 at degree 0, and 1/4 spread as C(4, j) / 16 over degree 1 + j; 3 is enough for .1."""
    network = networks.index(4)
    weights = np.array([1, *(comb(4, j) / 16 for j in range(5)), *[0] * 15]) / 4
    for epsilon in (0.02, 0.1, 0.2):
        found = degree_for(network, epsilon, k=1)
        assert found.degree == next(d for d in range(21) if weights[d + 1 :].sum() <= epsilon)
        assert found.tail == pytest.approx(weights[found.degree + 1 :].sum())
        assert (found.confidence, found.activity) == (1.0, None)
    assert degree_for(network, 0.1, k=1).degree == 3


def test_a_dense_network_of_18_inputs_is_exact():
    network = networks.random(18, 3, np.random.default_rng(4), threshold=1.0)
    found = degree_for(network, 0.3)
    X = np.random.default_rng(5).choice([1, -1], size=(40_000, 18))
    assert found.tail <= 0.3 < degree_for(network, 0.3 + 1e-9).worst_case
    noise = np.where(np.random.default_rng(6).random(X.shape) < (1 - found.rho) / 2, -X, X)
    squares = (network(X) - network(noise)) ** 2 / 4
    # A mean of 40,000 against the exact one: beyond five standard errors with probability 6e-7.
    assert abs(squares.mean() - found.noise_sensitivity.value) < 5 * squares.std() / 200


def test_a_larger_network_is_measured():
    """n = 34 without an exact spectrum; units on the first three inputs are nearly all that counts."""
    rng = np.random.default_rng(0)
    W = np.hstack([np.tile(2.0, (2, 3)) * [[1], [-1]], np.full((2, 31), 1e-3)])
    network = SparselyActivatedNetwork([0.25, -0.25], W, [2.0, 2.0])
    small = Spectrum.of(SparselyActivatedNetwork([0.25, -0.25], W[:, :3], [2.0, 2.0]))
    with pytest.raises(ValueError, match="pass `rng`"):
        degree_for(network, 0.5)
    found = degree_for(network, 0.5, k=1, n_samples=20_000, rng=rng)
    assert small.tail(found.degree) <= 0.5
    assert found.measured <= found.worst_case
    assert found.activity <= found.worst_case
    assert found.confidence in (0.95, 1.0)


def test_a_network_of_many_inputs():
    """Only three of 300 inputs matter: the measured degree is small, and holds the exact tail."""
    n = 300
    W = np.zeros((2, n))
    W[0, :3], W[1, :3] = 1, -1
    network = SparselyActivatedNetwork([1.0, -1.0], W, [1.0, 1.0])  # (x0 + x1 + x2 - 1)+ less its mirror image
    small = Spectrum.of(SparselyActivatedNetwork([1.0, -1.0], W[:, :3], [1.0, 1.0])(points(3)))
    for interval in ("bernstein", "normal"):
        found = degree_for(network, 0.2, k=1, n_samples=20_000, interval=interval, rng=np.random.default_rng(1))
        assert small.tail(found.degree) <= 0.2
        assert found.degree <= 13
        assert found.worst_case == sufficient_degree(1, np.sqrt(3), 0.2, 2)


def test_the_number_of_units_lowers_the_worst_case_and_its_tail():
    """A unit of 600 equal weights: a few samples show less than the theorem."""
    network = SparselyActivatedNetwork([1.0], np.full((1, 600), 600**-0.5), [0.0])
    found = degree_for(network, 0.005, n_samples=50, rng=np.random.default_rng(0))
    assert found.degree == found.worst_case == sufficient_degree(1, network.scale().W, 0.005, 1) < 300
    assert found.tail == tail_bound(1, network.scale().W, found.degree, 1) <= 0.005
    assert found.reason == "no network of this scale with s = 1 and k = 1 needs more."


def test_values_far_from_typical_ones_leave_the_worst_cases():
    """The rigorous interval pays for the range of the values; the activity of the units then serves."""
    network = networks.random(100, 4, np.random.default_rng(2), threshold=1.5)
    found = degree_for(network, 4.0, n_samples=500, rng=np.random.default_rng(3))
    assert found.measured == inf
    assert found.degree == min(100, found.activity)
    assert degree_for(network, 4.0, n_samples=500, interval="normal", rng=np.random.default_rng(3)).degree < 100


def test_what_is_zero_needs_nothing():
    dead = SparselyActivatedNetwork([1.0], np.zeros((1, 40)), [0.0])
    assert degree_for(dead, 0.1, rng=np.random.default_rng(0)).degree == 0


class TestRows:
    def rows(self, m, noise=0.0, n=9):
        rng = np.random.default_rng(m)
        X = rng.choice([1, -1], (m, n))
        return X, X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + noise * rng.normal(size=m)

    def test_the_least_degree_that_is_enough(self):
        rng = np.random.default_rng(0)
        assert degree_for(self.rows(3000), 0.2, rng=rng).degree == 2
        found = degree_for(self.rows(3000), 1.2, rng=rng)
        assert found.degree == 1
        assert found.tail <= 1.2
        assert found.noise_sensitivity is None
        assert "degree 1 leaves 1.0" in found.reason or "degree 1 leaves 0.9" in found.reason

    @pytest.mark.grid
    def test_noise_is_conservative_and_may_be_known(self):
        rng = np.random.default_rng(0)
        with pytest.raises(ValueError, match=r"noise or higher degrees hold more.*larger epsilon, or noise_variance"):
            degree_for(self.rows(4000, noise=1.0), 0.3, rng=rng)
        assert degree_for(self.rows(4000, noise=1.0), 0.3, noise_variance=1.0, rng=rng).degree == 2

    def test_too_few_rows(self):
        with pytest.raises(ValueError, match="too uncertain; pass more rows or a larger epsilon"):
            degree_for(self.rows(40), 0.05, rng=np.random.default_rng(0))

    def test_rows_that_are_not_uniform(self):
        X = 1 - 2 * (np.random.default_rng(0).random((900, 9)) < 0.1)
        with pytest.raises(ValueError, match=r"uniform rows.*choose the degree by cross-validation"):
            degree_for((X, X[:, 0]), 0.1, rng=np.random.default_rng(0))

    def test_the_confidence_holds(self):
        """At 90 %, over 100 samples the degree is too small in at most 20 (a chance below 1e-3 if it held barely)."""
        n, rng = 7, np.random.default_rng(9)
        f = rng.normal(size=2**n) / 4 + points(n)[:, 0] * points(n)[:, 1]
        tails, wrong = [Spectrum.of(f).tail(d) for d in range(n + 1)], 0
        for _ in range(100):
            rows = rng.integers(0, 2**n, 400)
            try:
                wrong += tails[degree_for((points(n)[rows], f[rows]), 0.15, confidence=0.9, rng=rng).degree] > 0.15
            except ValueError:
                continue
        assert wrong <= 20


def test_bernstein_covers_and_shrinks():
    """Bounded samples, mostly 0: the bound fails in at most 5 % of 300 draws (16 or fewer, usually none)."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(300):
        q = (rng.random(200) < 0.02).astype(float)
        estimate = Estimate(q.mean(), q.std(ddof=1) / np.sqrt(200), 200)
        missed += upper_confidence_bound(estimate, 1.0) < 0.02
    assert missed <= 16
    assert upper_confidence_bound(Estimate(0.1, 1e-3, 10**6), 1.0) < 0.103


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"epsilon": 0.0}, "`epsilon` must be positive"),
        ({"epsilon": 0.1, "k": 20}, "`k` of a network must lie between"),
        ({"epsilon": 0.1, "confidence": 1.0}, "`confidence` must be above 0 and below 1"),
        ({"epsilon": 0.1, "interval": "exact"}, "`interval` must be one of bernstein, normal"),
    ],
)
def test_bad_arguments(arguments, told):
    with pytest.raises(ValueError, match=told):
        degree_for(networks.index(4), **arguments)


def test_a_network_without_units_has_degree_0():
    found = degree_for(SparselyActivatedNetwork([], np.zeros((0, 20)), []), 0.1)
    assert (found.degree, found.tail) == (0, 0.0)


def test_an_epsilon_whose_square_is_no_float():
    assert degree_for(networks.index(2), 1e-300).theorem_8 == inf


@pytest.mark.parametrize("n_samples", [1, 0, 2.5])
def test_samples_too_few(n_samples):
    with pytest.raises(ValueError, match="`n_samples` must be a whole number from 2"):
        degree_for(networks.index(5), 0.1, n_samples=n_samples, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="needs at least 2 samples"):
        upper_confidence_bound(Estimate(0.5, 0.0, 1), 1.0)


def test_noise_is_bounded_by_the_range_of_values():
    """Values from -2 to 3: a quarter of a squared change is at most 25 / 4; half the doubt for each bound."""
    network = SparselyActivatedNetwork([3.0, -2.0, 1.0], [[1, 0], [-1, 0], [0, 0]], [0.0, 0.0, 5.0])
    proved, how, worst = proved_of_network(network, 1), (0.9, 10_000, "bernstein"), {"worst_case": inf}
    found = least_degree_of(network, 20.0, proved, how, "", worst, rng=np.random.default_rng(0))
    most = upper_confidence_bound(found.noise_sensitivity, 25 / 4, 0.95)
    assert found.measured == degree_from_noise(most, found.rho, 20.0)
    assert found.measured < inf

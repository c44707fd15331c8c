"""Remarks of both papers that have no number, and what the documentation says of their proofs, at small sizes."""

from __future__ import annotations

from math import ceil, log, pi, sqrt

import numpy as np
import pytest
from numpy.polynomial import chebyshev, polynomial
from scipy.linalg import lstsq

from sparsact import SparselyActivatedNetwork, bounds
from sparsact.constructions import junta, random_network
from sparsact.fourier import Spectrum, walsh_hadamard
from sparsact.hypercube import points
from sparsact.routing import TopK
from sparsact_papers.dsm import DSM


@pytest.mark.parametrize("seed", range(20))
def test_theorem_8_with_the_constant_that_the_sharper_degree_proves(seed):
    """70 times its degree is at least the sharper one for ns >= 2, over 100 sizes; 16 / ln(2)^4 is what is needed."""
    assert 69 < 16 / log(2) ** 4 < 70
    rng = np.random.default_rng(seed)
    for _ in range(5):
        n, s = int(rng.integers(1, 40)), int(rng.integers(2, 40))
        k, (W, B, epsilon) = int(rng.integers(1, s + 1)), 10 ** rng.uniform(-3, 1, 3)
        assert bounds.sufficient_degree(k, W, epsilon) <= bounds.uniform_degree(n, s, k, W, B, epsilon, c=70)


def test_near_equality_of_that_constant():
    """n s = 2, W = 1, B = 0 and epsilon just below 4, where degree 1 is needed: 60 would not do."""
    assert bounds.sufficient_degree(1, 1.0, 3.99) == 1
    assert (
        bounds.uniform_degree(2, 1, 1, 1.0, 0.0, 3.99, c=70) >= 1 > bounds.uniform_degree(2, 1, 1, 1.0, 0.0, 3.99, c=60)
    )


def test_lemma_10_as_printed_fails_on_one_unit_of_one_input():
    """h(x) = relu(x) at rho = 0: the logarithm of ns / (1 - rho) vanishes, NS = 1/8 does not."""
    network = SparselyActivatedNetwork([1.0], [[1.0]], [0.0])
    assert bounds.noise_sensitivity_bound_paper(1, 1, 1, 1.0, 0.0, 0.0, c=1e9) == 0.0
    assert Spectrum.of(network).noise_sensitivity(0.0) == 0.125


@pytest.mark.parametrize("degree", [0, 1, 3])
def test_the_risk_of_the_best_polynomial_of_corrupted_labels(degree):
    """Exactly, by coefficients: (sqrt(noise) + sqrt(tail))^2 bounds it, and noise along the tail attains that."""
    rng = np.random.default_rng(degree)
    h = rng.normal(size=64)
    high = np.bitwise_count(np.arange(64)) > degree
    above = walsh_hadamard(np.where(high, walsh_hadamard(h), 0)) * 64  # the part of h above the degree

    def risk(y):
        return float((walsh_hadamard(y)[high] ** 2).sum())

    tail = risk(h)
    for noise in (rng.normal(size=64), rng.choice([0.0, 5.0], 64), 0.7 * above, -0.7 * above):
        bound = (sqrt(np.mean(noise**2)) + sqrt(tail)) ** 2
        assert risk(h + noise) <= bound * (1 + 1e-12)
    aligned = 0.7 * above
    assert risk(h + aligned) == pytest.approx((sqrt(np.mean(aligned**2)) + sqrt(tail)) ** 2)
    assert risk(h + aligned) > np.mean(aligned**2) + 1.2 * tail


class TestSparseOnAllOfSpace:
    """At most k active units at every point of R^n: at most 2k units that are ever active."""

    @pytest.mark.parametrize(("n", "s"), [(1, 3), (2, 5), (3, 4), (7, 12)])
    @pytest.mark.parametrize("bias", [0.0, 10.0, 1e6])
    def test_one_end_of_a_line_has_half_of_the_units(self, n, s, bias):
        """However large the biases. A unit without weights that is on counts at both ends."""
        rng = np.random.default_rng([n, s])
        for n_constant in (0, 1, 2):
            W, b = rng.normal(size=(s, n)), rng.uniform(0, 1, s) * bias
            W[:n_constant], b[:n_constant] = 0, -1
            network = SparselyActivatedNetwork(np.ones(s), W, b)
            ends = 1e3 * (1 + bias) / np.abs(W[n_constant:] @ np.ones(n)).min() * np.array([[1.0], [-1.0]])
            active = network.n_active(np.broadcast_to(ends, (2, n)))
            assert active.sum() == s + n_constant
            assert active.max() >= s / 2

    def test_twice_as_many_are_possible(self):
        k = 3
        network = SparselyActivatedNetwork(np.ones(2 * k), [[1.0, 0.0], [-1.0, 0.0]] * k, np.ones(2 * k))
        X = np.random.default_rng(0).normal(size=(5000, 2)) * 2
        assert set(network.n_active(X)) == {0, k}
        assert network.active(X).any(axis=0).all()

    def test_the_cube_has_room_for_more(self):
        network = junta(np.ones(2**6), range(6), 6)
        assert (network.s, network.certify().max_active) == (2**6, 1)


def polynomial_of_relu(degree):
    """Coefficients of a truncated Chebyshev series of the ReLU on [-1, 1], by the series of the magnitude."""
    even = np.arange(0, degree + 1, 2)
    series = np.zeros(degree + 1)
    series[even] = 2 / pi * (-1.0) ** (even // 2) / (1 - even**2.0) * np.where(even, 2, 1)
    return polynomial.polyadd(chebyshev.cheb2poly(series) / 2, [0, 0.5])


class TestKernelRegression:
    """The baseline of "Learning under arbitrary distributions": a polynomial near to any dense network."""

    @pytest.mark.parametrize("degree", [1, 2, 3, 8, 17, 24])
    def test_a_polynomial_of_a_unit(self, degree):
        coefficients = polynomial_of_relu(degree)
        z = np.linspace(-1, 1, 20_001)
        error = np.abs(polynomial.polyval(z, coefficients) - np.maximum(z, 0)).max()
        assert 0.2 / degree < error <= 1 / (pi * degree) + 1e-7
        assert np.abs(coefficients).sum() <= (1 + sqrt(2)) ** degree

    def test_a_polynomial_of_a_network(self):
        """Dense, on all points of the cube: within the root of epsilon, at the degree that the page states."""
        network, epsilon = random_network(6, 5, 5, rng=np.random.default_rng(1)), 0.4
        X, (W, B) = points(6), network.scale()
        a = W * sqrt(6) + B
        degree = ceil(network.s * a / (pi * sqrt(epsilon)))
        z = np.abs(network.u) * network.preactivations(X)
        assert np.abs(z).max() <= a
        near = a * polynomial.polyval(z / a, polynomial_of_relu(degree)) @ np.sign(network.u)
        assert degree < 30  # the coefficients cancel beyond
        assert 0 < np.abs(near - network(X)).max() <= sqrt(epsilon)


def test_a_jump_of_a_mask_is_out_of_reach_of_continuous_networks():
    """The top one of two units: 2 at 0, -2 left of it. Every dense layer errs by 2 beside 0, and little in the mean."""

    def features(X):
        return np.maximum(2 + X * [1, -1], 0)

    def chosen(X, units):
        return np.take_along_axis(features(X), units, axis=1)

    g = DSM(1, chosen, lambda X: TopK(1)(features(X)), np.array([[1.0], [-1.0]]))
    near = 1e-12
    assert g([[0.0], [near], [-near]])[:, 0] == pytest.approx([2, 2, -2])
    x, rng, mean_squares = np.linspace(-1, 1, 2001), np.random.default_rng(0), []
    for width in (2, 20, 200):
        kinks, slopes = rng.uniform(-1, 1, width), rng.choice([-1.0, 1.0], width)

        def layer(z, kinks=kinks, slopes=slopes):
            return np.column_stack([np.maximum(slopes * (z[:, None] - kinks), 0), np.ones(len(z)), z])

        top = lstsq(layer(x), g(x[:, None])[:, 0])[0]
        mean_squares.append(np.mean((layer(x) @ top - g(x[:, None])[:, 0]) ** 2))
        around = np.array([near, -near])
        errors = np.abs(layer(around) @ top - g(around[:, None])[:, 0])
        assert errors.max() >= 2 - 1e-6
    assert mean_squares[2] < mean_squares[0] / 10
    nearest = x + 2 * np.clip(x / 0.1, -1, 1)  # continuous
    assert np.abs(nearest - g(x[:, None])[:, 0]).max() == pytest.approx(2)

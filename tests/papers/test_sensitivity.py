"""Paper A, Lemmas 6, 9 and 10, and the sharper AS(h) <= 4 k^2 W^2 of the documentation: all points, small networks."""

from __future__ import annotations

from math import comb, log, pi, sqrt

import networks
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsact import SparselyActivatedNetwork
from sparsact.bounds import (
    average_sensitivity_bound,
    average_sensitivity_bound_by_activity,
    average_sensitivity_bound_paper,
    halfspace_sensitivity_bound,
    noise_sensitivity_bound,
    noise_sensitivity_bound_paper,
    sensitivity_certificate,
    sensitivity_from_activity,
    sufficient_degree,
    tail_bound,
)
from sparsact.fourier import Spectrum, average_sensitivity
from sparsact.hypercube import points

RHOS = (-1.0, -0.3, 0.0, 0.5, 0.9, 0.999, 1.0)


def some_networks():
    rng = np.random.default_rng(7)
    yield from (networks.index(2), networks.index(3), networks.parity(3, 5), networks.copies(1), networks.copies(3, 2))
    for n, s, threshold in ((3, 5, 0.0), (5, 4, 0.5), (6, 9, 1.0), (8, 7, 0.7), (7, 20, 1.5)):
        yield networks.random(n, s, rng, threshold)


NETWORKS = [network for network in some_networks() if networks.most_active(network)]


def spectrum(network):
    return Spectrum.of(network(points(network.n)))


@pytest.mark.parametrize("network", NETWORKS, ids=repr)
class TestSharperLemma9:
    def test_the_chain_of_bounds(self, network):
        """AS <= 4 E|sum |u_j| |w_j||^2 <= 4 k sum p_j u_j^2 |w_j|^2 <= 4 k^2 W^2, and <= 4 W^2 E|R|^2."""
        X, k, W = points(network.n), networks.most_active(network), network.scale().W
        chain = [
            average_sensitivity(network(X)),
            sensitivity_certificate(network, X).mean(),
            sensitivity_from_activity(network, network.active(X).mean(axis=0), k),
            average_sensitivity_bound(k, W),
        ]
        assert (np.diff(chain) >= -1e-12 * chain[-1]).all(), chain
        by_activity = average_sensitivity_bound_by_activity(float((network.n_active(X) ** 2.0).mean()), W)
        assert chain[1] <= by_activity * (1 + 1e-12) <= chain[3] * (1 + 2e-12)

    def test_noise_and_tails(self, network):
        f, k, W = spectrum(network), networks.most_active(network), network.scale().W
        for rho in RHOS:
            assert f.noise_sensitivity(rho) <= noise_sensitivity_bound(k, W, rho) + 1e-12
        for degree in range(network.n + 1):
            assert f.tail(degree) <= tail_bound(k, W, degree) + 1e-12
        for epsilon in (0.3, 1.7):
            assert f.tail(sufficient_degree(k, W, epsilon)) <= epsilon

    def test_every_product_distribution(self, network):
        """sum_i E Var_i h, with coordinates of any bias, keeps the constant 4."""
        rng = np.random.default_rng(network.n)
        X = points(network.n)
        for bias in (rng.uniform(-1, 1, network.n), np.full(network.n, 0.97), np.zeros(network.n)):
            weight = ((1 + X * bias) / 2).prod(axis=1)
            pairs = [network(X).reshape(-1, 2, 2**i) for i in range(network.n)]
            mass = [weight.reshape(-1, 2, 2**i).sum(axis=1) for i in range(network.n)]
            influence = sum(
                (m * (1 - b * b) * ((v[:, 0] - v[:, 1]) / 2) ** 2).sum()
                for v, m, b in zip(pairs, mass, bias, strict=True)
            )
            certificate = weight @ sensitivity_certificate(network, X)
            assert influence <= certificate + 1e-12
            assert certificate <= average_sensitivity_bound(networks.most_active(network), network.scale().W) + 1e-9

    def test_the_printed_lemmas_with_constants_that_the_sharper_ones_prove(self, network):
        """Lemma 9 with c = 4 / ln 2; Lemma 10 with c = 2 / ln(2)^2 and rho >= 0: for ns >= 2 no smaller network is."""
        (n, s, k), (W, B) = (network.n, network.s, networks.most_active(network)), network.scale()
        f = spectrum(network)
        if n * s > 1:
            assert f.total_influence() <= average_sensitivity_bound_paper(n, s, k, W, B, c=4 / log(2)) + 1e-12
            for rho in (0.0, 0.5, 0.99):
                most = noise_sensitivity_bound_paper(n, s, k, W, B, rho, c=2 / log(2) ** 2)
                assert f.noise_sensitivity(rho) <= most + 1e-12


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_constant_is_attained_at_every_sparsity(k):
    network = networks.copies(k)
    assert networks.most_active(network) == k
    assert network.scale().W == 1
    assert average_sensitivity(network(points(1))) == 4 * k**2 == average_sensitivity_bound(k, 1.0)


def ratio(u, W, b, X):
    """AS / (4 k^2 W^2) of a network with u of magnitude 1, and k, both by brute force."""
    z = X @ W.T - b
    k, scale = int((z > 0).sum(axis=1).max()), float((W * W).sum(axis=1).max())
    if not k or not scale:
        return 0.0
    return average_sensitivity(np.maximum(z, 0) @ u) / (4 * k * k * scale)


def climbed(n, s, steps, rng):
    """The largest ratio that hill climbing over u, W and b finds from one random start."""
    X = points(n).astype(float)
    best = rng.choice([1.0, -1.0], s), rng.normal(size=(s, n)), rng.normal(size=s)
    value, step = ratio(*best, X), 1.0
    for _ in range(steps):
        u, W, b = (part.copy() for part in best)
        j = rng.integers(s)
        match rng.integers(4):
            case 0:
                W[j] += step * rng.normal(size=n)
            case 1:
                b[j] += step * rng.normal()
            case 2:
                u[j] = -u[j]
            case _:
                W[j, rng.integers(n)] = 0.0
        trial = ratio(u, W, b, X)
        if trial >= value:
            best, value = (u, W, b), trial
        step = max(0.01, 0.99 * step)
    return value


def test_no_adversary_passes_the_bound():
    """And the search is a good one: it comes near the bound, which it could not know."""
    rng = np.random.default_rng(3)
    found = [climbed(int(rng.integers(1, 6)), int(rng.integers(1, 6)), 300, rng) for _ in range(20)]
    assert max(found) <= 1 + 1e-12
    assert max(found) > 0.9


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_small_whole_weights_do_not_pass_it_either(n, s, seed):
    """Ties at 0 and equal units abound here; sparsity follows the strict inequality of Definition 1."""
    rng = np.random.default_rng(seed)
    network = SparselyActivatedNetwork(rng.integers(-2, 3, s), rng.integers(-2, 3, (s, n)), rng.integers(-3, 4, s))
    k = max(1, networks.most_active(network))
    X = points(n)
    assert average_sensitivity(network(X)) <= sensitivity_certificate(network, X).mean() + 1e-12
    assert sensitivity_certificate(network, X).mean() <= average_sensitivity_bound(k, network.scale().W) + 1e-9


def test_lemma_9_as_printed_fails_on_one_unit_of_one_input():
    """h(x) = relu(x): both logarithms vanish, AS = 1/4 does not."""
    network = SparselyActivatedNetwork([1.0], [[1.0]], [0.0])
    assert average_sensitivity_bound_paper(1, 1, 1, 1.0, 0.0, c=1e9) == 0.0
    assert average_sensitivity(network(points(1))) == 0.25


@pytest.mark.parametrize("n", [1, 4, 9, 12])
def test_lemma_6_on_halfspaces(n):
    """With values 0 and 1, over thresholds of random and of equal weights: at most (p / sqrt 2) sqrt(n ln(1/p))."""
    rng = np.random.default_rng(n)
    X = points(n)
    for weights in (np.ones(n), rng.normal(size=n), rng.integers(1, 9, n), np.eye(n)[0]):
        for threshold in np.quantile(X @ weights, (0.001, 0.02, 0.3, 0.5, 0.9, 1.0)):
            g = (X @ weights <= threshold).astype(float)
            assert average_sensitivity(g) <= halfspace_sensitivity_bound(n, g.mean()) + 1e-12


def test_lemma_6_is_near_the_truth_for_majority():
    """n odd: AS = (n / 4) C(n - 1, (n - 1) / 2) / 2^(n - 1), about sqrt(n / (8 pi)), two thirds of the bound."""
    n = 13
    g = (points(n).sum(axis=1) <= 0).astype(float)
    sensitivity, bound = average_sensitivity(g), halfspace_sensitivity_bound(n, 0.5)
    assert sensitivity == pytest.approx(n / 4 * comb(n - 1, (n - 1) // 2) / 2 ** (n - 1))
    assert bound == pytest.approx(0.5 / sqrt(2) * sqrt(n * log(2)))
    assert sensitivity / bound == pytest.approx(1 / sqrt(pi * log(2)), rel=0.03)

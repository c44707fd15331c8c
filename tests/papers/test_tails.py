"""The tails of sparse networks: the bound that falls with the degree alone, and the one that the units sharpen.

For at most k active units and d >= 1, sum over |T| > d of |T| hhat(T)^2 <= 18 k^2 W^2 sqrt(ln(es/k) / d): by exact
spectra of random, gated, majority and searched networks, and by the weights of levels of symmetric ones.
"""

from __future__ import annotations

from math import e, log, sqrt

import numpy as np
import pytest

from sparsact.bounds import sufficient_degree, tail_bound
from sparsact.constructions import extremal
from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import points

MOST_SEEN = 0.25  # of the bound; a parity junta of 8 signs has the most, 0.230


def shares(u, W, b):
    """The largest share, over all d, that each network of a batch takes of the bound; u (N, s), W (N, s, n), b (N, s).

    With max_j |u_j| ||w_j|| for the scale, which is all that the proof uses: at most max |u| max ||w||.
    """
    s, n = W.shape[1:]
    z = W @ points(n).T.astype(float) - b[..., None]
    k = np.maximum((z > 0).sum(axis=1).max(axis=1), 1)
    scale = np.maximum((np.abs(u) * np.linalg.norm(W, axis=2)).max(axis=1), 1e-9)  # 0 where all is constant
    squares = walsh_hadamard((u[:, None] @ np.maximum(z, 0))[:, 0]) ** 2
    size = np.bitwise_count(np.arange(2**n))
    d = np.arange(1, n)
    weighted = squares @ ((size[:, None] > d) * size[:, None])
    bound = 18 * k[:, None] ** 2 * scale[:, None] ** 2 * np.sqrt(np.log(e * s / k)[:, None] / d)
    return (weighted / bound).max(axis=1)


def linear(N, n, s, rng):
    """Random directions, some along few coordinates, with thresholds that leave many or few of the units on."""
    W = rng.normal(size=(N, s, n)) * (rng.random((N, s, n)) < rng.uniform(0.2, 1.5, (N, 1, 1)))
    far = rng.uniform(-1, 2, (N, 1)) * np.linalg.norm(W, axis=2)
    return rng.choice([-1.0, 1.0], (N, s)) * rng.exponential(size=(N, s)), W, far + rng.normal(size=(N, s))


def majorities(N, n, s, rng):
    """Units of equal weights on some of the coordinates, with whole thresholds: ties, and caps of few points."""
    W = rng.choice([-1.0, 1.0], (N, s, n)) * (rng.random((N, s, n)) < rng.uniform(0.3, 1.5, (N, 1, 1)))
    return rng.choice([-1.0, 1.0], (N, s)), W, rng.integers(-1, n, (N, 1)) + rng.integers(-2, 2, (N, s)).astype(float)


def gates(N, n, s, rng):
    """Random linear functions behind the 2^a addresses of a bits: one unit active; s is taken down to a power of 2."""
    a = min(s.bit_length() - 1, n - 1)
    address = np.broadcast_to(points(a).astype(float), (N, 2**a, a))
    w = rng.normal(size=(N, 2**a, n - a)) * rng.uniform(0, 1, (N, 1, 1))
    gate = np.maximum(np.abs(w).sum(axis=2).max(axis=1) / 2, 0.3)[:, None, None]
    low = rng.uniform(0, 1, (N, 1)) * gate[:, 0]  # thresholds as low as ties allow, or higher
    return rng.choice([-1.0, 1.0], (N, 2**a)), np.concatenate([gate * address, w], 2), a * gate[:, 0] - low


SIZES = [(4, 8, 900), (5, 3, 900), (6, 16, 600), (7, 5, 500), (8, 32, 300), (9, 6, 150), (10, 24, 60), (12, 16, 20)]


def test_no_network_passes_the_bound():
    """10,290 networks of three kinds: none comes near it."""
    rng = np.random.default_rng(43)
    found = [shares(*kind(N, n, s, rng)).max() for n, s, N in SIZES for kind in (linear, majorities, gates)]
    assert 0.02 < max(found) < MOST_SEEN, found


@pytest.mark.parametrize(("n", "s"), [(2, 4), (3, 8), (4, 16), (5, 4)])
def test_no_search_passes_it_either(n, s):
    """Climbs of 300 steps from 40 networks of each kind and 40 near a parity: 48,000 more networks for each size."""
    rng, top = np.random.default_rng(44), 0.0
    near = extremal(n - 1, 1, 1.0)
    near = [np.resize(part, (40, s, *part.shape[1:])) for part in (near.u, near.W.toarray(), near.b)]
    for best in (linear(40, n, s, rng), majorities(40, n, s, rng), gates(40, n, s, rng), near):
        reached = shares(*best)
        for step in range(300):
            width = 0.3 * 0.98**step
            trial = [part + width * rng.normal(size=part.shape) * (rng.random(part.shape) < 0.2) for part in best]
            share = shares(*trial)
            better = share > reached
            best = [np.where(better.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(trial, best, strict=True)]
            reached = np.maximum(reached, share)
        top = max(top, reached.max())
    assert 0.02 < top < MOST_SEEN


@pytest.mark.parametrize("p", range(4, 9))
def test_parity_juntas_come_nearest(p):
    """4 k^2 W^2 against 18 k^2 W^2 sqrt(ln(e 2^p) / (p - 1)), at d = p - 1."""
    for k in (1, 2):
        net = extremal(p - 1, k, 1.0)
        share = shares(net.u[None], net.W.toarray()[None], net.b[None])[0]
        assert share == pytest.approx(4 / 18 * sqrt((p - 1) / log(e * 2**p)), rel=1e-9)
        assert 0.15 < share < MOST_SEEN


def level_weights(values):
    """Weight of each level of a symmetric function of n signs, from its values by the number of -1's, exactly."""
    n = len(values) - 1
    x = np.arange(n + 1)
    root = np.exp(_log_mass(n) / 2)
    before, now = np.zeros(n + 1), root  # orthonormal polynomials of Krawtchouk, times the root of the mass
    weights = []
    for t in range(n + 1):
        weights.append(((root * values) @ now) ** 2)
        following = (n - 2 * x) * now - sqrt(t * (n - t + 1)) * before
        before, now = now, following / sqrt((t + 1) * (n - t)) if t < n else now
    return np.array(weights)


def test_level_weights_match_the_spectrum():
    values = np.random.default_rng(2).normal(size=8)
    squares = walsh_hadamard(values[np.bitwise_count(np.arange(2**7))]) ** 2
    assert level_weights(values) == pytest.approx(np.bincount(np.bitwise_count(np.arange(2**7)), squares))


@pytest.mark.parametrize("n", [100, 1500])
def test_the_bound_with_units_on_symmetric_networks(n):
    """At degrees where it is the smaller of the two: one unit of many equal weights has a tail of .042 d^-1.5."""
    mass = np.exp(_log_mass(n))
    sums = (n - 2 * np.arange(n + 1)) / sqrt(n)
    rng, most = np.random.default_rng(n), 0.0
    for s in (1, 1, 2, 5, 20):
        slopes, b = rng.choice([-1.0, 1.0], s), rng.uniform(-3, 3, s) * (s > 1)
        z = slopes[:, None] * sums - b[:, None]
        u, k = (-1.0) ** np.arange(s), int((z > 0).sum(axis=0).max())
        weights = level_weights(u @ np.maximum(z, 0))
        assert weights.sum() == pytest.approx(mass @ (u @ np.maximum(z, 0)) ** 2)
        tails = weights[::-1].cumsum()[-2::-1]
        most = max(most, *(tail / tail_bound(k, 1.0, d, s) for d, tail in enumerate(tails)))
        if s == 1 and n > 1000:
            assert tail_bound(1, 1.0, 40, 1) < tail_bound(1, 1.0, 40)
            assert tails[40] == pytest.approx(0.0423 * 41**-1.5, rel=0.1)
    assert 0.01 < most < MOST_SEEN


def _log_mass(n):
    x = np.arange(n)
    return np.concatenate([[0.0], np.cumsum(np.log(n - x) - np.log(x + 1))]) - n * log(2)


@pytest.mark.parametrize(
    ("k", "W", "epsilon", "s"), [(1, 10.0, 0.01, 64), (3, 7.0, 1.0, 3), (2, 1.0, 0.1, 9), (1, 0, 1, 4)]
)
def test_the_sufficient_degree_with_units_is_the_least(k, W, epsilon, s):
    d = sufficient_degree(k, W, epsilon, s)
    assert tail_bound(k, W, d, s) <= epsilon * (1 + 1e-12)
    assert d == 0 or tail_bound(k, W, d - 1, s) > epsilon * (1 - 1e-12)
    assert d <= sufficient_degree(k, W, epsilon)


def test_the_units_count_for_large_errors_of_one_and_for_few_units():
    assert sufficient_degree(1, 10.0, 0.01, 64) < sufficient_degree(1, 10.0, 0.01) / 7
    assert sufficient_degree(1, 1.0, 0.5, 64) == sufficient_degree(1, 1.0, 0.5) == 7
    assert tail_bound(2, 1.0, 0, 5) == tail_bound(2, 1.0, 0) == 16
    assert tail_bound(2, 3.0, 10_000, 2) == pytest.approx(18 * 4 * 9 / 100 / 10_001)

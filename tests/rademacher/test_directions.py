"""Networks on orthonormal directions: the rate of Conjecture 20, and the logarithm of networks sparse in the mean."""

from __future__ import annotations

from itertools import product
from math import log, sqrt

import numpy as np
import pytest

from sparsact import bounds
from sparsact.rademacher import (
    exact_complexity,
    gathered_complexity,
    gathered_network,
    lower_complexity,
    spread_network,
)


def direction_points(M, r, *, R=1.0):
    return np.repeat(R * np.eye(M), r, axis=0)


@pytest.mark.parametrize(("M", "r", "k"), [(3, 5, 2), (7, 2, 1), (1, 4, 3)])
def test_networks_of_the_class(M, r, k):
    W, R = 0.5, 3.0
    X, signs = direction_points(M, r, R=R), np.random.default_rng(M).choice([-1, 1], size=(M, r))
    sums = np.abs(signs.sum(axis=1))
    spread, gathered = spread_network(signs, k, W=W), gathered_network(signs, k, W=W)
    assert (spread.n_active(X) == k).all()
    assert gathered.n_active(X).sum() == k * len(X)
    for net, correlation in ((spread, k * W * R * sums.sum()), (gathered, k * M * W * R * sums.max())):
        assert (net.s, *net.scale()) == (k * M, W, 0)
        assert signs.ravel() @ net(X) == pytest.approx(correlation)


@pytest.mark.parametrize(("M", "r", "k"), [(1, 1, 1), (2, 3, 2), (3, 4, 1), (6, 2, 1)])
@pytest.mark.grid
def test_the_mean_is_that_over_all_signs(M, r, k):
    X = direction_points(M, r, R=2.0)
    draws = [np.reshape(each, (M, r)) for each in product([-1, 1], repeat=M * r)]
    for make, expected in (
        (gathered_network, gathered_complexity(M, r, k, W=1.5, R=2.0)),
        (spread_network, gathered_complexity(1, r, k, W=1.5, R=2.0)),
    ):
        reached = [draw.ravel() @ make(draw, k, W=1.5)(X) / (M * r) for draw in draws]
        assert np.mean(reached) == pytest.approx(expected)


def test_the_rate_is_right_at_every_point():
    """From WR sqrt(sk / 2m), which is k / sqrt(2r) here, with equality for two copies, to sqrt(2) times that."""
    for r in (1, 2, 3, 8, 99, 1000):
        assert gathered_complexity(1, r, 3) >= 3 / sqrt(2 * r) * (1 - 1e-12)
        assert gathered_complexity(1, r, 3) <= 3 / sqrt(r) * (1 + 1e-12)
    assert gathered_complexity(1, 2, 1) == pytest.approx(0.5)


def test_a_logarithm_is_needed_in_the_mean():
    """The factor over WR sqrt(sk/m) is at most sqrt(2 ln 2M) by sub-Gaussian tails, and at least .7 of it here."""
    for M in (4, 64, 4096, 65536, 2**30):
        factor = gathered_complexity(M, 10_000) * sqrt(10_000)
        assert 0.7 < factor / sqrt(2 * log(2 * M)) < 1
    assert [round(gathered_complexity(M, 40_000) * 200, 1) for M in (64, 4096, 65536)] == [2.6, 3.8, 4.4]


def test_a_simulation_comes_to_the_exact_mean():
    """Largest of 500 sums in 400 draws: within 5 standard errors, so wrong with probability below 1e-5."""
    sums = 2 * np.random.default_rng(1).binomial(60, 0.5, size=(400, 500)) - 60
    reached = np.abs(sums).max(axis=1) / 60
    assert abs(reached.mean() - gathered_complexity(500, 60)) < 5 * reached.std() / sqrt(400)


@pytest.mark.parametrize("M", [1, 30, 10_000])
@pytest.mark.parametrize("r", [1, 7, 300])
@pytest.mark.parametrize("k", [1, 4])
def test_no_bound_is_below(M, r, k):
    """Both bounds of networks sparse in the mean, and the dense one; the chain is attained where r = 1."""
    sizes = {"W": 0.5, "B": 0.0, "R": 3.0, "m": M * r}
    reached = gathered_complexity(M, r, k, W=0.5, R=3.0)
    chain = bounds.rademacher_sparse_free_of_dimension(k * M, k, **sizes)
    assert chain == pytest.approx(reached) if r == 1 else chain >= reached * (1 - 1e-9)
    assert bounds.rademacher_sparse_root_logarithm(k * M, k, **sizes) >= reached
    assert bounds.dense_complexity_bound(k * M, **sizes) >= reached
    if r > log(2 * M) and M > 9:
        assert bounds.sparse_complexity_conjecture(k * M, k, **sizes) < reached


def test_the_exact_maximum_reaches_the_spread_network():
    X = direction_points(2, 3)
    found = exact_complexity(X, 2, 1, W=1.0, B=1e-9).value
    assert gathered_complexity(1, 3) <= found + 1e-8
    assert found <= bounds.rademacher_sparse_free_of_dimension(2, 1, 1.0, 0.0, 1.0, 6) + 1e-8


@pytest.mark.grid
def test_what_a_search_finds_stays_below():
    rng = np.random.default_rng(2)
    X = direction_points(4, 6)
    signs = rng.choice([-1, 1], size=(6, 24))
    found = lower_complexity(X, 4, 1, B=0.1, signs=signs, n_rounds=2, n_starts=4, rng=rng).value
    for bound in (bounds.rademacher_sparse_free_of_dimension, bounds.rademacher_sparse_root_logarithm):
        assert 0.2 * gathered_complexity(1, 6) < found < bound(4, 1, 1.0, 0.1, 1.0, 24)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: spread_network([1, -1]), "one row a direction"),
        (lambda: gathered_network([[1, 0]]), r"must hold \+1 or -1"),
        (lambda: gathered_network([[1, 1]], 0), "`k` must be 1 or more"),
        (lambda: spread_network([[1, 1]], W=-1.0), "`W` must be a finite number above 0"),
        (lambda: gathered_complexity(0, 2), "`n_directions` must be 1 or more"),
        (lambda: gathered_complexity(2, 0), "`copies` must be 1 or more"),
        (lambda: gathered_complexity(2, 2, R=0.0), "`R` must be a finite number above 0"),
    ],
)
def test_bad_input(call, told):
    with pytest.raises(ValueError, match=told):
        call()

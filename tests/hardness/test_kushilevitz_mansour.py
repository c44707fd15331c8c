"""Heavy coefficients are all found, light ones are not, at any number of coordinates."""

from __future__ import annotations

from math import ceil, comb, log

import numpy as np
import pytest

from sparsact.constructions import indexing
from sparsact.fourier import Spectrum
from sparsact.hardness import MembershipOracle, QueryBudgetError, heavy_coefficients
from sparsact.hypercube import bits_to_signs, points

CHANCE = 1e-6  # of each search, so that all tests of this file fail with probability below 1e-4


def search(f, n, threshold, seed=0, **options):
    oracle = MembershipOracle(f, n)
    rng = np.random.default_rng([n, seed])
    return heavy_coefficients(oracle, threshold, rng=rng, failure_probability=CHANCE, **options), oracle.ledger


def assert_is_heavy_part(found, f, threshold):
    """What is promised: all that reach the threshold, none of less than half its weight, values within a quarter."""
    exact = dict(f.items())
    assert {S for S, value in exact.items() if abs(value) >= threshold} <= set(found.subsets)
    for S, value in found.items():
        assert exact.get(S, 0.0) ** 2 >= threshold**2 / 2
        assert abs(value - exact.get(S, 0.0)) <= threshold / 4


@pytest.mark.parametrize("split", [1, 3, 16])
@pytest.mark.parametrize("seed", range(3))
def test_against_the_exact_spectrum(split, seed):
    """Boolean and real functions of 6 coordinates with everything from heavy to light."""
    rng = np.random.default_rng(seed)
    noise = rng.uniform(-0.2, 0.2, 64)
    heavy = 0.5 * points(6)[:, seed] + 0.3 * points(6)[:, [1, 3, 5]].prod(axis=1)
    for values in (heavy + noise, np.where(heavy + noise > 0.1, 1.0, -1.0)):
        f = Spectrum.of(values)
        found, _ = search(f, 6, 0.6, seed, split=split)
        assert_is_heavy_part(found, f, 0.6)


def test_planted_sparse_spectrum_on_many_coordinates():
    n = 70
    f = Spectrum.of({(3, 5, 20, 44, 69): 0.5, tuple(range(1, 70, 2)): -0.45, (): 0.02, (7,): 0.01}, n=n)
    found, ledger = search(f, n, 0.45)
    assert set(found.subsets) == {(3, 5, 20, 44, 69), tuple(range(1, 70, 2))}
    assert_is_heavy_part(found, f, 0.45)
    assert ledger.n_queries == sum(record.count for record in ledger.records) < 600_000


@pytest.mark.parametrize("split", [5, 8])
def test_a_hidden_parity_takes_few_queries(split):
    """41 coordinates, 20 of them in the parity: low degree would ask over 10**12 queries."""
    n, S = 41, tuple(range(0, 40, 2))
    found, ledger = search(lambda X: X[:, list(S)].prod(axis=1), n, 0.95, split=split)
    assert found.subsets == [S]
    assert found[S] == pytest.approx(1)
    assert ledger.n_queries < 25_000
    assert sum(comb(n, k) for k in range(len(S) + 1)) > 10**12


def test_a_sparsely_activated_network_by_queries():
    """Index_2 on 6 inputs has 16 coefficients, each of size 1/4 (and 0s): all found from values alone."""
    net = indexing(2)
    f = Spectrum.of(net(points(net.n)))
    found, _ = search(net, net.n, min(abs(value) for value in f.coefficients if value))
    assert set(found.subsets) == {S for S, value in f.items() if value}


def test_nothing_heavy():
    """A random function on 40 coordinates, fixed by a hash: no coefficient is near 0.9, and the search stops early."""
    w = np.random.default_rng(4).integers(1, 2**40, size=40)

    def hashed(X):
        return bits_to_signs(((X < 0) @ w * 2654435761) >> 33 & 1)

    found, ledger = search(hashed, 40, 0.9)
    assert found.coefficients.size == 0
    assert len(ledger.records) == 2


@pytest.mark.parametrize(("n", "threshold", "split"), [(11, 0.9, 4), (3, 0.7, 8)])
def test_queries_are_as_many_as_the_union_bound_asks_for(n, threshold, split):
    """Weights within a quarter of the square, coefficients within a quarter; both as documented."""
    _, ledger = search(lambda X: X[:, 0], n, threshold, split=split)
    starts = range(0, n, split)
    alive = int(2 / threshold**2)
    estimates = alive + sum(min(alive, 2**start) * 2 ** min(split, n - start) for start in starts)
    log_term = 32 * log(2 * estimates / CHANCE)
    assert ledger.n_queries == 2 * len(starts) * ceil(log_term / threshold**4) + ceil(log_term / threshold**2)


def test_bad_searches():
    oracle, rng = MembershipOracle(lambda X: 3 * X[:, 0], 5, budget=10), np.random.default_rng(0)
    with pytest.raises(QueryBudgetError):
        heavy_coefficients(oracle, 0.5, rng=rng)
    assert oracle.ledger.n_queries == 0
    with pytest.raises(ValueError, match=r"values in \[-1, 1\]; the largest is 3"):
        heavy_coefficients(MembershipOracle(lambda X: 3 * X[:, 0], 5), 0.9, rng=rng)
    for options, message in [
        ({"threshold": 0}, "`threshold` must lie in"),
        ({"threshold": 1.1}, "`threshold` must lie in"),
        ({"threshold": 0.5, "failure_probability": 1}, "`failure_probability` must lie"),
        ({"threshold": 0.5, "split": 0}, "`split` must lie"),
    ]:
        with pytest.raises(ValueError, match=message):
            heavy_coefficients(oracle, rng=rng, **options)

"""Sparsity on fresh rows: each step of the proof, and networks chosen after seeing the rows."""

from __future__ import annotations

from itertools import product
from math import exp, lgamma, log, sqrt

import numpy as np
import pytest
from scipy.stats import beta, binom

from sparsact import SparselyActivatedNetwork, bounds
from sparsact.bounds.covers import log_halfspace_sets
from sparsact.bounds.fresh_activity import _log_units, log_growth

GOLDEN = (1 + sqrt(5)) / 2


def sphere(rng, *shape):
    rows = rng.normal(size=shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def cap(height, n):
    """Share of the sphere where one coordinate exceeds a height from 0 on."""
    return 0.5 * beta.sf(height**2, 0.5, (n - 1) / 2)


def least_mass_seen(X, rng):
    """A direction and the threshold of a unit that is off on all rows, sought for a large cap: pushed from the rows."""
    w = sphere(rng, X.shape[1])
    best = w
    for step in 0.3 / np.arange(1, 150) ** 0.7:
        w = w - step * X[np.argmax(X @ w)]
        w /= np.linalg.norm(w)
        best = min(best, w, key=lambda each: (X @ each).max())
    return best, float((X @ best).max())


@pytest.mark.parametrize("alpha", [1.0625, 1.5, 2.0, 4.0, 16.0])
def test_swaps_have_mean_one_at_most(alpha):
    """All sets on 4 pairs and all swaps: the mean of g^(X - alpha Y) is 1 where no pair lies in the set whole."""
    g = exp(log_growth(alpha))
    for pairs in product([(0, 0), (0, 1), (1, 0), (1, 1)], repeat=4):
        terms = [
            sum(pair[swap] - alpha * pair[1 - swap] for pair, swap in zip(pairs, swaps, strict=True))
            for swaps in product([0, 1], repeat=4)
        ]
        mean = np.mean(g ** np.array(terms))
        assert mean == pytest.approx(1) if (1, 1) not in pairs else mean < 1


def test_the_golden_ratio():
    assert exp(log_growth(2.0)) == pytest.approx(GOLDEN)
    assert log_growth(60.0) == pytest.approx(log(2))


@pytest.mark.parametrize("m", [7, 200, 5000])
@pytest.mark.parametrize("delta", [0.3, 0.05])
@pytest.mark.grid
def test_one_unit_fails_as_often_as_stated_and_needs_the_factor(m, delta):
    """Exact, for a single set: P(mq > alpha Y + 1 + log_g(2/delta)); with Y in place of 2Y it fails too often."""
    Y = np.arange(m + 1)

    def failure(q, alpha, g):
        return binom.pmf(Y, m, q)[m * q > alpha * Y + 1 + log(2 / delta) / log(g)].sum()

    chances = np.linspace(0, 1, 300)
    for alpha in (1.125, 2.0, 16.0):
        assert max(failure(q, alpha, exp(log_growth(alpha))) for q in chances) <= delta
    if m == 5000:
        assert max(failure(q, 1.0, GOLDEN) for q in chances) > delta


def test_the_median_is_at_least_the_whole_part_of_the_mean():
    for m in (1, 6, 31):
        for q in np.linspace(0, 1, 101):
            assert binom.sf(np.floor(m * q + 1e-12) - 1, m, q) >= 0.5 - 1e-12


@pytest.mark.parametrize("k", [1, 3, 20])
def test_no_packing_beats_the_count_of_units(k):
    """On 2m axes, weights of k entries +-1/sqrt(k) differ by more than a margin just below that at some point."""
    for m in (20, 10**3, 10**6):
        packing = k * log(2) + lgamma(2 * m + 1) - lgamma(k + 1) - lgamma(2 * m - k + 1)
        assert packing <= _log_units(10**9, m, np.array([(1 - 1e-9) / sqrt(k)]))[0]


@pytest.mark.grid
def test_no_packing_of_units_of_any_threshold_beats_the_count():
    rng = np.random.default_rng(6)
    for n, m, gamma in ((1, 4, 0.2), (2, 15, 0.3), (3, 40, 0.5)):
        X, b = sphere(rng, 2 * m, n), rng.uniform(-1, 1, size=1500)
        z = sphere(rng, 1500, n) * (1 - np.abs(b))[:, None] @ X.T - b[:, None]
        packing = [z[0]]
        for row in z[1:]:
            if min(np.abs(row - other).max() for other in packing) > gamma:
                packing.append(row)
        assert log(len(packing)) <= _log_units(n, m, np.array([gamma]))[0]


@pytest.mark.parametrize(("n", "m"), [(8, 300), (16, 400)])
def test_units_that_are_off_on_all_rows(n, m):
    """An adversary pushes the threshold of every unit off the sample. The bound holds in all 20 samples (it may fail
    in one of 20: 5 failures have a probability below 3e-3), and not without the count of sets."""
    rng, without_count = np.random.default_rng(n), 0
    for _ in range(20):
        X = sphere(rng, m, n)
        W, b = zip(*(least_mass_seen(X, rng) for _ in range(4)), strict=True)
        net = SparselyActivatedNetwork(np.ones(4), np.array(W), np.array(b) * (1 + 1e-12))
        assert not net.active(X).any()
        fresh = cap(np.array(b), n)
        for found in (bounds.expected_active_bound(net, X), bounds.expected_active_bound(net, X, R=1.0)):
            assert fresh.sum() <= found <= 4
        without_count += fresh.max() * m > 1 + log(2 / 0.05) / log_growth(16.0)
    assert without_count >= 15


def test_units_of_known_probability():
    """Caps that hold a third to a thousandth of the sphere: the bound holds, and is within a factor 2 for many rows."""
    rng = np.random.default_rng(3)
    heights = np.array([0.1, 0.25, 0.5, 0.7])
    net = SparselyActivatedNetwork(np.ones(4), sphere(rng, 4, 10), heights)
    expected = cap(heights, 10).sum()
    found = [bounds.expected_active_bound(net, sphere(rng, m, 10), R=1.0) for m in (300, 3000, 100_000)]
    assert found[0] > found[1] > found[2] > expected
    assert found[2] < 1.2 * expected


def test_margins_free_the_bound_of_the_dimension():
    """More columns than rows: halfspaces cut every set from them, and only the margin bounds anything."""
    rng = np.random.default_rng(4)
    X = np.hstack([sphere(rng, 1500, 20), np.zeros((1500, 3000))])
    weights = np.hstack([sphere(rng, 3, 20), np.zeros((3, 3000))])
    net = SparselyActivatedNetwork(np.ones(3), weights, np.full(3, 4.0))  # a = 5, and z is -3 at most
    near = SparselyActivatedNetwork(np.ones(3), weights, np.full(3, 0.6))  # some rows come near, and count
    assert bounds.expected_active_bound(net, X) == 3
    assert bounds.expected_active_bound(net, X, R=1.0) < 1.5 < bounds.expected_active_bound(near, X, R=1.0)


def test_the_closed_form():
    """By its formula; as many active units as the rows show, twice, plus what falls as 1/m and not with n."""
    sizes = {"s": 64, "k": 1, "W": 0.5, "B": 1.0, "R": 2.0, "gamma": 1.0, "delta": 0.05}
    for m in (10**4, 10**6):
        bound = bounds.fresh_activity_bound(**sizes, m=m)
        cover = 16 * 4 * log(4 * m) + log(2)
        assert bound <= min(64, 2 + 64 / m * (1 + (log(2 / 0.05) + cover) / log(GOLDEN)) * (1 + 1e-9))
        assert bound > 2
    excess = [bounds.fresh_activity_bound(**sizes, m=m) - 2 for m in (10**6, 10**7)]
    assert 0.1 < excess[1] / excess[0] < 0.13
    assert bounds.fresh_activity_bound(**sizes | {"W": 0.0, "B": 0.0}, m=5) == 0
    assert bounds.fresh_activity_bound(**sizes, m=5) == 64
    assert bounds.fresh_activity_bound(**sizes | {"W": 1e308, "R": 1e308}, m=10**9) == 64


@pytest.mark.parametrize(("units", "lengths"), [(1e-170, 1.0), (1e200, 1.0), (1.0, 1e-170), (1e120, 1e120), (0.7, 3.0)])
def test_the_scale_of_units_and_rows_does_not_matter(units, lengths):
    """Where squares leave the range of floats: a unit that is off on all one-hot rows, by little, is within margins."""
    rng = np.random.default_rng(5)
    X = np.eye(900)[rng.integers(900, size=300)]
    w = np.where(X.any(axis=0), -1.0, 1.0)
    found = bounds.expected_active_bound(SparselyActivatedNetwork([1.0], [w * units], [0.0]), X * lengths, R=lengths)
    assert found == bounds.expected_active_bound(SparselyActivatedNetwork([1.0], [w], [0.0]), X, R=1.0) >= 0.7


def test_both_faces_agree():
    """One margin and alpha = 2 alone, by hand, are never better than the least of all, but for their share of delta."""
    rng = np.random.default_rng(5)
    X = sphere(rng, 4000, 3)
    net = SparselyActivatedNetwork([1.0], [[0.5, 0.0, 0.0]], [0.5])  # a = 1, z is 0 at most
    k_mean = float(np.mean(net.preactivations(X) > -0.5))
    found = bounds.expected_active_bound(net, X, R=1.0)
    cover = min(20 * 4 * log(16_000) + log(82), 4 * log(9), log_halfspace_sets(3, 8000) + 10)
    assert found <= 2 * k_mean + (1 + (log(2 * 49 / 0.05) + cover) / log(GOLDEN)) / 4000


@pytest.mark.parametrize(
    ("X", "options", "told"),
    [
        (np.zeros((0, 2)), {}, "`X` has no rows; a bound needs rows"),
        (np.ones((3, 2)), {"R": 1.0}, r"longer than `R` = 1; X\[0\] has norm 1.41421: pass a larger R"),
        (np.ones((3, 2)), {"R": -1.0}, "`R` must be zero or positive"),
        (np.ones((3, 2)), {"confidence": 1.0}, "`confidence` must be above 0 and below 1"),
        (np.ones((3, 4)), {}, "2 columns"),
        (np.full((3, 2), np.nan), {}, "`X`"),
    ],
)
def test_bad_input(X, options, told):
    net = SparselyActivatedNetwork([1.0], [[1.0, 1.0]], [0.5])
    with pytest.raises(ValueError, match=told):
        bounds.expected_active_bound(net, X, **options)

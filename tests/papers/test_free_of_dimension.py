"""Conjecture 20 up to logarithms, Theorem 19 without its logarithm: steps of docs/papers_of_our_own/rademacher.rst."""

from __future__ import annotations

from math import ceil, erf, inf, lgamma, log, log1p, sqrt

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from sparsact import bounds
from sparsact.hypercube import points
from sparsact.rademacher import exact_complexity, lower_complexity
from sparsact.rademacher.exact import Units

RNG = np.random.default_rng(7)
SAMPLES = {
    "cube": points(3)[:6].astype(float),
    "plane": RNG.normal(size=(6, 2)),
    "line": np.linspace(-2, 3, 7)[:, None],
    "simplex": 2.0 * np.eye(5),
}


def normalised_maximum(X, W, B):
    """Mean over all signs of Q, the largest correlation of a unit over the root of the number of points it is on at."""
    units = Units(X, W, B)
    signs = points(len(X)).astype(float)
    sizes = np.maximum(units.sets.sum(axis=1), 1)
    largest = (units.best(signs)[0] / np.sqrt(sizes)).max(axis=1)
    return float(np.maximum(largest, largest[::-1]).mean())  # the last vector of signs is minus the first


@pytest.mark.parametrize(
    ("name", "W", "B"), [("cube", 1.0, 0.5), ("plane", 0.3, 2.0), ("line", 2.0, 1.0), ("simplex", 0.7, 0.2)]
)
def test_units_decouple(name, W, B):
    """Step 1: the complexity is at most sqrt(s k / m) times the mean of Q; and Q is at most what its chain says."""
    X = SAMPLES[name]
    m, n = X.shape
    Q, R = normalised_maximum(X, W, B), float(np.linalg.norm(X, axis=1).max())
    for k, sizes in ((1, [1, 2, m]), (2, [2, 3])):
        found = exact_complexity(X, sizes, k, W=W, B=B).value
        assert (found <= np.sqrt(np.array(sizes) * k / m) * Q * (1 + 1e-9)).all()
        for s, complexity in zip(sizes, found, strict=True):
            assert complexity <= bounds.rademacher_sparse_free_of_dimension(s, k, W, B, R, m)
            assert complexity <= bounds.rademacher_sparse_without_logarithm(n, s, k, W, B, R, m)
            assert complexity <= bounds.rademacher_sparse_root_logarithm(s, k, W, B, R, m)
    assert bounds.rademacher_sparse_free_of_dimension(1, 1, W, B, R, m) * sqrt(m) >= Q


def test_the_step_is_tight():
    """Two opposite points and two units: both sides are equal, so that no factor can be missing."""
    X = np.array([[1.0], [-1.0]])
    for s, k in ((2, 1), (1, 1)):
        Q = normalised_maximum(X, 1.0, 0.0)
        assert exact_complexity(X, s, k, W=1.0, B=1e-12).value <= sqrt(s * k / 2) * Q + 1e-9
    assert exact_complexity(X, 2, 1, W=1.0, B=1e-12).value == pytest.approx(normalised_maximum(X, 1.0, 1e-12))


def log_cover(m, epsilon):
    """Step 2 with a = 1, by a minimiser of its own."""

    def entropy(tau):
        inside = erf(tau / sqrt(2))
        return 2 * (tau / epsilon) ** 2 - m * log(inside) if inside > 0 else inf

    return min(minimize_scalar(entropy, bounds=(low, 4 * low), method="bounded").fun for low in 4.0 ** np.arange(-5, 4))


@pytest.mark.parametrize("m", [3, 40, 2000, 10**6])
@pytest.mark.parametrize("k", [1, 2, 5, 30])
def test_no_packing_beats_the_cover(m, k):
    """On the axes all vectors of k entries +-1/sqrt(k) have norm 1, and differ by 1/sqrt(k) at least at some point."""
    if k <= m:
        packing = k * log(2) + lgamma(m + 1) - lgamma(k + 1) - lgamma(m - k + 1)
        assert packing <= log_cover(m, 1 / sqrt(k) * (1 - 1e-9))


@pytest.mark.grid
def test_random_packings_stay_below_the_cover():
    rng = np.random.default_rng(3)
    for m, n, epsilon in ((5, 2, 0.9), (30, 3, 0.7), (200, 40, 0.5)):
        X = rng.normal(size=(m, n))
        X /= np.linalg.norm(X, axis=1)[:, None]
        v = rng.normal(size=(1500, n))
        z = v / np.linalg.norm(v, axis=1)[:, None] @ X.T
        packing = [z[0]]
        for row in z[1:]:
            if min(np.abs(row - other).max() for other in packing) > epsilon:
                packing.append(row)
        assert log(len(packing)) <= min(log_cover(m, epsilon), n * log1p(2 / epsilon))


def test_rounding_down_keeps_units_off():
    """Step 3, at random: between sigma(z) - eta and sigma(z), and 0 where z is not above 0."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=10_000)
    for eta in (1.0, 0.2, 0.01):
        g = np.maximum(z + rng.uniform(-eta / 2, eta / 2, size=z.shape) - eta / 2, 0)
        assert (g <= np.maximum(z, 0)).all()
        assert (g >= np.maximum(z, 0) - eta - 1e-15).all()
        assert not g[z <= 0].any()


@pytest.mark.parametrize("m", [1, 2, 150, 40_000, 10**9])
@pytest.mark.parametrize(("s", "k"), [(9, 4), (5000, 1), (3, 3)])
def test_the_sum_of_the_chain(m, s, k):
    """The bound by its formula, term by term, against the closed form and against the sum over a finer search."""
    entropies = [0.0] + [log_cover(m, 3.0**-t / 2) for t in range(1, 14)]
    sums = np.cumsum(
        [0.0] + [3.0 ** (1 - t) * sqrt(2 * (log(2) + entropies[t] + entropies[t - 1])) for t in range(1, 14)]
    )
    least = min(total + 3.0**-T * sqrt(k * m / s) for T, total in enumerate(sums))
    found = bounds.rademacher_sparse_free_of_dimension(s, k, 2.0, 1.0, 3.0, m) / (7 * sqrt(s * k / m))
    assert least * (1 - 1e-9) <= found <= least * 1.002  # tau is on a grid
    assert found <= 1 + 18.1 * sqrt(log(2 * m)) * (1 + log(max(1, k * m / s)) / log(3) / 2)


def test_what_rounding_leaves_adds_up_over_the_units():
    """At T = 0 all is left: k (WR + B), which is attained; and both that and the dense bound are beaten for large m."""
    assert bounds.rademacher_sparse_free_of_dimension(10**5, 3, 2.0, 1.0, 3.0, 10**6) == pytest.approx(21)
    scale = {"W": 1.0, "B": 1.0, "R": 1.0, "m": 10**8}
    found = bounds.rademacher_sparse_free_of_dimension(4096, 1, **scale)
    assert found < min(2, bounds.dense_complexity_bound(4096, **scale))


def test_the_chain_is_below_one_root_up_to_a_large_m():
    """The rate of one root wins in the end; its constants are added up from the proof's terms, with what it leaves."""
    for m, smaller in ((10**6, True), (10**13, True), (10**34, True), (10**36, False), (10**60, False)):
        scale = {"s": 7, "k": 7, "W": 1.0, "B": 1.0, "R": 2.0, "m": m}
        chain, root = (
            bounds.rademacher_sparse_free_of_dimension(**scale),
            bounds.rademacher_sparse_root_logarithm(**scale),
        )
        assert (chain < root) == smaller
    for m in (2 * 10**6, 10**9, 10**30):  # with fewer rows 400 sqrt(ln 2m) exceeds sqrt(m), which is enough
        levels = ceil(log(m) / log(4))
        parts = 2 * log(2 + levels) + log(8)  # pieces by the values of two norms, and a half for each level
        entropy = 4 / 3 * (256 + 1824 * 6) * log(2 * m) + sum(4.0**-i * (i + 1) * parts for i in range(levels))
        found = 1 + 2 * (4 * sqrt(levels) + sqrt(2 * entropy) + sqrt(8 / 3))  # E sqrt(u) <= 1
        assert found <= 400 * sqrt(log(2 * m))
    assert 400 * sqrt(log(4 * 10**6)) > sqrt(2 * 10**6)


def test_the_constant_without_logarithm():
    def constant(n):
        covers = [0.0] + [(n + 1) * log1p(4.0 ** (t + 1)) for t in range(1, 40)]
        terms = [4.0 ** (1 - t) * sqrt(2 * (log(2) + covers[t] + covers[t - 1])) for t in range(1, 40)]
        return sum(terms) / sqrt(n + 1)

    assert 3.8 < constant(1) < 3.9
    assert all(constant(n) < constant(1) for n in (2, 3, 10, 1000))
    for n, m in ((1, 10**8), (20, 10**15), (300, 10**9)):
        assert bounds.rademacher_sparse_without_logarithm(n, 5, 2, 1.0, 3.0, 2.0, m) <= 3.9 * 5 * sqrt(10 * (n + 1) / m)


def test_bounds_fall_with_rows_and_cross():
    """In rows, units, scale; free of n it beats (15) from some n on, and without the logarithm from some m on."""
    sparse = {"s": 7, "k": 2, "W": 1.5, "B": 0.5, "R": 2.0}
    free = [bounds.rademacher_sparse_free_of_dimension(**sparse, m=2**i) for i in range(60)]
    assert (np.diff(free) <= 1e-12).all()
    with_n = [bounds.sparse_complexity_bound_explicit(n, **sparse, m=10**6) for n in (100, 1000, 3000, 10**5)]
    at = bounds.rademacher_sparse_free_of_dimension(**sparse, m=10**6)
    assert [at < other for other in with_n] == [False, False, True, True]
    for m, better in ((100, True), (800, False), (10**7, True)):  # at first because no network exceeds k (WR + B)
        assert (
            bounds.rademacher_sparse_without_logarithm(5, **sparse, m=m)
            < bounds.sparse_complexity_bound_explicit(5, **sparse, m=m)
        ) == better


def test_rows_of_theorem_17_do_not_grow_with_the_dimension():
    sizes = {"s": 64, "k": 1, "W": 1.0, "B": 1.0, "R": 1.0, "C": 2.0, "epsilon": 0.05, "delta": 0.05}
    rows = [bounds.general_samples_explicit(n, **sizes) for n in (2, 10, 1000, 20_000)]
    assert rows[0] < rows[1] < rows[2] == rows[3]


@pytest.mark.slow
def test_a_search_on_many_points_stays_below():
    """60,000 points of the plane: a lower bound of the complexity, where the chain has several steps."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60_000, 2))
    X /= np.linalg.norm(X, axis=1)[:, None]
    signs = rng.choice([-1, 1], size=(2, len(X)))
    found = lower_complexity(X, 3, 1, signs=signs, n_rounds=1, n_starts=2, rng=rng)
    bound = bounds.rademacher_sparse_without_logarithm(2, 3, 1, 1.0, 1.0, 1.0, len(X))
    assert 0.02 * bound < found.value < bound

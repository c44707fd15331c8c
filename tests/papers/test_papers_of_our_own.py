"""Lemmas, steps and constants within the proofs of docs/papers_of_our_own, by exact enumeration and by quadrature."""

from __future__ import annotations

from itertools import product
from math import ceil, e, exp, factorial, gamma, log, log2, pi, sqrt

import numpy as np
import pytest
from numpy.polynomial.hermite_e import HermiteE
from scipy.special import erf
from scipy.stats import binom

from sparsact.bounds import rademacher_sparse_free_of_dimension
from sparsact.fourier import Spectrum
from sparsact.hypercube import points

GOLDEN = (1 + sqrt(5)) / 2
ROWS = (10**6, 10**33, 10**37)


def halfspaces(n):
    """Indicators of halfspaces on the cube: random, equal and growing weights, at thresholds from rare to common."""
    rng, X = np.random.default_rng(n), points(n).astype(float)
    for weights in (np.ones(n), rng.normal(size=n), rng.integers(1, 9, n), 2.0 ** np.arange(n), np.eye(n)[0]):
        for threshold in np.unique(np.quantile(X @ weights, (0.0, 0.1, 0.5, 0.8, 0.95, 0.99, 0.999)) - 1e-9):
            yield (X @ weights > threshold).astype(float)


def by_level(f):
    """Fourier weight of every level."""
    spectrum = Spectrum.of(f)
    above = [spectrum.tail(degree) for degree in range(-1, spectrum.n + 1)]
    return -np.diff(above)


@pytest.mark.parametrize("n", [1, 4, 7, 10])
def test_level_1_inequality(n):
    """Lemma 1 of the first paper; subcubes are within 1 / (2 ln 2) of equality."""
    ratios = [by_level(f)[1] / (2 * f.mean() ** 2 * log(1 / f.mean())) for f in halfspaces(n) if f.mean() < 1]
    assert max(ratios) <= 1
    assert max(ratios) >= 1 / (2 * log(2)) - 1e-9  # all n coordinates are 1: n 4^-n over 2 n 4^-n ln 2


@pytest.mark.parametrize("n", [2, 5, 8, 10])
def test_noise_of_a_small_halfspace(n):
    """Lemma 2: P(f(x) != f(y)) = 2 sum (1 - rho^|T|) fhat(T)^2 is at most 4 sqrt(delta) p sqrt(ln(1/p))."""
    ratios = []
    for f, delta in product(halfspaces(n), (1e-3, 0.04, 0.25, 0.5)):
        if f.mean() < 1:
            noise = 2 * (1 - (1 - 2 * delta) ** np.arange(n + 1)) @ by_level(f)
            ratios.append(noise / (4 * sqrt(delta) * f.mean() * sqrt(log(1 / f.mean()))))
    assert 0.2 < max(ratios) <= 1


def test_derivatives_of_a_unit_under_noise():
    """Step 3 of Theorem 4: E (theta(x) - theta(y))^2 <= 8 sqrt(delta) p sqrt(ln(e/p)), theta by ReLU's differences."""
    rng, n, ratios = np.random.default_rng(3), 9, []
    X = points(n).astype(float)
    for threshold, delta in product((-1.0, 0.0, 1.0, 2.0), (0.002, 0.05, 0.3)):
        w = rng.normal(size=n)
        z = X @ w - threshold * np.linalg.norm(w)
        p = float((z > 0).mean())
        for i in range(n):
            rise = w[i] * (1 - X[:, i])
            high, low = z + rise, z + rise - 2 * w[i]  # with x_i = 1 and x_i = -1
            theta = (np.maximum(high, 0) - np.maximum(low, 0)) / (2 * w[i])
            assert ((theta > 0) <= ((high > 0) | (low > 0))).all()
            noise = 2 * (1 - (1 - 2 * delta) ** np.arange(n + 1)) @ by_level(theta)
            ratios.append(noise / (8 * sqrt(delta) * p * sqrt(log(e / p))))
    assert 0.02 < max(ratios) <= 1


def test_constants_of_the_faster_tail():
    c = 1.256
    assert 17.7 < 16 * sqrt(c / 2) / (1 - exp(-c)) < 17.73
    assert 6.8 < 18 ** (2 / 3) < 6.9
    q = np.linspace(1e-6, 1, 10_001)
    psi = q * np.sqrt(1 - np.log(q))
    assert (np.diff(psi, 2) < 0).all()
    assert (np.diff(psi) > 0).all()


def test_levels_of_the_majority_unit():
    """ReLU in the Hermite basis: the closed form by quadrature on the half line, and the power -3/2 of its tail."""
    t, weight = np.polynomial.legendre.leggauss(200)
    x, weight = 6 * (t + 1), 6 * weight
    for i in range(1, 8):
        coefficient = weight @ (x * HermiteE.basis(2 * i)(x) * np.exp(-(x**2) / 2)) / sqrt(2 * pi * factorial(2 * i))
        odd = np.prod(np.arange(1, 2 * i - 2, 2.0))
        assert coefficient**2 == pytest.approx(odd**2 / (2 * pi * factorial(2 * i)), rel=1e-9)
    level = np.cumprod([1 / (4 * pi), *((2 * i - 1) ** 2 / ((2 * i + 1) * (2 * i + 2)) for i in range(1, 10**6))])
    assert 1 / (2 * pi) + 1 / 4 + level.sum() == pytest.approx(1 / 2, abs=1e-8)
    assert level[500:].sum() * 1000**1.5 == pytest.approx(sqrt(2) / (6 * pi**1.5), rel=2e-3)


def test_swaps_by_the_golden_ratio():
    """Step 2 of Theorem 6, by the exact distribution: c pairs with one point in A, and d pairs with two."""
    assert abs(GOLDEN + GOLDEN**-2 - 2) < 1e-15
    for c, d in product((0, 1, 2, 7, 30), (0, 1, 4)):
        in_ghost = np.arange(c + 1)
        gain, mass = in_ghost - 2 * (c - in_ghost) - d, binom.pmf(in_ghost, c, 0.5)
        assert mass @ GOLDEN ** gain.astype(float) == pytest.approx(GOLDEN**-d)
        for t in range(1, c + 1):
            assert mass[gain >= t].sum() <= GOLDEN**-t
    assert binom.pmf(7, 7, 0.5) > 0.2 * GOLDEN**-7  # a smaller g would do, but not a much smaller one


def test_median_of_binomial_counts():
    """Step 3 of Theorem 6: at least the whole part of the mean, with probability at least one half."""
    for m in (1, 2, 5, 33, 400):
        q = np.linspace(0, 1, 1001)
        assert (binom.sf(np.floor(m * q + 1e-12) - 1, m, q) >= 0.5 - 1e-12).all()


def test_constants_of_sparsity_on_new_rows():
    for m, margin in product((1, 3, 50, 10**6), (1.0, 0.3, 0.01)):
        tau = sqrt(2 * log(4 * m))
        found = log(1 + 20 / margin) + 9.88 * tau**2 / margin**2 - 2 * m * log(erf(tau / sqrt(2)))
        assert found <= 20 * log(4 * m) / margin**2 + log(2 + 40 / margin)
        for delta in (0.5, 1e-6):
            explicit = 42 * log(4 * m) / margin**2 + 11 + 2.1 * log(1 / delta)
            assert 0.9 * explicit < 1 + (found + log(2 / delta)) / log(GOLDEN) <= explicit
    assert 2 / 0.45**2 < 9.88


def tents(z, L):
    """Tents of Theorem 3 at every level, shape (L + 1, len(z)), and what their sum leaves of ReLU."""
    cut = [np.minimum(np.maximum(z, 0), 2 * np.maximum(z - 2.0**-half, 0)) for half in range(L + 2)]  # T_-1, T_0, ...
    return np.diff(cut, axis=0), np.maximum(z, 0) - cut[-1]


@pytest.mark.parametrize("L", [0, 1, 2, 7])
def test_tents(L):
    z = np.linspace(-1, 1, 2**12 + 1)
    omega, rest = tents(z, L)
    sizes = 2.0 ** -np.arange(L + 1)
    assert omega.sum(axis=0) + rest == pytest.approx(np.maximum(z, 0))
    assert (omega >= 0).all()
    assert omega.max(axis=1) == pytest.approx(sizes)
    assert np.abs(np.diff(omega) / np.diff(z)).max() == pytest.approx(2)
    on = [(z[row > 0].min(), z[row > 0].max()) for row in omega]
    assert all(size / 2 <= low and high <= 2 * size for size, (low, high) in zip(sizes, on, strict=True))
    assert (rest >= 0).all()
    assert rest.max() == pytest.approx(sizes[-1] / 2)
    assert not rest[z <= 0].any()
    shells = [(size / 4 < z) & (z < 9 * size / 4) for size in 2.0 ** -np.arange(40)]
    assert sum(shells).max() == 4


@pytest.mark.parametrize("m", [2, 3, 4, 5, 17, 1000, 10**6, 10**18, 10**60])
def test_constants_of_one_root(m):
    """Steps 6 to 9 of Theorem 3; the sum over levels term by term, and by its bound."""
    levels, root = ceil(log2(m) / 2), log(2 * m)
    assert 2.0**-levels <= m**-0.5 * (1 + 1e-12)
    assert 4 * (32 / 3) ** 2 < 456
    assert 1 / 32 + 1 / 4 <= 2**4 / 32
    own = [log(levels) + log(2) + 256 * root]
    for level in range(1, levels):
        rise = (level <= 4) + 2 / levels  # N_l is 0 at l = 0 and 1 from then on, so that N_l - N_{l-4} is 1 four times
        own.append(2 * log(levels) + log(2) + 1824 * rise * 4.0**level * root)
    total = sum(4.0**-level * value for level, value in enumerate(np.cumsum(own)))
    assert total <= 14937 * root
    assert 4 / 3 * (256 + 1824 * 6) <= 14933.4
    assert 2 * sqrt(8 / 3) * gamma(1.5) < 2.9
    assert 1 + 2.9 + 8 * sqrt(levels) + 2 * sqrt(2 * 14937 * root) <= 358 * sqrt(root) < 400 * sqrt(root)


def test_where_the_chain_is_smaller():
    """Theorem 1 beside Theorem 3 for s = k: its minimum up to about 1e35 points, its closed form up to about 1e20."""
    ratios = [rademacher_sparse_free_of_dimension(1, 1, 1.0, 0.0, 1.0, m) * sqrt(m / log(2 * m)) / 400 for m in ROWS]
    assert [ratio < 1 for ratio in ratios] == [True, True, False]
    assert 1 + 18.1 * sqrt(log(2e20)) * (1 + log(1e20) / log(9)) < 400 * sqrt(log(2e20))


def test_one_block_of_signs():
    """Step 2 of Theorem 4 (b): at least 3/32, from 3/16 by symmetry; it is near at few signs and far at many."""
    shares = [binom.sf(ceil((b + sqrt(b) / 2) / 2 - 1e-12) - 1, b, 0.5) for b in range(1, 300)]
    assert 3 / 32 <= min(shares) < 0.3


@pytest.mark.parametrize("M", [2, 10, 11, 300, 10**5])
def test_largest_sum_of_signs(M):
    """Theorem 4 (b): E max |S_c| >= sqrt(r ln M) / 10 for r >= ln M, from the exact distribution."""
    for r in (ceil(log(M)), 2 * ceil(log(M)) + 1, 50, 1001):
        t = np.arange((r + 1) // 2)
        tails = 2 * binom.cdf(t, r, 0.5)  # P(|S| >= r - 2t)
        at_least = 1 - (1 - np.minimum(tails, 1)) ** M
        values = r - 2 * t
        mean = at_least @ (values - np.append(values[1:], 0))
        assert mean >= sqrt(r * log(M)) / 10
        assert mean <= sqrt(2 * r * log(2 * M))

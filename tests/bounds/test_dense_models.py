"""How many parameters a dense model needs (Theorems 4.2 and D.1, mended): families of functions, member by member."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import comb, e, exp, gamma, log, log2, pi, sqrt

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.spatial.distance import cdist, pdist

from sparsact import bounds


def blocks(d, k):
    """Sizes of k blocks of d coordinates, as equal as possible."""
    return np.diff(np.arange(k + 1) * d // k)


def section(points, d):
    """Points (N, k) of the box of sides 2 sqrt(d_j) as points (N, d) of the cube that are constant on each block."""
    sizes = blocks(d, points.shape[1])
    return np.repeat(points / np.sqrt(sizes), sizes, axis=1)


def on_a_grid(d, k, step):
    """Points at steps along each edge of the box, from one end to the other."""
    edges = (np.arange(-half, half + 1e-9, step) for half in np.sqrt(blocks(d, k)))
    return np.array(list(product(*edges)))


def greedily(d, k, step, rng):
    """A set of distances of at least a step that no point of a fine random sample could join."""
    chosen = np.zeros((0, k))
    for point in rng.uniform(-1, 1, (20_000, k)) * np.sqrt(blocks(d, k)):
        if not len(chosen) or cdist(point[None], chosen).min() >= step:
            chosen = np.vstack([chosen, point])
    return chosen


def test_worked_by_hand():
    assert bounds.dense_width(4, 1, 1.0, 0.5, bits=8) == pytest.approx(4 / 8)
    assert bounds.dense_width(12, 3, 1.0, 0.5) == pytest.approx(4**3)
    assert bounds.dense_width(5, 2, 1.0, 0.5) == pytest.approx(4 * sqrt(2 * 3))  # blocks of two and three
    assert bounds.dense_width(68, 34, 0.3, 0.1) == pytest.approx((3 * sqrt(68 / (2 * pi * e))) ** 34)
    assert bounds.analytic_width(9, 3.0, 0.5) == pytest.approx(6**9)
    assert bounds.lipschitz_samples(2, 2, 1.0, 0.25) == pytest.approx(15 * log(16))
    assert bounds.lipschitz_samples(2, 2, 1.0, 3.0) == 0


def test_at_twenty_dimensions():
    """The grid has 2^133 points, the packing 2^135, and the theorem as printed without its first factor 2^57."""
    assert bounds.analytic_width.log2(20, 1.0, 0.01) == pytest.approx(20 * log2(100 * sqrt(20 / (2 * pi * e))))
    assert 20 * log2(100) == pytest.approx(133, abs=0.2)
    assert bounds.analytic_width.log2(20, 1.0, 0.01) == pytest.approx(135, abs=0.2)
    assert bounds.analytic_width_paper.log2(20, 1.0, 0.01) - 200 == pytest.approx(57, abs=0.5)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (7, 1), (2, 2), (8, 2), (5, 2), (3, 3), (7, 3)])
@pytest.mark.parametrize(("L", "epsilon"), [(1.0, 0.31), (2.0, 0.5), (0.7, 0.95)])
def test_points_that_far_apart_exist(d, k, L, epsilon):
    """In the cube itself, at distances of 2 eps / L: the grid, and any set that no point can join."""
    step = 2 * epsilon / L
    grid, packed = on_a_grid(d, k, step), greedily(d, k, step, np.random.default_rng([d, k]))
    assert len(grid) >= bounds.dense_width(d, k, L, epsilon)
    log_packed = k * log2(L / epsilon * sqrt(k / (2 * pi * e))) + np.log2(blocks(d, k)).sum() / 2
    assert log2(len(packed)) >= log_packed
    for found in (grid, packed):
        points = section(found, d)
        assert np.abs(points).max() <= 1 + 1e-9
        assert pdist(points).min(initial=np.inf) >= step * (1 - 1e-9)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 17, 18, 40, 171])
def test_the_volume_of_a_ball(k):
    """Against the exact volume: with it the packing would have more points, by a factor of about sqrt(pi k)."""
    exact, bound = pi ** (k / 2) / gamma(k / 2 + 1), (2 * pi * e / k) ** (k / 2)
    assert exact <= bound <= exact * sqrt(pi * k) * 1.2


@pytest.mark.parametrize(("d", "k", "epsilon"), [(1, 1, 0.3), (4, 2, 1.1), (6, 3, 1.4)])
def test_no_function_serves_two_members(d, k, epsilon):
    """All 2^N members: L-Lipschitz in the space, at most epsilon, and 2 epsilon apart at a centre, pair by pair."""
    L, rng = 1.5, np.random.default_rng(d)
    centres = section(on_a_grid(d, k, 2 * epsilon / L), d)
    signs = np.array(list(product([1.0, -1.0], repeat=len(centres))))
    members = {tuple(each) for each in signs}
    assert len(members) == 2 ** len(centres)
    assert log2(len(members)) >= bounds.dense_width(d, k, L, epsilon)

    def values(X):
        return signs @ np.maximum(0, epsilon - L * cdist(centres, X))

    starts = rng.uniform(-1.2, 1.2, (500, d))
    ends = starts + rng.normal(size=starts.shape) * rng.choice([0.01, 0.3], (500, 1))
    rise = np.abs(values(starts) - values(ends)) / np.linalg.norm(starts - ends, axis=1)
    assert 0.6 * L < rise.max() <= L * (1 + 1e-9)
    assert np.abs(values(starts)).max() <= epsilon
    assert pdist(values(centres), "chebyshev").min() == pytest.approx(2 * epsilon)


@pytest.mark.parametrize("k", [1, 3, 20, 50])
@pytest.mark.parametrize(("L", "epsilon"), [(1.0, 0.01), (3.0, 2.9), (0.2, 1e-6)])
def test_no_width_exceeds_a_table_of_all_lipschitz_functions(k, L, epsilon):
    """Two bits for each of (2 L sqrt(k) / epsilon)^k cells: no more functions are more than 2 epsilon apart."""
    table = 1 + k * log2(np.ceil(2 * L * sqrt(k) / epsilon))
    assert bounds.analytic_width.log2(k, L, epsilon) <= table
    if k >= 20:
        assert bounds.analytic_width_paper.log2(k, L, epsilon) > table


def test_smooth_bumps_that_no_small_model_tells_apart():
    """The family in one dimension, smoothed by a quadrature of the Gaussian: as steep, as high, and nearly as far."""
    L, epsilon, deviation = 2.0, 0.37, 1e-3
    centres, x = on_a_grid(1, 1, 2 * epsilon / L)[:, 0], np.linspace(-1.2, 1.2, 40_001)
    shifts, weights = hermegauss(9)
    bumps = np.maximum(0, epsilon - L * np.abs(x[:, None, None] - deviation * shifts[:, None] - centres))
    smooth = np.einsum("xsv,s->xv", bumps, weights / weights.sum())
    family = (smooth @ np.array(list(product([1.0, -1.0], repeat=len(centres)))).T).T
    assert np.abs(np.diff(family) / np.diff(x)).max() <= L * (1 + 1e-9)
    assert np.abs(family).max() <= epsilon
    at_centres = family[:, np.abs(x[:, None] - centres).argmin(axis=0)]
    assert pdist(at_centres, "chebyshev").min() >= 2 * epsilon - 2 * L * (deviation + x[1] - x[0])
    assert log2(len(family)) == len(centres) >= bounds.analytic_width(1, L, epsilon)


def test_larger_spaces_need_more():
    widths = [bounds.dense_width(d, 3, 1.0, 0.1) for d in range(3, 30)]
    assert all(narrow < wide for narrow, wide in pairwise(widths))
    assert bounds.dense_width(3, 3, 1.0, 0.1) == bounds.analytic_width(3, 1.0, 0.1)


def test_too_few_samples_leave_bumps_unmet():
    """E 2^-U by inclusion and exclusion, exactly: at most e^-1/2 at (N - 1) ln N samples, of any probabilities."""
    for N in (2, 3, 7, 20, 60):
        m = int(bounds.lipschitz_samples(1, 1, float(N), 1.0))
        equal = sum(comb(N, j) * Fraction(-1, 2) ** j * Fraction(N - j, N) ** m for j in range(N + 1))
        assert 0.2 < equal <= exp(-1 / 2)
        more = sum(comb(N, j) * Fraction(-1, 2) ** j * Fraction(N - j, N) ** (3 * m + 3) for j in range(N + 1))
        assert more > 0.7  # so that the number has the right size
    rng = np.random.default_rng(0)
    for N in (2, 5, 9):
        m, q = int(bounds.lipschitz_samples(1, 1, float(N), 1.0)), rng.dirichlet(np.ones(N))
        subsets = np.array(list(product([0, 1], repeat=N)))
        assert ((-0.5) ** subsets.sum(axis=1) * (1 - subsets @ q).clip(0) ** m).sum() <= exp(-1 / 2)

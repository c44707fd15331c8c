"""Paper A (Awasthi, Dikkala, Kamath, Meka, COLT 2024), Section 5: complexity of the sparse class, Conjecture 20."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from dual_bounds import assert_best_on
from scipy.linalg import hadamard

from sparsact.fourier import Estimate
from sparsact.hypercube import points
from sparsact.rademacher import compare, exact_complexity, lower_complexity, orthogonal_network
from sparsact.rademacher.exact import Units, exact_maxima

CUBE = points(3).astype(float)
SIZES = range(1, 9)
SCALE = {"W": 1.0, "B": np.sqrt(3.0)}  # W R = B on the 3-cube


@pytest.fixture(scope="module")
def sparse():
    """All 256 sign vectors: no chance is left."""
    return exact_complexity(CUBE, SIZES, 1, **SCALE)


def test_complexity_of_the_one_sparse_class_on_the_cube(sparse):
    """One unit: 1.05348, by an interior-point solver for each of the 104 cones. Each maximum is proved by duality."""
    assert sparse.n_samples == 256
    assert sparse.value[0] == pytest.approx(1.05348, abs=5e-6)
    units, draws = Units(CUBE, **SCALE), points(8).astype(float)
    values, best = units.best(draws)
    exact = exact_maxima(CUBE, 1, 1, **SCALE)
    assert np.maximum(values, values[::-1]).max(axis=1) / 8 == pytest.approx(exact, rel=1e-12)  # -z mirrors z
    for draw in {orbit[0] for orbit in orbits().values()}:
        for at, inside in enumerate(units.sets):
            assert_best_on(CUBE, inside, draws[draw], **SCALE, unit=best[draw, at], value=values[draw, at])


def test_symmetric_sign_vectors_have_equal_maxima():
    """Symmetries of the cube and a change of sign leave 14 kinds of sign vectors; a dictator is worth W."""
    exact = exact_maxima(CUBE, SIZES, 1, **SCALE)
    kinds = orbits()
    assert len(kinds) == 14
    for orbit in kinds.values():
        assert exact[orbit] == pytest.approx(np.tile(exact[orbit[0]], (len(orbit), 1)), rel=1e-12)
    dictators = exact_maxima(CUBE, 1, 1, signs=CUBE.T, **SCALE)
    assert dictators == pytest.approx(np.ones(3), rel=1e-12)


def orbits():
    """Rows of all sign vectors on the 3-cube by their least image under the symmetries of the cube and a sign."""
    images = [
        (s * f * CUBE[:, p] > 0) @ [4, 2, 1] for p in permutations(range(3)) for s in (1, -1) for f in CUBE if f[0] > 0
    ]
    draws = points(8)
    moved = np.stack([sign * draws[:, np.argsort(image)] for image in images for sign in (1, -1)])
    numbers = ((moved > 0) @ 2 ** np.arange(8)).min(axis=0)
    return {int(number): np.flatnonzero(numbers == number) for number in np.unique(numbers)}


def test_the_dense_class_grows_with_the_number_of_units(sparse):
    signs = np.random.default_rng(2).choice([-1, 1], size=(9, 8))
    one = exact_complexity(CUBE, 1, 1, signs=signs, **SCALE)
    dense = exact_complexity(CUBE, [1, 5, 8], None, signs=signs, **SCALE)
    assert dense.value == pytest.approx(np.array([1, 5, 8]) * one.value)
    assert abs(one.value - sparse.value[0]) < 5 * one.standard_error


def test_the_conjecture_is_not_violated_on_the_cube(sparse):
    comparison = compare(sparse, CUBE, SIZES, 1, **SCALE)
    assert not comparison.exceeds_conjecture().any()
    assert comparison.ratio.value == pytest.approx(sparse.value / (2 * np.sqrt(3) * np.sqrt(np.array(SIZES) / 8)))
    assert (np.diff(comparison.ratio.value) < 0).all()
    assert (comparison.complexity.value <= comparison.sparse_bound).all()
    assert (comparison.complexity.value <= comparison.dense_bound).all()


def test_the_conjecture_is_met_with_equality_where_every_point_has_its_unit():
    X = [[1.0], [-1.0]]
    for s, k in ((2, 1), (2, 2), (4, 2)):
        assert compare(exact_complexity(X, s, k), X, s, k).ratio.value <= 1 + 1e-6
    assert compare(exact_complexity(X, 2, 1), X, 2, 1).ratio.value == pytest.approx(1)


@pytest.mark.parametrize(("m", "n", "W"), [(6, 8, 1.0), (64, 64, 0.3), (11, 32, 2.5)])
def test_the_conjecture_fails_with_constant_one_on_orthogonal_points(m, n, W):
    """For every sign vector a network of the class reaches 2 W R / sqrt(m), above (W R + B) sqrt(2 / m)."""
    X, R, B = hadamard(n)[:m], np.sqrt(n), W * np.sqrt(n / m)
    for signs in np.random.default_rng(3).choice([-1, 1], size=(25, m)):
        net = orthogonal_network(X, signs, W=W)
        assert (net.n_active(X) == 1).all()
        assert net.scale().W <= W
        assert net.scale().B <= B
        assert net(X) == pytest.approx(2 * W * R / np.sqrt(m) * signs)
    assert 2 * W * R / np.sqrt(m) > (W * R + B) * np.sqrt(2 / m)


def test_the_failure_of_the_conjecture_by_the_exact_method():
    X, signs = hadamard(8), np.random.default_rng(4).choice([-1, 1], size=(3, 8))
    comparison = compare(exact_complexity(X, 2, signs=signs), X, 2)
    assert comparison.exceeds_conjecture()
    assert comparison.ratio.value >= np.sqrt(2) / (1 + 1 / np.sqrt(8))  # what two units are known to reach
    assert comparison.complexity.value < comparison.sparse_bound


@pytest.mark.parametrize(
    ("X", "signs", "message"),
    [
        (hadamard(4)[:, :3], np.ones(4), "orthogonal"),
        (np.zeros((2, 4)), np.ones(2), "orthogonal"),
        (hadamard(4), [1, 1, 0, 1], "signs"),
    ],
)
def test_what_is_no_counterexample_is_refused(X, signs, message):
    with pytest.raises(ValueError, match=message):
        orthogonal_network(X, signs)


@pytest.mark.grid
def test_search_beside_the_conjecture_on_a_larger_sample():
    rng = np.random.default_rng(1)
    X, signs = rng.choice([-1.0, 1.0], size=(40, 6)), rng.choice([-1, 1], size=(4, 40))
    found = lower_complexity(X, 4, 1, signs=signs, n_rounds=3, n_starts=8, rng=rng)
    comparison = compare(found, X, 4, 1)
    assert 0.2 < comparison.ratio.value < 1
    assert not comparison.exceeds_conjecture()
    assert comparison.ratio.standard_error == pytest.approx(found.standard_error / comparison.conjecture)


def test_sizes_that_disagree_are_refused(sparse):
    with pytest.raises(ValueError, match="pass the `s` of that estimate"):
        compare(sparse, CUBE, 3)


def test_a_comparison_takes_the_longest_point_and_the_whole_interval():
    X = np.array([[3.0, 4.0], [0.0, 1.0]])
    measured = Estimate(np.array([9.0, 20.0]), np.array([1.0, 1.0]), 100)
    comparison = compare(measured, X, [1, 2], 1, W=1.0, B=2.0)  # W R + B = 7
    assert comparison.conjecture == pytest.approx(7 * np.sqrt(np.array([1, 2]) / 2))
    assert comparison.exceeds_conjecture(0.9).tolist() == [True, True]  # 9 - 1.64 > 4.95
    assert comparison.exceeds_conjecture(0.99999).tolist() == [False, True]  # 9 - 4.42 < 4.95

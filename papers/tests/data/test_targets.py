"""Targets: each equals its formula written out, and is no steeper than it says."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.preprocessing import PolynomialFeatures

from sparsact.fourier import walsh_hadamard
from sparsact.hypercube import points
from sparsact_papers.data import (
    Composed,
    Cones,
    CosineSeries,
    Cube,
    LowerEnvelope,
    Multilinear,
    Polynomial,
    Subspace,
    diagonal_subspace,
    random_analytic,
    random_composed,
    random_cones,
    random_hypercube,
    random_polynomial,
    random_subspace,
)


def drawn(seed):
    """One target of each kind, of different sizes."""
    rng = np.random.default_rng(seed)
    return [
        random_polynomial(5, 3, rng=rng),
        random_hypercube(4, rng=rng),
        Multilinear(rng.normal(size=2**3)),
        random_composed(random_polynomial(2, 4, rng=rng), 6, rng=rng),
        random_composed(random_hypercube(3, rng=rng), 7, rng=rng),
        Cones([[0.0, 0.0], [0.75, 0.0], [-0.5, 0.5]], [0.5, -0.25, 0.1], slope=1.5),
        random_cones(diagonal_subspace(9, 2, rng=rng), 0.2, 0.7, rng=rng),
        LowerEnvelope(rng.uniform(-1, 1, (11, 3)), rng.uniform(0, 1, 11)),
        random_analytic(2, 0.004, rng=rng),
        CosineSeries(rng.normal(size=(3, 3, 3))),
    ]


def kinds(seed=0):
    return pytest.mark.parametrize("target", drawn(seed), ids=repr)


@kinds()
def test_no_two_points_of_the_cube_are_further_apart_in_value_than_the_bound_allows(target):
    rng = np.random.default_rng(1)
    X = Cube(target.n).sample(4000, rng=rng)
    X[::3] = np.sign(X[::3])  # corners, where some are steepest
    for size in (1e-4, 0.1, 2.0):
        Y = np.clip(X + size * rng.normal(size=X.shape), -1, 1)
        apart = np.linalg.norm(X - Y, axis=1)
        assert (np.abs(target(X) - target(Y)) <= target.lipschitz * apart * (1 + 1e-9) + 1e-12).all()


@kinds()
def test_the_bound_holds_within_a_larger_cube_and_grows_with_it(target):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.75, 1.75, size=(4000, target.n))
    Y = np.clip(X + 1e-3 * rng.normal(size=X.shape), -1.75, 1.75)
    bound = target._steepness(1.75)
    assert bound >= target.lipschitz
    assert (np.abs(target(X) - target(Y)) <= bound * np.linalg.norm(X - Y, axis=1) * (1 + 1e-9) + 1e-12).all()


@kinds()
def test_rows_of_any_kind_and_number(target):
    X = np.random.default_rng(3).integers(-1, 2, size=(37, target.n))
    y = target(X)
    assert y.shape == (37,)
    assert y.dtype == np.float64
    for same in (X.astype(np.float32), np.asfortranarray(X.astype(np.int8)), X.tolist(), np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_allclose(target(same), y, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([target(X[:1]), target(X[1:])]), y, rtol=0, atol=1e-12)
    assert target(X[:0]).shape == (0,)


@kinds()
def test_rows_are_read_only(target):
    X = np.random.default_rng(4).uniform(-1, 1, size=(5, target.n))
    before = X.copy()
    X.flags.writeable = False
    target(X)
    np.testing.assert_array_equal(X, before)


@kinds()
def test_bad_rows_are_refused(target):
    with pytest.raises(ValueError, match=f"{target.n} columns; got shape"):
        target(np.zeros((3, target.n + 1)))
    with pytest.raises(ValueError, match="one row a point"):
        target(np.zeros(target.n))
    with pytest.raises(ValueError, match=r"must be finite; the value at \(1, 0\) is nan"):
        target(np.where(np.arange(2)[:, None] == 1, np.nan, np.zeros((2, target.n))))


@pytest.mark.parametrize(("n", "degree"), [(5, 3), (1, 6), (3, 1), (8, 4)])
def test_a_polynomial_is_the_sum_over_the_monomials_of_scikit_learn(n, degree):
    rng = np.random.default_rng(n)
    p, X = random_polynomial(n, degree, rng=rng), rng.uniform(-1, 1, size=(37, n))
    features = PolynomialFeatures(degree).fit(X)
    np.testing.assert_allclose(p(X), features.transform(X) @ p.coefficients, rtol=1e-12, atol=1e-14)


def test_coefficients_of_a_random_polynomial():
    p = random_polynomial(6, 4, rng=np.random.default_rng(0))
    assert np.abs(p.coefficients).sum() == pytest.approx(1, abs=1e-14)
    scaled = p.coefficients / np.abs(p.coefficients).max()
    # Uniform: 210 signs are 8 standard deviations from all alike, and a quarter of the sizes lies below a quarter.
    assert 50 < (scaled > 0).sum() < 160
    assert 0.1 < (np.abs(scaled) < 0.25).mean() < 0.4


def test_the_slope_of_a_polynomial_grows_with_its_degree_and_not_with_its_variables():
    for n, degree in ((1, 5), (3, 4)):
        leading = np.zeros_like(random_polynomial(n, degree, rng=np.random.default_rng(0)).coefficients)
        leading[-1] = 1  # the power x_{n-1}^degree comes last
        assert Polynomial(n, degree, leading).lipschitz == degree
    for seed in range(5):
        assert random_polynomial(7, 3, rng=np.random.default_rng(seed)).lipschitz <= 3


def test_large_polynomials_are_refused_before_memory_runs_out():
    with pytest.raises(ValueError, match="100 variables have 1705904746 monomials of degree 6 or less; lower n"):
        random_polynomial(100, 6, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"has 10 coefficients; got shape \(9,\)"):
        Polynomial(3, 2, np.ones(9))
    for n, degree in ((0, 2), (2, 0)):
        with pytest.raises(ValueError, match="must be 1 or more; got 0"):
            random_polynomial(n, degree, rng=np.random.default_rng(0))


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_a_hypercube_function_is_the_sum_over_corners_and_over_characters(n, seed):
    rng = np.random.default_rng(seed)
    f, X = Multilinear(rng.normal(size=2**n)), rng.uniform(-1.5, 1.5, size=(6, n))
    corners = points(n).astype(float)
    indicators = np.prod((1 + corners[None] * X[:, None]) / 2, axis=2)
    np.testing.assert_allclose(f(X), indicators @ f.table, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(f(corners), f.table)
    subsets = np.arange(2**n)[:, None] >> np.arange(n) & 1
    characters = np.prod(np.where(subsets[None] == 1, X[:, None], 1.0), axis=2)
    np.testing.assert_allclose(f(X), characters @ walsh_hadamard(f.table), rtol=0, atol=1e-11)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_lipschitz_constant_of_a_hypercube_function_is_attained_at_a_corner(n, seed):
    f, corners = random_hypercube(n, rng=np.random.default_rng(seed)), points(n).astype(float)
    assert set(f.table) <= {-1.0, 1.0}
    flips = [f.table != f(corners * np.where(np.arange(n) == i, -1, 1)) for i in range(n)]
    assert f.lipschitz == pytest.approx(np.sqrt(np.sum(flips, axis=0).max()))
    assert f.lipschitz <= np.sqrt(n) + 1e-12


def test_tables_that_are_none_are_refused():
    with pytest.raises(ValueError, match=r"length 2\*\*n; got shape \(6,\)"):
        Multilinear(np.ones(6))
    with pytest.raises(ValueError, match="27 columns has"):
        random_hypercube(27, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="must be 1 or more; got 0"):
        random_hypercube(0, rng=np.random.default_rng(0))


def test_a_composed_target_is_the_target_of_the_projection():
    rng = np.random.default_rng(0)
    p = random_polynomial(3, 4, rng=rng)
    f, X = random_composed(p, 8, rng=rng), rng.uniform(-1, 1, size=(37, 8))
    np.testing.assert_allclose(f.A @ f.A.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(f(X), p(X @ f.A.T), rtol=1e-12)
    twice = random_composed(f, 13, rng=rng)
    assert isinstance(twice, Composed)
    assert twice.n == 13


def test_the_bound_of_a_composed_target_knows_that_a_rotation_leaves_the_cube():
    """x^2 has slope 2 at most on [-1, 1], but along the square's diagonal its argument reaches sqrt 2."""
    square = Composed(Polynomial(1, 2, [0, 0, 1]), [[np.sqrt(0.5), np.sqrt(0.5)]])
    assert square.target.lipschitz == 2
    assert square.lipschitz == pytest.approx(2 * np.sqrt(2))


def test_matrices_that_cannot_compose_are_refused():
    p = random_polynomial(2, 2, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="must be orthonormal; inner products are off by 1"):
        Composed(p, [[1, 0, 0], [1, 0, 0]])
    with pytest.raises(ValueError, match="a row for each of the target's 2 columns; got 1"):
        Composed(p, [[1, 0, 0]])
    with pytest.raises(ValueError, match="2 dimensions do not fit into an ambient dimension of 1"):
        random_composed(p, 1, rng=np.random.default_rng(0))
    with pytest.raises(TypeError, match="must be a Target"):
        Composed(np.sin, np.eye(2))


def literal_cones(X, centres, heights, slope):
    return (np.sign(heights) * np.maximum(0, np.abs(heights) - slope * cdist(X, centres))).sum(axis=1)


def test_cones_of_different_heights_are_their_literal_sum():
    rng = np.random.default_rng(0)
    centres = np.stack(np.meshgrid(*[np.linspace(-1, 1, 6)] * 3), axis=-1).reshape(-1, 3)  # 0.4 apart
    heights = rng.uniform(-0.5, 0.5, len(centres))
    f, X = Cones(centres, heights, slope=2.5), rng.uniform(-1.2, 1.2, size=(1001, 3))
    np.testing.assert_allclose(f(X), literal_cones(X, centres, heights, 2.5), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(f(centres), heights)
    assert (f(X) < 0).any()  # the sum as printed loses every cone below 0
    assert f.lipschitz == 2.5
    assert Cones([[0.0]], [0.0]).lipschitz == 0


def test_cones_that_overlap_are_refused_and_those_that_touch_are_not():
    Cones([[0.0], [1.0]], [0.5, -0.5])
    with pytest.raises(ValueError, match=r"cones 0 and 1 overlap: their radii .* are 0.5 and 0.6, their distance 1;"):
        Cones([[0.0], [1.0], [9.0]], [0.5, -0.6, 1.0])
    with pytest.raises(ValueError, match="at least one centre"):
        Cones(np.empty((0, 2)), [])
    with pytest.raises(ValueError, match=r"got \(2, 1\), \(3,\)"):
        LowerEnvelope([[0.0], [1.0]], [1.0, 2.0, 3.0])
    for slope in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match="the slope must be a finite number above 0"):
            Cones([[0.0]], [1.0], slope)


@pytest.mark.parametrize(("ambient", "dimension", "epsilon", "lipschitz"), [(9, 2, 0.2, 0.7), (5, 3, 0.4, 1.3)])
def test_the_cones_of_theorem_4_2_fill_every_cube_of_the_grid_within_the_domain(ambient, dimension, epsilon, lipschitz):
    rng = np.random.default_rng(0)
    domain = diagonal_subspace(ambient, dimension, rng=rng)
    f = random_cones(domain, epsilon, lipschitz, rng=rng)
    centres, side = f.target.centres, 2 * epsilon / lipschitz
    steps = range(-9, 10)
    grid = side * np.array(list(product(steps, repeat=dimension)))
    corners = side / 2 * np.array(list(product((-1, 1), repeat=dimension)))
    inside = np.abs((grid[:, None] + corners) @ domain.basis.T).max(axis=(1, 2)) <= 1
    assert {tuple(c) for c in np.rint(centres / side).astype(int)} == {
        tuple(c) for c in np.rint(grid[inside] / side).astype(int)
    }
    np.testing.assert_allclose(np.abs(f(centres @ domain.basis.T)), epsilon, rtol=1e-9)
    assert f.lipschitz == lipschitz
    X = domain.sample(500, rng=rng)
    expected = literal_cones(X, centres @ domain.basis.T, f.target.heights, lipschitz)
    np.testing.assert_allclose(f(X), expected, rtol=0, atol=1e-12)


def test_grids_without_a_cube_or_of_too_many_are_refused():
    domain = random_subspace(6, 3, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="no cube of side 20 lies inside Subspace"):
        random_cones(domain, 10, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="too fine in Subspace"):
        random_cones(domain, 1e-4, rng=np.random.default_rng(0))
    for epsilon in (0, -0.1, np.nan):
        with pytest.raises(ValueError, match="`epsilon` must be a finite number above 0"):
            random_cones(domain, epsilon, rng=np.random.default_rng(0))


def test_a_lower_envelope_is_the_least_cone_and_falls_by_one_towards_it():
    rng = np.random.default_rng(0)
    centres, heights = rng.uniform(-1, 1, (11, 4)), rng.uniform(0, 0.5, 11)
    f, X = LowerEnvelope(centres, heights), rng.uniform(-1, 1, (37, 4))
    all_cones = cdist(X, centres) + heights
    np.testing.assert_array_equal(f(X), all_cones.min(axis=1))
    towards = centres[all_cones.argmin(axis=1)] - X
    step = 0.01 * towards / np.linalg.norm(towards, axis=1, keepdims=True)
    np.testing.assert_allclose(f(X) - f(X + step), 0.01, rtol=1e-9)


def literal_series(X, amplitudes):
    frequencies = np.array(list(np.ndindex(amplitudes.shape))) + 1
    return 2 * np.cos(np.pi * X @ frequencies.T) @ amplitudes.ravel()


@pytest.mark.parametrize("shape", [(7,), (4, 4), (3, 3, 3), (2, 2, 2, 2)])
def test_a_cosine_series_is_its_literal_sum(shape):
    rng = np.random.default_rng(0)
    amplitudes, X = rng.normal(size=shape), rng.uniform(-2, 2, size=(37, len(shape)))
    np.testing.assert_allclose(CosineSeries(amplitudes)(X), literal_series(X, amplitudes), rtol=0, atol=1e-11)


@pytest.mark.parametrize("shape", [(7,), (4, 4)])
def test_the_bound_of_a_cosine_series_is_above_its_steepest_slope_and_close(shape):
    """Against gradients on a grid twenty times as fine, which misses the steepest by less than a part in 10^3."""
    for seed in range(5):
        series = CosineSeries(np.random.default_rng(seed).normal(size=shape))
        axes = [np.linspace(-1, 1, 160 * shape[0] if len(shape) == 1 else 240)] * len(shape)
        X = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(shape))
        frequencies = np.array(list(np.ndindex(shape))) + 1.0
        gradients = (-2 * np.pi * np.sin(np.pi * X @ frequencies.T) * series.amplitudes.ravel()) @ frequencies
        steepest = np.linalg.norm(gradients, axis=1).max()
        assert steepest * (1 - 1e-12) <= series.lipschitz <= steepest * 1.01 / np.cos(np.pi / 8) ** len(shape)


def test_members_of_theorem_d1_s_family_are_far_apart_and_not_steep():
    epsilon, L, C, k = 0.006, 1.5, 6.0, 2
    members = [random_analytic(k, epsilon, L, rng=np.random.default_rng(seed)) for seed in range(6)]
    N = int(L / (C * np.sqrt(k) * np.pi * epsilon))
    assert {len(f.amplitudes) for f in members} == {N}
    np.testing.assert_allclose(
        np.abs(members[0].amplitudes), L / (C * np.sqrt(k) * np.pi) * N ** -(k / 2 + 1), rtol=1e-12
    )
    assert max(f.lipschitz for f in members) < L
    axis = np.arange(-16 * N, 16 * N) / (16 * N)  # equally spaced over a period: the mean below is exact
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    values = [f(X) for f in members]
    for f, y in zip(members, values, strict=True):
        assert np.mean(y**2) == pytest.approx(2 * (f.amplitudes**2).sum())
    for i, f in enumerate(members):
        for j in range(i):
            differing = (f.amplitudes != members[j].amplitudes).mean()
            assert np.abs(values[i] - values[j]).max() >= 2 * epsilon * np.sqrt(2 * differing)


def test_families_of_no_or_of_too_many_frequencies_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="`epsilon` must be at most"):
        random_analytic(3, 0.5, rng=rng)
    with pytest.raises(ValueError, match="exceeds 4194304 terms; raise epsilon"):
        random_analytic(4, 1e-6, rng=rng)
    with pytest.raises(ValueError, match="must be 1 or more; got 0"):
        random_analytic(0, 0.01, rng=rng)
    with pytest.raises(ValueError, match=r"axes of one length N, one a column; got \(2, 3\)"):
        CosineSeries(np.ones((2, 3)))


def test_a_generator_fixes_the_target_and_a_target_keeps_its_own_numbers():
    first, second = (random_polynomial(4, 3, rng=np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    table = np.ones(4)
    f = Multilinear(table)
    table[:] = 7
    assert f([[0.0, 0.0]]) == 1
    basis = np.eye(3)[:, :2]
    domain = Subspace(basis)
    basis[:] = 0
    assert domain.basis.any()

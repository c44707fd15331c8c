"""Domains: their points lie on them, uniformly. Seeds are fixed; a p-value below 1e-6 fails, once in 10^6 by chance."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.spatial import ConvexHull, HalfspaceIntersection

from sparsact_papers.data import (
    Circle,
    Cube,
    CurvedPatch,
    Sphere,
    Subspace,
    SwissRoll,
    diagonal_subspace,
    random_subspace,
)
from sparsact_papers.data.domains import hit_and_run
from sparsact_papers.data.subspaces import random_frame

LEAST_P = 1e-6
MANIFOLDS = [
    Sphere(1, 4),
    Sphere(3, 9),
    Circle(2),
    Circle(5),
    SwissRoll(3),
    SwissRoll(7),
    CurvedPatch(1, 2),
    CurvedPatch(3, 5, slope=2.0, frequency=4.0),
    CurvedPatch(4, 11),
]


def drawn():
    rng = np.random.default_rng(0)
    linear = [Cube(4), random_subspace(7, 3, rng=rng), random_subspace(5, 5, rng=rng), diagonal_subspace(9, 2, rng=rng)]
    return [*linear, *MANIFOLDS, *(domain.rotated(rng=rng) for domain in MANIFOLDS)]


every_domain = pytest.mark.parametrize("domain", drawn(), ids=repr)


def uniform(values, low, high):
    """Whether values pass for uniform on an interval."""
    return stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > LEAST_P


def alike(X, Y, rng, n_directions=8):
    """Whether two samples pass for samples of one law, along random directions."""
    directions = rng.normal(size=(X.shape[1], n_directions))
    tests = [stats.ks_2samp(x, y) for x, y in zip((X @ directions).T, (Y @ directions).T, strict=True)]
    return min(test.pvalue for test in tests) > LEAST_P


def distances(domain, X):
    """About how far points are from the set, by its definition."""
    if isinstance(domain, Cube):
        return np.zeros(len(X))
    frame = domain.basis if isinstance(domain, Subspace) else domain.frame
    Z = X @ frame
    if isinstance(domain, Sphere | Circle):
        own = np.linalg.norm(Z, axis=1, keepdims=True) - 1
    elif isinstance(domain, SwissRoll):
        scale = 1 / np.hypot(4.5 * np.pi, 10.5)
        t = np.hypot(Z[:, 0], Z[:, 2]) / scale
        own = Z[:, [0, 2]] - scale * np.stack([t * np.cos(t), t * np.sin(t)], axis=1)
    elif isinstance(domain, CurvedPatch):
        own = Z - domain._waved(domain.coordinates(X))
    else:
        own = 0 * Z
    return np.linalg.norm(np.hstack([X - Z @ frame.T, own]), axis=1)


@every_domain
def test_points_lie_within_the_cube_and_on_the_domain(domain):
    X = domain.sample(1001, rng=np.random.default_rng(1))
    assert X.shape == (1001, domain.ambient)
    assert np.abs(X).max() <= 1
    assert distances(domain, X).max() < 1e-12
    assert np.linalg.matrix_rank(X) >= domain.dimension
    assert domain.sample(0, rng=np.random.default_rng(1)).shape == (0, domain.ambient)
    assert domain.sample(1, rng=np.random.default_rng(1)).shape == (1, domain.ambient)


@every_domain
def test_the_generator_alone_decides(domain):
    before = np.random.get_state()[1].copy()  # noqa: NPY002  # the global state is what must not change
    first, second = (domain.sample(7, rng=np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@every_domain
def test_a_number_of_points_below_0_is_refused(domain):
    with pytest.raises(ValueError, match="0 or more; got -1"):
        domain.sample(-1, rng=np.random.default_rng(0))


@pytest.mark.parametrize("domain", [d for d in drawn() if not isinstance(d, Sphere | Cube)], ids=repr)
def test_a_chart_gives_one_column_a_dimension_and_checks_its_rows(domain):
    X = domain.sample(7, rng=np.random.default_rng(4))
    assert domain.coordinates(X).shape == (7, domain.dimension)
    with pytest.raises(ValueError, match="columns; got shape"):
        domain.coordinates(X[:, 1:])


@pytest.mark.parametrize(("ambient", "dimension"), [(3, 1), (6, 1), (3, 2), (6, 2)])
def test_subspaces_against_rejection_from_the_enclosing_ball(ambient, dimension):
    """The unit cube lies in the ball of radius sqrt d: proposals in its square, no part of the code under test."""
    rng = np.random.default_rng(ambient)
    domain, radius = random_subspace(ambient, dimension, rng=rng), np.sqrt(ambient)
    X = rng.uniform(-radius, radius, size=(60_000, dimension)) @ domain.basis.T
    assert alike(domain.sample(9001, rng=rng), X[(np.abs(X) <= 1).all(axis=1)], rng)


def test_a_line_is_a_uniform_segment():
    rng = np.random.default_rng(0)
    line = random_subspace(5, 1, rng=rng)
    end = 1 / np.abs(line.basis).max()
    assert line.extents[0] == pytest.approx(end)
    assert line.acceptance == 1
    assert uniform(line.coordinates(line.sample(5000, rng=rng))[:, 0], -end, end)


def test_the_whole_space_is_the_cube():
    rng = np.random.default_rng(0)
    X = random_subspace(4, 4, rng=rng).sample(5000, rng=rng)
    assert all(uniform(x, -1, 1) for x in X.T)


def test_nothing_lies_on_the_boundary_more_than_elsewhere():
    """Clipping would put a share of the points at size 1 exactly; here the largest size has a density."""
    rng = np.random.default_rng(0)
    domain = random_subspace(8, 3, rng=rng)
    largest = np.abs(domain.sample(4000, rng=rng)).max(axis=1)
    assert len(np.unique(largest)) == 4000
    # A polytope of dimension 3, symmetric about 0: its copy scaled by t holds a share t^3.
    assert uniform(largest**3, 0, 1)


@pytest.mark.parametrize("dimension", [2, 3])
def test_acceptance_is_a_ratio_of_volumes(dimension):
    """Volumes by qhull. Five standard deviations of 16,384 proposals: fails once in 10^6."""
    domain = random_subspace(7, dimension, rng=np.random.default_rng(dimension))
    faces = np.vstack([domain.basis, -domain.basis])
    corners = HalfspaceIntersection(np.column_stack([faces, -np.ones(14)]), np.zeros(dimension)).intersections
    triples = np.array(np.meshgrid(*[np.arange(7)] * dimension)).reshape(dimension, -1).T
    volume = ConvexHull(corners).volume
    ratios = volume * np.abs(np.linalg.det(domain.basis[triples])) / 2**dimension
    assert np.abs(domain.acceptance - ratios).min() < 5 * np.sqrt(0.25 / 16_384)
    assert domain.acceptance <= ratios.max() + 5 * np.sqrt(0.25 / 16_384)
    np.testing.assert_allclose(domain.extents, np.abs(corners).max(axis=0))


@pytest.mark.parametrize(("ambient", "dimension"), [(9, 1), (9, 4), (12, 6)])
def test_hit_and_run_agrees_with_rejection(ambient, dimension):
    rng = np.random.default_rng(ambient)
    domain = random_subspace(ambient, dimension, rng=rng)
    assert domain.method == "rejection"
    X = hit_and_run(domain.basis, 6000, rng=rng)
    assert np.abs(X).max() <= 1
    assert alike(X, domain.sample(6000, rng=rng), rng)


def test_hit_and_run_of_an_elongated_polytope():
    """Four axes, and the diagonal of 60 more: seven times as long as wide."""
    basis = np.zeros((64, 5))
    basis[:4, :4] = np.eye(4)
    basis[4:, 4] = 1 / np.sqrt(60)
    rng = np.random.default_rng(0)
    z = hit_and_run(basis, 5000, rng=rng) @ basis
    assert all(uniform(column, -end, end) for column, end in zip(z.T, [1, 1, 1, 1, np.sqrt(60)], strict=True))
    assert np.abs(np.corrcoef(z[:1024].T, z[1024:2048].T)[:5, 5:].diagonal()).max() < 0.16  # 5 / sqrt(1024)


def test_a_subspace_where_rejection_would_wait_too_long_says_so():
    rng = np.random.default_rng(0)
    domain = random_subspace(64, 32, rng=rng)
    assert domain.method == "hit-and-run"
    assert domain.acceptance < 0.002
    X = domain.sample(1500, rng=rng)
    assert X.shape == (1500, 64)
    assert np.abs(X).max() <= 1
    # A polytope of dimension 32, symmetric about 0: its copy scaled by t holds a share t^32.
    assert uniform(np.abs(X).max(axis=1) ** 32, 0, 1)


def test_frames_are_orthonormal_and_have_no_direction():
    rng = np.random.default_rng(0)
    frames = np.array([random_frame(5, 3, rng=rng) for _ in range(2000)])
    np.testing.assert_allclose(frames.transpose(0, 2, 1) @ frames, np.broadcast_to(np.eye(3), (2000, 3, 3)), atol=1e-12)
    # A coordinate of a uniform unit vector of R^5: its square has the law Beta(1/2, 2), and its sign is fair.
    for i, j in ((0, 0), (4, 0), (1, 1), (2, 2)):
        assert stats.kstest(frames[:, i, j] ** 2, stats.beta(0.5, 2).cdf).pvalue > LEAST_P
        assert abs((frames[:, i, j] > 0).mean() - 0.5) < 5 * np.sqrt(0.25 / 2000)


def test_a_diagonal_subspace_reaches_its_corners():
    domain = diagonal_subspace(6, 3, rng=np.random.default_rng(0))
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 6)).reshape(6, -1).T
    assert np.linalg.matrix_rank(corners[distances(domain, corners) < 1e-9]) == 3


def test_spheres_are_uniform():
    rng = np.random.default_rng(0)
    X = Sphere(2, 5).rotated(rng=rng).sample(4000, rng=rng)
    axis = np.linalg.svd(X, full_matrices=False).Vh[0]
    assert uniform(X @ axis, -1, 1)  # Archimedes
    Y = Sphere(4, 5).sample(4000, rng=rng)
    assert stats.kstest(Y[:, 3] ** 2, stats.beta(0.5, 2).cdf).pvalue > LEAST_P
    circle = Circle(4).rotated(rng=rng)
    assert uniform(circle.coordinates(circle.sample(4000, rng=rng))[:, 0], -np.pi, np.pi)


def test_the_swiss_roll_is_uniform_by_area_where_scikit_learn_s_is_not():
    rng = np.random.default_rng(0)
    roll = SwissRoll(8).rotated(rng=rng)
    flat = roll.coordinates(roll.sample(4000, rng=rng))
    ends = [quad(lambda t: np.hypot(1, t), 1.5 * np.pi, 4.5 * np.pi)[0], 21]
    scale = 1 / np.hypot(4.5 * np.pi, 10.5)
    assert uniform(flat[:, 0], 0, scale * ends[0])
    assert uniform(flat[:, 1], -scale * ends[1] / 2, scale * ends[1] / 2)
    assert abs(np.corrcoef(flat.T)[0, 1]) < 5 / np.sqrt(4000)
    t = rng.uniform(1.5 * np.pi, 4.5 * np.pi, 4000)
    by_parameter = scale * np.stack([t * np.cos(t), 0 * t, t * np.sin(t)], axis=1) @ roll.frame.T
    assert not uniform(roll.coordinates(by_parameter)[:, 0], 0, scale * ends[0])


def test_the_chart_of_the_swiss_roll_keeps_lengths():
    t, h = np.linspace(5, 14, 2000), np.linspace(-9, 9, 2000)
    path = np.stack([t * np.cos(t), h, t * np.sin(t)], axis=1) / np.hypot(4.5 * np.pi, 10.5)
    flat = SwissRoll(3).coordinates(path)
    on_roll, in_rectangle = (np.linalg.norm(np.diff(p, axis=0), axis=1).sum() for p in (path, flat))
    assert on_roll == pytest.approx(in_rectangle, rel=1e-5)


def test_a_curved_patch_is_uniform_by_volume():
    rng = np.random.default_rng(0)
    patch = CurvedPatch(3, 5, slope=2.0, frequency=4.0).rotated(rng=rng)  # two coordinates of three are waved
    Z = patch.coordinates(patch.sample(20_000, rng=rng))
    grid = np.linspace(-1, 1, 20_001)
    lengths = np.hypot(1, 2 * np.cos(4 * grid))
    share = np.cumsum(lengths) / lengths.sum()
    assert uniform(np.interp(Z[:, 0], grid, share), 0, 1)
    assert uniform(np.interp(Z[:, 1], grid, share), 0, 1)
    assert uniform(Z[:, 2], -1, 1)
    assert not uniform(Z[:, 0], -1, 1)
    assert np.abs(np.corrcoef(Z.T) - np.eye(3)).max() < 5 / np.sqrt(20_000)


@pytest.mark.parametrize("patch", [CurvedPatch(3, 5, slope=2.0, frequency=4.0), CurvedPatch(2, 4), CurvedPatch(1, 3)])
def test_the_jacobian_of_a_curved_patch_is_conditioned_as_it_says(patch):
    """Its chart, inverted by differences: how points move when one coordinate does."""
    rng, k, step = np.random.default_rng(0), patch.dimension, 1e-6
    Z = rng.uniform(-0.99, 0.99, size=(400, k))
    images = [patch._waved(Z + step * e) - patch._waved(Z - step * e) for e in np.eye(k)]
    numbers = np.linalg.cond(np.stack(images, axis=2) / (2 * step))
    assert numbers.max() <= patch.condition_number * (1 + 1e-6)
    assert numbers.max() >= patch.condition_number * 0.95
    np.testing.assert_allclose(patch.coordinates(patch._waved(Z) @ patch.frame.T), Z, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cube(0), "must be 1 or more; got 0"),
        (lambda: random_subspace(3, 0, rng=np.random.default_rng(0)), "must be 1 or more; got 0"),
        (lambda: random_subspace(3, 4, rng=np.random.default_rng(0)), "4 dimensions do not fit"),
        (lambda: diagonal_subspace(3, 4, rng=np.random.default_rng(0)), "4 dimensions do not fit"),
        (lambda: Subspace(np.eye(3)[:2]), "1 <= dimension <= ambient"),
        (lambda: Subspace(np.ones((3, 1))), "must be orthonormal; inner products are off by 2"),
        (lambda: Subspace([[np.nan], [0.0]]), "must be finite"),
        (lambda: Sphere(0, 3), "must be 1 or more; got 0"),
        (lambda: Sphere(3, 3), "Sphere needs an ambient dimension of 4 or more; got 3"),
        (lambda: Circle(1), "Circle needs an ambient dimension of 2"),
        (lambda: SwissRoll(2), "SwissRoll needs an ambient dimension of 3"),
        (lambda: CurvedPatch(3, 3), "needs an ambient dimension of 4 or more; got 3"),
        (lambda: CurvedPatch(2, 4, slope=np.nan), "the slope must be a finite number above 0"),
        (lambda: CurvedPatch(2, 4, frequency=-1), "the frequency must be a finite number above 0"),
        (lambda: Circle(4, frame=np.eye(4)[:, :3]), r"`frame` must have shape \(4, 2\); got \(4, 3\)"),
    ],
)
def test_domains_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_reading_a_table_loads_no_scipy():
    code = "import sys, sparsact.datasets; print('scipy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False"]

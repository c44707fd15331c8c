"""Kernels and systems of equations, each beside matrices written out; a new one of either joins by a line."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sparsact import CubeKernel
from sparsact.hypercube import points
from sparsact.learners.gp.cholesky import Cholesky, log_density_sensitivity
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.cube import CubePosterior, CubeSystem
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.gp.systems.inducing import InducingSystem
from sparsact.learners.gp.systems.kronecker_grid import GridSystem
from sparsact.learners.gp.systems.system import System
from sparsact.learners.letters.kernel import LetterKernel
from sparsact.statistics.solved import Solved

M, SIZES = 53, (5, 4, 7)


@dataclass(frozen=True)
class Laplacian:
    """A kernel of somebody else: a variance times the exponential of minus a multiple of the distance."""

    theta: np.ndarray

    @property
    def variance(self):
        return float(np.exp(self.theta[0]))

    def covariance(self, one, other):
        return self.variance * np.exp(-np.exp(self.theta[1]) * np.abs(one[:, None] - other).sum(axis=2))

    def matrix(self, points):
        return np.asfortranarray(self.covariance(points, points))


class EigenSystem(System):
    """A system of somebody else, which says how it solves; all else follows."""

    tolerance, solver, remedy = 1e-10, "eigenvectors", "raise the noise"

    def solve(self, targets, tolerance):
        values, vectors = np.linalg.eigh(self.matrix())
        return Solved((targets @ vectors / values) @ vectors.T, 1, 0.0, tolerance, True)


def on_cube(n, rng, m=M, correlation=0.6):
    """A kernel of n columns, distinct points and new ones."""
    kernel = CubeKernel.product(1.7, correlation + 0.3 * rng.random(n))
    bits = rng.integers(0, 2, (m + 9, n)).astype(float)
    if n < 10:
        bits = (1.0 - points(n)[rng.permutation(2**n)[: m + 9]]) / 2
    return kernel, bits[:m], bits[m:]


def on_letters(rng, m=M):
    kernel = LetterKernel.start([rng.normal(size=(q, 3)) for q in SIZES])
    codes = np.stack(np.unravel_index(rng.permutation(int(np.prod(SIZES)))[: m + 9], SIZES), axis=1)
    return kernel, codes[:m], codes[m:]


def system(name, noise=None):
    """A system, new points, and how far its solutions may be from the matrix's."""
    rng = np.random.default_rng(3)
    kernel, rows, new = on_letters(rng) if "letters" in name else on_cube(23 if "wide" in name else 7, rng)
    if "Laplacian" in name:
        kernel = Laplacian(np.array([0.5, -1.2]))
    noise = rng.uniform(0.2, 0.6, M) if noise is None else noise
    if name == "inducing, wide":
        return InducingSystem(kernel, rows, noise, np.arange(0, M, 4)), new, 1e-5
    kind, error = {
        "dense": (DenseSystem, 1e-10),
        "eigenvectors": (EigenSystem, 1e-10),
        "cube": (CubeSystem, 1e-7),
        "grid": (GridSystem, 2e-3),
    }[name.split(",")[0]]
    found = kind(kernel, rows, noise)
    if kind is CubeSystem:
        found.solves_coefficients = name == "cube, coefficients"
    return found, new, error


NAMES = [
    "dense",
    "dense, wide",
    "dense, letters",
    "dense, Laplacian",
    "eigenvectors",
    "eigenvectors, letters",
    "cube, points",
    "cube, coefficients",
    "grid, letters",
    "inducing, wide",
]


@pytest.mark.parametrize("name", ["dense", "dense, wide", "dense, letters", "dense, Laplacian"])
def test_kernels(name):
    """One variance everywhere, and positive definite matrices whose entries are the covariances of two points."""
    found, new, _ = system(name)
    kernel, points = found.kernel, found.points
    matrix = kernel.matrix(points)
    assert matrix.flags.f_contiguous
    np.testing.assert_allclose(matrix.diagonal(), kernel.variance, rtol=1e-12)
    np.testing.assert_allclose(matrix, kernel.covariance(points, points), rtol=1e-10)
    np.testing.assert_allclose(kernel.covariance(new, points), kernel.covariance(points, new).T, rtol=1e-12)
    one_by_one = [[kernel.covariance(points[i : i + 1], new[j : j + 1]).item() for j in range(3)] for i in range(4)]
    np.testing.assert_allclose(kernel.covariance(points[:4], new[:3]), one_by_one, rtol=1e-12)
    assert np.linalg.eigvalsh(matrix).min() > 0
    assert kernel.theta.ndim == 1


@pytest.fixture(params=NAMES)
def case(request):
    return system(request.param)


def dense(found):
    """The matrix by the kernel's covariances of two points at a time."""
    return found.kernel.covariance(found.points, found.points) + np.diag(found.noise)


def test_solutions(case):
    found, _, error = case
    targets = np.random.default_rng(4).normal(size=(3, M))
    targets[1] = 0.0
    solved = found.solve(targets, error / 10 if error > 1e-9 else found.tolerance)
    assert solved.converged
    np.testing.assert_allclose(solved.value @ dense(found), targets, atol=10 * error)
    assert not solved.value[1].any()
    y = targets[0]
    left = found.dual_coefficients(y) @ dense(found) - y
    assert np.linalg.norm(left) <= 1.5 * max(found.tolerance, 1e-12) * np.linalg.norm(y)


@pytest.mark.parametrize("name", ["dense", "dense, letters", "grid, letters", "inducing, wide"])
def test_solutions_without_some_rows(name):
    """Rows of infinite noise are left out, others of each target at a time."""
    found, _, error = system(name)
    rng = np.random.default_rng(5)
    targets, kept = rng.normal(size=(3, M)), rng.random((3, M)) < 0.7
    noise = np.where(kept, found.noise * rng.uniform(1, 2, (3, M)), np.inf)
    solved = found.solve(np.where(kept, targets, 0.0), max(error / 10, 1e-12), noise).value
    for value, y, rows, own in zip(solved, targets, kept, noise, strict=True):
        K = found.kernel.covariance(found.points[rows], found.points[rows])
        np.testing.assert_allclose(value[rows], np.linalg.solve(K + np.diag(own[rows]), y[rows]), atol=10 * error)
        assert not value[~rows].any() or name == "inducing, wide"  # which gives them no meaning


def test_determinants_and_densities(case):
    found, _, _ = case
    y = np.random.default_rng(6).normal(size=M)
    expected = multivariate_normal(np.zeros(M), dense(found)).logpdf(y)
    assert found.log_determinant() == pytest.approx(np.linalg.slogdet(dense(found))[1], rel=1e-9)
    assert found.log_density(y) == pytest.approx(expected, rel=1e-9)


def test_posteriors(case):
    """Means, variances and draws; by inducing points variances are near."""
    found, new, error = case
    y = np.random.default_rng(7).normal(size=M)
    alpha = found.solve(y[None], max(error / 10, 1e-12)).value[0]
    posterior = Posterior(found, alpha)
    if isinstance(found.kernel, CubeKernel) and found.kernel.has_table:
        posterior = CubePosterior(found, alpha, found.kernel.spectrum)
    cross = found.kernel.covariance(found.points, new)
    inverse = np.linalg.inv(dense(found))
    np.testing.assert_allclose(posterior.values(new), cross.T @ inverse @ y, atol=10 * error)
    covariance = found.kernel.covariance(new, new) - cross.T @ inverse @ cross
    near = 0.2 if isinstance(found, InducingSystem) else 1e-9
    np.testing.assert_allclose(posterior.variances(new), covariance.diagonal(), rtol=near, atol=1e-9)
    mean, variance = posterior.moments(cross, np.full(len(new), found.kernel.variance))
    np.testing.assert_allclose(mean, posterior.values(new), atol=10 * error)
    np.testing.assert_allclose(variance, covariance.diagonal(), rtol=1e-5, atol=1e-7)
    draws = Posterior.draws_at(posterior, new[:2], 4_000, np.random.default_rng(8))
    np.testing.assert_allclose(draws.var(axis=0), covariance.diagonal()[:2], rtol=max(0.15, near))


def test_what_is_pickled_has_no_factor(case):
    found, new, _ = case
    _ = found.factor
    again = pickle.loads(pickle.dumps(found))
    assert "factor" not in vars(again)
    np.testing.assert_array_equal(again.values(np.arange(M) - 20.0, new), found.values(np.arange(M) - 20.0, new))


def ill_conditioned(kind):
    """Little noise and a kernel of long range."""
    rng = np.random.default_rng(9)
    if kind == "grid":
        kernel = LetterKernel.start([rng.normal(size=(18, 4)) for _ in range(3)])
        codes = np.stack(np.unravel_index(rng.permutation(18**3)[:1_300], (18,) * 3), axis=1)
        return GridSystem(kernel, codes, np.full(1_300, 1e-5)), 1e-3
    bits = (1.0 - points(10)[rng.permutation(1_024)[:300]]) / 2
    noise = 1e-7 * np.exp(4 * rng.normal(size=300))
    return CubeSystem(CubeKernel.product(1.0, np.full(10, 0.99)), bits, noise), 1e-6


@pytest.mark.parametrize("kind", ["cube", "grid"])
def test_ill_conditioned_systems_are_solved_in_four_hundred_steps_and_more(kind):
    found, tolerance = ill_conditioned(kind)
    y = np.random.default_rng(10).normal(size=len(found))
    solved = found.solve(y[None], tolerance)
    assert solved.converged
    assert solved.steps >= 400
    assert np.linalg.norm(solved.value[0] @ dense(found) - y) <= 1.2 * tolerance * np.linalg.norm(y)
    few = found.solve(y[None], tolerance, max_steps=solved.steps // 2)
    assert not few.converged
    assert few.residual > tolerance


def test_the_sensitivity_is_the_derivative_of_the_density():
    """By differences of symmetric entries, the values by SciPy."""
    rng = np.random.default_rng(11)
    m = 6
    root, y = rng.normal(size=(m, m)), rng.normal(size=m)
    A = root @ root.T + np.eye(m)
    value, lower = log_density_sensitivity(np.asfortranarray(A), y)
    assert value == pytest.approx(multivariate_normal(np.zeros(m), A).logpdf(y), rel=1e-12)
    for i in range(m):
        for j in range(i + 1):
            unit = np.zeros((m, m))
            unit[i, j] = unit[j, i] = 1e-5
            up, down = (multivariate_normal(np.zeros(m), A + sign * unit).logpdf(y) for sign in (1, -1))
            assert lower[i, j] * (1 if i == j else 2) == pytest.approx((up - down) / 2e-5, abs=1e-7)
    assert not np.triu(lower, 1).any()


def test_a_factor_names_what_is_wrong_and_jitter_mends_it():
    singular = np.ones((4, 4))
    with pytest.raises(np.linalg.LinAlgError, match=r"must be positive definite.* order 2 is not: raise the noise"):
        Cholesky.of(singular.copy(order="F"))
    lower = Cholesky.of(singular.copy(order="F"), jitter=1e-6).lower
    np.testing.assert_allclose(lower @ lower.T, singular + 1e-6 * np.eye(4), atol=1e-12)
    nearly = Cholesky.nearly_of(singular)
    np.testing.assert_allclose(nearly.lower @ nearly.lower.T, singular, atol=1e-11)
    np.testing.assert_array_equal(singular, 1.0)
    assert np.isfinite(Cholesky.nearly_of(-np.eye(3)).lower).all()

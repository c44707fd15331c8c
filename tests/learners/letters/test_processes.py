"""Kernels between letters, their likelihood, and solutions on grids, beside dense computations."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.letters.alphabet import AMINO_ACIDS, features_of
from sparsact.learners.letters.kernel import LetterKernel, prior
from sparsact.learners.letters.process import (
    dual_coefficients,
    log_likelihood_gradient,
    most_probable,
    on_grid,
    system_of,
)

SIZES = (5, 4, 7)


def drawn(seed, m=37):
    """A kernel of three sites, rows, targets and weights."""
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(q, 3)) for q in SIZES]
    kernel = LetterKernel.start(features)
    kernel = kernel.with_theta(kernel.theta + 0.3 * rng.normal(size=kernel.theta.size))
    cells = rng.permutation(int(np.prod(SIZES)))[:m]
    codes = np.stack(np.unravel_index(cells, SIZES), axis=1)
    return kernel, codes, rng.normal(size=m), rng.uniform(0.5, 2, m)


def covariance(kernel, one, other):
    """The kernel by its formula, two rows at a time."""
    found = np.empty((len(one), len(other)))
    start = 2
    found[:] = np.exp(kernel.theta[0])
    for i, features in enumerate(kernel.features):
        q, f = features.shape
        own = kernel.theta[start : start + 2 + f + q * f]
        start += len(own)
        s, h = 1 / (1 + np.exp(-own[:2]))
        z = features * np.exp(own[2 : 2 + f]) + own[2 + f :].reshape(q, f)
        for r, a in enumerate(one[:, i]):
            for c, b in enumerate(other[:, i]):
                near = np.exp(-0.5 * np.sum((z[a] - z[b]) ** 2))
                found[r, c] *= s + (1 - s) * ((1 - h) * near + h * (a == b))
    return found


def log_likelihood(kernel, codes, y, weights):
    matrix = covariance(kernel, codes, codes) + np.diag(kernel.noise_variance / weights)
    return multivariate_normal(np.zeros(len(y)), matrix).logpdf(y)


def test_the_kernel_is_its_formula():
    kernel, codes, _, _ = drawn(0)
    np.testing.assert_allclose(kernel.covariance(codes[:9], codes), covariance(kernel, codes[:9], codes))


@pytest.mark.grid
def test_likelihood_and_its_gradient():
    kernel, codes, y, weights = drawn(1, m=20)
    value, gradient = log_likelihood_gradient(kernel, codes, y, weights)
    assert value == pytest.approx(log_likelihood(kernel, codes, y, weights), rel=1e-5)
    step = 1e-5 * np.eye(kernel.theta.size)
    differences = [
        log_likelihood(kernel.with_theta(kernel.theta + e), codes, y, weights)
        - log_likelihood(kernel.with_theta(kernel.theta - e), codes, y, weights)
        for e in step
    ]
    np.testing.assert_allclose(gradient, np.array(differences) / 2e-5, rtol=1e-3, atol=1e-3)


def test_solutions_on_the_grid_match_the_matrix():
    """Also where a fold is left out, and at letters that no row has."""
    kernel, codes, y, weights = drawn(2, m=61)
    rows = codes[:, 2] != 3  # a letter that is never seen
    codes, y, weights = codes[rows], y[rows], weights[rows]
    new = np.stack(np.unravel_index(np.arange(np.prod(SIZES)), SIZES), axis=1)
    kept = np.stack([np.ones(len(y), dtype=bool), np.arange(len(y)) % 3 > 0])
    noise = kernel.noise_variance / weights
    expected = []
    for mask in kept:
        matrix = covariance(kernel, codes[mask], codes[mask]) + np.diag(noise[mask])
        expected.append(covariance(kernel, new, codes[mask]) @ np.linalg.solve(matrix, y[mask]))
    for grid in (False, True):  # by Cholesky factors, then by conjugate gradients
        system = system_of(kernel, codes, weights, grid=grid)
        alphas = dual_coefficients(system, y, kept)
        for alpha, mask, values in zip(alphas, kept, expected, strict=True):
            assert not alpha[~mask].any()
            np.testing.assert_allclose(Posterior(system, alpha).values(new), values, atol=4e-3)


def test_grids_are_taken_where_they_are_less_work():
    rows = np.indices((11, 11, 11)).reshape(3, -1).T
    assert on_grid(rows[:1_201])
    assert not on_grid(rows[:1_200])  # few rows
    assert not on_grid(np.tile(rows[:1_201], 3))  # 1,331**3 cells


def test_sites_of_one_letter_change_nothing_on_a_grid():
    """However many: NumPy's arrays have 64 axes at most."""
    kernel, codes, y, weights = drawn(5)
    wide = LetterKernel.start([*kernel.features, *[np.zeros((1, 0))] * 70])
    narrow = LetterKernel.start(kernel.features)
    kept = np.ones((1, len(y)), dtype=bool)
    found = []
    for each, rows in ((narrow, codes), (wide, np.pad(codes, [(0, 0), (0, 70)]))):
        system = system_of(each, rows, weights, grid=True)
        found.append(Posterior(system, dual_coefficients(system, y, kept)[0]).values(rows[::-1]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_features():
    letters = "".join(AMINO_ACIDS)
    found = features_of(letters + "*", amino_acids=True)
    np.testing.assert_allclose(found[:20, :7].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(found[:20, :7].std(axis=0), 1)
    assert found.shape == (21, 8)  # a stop has the mean of the properties, and an indicator
    assert not found[20, :7].any()
    # leucine is nearer to isoleucine than to aspartic acid; plain letters are equally far apart
    place = {letter: found[i] for i, letter in enumerate(letters)}
    assert np.linalg.norm(place["L"] - place["I"]) < np.linalg.norm(place["L"] - place["D"])
    plain = features_of("XYZ", amino_acids=False)
    assert len({round(np.linalg.norm(a - b), 9) for i, a in enumerate(plain) for b in plain[:i]}) == 1


def test_the_prior_has_a_place_for_every_parameter():
    features = [np.ones((4, 2)), np.ones((3, 0))]
    means, precisions = prior(features)
    assert means.shape == precisions.shape == (2 + (2 + 2 + 8) + 2,)
    assert LetterKernel.start(features).site_kernels[1].kernel.shape == (3, 3)


@pytest.mark.parametrize("n", [1, 4, 5, 40, 200])
def test_rows_correlate_at_the_start_however_many_sites_they_differ_at(n):
    """At every site they keep the share s: (1 - 2/n)**n, which rises with n, or 1/2**n up to four; never below 1/16."""
    features = [np.eye(3)] * n
    kernel = LetterKernel.start(features, n)
    shares = np.array([site.shared for site in kernel.site_kernels])
    np.testing.assert_allclose(1 - shares, 2 / max(n, 4))
    apart = kernel.covariance(np.zeros((1, n), dtype=np.intp), np.ones((1, n), dtype=np.intp)) / kernel.variance
    assert 1 / 16 <= shares.prod() <= apart[0, 0] < 1


def test_the_search_starts_from_how_many_sites_two_rows_differ_at():
    """In the mean over all pairs of rows, counted here two rows at a time."""
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 2, (23, 31)) * rng.integers(0, 4, (23, 31))
    apart = np.mean([np.count_nonzero(one != other) for one in codes for other in codes])
    assert apart > 5
    kernel = most_probable([np.eye(4)] * 31, codes, rng.normal(size=23), np.ones(23), rng, steps=0)
    np.testing.assert_allclose([1 - site.shared for site in kernel.site_kernels], 2 / apart)

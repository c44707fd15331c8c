"""Kernels on the cube: their formulas, spectra and derivatives, against sums over all subsets and differences."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsact import CubeKernel
from sparsact.hypercube import characters, points
from sparsact.learners.cube_gp.component import Component
from sparsact.learners.cube_gp.hyperparameters import prior_of

N, M = 5, 7
RNG = np.random.default_rng(3)
RHO = RNG.uniform(-0.9, 0.9, N)
DEGREES, SITES, PAIRS = RNG.normal(size=N + 1), RNG.normal(size=N), RNG.normal(size=(N, N))
KERNELS = {
    "product": CubeKernel.product(2.5, RHO),
    "degree": CubeKernel.by_degree([0.3, 1.0, 0.0, 0.5, 0.2, 0.1]),
    "degree x site": CubeKernel.degree_by_site(DEGREES, SITES),
    "degree x site x pair": CubeKernel.degree_by_site(DEGREES, SITES, PAIRS),
    "sum": CubeKernel.product(0.7, RHO[::-1]) + CubeKernel.degree_by_site(DEGREES, SITES, PAIRS),
}
ALL = [subset for size in range(N + 1) for subset in combinations(range(N), size)]
ANY = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def number(subset):
    return sum(1 << i for i in subset)


@ANY
def test_the_kernel_is_the_sum_of_its_spectrum_over_all_subsets(kernel):
    X, Y = points(N)[RNG.integers(0, 2**N, M)], points(N)
    p = np.array([kernel.spectrum[number(subset)] for subset in ALL])
    expected = characters(X, ALL) * p @ characters(Y, ALL).T
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-12, atol=1e-12)
    assert kernel.variance == pytest.approx(p.sum(), rel=1e-13)
    np.testing.assert_allclose(kernel.variances_of(ALL), p, rtol=1e-13)


def test_a_product_kernel_multiplies_a_factor_for_each_column_that_differs():
    X = points(N)
    differing = X[:, None, :] != X[None]
    expected = 2.5 * np.where(differing, RHO, 1.0).prod(axis=2)
    np.testing.assert_allclose(KERNELS["product"](X), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(KERNELS["product"].components[0].correlations, RHO, rtol=1e-12)


def test_variances_by_degree_match_the_parts_of_each_degree():
    kernel = CubeKernel.by_degree([0.3, 1.0, 0.0, 0.5, 0.2, 0.1])
    by_degree = [sum(kernel.spectrum[number(subset)] for subset in ALL if len(subset) == d) for d in range(N + 1)]
    np.testing.assert_allclose(by_degree, [0.3, 1.0, 0.0, 0.5, 0.2, 0.1], rtol=1e-13, atol=1e-80)


def test_degrees_sites_and_pairs_add_up_in_the_logarithm():
    for subset in ALL:
        log_p = DEGREES[len(subset)] + sum(SITES[i] for i in subset)
        log_p += sum(PAIRS[i, j] for j, i in combinations(subset, 2))
        assert KERNELS["degree x site x pair"].spectrum[number(subset)] == pytest.approx(np.exp(log_p), rel=1e-12)


@ANY
def test_bits_and_signs_give_one_covariance(kernel):
    X = points(N)[RNG.integers(0, 2**N, M)]
    np.testing.assert_array_equal(kernel(X), kernel((1 - X) // 2))


def differences(function, theta, step=1e-5):
    units = np.eye(len(theta)) * step
    return np.array([(function(theta + unit) - function(theta - unit)) / (2 * step) for unit in units])


@ANY
def test_derivatives_of_the_spectrum(kernel):
    weights = RNG.normal(size=2**N)
    found = differences(lambda theta: weights @ kernel.with_theta(theta).spectrum, kernel.theta)
    np.testing.assert_allclose(kernel.spectrum_pullback(weights), found, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["product", "degree"])
def test_without_a_table_the_covariance_and_its_derivatives_are_the_same(name):
    kernel, bits = KERNELS[name], RNG.integers(0, 2, (M, N)).astype(float)
    (component,) = kernel.components
    np.testing.assert_allclose(component.covariance(bits, bits), kernel(bits), rtol=1e-12, atol=1e-14)
    weights = RNG.normal(size=(M, M))
    weights += weights.T
    found = differences(
        lambda theta: (weights * component.with_theta(theta).covariance(bits, bits)).sum(), kernel.theta
    )
    np.testing.assert_allclose(component.covariance_pullback(bits, weights), found, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [31, 200])
def test_many_columns(n):
    """Krawtchouk polynomials are integers with K_1 = n - 2h and K_2 = ((n - 2h)^2 - n) / 2."""
    rho, bits = RNG.uniform(0.5, 1, n), RNG.integers(0, 2, (M, n)).astype(float)
    expected = np.where(bits[:, None] != bits, rho, 1.0).prod(axis=2)
    np.testing.assert_allclose(CubeKernel.product(1.0, rho)(bits), expected, rtol=1e-10)
    h = (bits[:, None] != bits).sum(axis=2)
    variances = np.zeros(n + 1)
    variances[[1, 2]] = 2.0, 3.0
    degrees = 2.0 * (n - 2 * h) / n + 3.0 * ((n - 2 * h) ** 2 - n) / (n * (n - 1))
    np.testing.assert_allclose(CubeKernel.by_degree(variances)(bits), degrees, rtol=1e-10, atol=1e-12)


@ANY
def test_scale_and_theta(kernel):
    np.testing.assert_allclose(kernel.times(3.0).spectrum, 9 * kernel.spectrum, rtol=1e-13)
    np.testing.assert_array_equal(kernel.with_theta(kernel.theta).spectrum, kernel.spectrum)


def test_the_prior_is_a_density():
    for name in ("product", "sparse_product", "degree", "degree_site", "degree_site_pair", "degree_site + product"):
        for n in (1, 2, 6):
            prior = prior_of(name, n)
            assert len(prior.mean) == prior.kernel.theta.size + 1
            assert (np.linalg.eigvalsh(prior.precision) > 0).all()
            away = prior.mean + np.random.default_rng(1).normal(size=len(prior.mean))
            _, gradient = prior.log_density(away)
            found = differences(lambda parameters, prior=prior: prior.log_density(parameters)[0], away)
            np.testing.assert_allclose(gradient, found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CubeKernel.product(1.0, [0.5, 1.0]), "strictly between -1 and 1"),
        (lambda: CubeKernel.product(0.0, [0.5]), "positive variance"),
        (lambda: CubeKernel.by_degree([1.0, -1.0]), "none negative"),
        (lambda: CubeKernel.degree_by_site(np.zeros(3), np.zeros(3)), "n \\+ 1 degrees"),
        (lambda: CubeKernel.degree_by_site(np.zeros(22), np.zeros(21)), "n up to 20; got n = 21"),
        (lambda: CubeKernel.product(1.0, [0.5]) + CubeKernel.product(1.0, [0.5, 0.5]), "1 and 2 coordinates"),
        (lambda: CubeKernel.product(1.0, [0.5, 0.5])([[0, -1]]), "0 and -1"),
        (lambda: CubeKernel.product(1.0, [0.5, 0.5])([[0.5, 1]]), "signs or bits"),
        (lambda: CubeKernel.product(1.0, np.full(21, 0.5)).spectrum, "n up to 20; got n = 21"),
    ],
)
def test_bad_kernels_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_values_say_what_they_are():
    assert repr(KERNELS["sum"]).startswith("<CubeKernel on 5 coordinates: 0.7 * product(")
    assert repr(KERNELS["sum"]).endswith("+ degrees x sites x pairs>")
    with pytest.raises(TypeError):
        KERNELS["sum"] + 1
    assert isinstance(KERNELS["sum"].components[0], Component)

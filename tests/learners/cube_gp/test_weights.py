"""What weights mean: a weight w counts as w rows, so that the noise of its target has variance sigma**2 / w."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sparsact import CubeGPRegressor, CubeKernel
from sparsact.hypercube import points
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.cube_gp.posterior import Hyperparameters

N, M = 5, 23


def table(seed, m=M, n=N):
    rng = np.random.default_rng(seed)
    X = rng.choice([-1, 1], (m, n))
    return X, X[:, 0] - 2.0 * X[:, 1] * X[:, 2], rng


def test_a_weight_is_a_number_of_rows():
    X, y, rng = table(11, m=40)
    y, weights = y + rng.normal(size=40) + 3, rng.integers(0, 4, 40).astype(float)
    one = CubeGPRegressor(random_state=0).fit(X, y, weights)
    kept = np.repeat(np.arange(40), weights.astype(int))
    other = CubeGPRegressor(random_state=0).fit(X[kept], y[kept])
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-7)
    assert one.noise_variance_ == pytest.approx(other.noise_variance_, rel=1e-6)


@pytest.mark.parametrize("factor", [0.25, 1.0, 3.7, 40.0])
def test_a_weight_divides_known_noise(factor):
    """Also weights of mean below one, and of rows that stand several times."""
    X, y, rng = table(0)
    y = y + rng.normal(size=M)
    weights = factor * rng.uniform(0.3, 2.0, M)
    kernel = CubeKernel.product(1.5, [0.5, 0.6, 0.7, 0.8, 0.9])
    model = CubeGPRegressor(kernel, noise_variance=0.5, optimizer=None).fit(X, y, weights)
    mean, new = np.average(y, weights=weights), table(1, m=11)[0]
    inverse = np.linalg.inv(kernel(X) + np.diag(0.5 / weights))
    found, deviation = model.predict(new, return_std=True)
    np.testing.assert_allclose(found, mean + kernel(new, X) @ inverse @ (y - mean), rtol=1e-9)
    variance = 1.5 - np.einsum("ij,jk,ik->i", kernel(new, X), inverse, kernel(new, X))
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-7)


def test_the_likelihood_is_taken_over_all_measurements():
    """Weights that are not whole: each row is one measurement, also where several rows have one point."""
    X, y, rng = table(2)
    X[4:8] = X[:4]
    y = y + rng.normal(size=M)
    weights = rng.uniform(0.01, 30.0, M)
    kernel = CubeKernel.product(1.5, [0.5, 0.6, 0.7, 0.8, 0.9])
    model = CubeGPRegressor(kernel, noise_variance=0.5, optimizer=None).fit(X, y, weights)
    centred = y - np.average(y, weights=weights)
    right = multivariate_normal(cov=kernel(X) + np.diag(0.5 / weights)).logpdf(centred)
    assert model.log_marginal_likelihood_value_ == pytest.approx(right, rel=1e-9)
    assert model.log_marginal_likelihood() == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("factor", [1e-90, 1e-3, 1e3, 1e90])
def test_a_common_factor_of_precisions_is_one_of_the_noise(factor):
    X, y, rng = table(3, m=47)
    y = y + 0.3 * rng.normal(size=47)
    weights = rng.uniform(0.3, 3.0, 47)
    one = CubeGPRegressor("product", random_state=0).fit(X, y, weights)
    other = CubeGPRegressor("product", random_state=0).fit(X, y, factor * weights)
    assert other.noise_variance_ == pytest.approx(factor * one.noise_variance_, rel=1e-4)
    np.testing.assert_allclose(other.predict(X, return_std=True), one.predict(X, return_std=True), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("n", "m", "unit"), [(7, 150, 1.0), (22, 160, 1e3)])
def test_raw_precisions_of_a_huge_range_give_right_intervals(n, m, unit):
    """Standard deviations over six decades; the noise of weight 1 is 1, and 90 % intervals hold the function.

    The estimated logarithm of the noise has a deviation of about sqrt(2 / m): .12. Wrong by chance once in 1e5.
    """
    X, f, rng = table(4, m, n)
    sigma = 10 ** rng.uniform(-5, 1, m)
    y = unit * (f + sigma * rng.normal(size=m))
    model = CubeGPRegressor("product", random_state=0).fit(X, y, (unit * sigma) ** -2)
    assert np.exp(-0.6) < model.noise_variance_ < np.exp(0.6)
    new, truth, _ = table(5, 211, n)
    mean, deviation = model.predict(new, return_std=True)
    assert np.mean(np.abs(mean - unit * truth) < 1.645 * deviation) > 0.8
    assert np.abs(mean / unit - truth).max() < 0.01


@pytest.mark.parametrize("m", [5, M])  # matrices of the rows, and tables of all points
@pytest.mark.parametrize(
    "kernel",
    [CubeKernel.product(1.5, np.linspace(0.5, 0.9, N)), CubeKernel.degree_by_site(-np.arange(N + 1.0), np.zeros(N))],
)
def test_derivatives_where_the_noise_has_a_floor(kernel, m):
    """Rows of almost no noise have that of 1e-10 of the kernel's variance, which the derivatives know of."""
    rng = np.random.default_rng(6)
    X = points(N)[rng.permutation(2**N)[:m]]
    weights = np.where(np.arange(m) % 3, 1e13, 10.0 ** rng.uniform(-1, 2, m))
    rows = DistinctRows.of((1.0 - X) / 2, rng.normal(size=m), weights)
    assert 1 < (rows.noise(0.5, kernel.variance) == 1e-10 * kernel.variance).sum() < len(rows)

    def value(theta, noise):
        return Hyperparameters(kernel.with_theta(theta), noise).log_likelihood(rows)

    found, by_kernel, by_noise = Hyperparameters(kernel, 0.5).log_likelihood_gradient(rows)
    assert found == pytest.approx(value(kernel.theta, 0.5), rel=1e-12)
    step = 1e-4 * np.eye(kernel.theta.size)
    differences = [value(kernel.theta + one, 0.5) - value(kernel.theta - one, 0.5) for one in step]
    np.testing.assert_allclose(by_kernel, np.array(differences) / 2e-4, rtol=1e-3, atol=1e-3)
    slope = (value(kernel.theta, 0.5001) - value(kernel.theta, 0.4999)) / 2e-4
    assert by_noise == pytest.approx(slope, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("constant", [-3.0, 0.0, 1e9, 1e-200])
def test_a_constant_target_is_known_to_its_rounding(constant):
    X, _, _ = table(7)
    model = CubeGPRegressor(random_state=0).fit(X, np.full(M, constant))
    mean, deviation = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, constant, rtol=1e-13, atol=1e-13)
    assert deviation.max() <= 1e-14 * (abs(constant) or 1.0)
    assert np.ptp(model.prediction_intervals(X), axis=1).max() <= 1e-14 * (abs(constant) or 1.0)

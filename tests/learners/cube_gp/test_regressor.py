"""CubeGPRegressor against dense linear algebra, scikit-learn's Gaussian process, and draws from the prior."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from sparsact import CubeGPRegressor, CubeKernel, load
from sparsact.hypercube import characters, points, signs_to_bits
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems import cube

N, M = 5, 19
RHO = np.array([0.9, 0.2, -0.3, 0.7, 0.5])
PRODUCT = CubeKernel.product(1.7, RHO)
DEGREES = CubeKernel.degree_by_site(
    [0.0, -0.5, -2.0, -3.0, -4.0, -5.0], [0.3, -1.0, 0.2, 0.0, 0.5], np.full((N, N), 0.2)
)
ALL = [subset for size in range(N + 1) for subset in combinations(range(N), size)]


def table(seed=0, m=M, n=N):
    """Points drawn with repetition, targets, and weights, some of them zero."""
    rng = np.random.default_rng(seed)
    X = points(n)[rng.integers(0, 2**n, m)]
    y = X[:, 0] - 2.0 * X[:, 1] * X[:, 2] + rng.normal(size=m) + 3
    return X, y, rng.integers(0, 4, m).astype(float)


def fixed(kernel, noise=0.3, **options):
    return CubeGPRegressor(kernel, noise_variance=noise, optimizer=None, random_state=0, **options)


def dense(kernel, X, y, weights, noise=0.3):
    """Posterior mean and covariance of all coefficients by the formulas for a matrix of all rows, written out."""
    kept = np.repeat(np.arange(len(y)), weights.astype(int))
    X, y = X[kept], y[kept]
    p = kernel.variances_of(ALL)
    features = characters(X, ALL)
    inverse = np.linalg.inv(features * p @ features.T + noise * np.eye(len(y)))
    gain = (features * p).T @ inverse
    return gain @ (y - y.mean()), np.diag(p) - gain @ features * p


class HandWritten(Kernel):
    """A variance times the product of a factor for each column that differs, as scikit-learn calls it."""

    def __init__(self, variance=1.7):
        self.variance = variance

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        covariance = self.variance * np.where(X[:, None] != Y, RHO, 1.0).prod(axis=2)
        return (covariance, np.empty((*covariance.shape, 0))) if eval_gradient else covariance

    def diag(self, X):
        return np.full(len(X), self.variance)

    def is_stationary(self):
        return True


def test_predictions_match_scikit_learn():
    X, y, _ = table()
    model = fixed(PRODUCT).fit(X, y)
    theirs = GaussianProcessRegressor(HandWritten(), alpha=0.3, optimizer=None).fit(X, y - y.mean())
    mean, deviation = theirs.predict(points(N), return_std=True)
    ours, spread = model.predict(points(N), return_std=True)
    np.testing.assert_allclose(ours, mean + y.mean(), atol=1e-10)
    np.testing.assert_allclose(spread, deviation, atol=1e-8)
    likelihood = theirs.log_marginal_likelihood_value_
    assert model.log_marginal_likelihood() == pytest.approx(likelihood, rel=1e-10)
    assert model.log_marginal_likelihood_value_ == pytest.approx(likelihood, rel=1e-10)


def test_few_rows_and_columns_that_say_nothing():
    np.testing.assert_allclose(CubeGPRegressor().fit([[1, -1]], [2.5]).predict([[1, -1], [-1, -1]]), 2.5)
    X, y, _ = table(14)
    constant = CubeGPRegressor(random_state=0).fit(np.column_stack([X, np.ones(M)]), y)
    assert np.isfinite(constant.predict(np.column_stack([X, -np.ones(M)]))).all()
    same = CubeGPRegressor(random_state=0).fit(X, np.full(M, 7.0))
    np.testing.assert_allclose(same.predict(X), 7.0)
    two_values = CubeGPRegressor(random_state=0).fit(np.where(X > 0, 8.5, 3.0), y)
    np.testing.assert_allclose(two_values.predict(np.where(X > 0, 8.5, 3.0)), two_values.fit(1 - X, y).predict(1 - X))


@pytest.mark.parametrize("kernel", [PRODUCT, DEGREES], ids=["product", "degrees"])
def test_the_posterior_matches_dense_matrices(kernel):
    X, y, weights = table()
    model = fixed(kernel).fit(X, y, weights)
    mean, covariance = dense(kernel, X, y, weights)
    mean[0] += np.average(y, weights=weights)
    np.testing.assert_allclose([model.spectrum_.coefficient(S) for S in ALL], mean, atol=1e-12)
    np.testing.assert_allclose(model.standard_errors(ALL), np.sqrt(np.diag(covariance)), atol=1e-8)
    cube = characters(points(N), ALL)
    predicted, deviation = model.predict(points(N), return_std=True)
    np.testing.assert_allclose(predicted, cube @ mean, atol=1e-12)
    np.testing.assert_allclose(deviation, np.sqrt(np.diag(cube @ covariance @ cube.T)), atol=1e-8)
    low, high = model.prediction_intervals(points(N), 0.9).T
    np.testing.assert_allclose((low + high) / 2, predicted, atol=1e-12)
    np.testing.assert_allclose((high - low) / 2, 1.6448536269514722 * np.hypot(deviation, np.sqrt(0.3)), rtol=1e-7)
    np.testing.assert_allclose(model.kernel_(X), kernel(X), rtol=1e-12, atol=1e-12)
    by_rows = model.y_mean_ + model.kernel_(points(N), model.X_train_) @ model.alpha_
    np.testing.assert_allclose(by_rows, predicted, atol=1e-12)
    assert {tuple(row) for row in model.X_train_.tolist()} == {tuple(row) for row in X[weights > 0].tolist()}


LONG = CubeKernel.product(1.2, np.linspace(-0.3, 0.9, 8)) + CubeKernel.by_degree(0.5 ** np.arange(9.0))


@pytest.mark.parametrize(
    ("kernel", "m"),
    [(PRODUCT, M), (DEGREES, M), (PRODUCT + DEGREES, M), (LONG, 14), (LONG, 100)],
    ids=["product", "degrees", "both", "own matrices", "a table"],
)
def test_the_likelihood_is_the_density_of_all_rows_and_has_its_derivatives(kernel, m):
    """Weights are numbers of rows; with eight columns, 14 rows take matrices of their own and 100 a table."""
    X, y, weights = table(1, m, kernel.n)
    model = fixed(kernel).fit(X, y, weights)
    kept = np.repeat(np.arange(m), weights.astype(int))

    def expected(theta):
        covariance = kernel.with_theta(theta[:-1])(X[kept]) + np.exp(theta[-1]) * np.eye(len(kept))
        return multivariate_normal.logpdf(y[kept] - y[kept].mean(), np.zeros(len(kept)), covariance)

    theta = np.append(kernel.theta, np.log(0.3))
    moved = theta + 0.1 * np.random.default_rng(3).normal(size=len(theta))
    assert model.log_marginal_likelihood() == pytest.approx(expected(theta), rel=1e-11)
    assert model.log_marginal_likelihood(moved) == pytest.approx(expected(moved), rel=1e-11)
    given, rows = model._posterior.given, model._posterior.rows
    _, by_kernel, by_noise = given.log_likelihood_gradient(rows)
    found = [(expected(theta + unit) - expected(theta - unit)) / 2e-5 for unit in 1e-5 * np.eye(len(theta))]
    np.testing.assert_allclose(np.append(by_kernel, by_noise * given.noise_variance), found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [23, 31])
def test_more_columns_than_a_table_holds(n):
    rng = np.random.default_rng(5)
    X = rng.choice([-1, 1], (40, n))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=40)
    kernel = CubeKernel.product(1.2, rng.uniform(0.3, 0.9, n))
    model = fixed(kernel).fit(X, y)
    covariance = 1.2 * np.where(X[:, None] != X, kernel.components[0].correlations, 1.0).prod(axis=2)
    inverse = np.linalg.inv(covariance + 0.3 * np.eye(40))
    np.testing.assert_allclose(model.predict(X), y.mean() + covariance @ inverse @ (y - y.mean()), atol=1e-10)
    _, deviation = model.predict(X, return_std=True)
    np.testing.assert_allclose(deviation**2, np.diag(covariance - covariance @ inverse @ covariance), atol=1e-10)
    subsets = [(), (0,), (1, 2)]
    r = kernel.components[0].correlations
    prior = 1.2 * np.array([np.prod([(1 - r[i]) / 2 if i in S else (1 + r[i]) / 2 for i in range(n)]) for S in subsets])
    cross = characters(X, subsets) * prior
    expected = prior - np.einsum("ms,mk,ks->s", cross, inverse, cross)
    np.testing.assert_allclose(model.standard_errors(subsets) ** 2, expected, rtol=1e-8, atol=1e-14)
    fitted = CubeGPRegressor("product + degree", random_state=0).fit(X, y)
    assert np.mean((fitted.predict(X) - y) ** 2) < 0.1 * y.var()
    with pytest.raises(AttributeError, match="name some subsets"):
        _ = model.spectrum_


@pytest.fixture
def iterative(monkeypatch):
    monkeypatch.setattr(cube, "DIRECT_ROWS", 10)
    monkeypatch.setattr(cube, "DIRECT_WORK", 0.0)


@pytest.mark.parametrize(
    ("largest_error", "learned", "furthest"), [(0.0, False, 0.31), (np.inf, False, 0.31), (10.0, True, np.inf)]
)
def test_large_tables_give_the_same_posterior(largest_error, learned, furthest, iterative, monkeypatch):
    """Means to the tolerance of the solver; variances are means of 520 squares: a deviation of 1/16, so five are .31.

    Of some 400 variances the share beyond 20 % (3.2 deviations) is below 2 % but for a probability of 1e-6. Where
    kernel and noise are learned, both average over the same draws, and each draw has 26 squares: the mean of all
    ratios deviates by .06 to .1, and few ratios by .4.
    """
    monkeypatch.setattr(cube, "LARGEST_ERROR", largest_error)
    rng, n = np.random.default_rng(7), 8
    X, kernel = points(n)[rng.permutation(2**n)[:90]], CubeKernel.product(2.0, rng.uniform(0.3, 0.95, n))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=90)

    def posterior():
        model = (CubeGPRegressor("product", random_state=0) if learned else fixed(kernel)).fit(X, y)
        mean, deviation = model.predict(points(n), return_std=True)
        return model._posterior.best.system.is_direct, mean, np.concatenate([deviation, model.standard_errors()])

    is_direct, values, spread = posterior()
    assert not is_direct
    cube.DIRECT_ROWS = 1024  # undone by the fixture
    _, expected, exact = posterior()
    np.testing.assert_allclose(values, expected, atol=1e-6)
    away = abs((spread / exact) ** 2 - 1)
    assert away.max() < furthest
    assert (away > (0.4 if learned else 0.2)).mean() < (0.03 if learned else 0.02)
    assert abs(np.mean((spread / exact) ** 2) - 1) < 0.1


def test_draws_have_the_moments_of_the_posterior():
    """4,000 draws: means within five standard errors, covariances within 15 % of the variances."""
    X, y, _ = table(8)
    model = fixed(PRODUCT).fit(X, y)
    rows = points(N)[[0, 3, 9, 30]]
    draws = model.sample_y(rows, 4_000, random_state=1)
    mean, deviation = model.predict(rows, return_std=True)
    assert (abs(draws.mean(axis=1) - mean) < 5 * deviation / np.sqrt(4_000)).all()
    _, covariance = dense(PRODUCT, X, y, np.ones(M))
    expected = characters(rows, ALL) @ covariance @ characters(rows, ALL).T
    np.testing.assert_allclose(np.cov(draws), expected, atol=0.15 * deviation.max() ** 2)
    by_rows = Posterior.draws_at(model._posterior.best, (1 - rows) / 2, 4_000, np.random.default_rng(2))
    np.testing.assert_allclose(np.cov(by_rows.T) * model._posterior.unit**2, expected, atol=0.15 * deviation.max() ** 2)
    parts = model.variance_decomposition(500, random_state=2)
    assert parts.by_degree.draws.shape == (500, N + 1)
    squares = model.spectrum_.coefficients**2 + model.standard_errors() ** 2
    sizes = np.bitwise_count(np.arange(2**N))
    by_degree = np.array([squares[sizes == d].sum() for d in range(N + 1)])
    error = parts.by_degree.standard_deviation() / np.sqrt(500)
    assert (abs(parts.by_degree.mean() - by_degree) < 5 * error).all()
    influences = np.array([squares[np.arange(2**N) >> i & 1 == 1].sum() for i in range(N)])
    error = parts.influences.standard_deviation() / np.sqrt(500)
    assert (abs(parts.influences.mean() - influences) < 5 * error).all()
    np.testing.assert_allclose(parts.shares.draws.sum(axis=1), 1.0)
    low, high = parts.influences.interval(0.9).T
    inside = (parts.influences.draws >= low) & (parts.influences.draws <= high)
    np.testing.assert_allclose(inside.mean(axis=0), 0.9, atol=0.01)


@pytest.mark.parametrize(
    "kernel", ["auto", "product", "sparse_product", "degree", "degree_site_pair", "degree_site + product"]
)
def test_kernels_by_name_learn(kernel):
    rng = np.random.default_rng(9)
    X = rng.integers(0, 2, (150, 8))
    signs = 1 - 2 * X
    f = signs[:, 0] + signs[:, 1] * signs[:, 2]
    model = CubeGPRegressor(kernel, random_state=0).fit(X[:100], f[:100] + 0.2 * rng.normal(size=100))
    assert np.mean((model.predict(X[100:]) - f[100:]) ** 2) < 0.15 * f.var()
    assert {S for S, _ in model.spectrum_.top(2)} == {(0,), (1, 2)}


def test_a_sparse_product_finds_few_columns_in_few_rows():
    """Three of 11 columns matter, and 20 rows are known: eight draws show less of a gain once in 3,000 times."""
    X, ratios = signs_to_bits(points(11)), []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        a, b, c = X[:, rng.choice(11, 3, replace=False)].T
        f, rows = (1.0 + 3.0 * a) * (1.0 + 2.0 * b) + c, rng.permutation(len(X))[:20]
        errors = [
            np.mean((CubeGPRegressor(kernel, random_state=0).fit(X[rows], f[rows]).predict(X) - f) ** 2)
            for kernel in ("sparse_product", "product")
        ]
        ratios.append(errors[0] / errors[1])
    assert np.log(ratios).mean() < -0.7


def test_the_search_finds_a_stationary_point():
    """At the parameters found, the derivative of the log posterior density is small next to those at the start."""
    X, y, _ = table(10, m=70)
    model = CubeGPRegressor("product", random_state=0).fit(X, y)
    better = model.log_marginal_likelihood()
    prior = CubeGPRegressor("product", optimizer=None).fit(X, y)
    assert better > prior.log_marginal_likelihood() + 1
    for i in range(N):  # each relevant column tells, and the others do not
        assert (model.kernel_.components[0].correlations[i] < 0.9) == (i < 3)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_of_the_target(scale):
    X, y, _ = table(12)
    one, other = (CubeGPRegressor(random_state=0).fit(X, values) for values in (y, y * scale))
    np.testing.assert_allclose(other.predict(X) / scale, one.predict(X), rtol=1e-6)
    np.testing.assert_allclose(other.standard_errors() / scale, one.standard_errors(), rtol=1e-6)


def test_inputs_and_the_global_generator_stay_as_they_were():
    X, y, weights = table(13)
    copies, state = [X.copy(), y.copy(), weights.copy()], np.random.get_state()[1].copy()  # noqa: NPY002
    model = CubeGPRegressor(random_state=0).fit(X, y, weights)
    model.predict(X, return_std=True)
    model.sample_y(X, 2)
    model.variance_decomposition(3)
    for now, before in zip((X, y, weights), copies, strict=True):
        np.testing.assert_array_equal(now, before)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("kernel", ["degree_site_pair + product", PRODUCT])
def test_a_file_gives_back_the_model(kernel, tmp_path):
    X, y, weights = table(18)
    for rows in (X, X + np.random.default_rng(0).normal(size=X.shape)):
        model = CubeGPRegressor(kernel, random_state=0).fit(rows, y, weights)
        model.save(tmp_path / "model.sparsact")
        again = load(tmp_path / "model.sparsact")
        for mine, its in zip(model.predict(rows, return_std=True), again.predict(rows, return_std=True), strict=True):
            np.testing.assert_array_equal(its, mine)
        np.testing.assert_array_equal(again.standard_errors(), model.standard_errors())
        assert (repr(again.kernel_), str(again.kernel)) == (repr(model.kernel_), str(kernel))
        assert again.log_marginal_likelihood() == model.log_marginal_likelihood()


def test_two_values_are_cut_between_them():
    X, y, _ = table(14)
    two_values = CubeGPRegressor(random_state=0).fit(np.where(X > 0, 8.5, 3.0), y)
    np.testing.assert_allclose(two_values.predict(np.where(X > 0, 8.5, 3.0)), two_values.fit(1 - X, y).predict(1 - X))

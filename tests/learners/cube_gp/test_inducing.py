"""Many rows of many columns: inducing points and conjugate gradients against dense linear algebra."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sparsact import CubeGPRegressor, CubeKernel, load
from sparsact.hypercube import characters
from sparsact.learners.cube_gp.kernel import CubeKernel as Kernel
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.cube_gp.posterior import Hyperparameters
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.systems.inducing import InducingSystem

N, M, NOISE = 23, 140, 0.2
SUBSETS = [(), (0,), (1, 2), (3, 5, 7)]


@pytest.fixture(autouse=True)
def many(monkeypatch):
    """Nearly exact solutions."""
    monkeypatch.setattr(InducingSystem, "tolerance", 1e-8)


def kernels(n=N):
    rng = np.random.default_rng(1)
    rho = rng.uniform(0.2, 0.95, n)
    rho[[2, 5]] *= -0.4
    product, degrees = CubeKernel.product(1.3, rho), CubeKernel.by_degree(0.3 ** np.arange(n + 1.0))
    return {"product": product, "degrees": degrees, "both": product + degrees}


def table(seed=0, m=M, n=N):
    """Points, some of them several times, targets and weights."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1, 1], (m, n))
    X[-9:] = X[:9]
    y = X[:, 0] - 2.0 * X[:, 1] * X[:, 2] + rng.normal(size=m) + 3
    return X, y, rng.uniform(0.5, 3.0, m)


def model_of(kernel, **options):
    """A model that takes inducing points beyond 30 rows."""
    model = CubeGPRegressor(kernel, random_state=0, **options)
    model._most_direct_rows = 30
    return model


def fixed(kernel, **options):
    return model_of(kernel, noise_variance=NOISE, optimizer=None, **options)


def exact(kernel, X, y, weights, new):
    """Mean and variance at new rows, and of coefficients, by a matrix of all rows, written out."""
    centre = np.average(y, weights=weights)
    inverse = np.linalg.inv(kernel(X) + np.diag(NOISE / weights))
    cross = kernel(X, new)
    mean = centre + cross.T @ inverse @ (y - centre)
    variance = kernel.variance - np.einsum("ik,ij,jk->k", cross, inverse, cross)
    prior = kernel.variances_of(SUBSETS)
    features = np.stack([X[:, list(subset)].prod(axis=1) for subset in SUBSETS], axis=1) * prior
    coefficients = features.T @ inverse @ (y - centre) + [centre, 0, 0, 0]
    return mean, variance, coefficients, prior - np.einsum("ik,ij,jk->k", features, inverse, features)


@pytest.mark.parametrize("name", ["product", "degrees", "both"])
def test_products_match_the_matrix(name):
    kernel, X = kernels()[name], table()[0]
    vectors = np.random.default_rng(2).normal(size=(3, M))
    found = kernel.products((1.0 - X) / 2, tile=32)(vectors)  # several tiles
    np.testing.assert_allclose(found, vectors @ kernel(X), atol=2e-5)


@pytest.mark.parametrize("name", ["product", "degrees", "both"])
def test_all_rows_as_inducing_points_give_the_dense_posterior(name, monkeypatch):
    """Then conjugate gradients begin at the solution, in double precision."""
    monkeypatch.setattr(InducingSystem, "tolerance", 1e-3)
    kernel, (X, y, weights) = kernels()[name], table()
    new = np.random.default_rng(3).choice([-1, 1], (41, N))
    rows = DistinctRows.of((1.0 - X) / 2, y, weights)
    centred = rows.standardized(rows.mean, 1.0)
    system = Hyperparameters(kernel, NOISE).system(centred, np.arange(len(rows)))
    posterior = Posterior(system, system.dual_coefficients(centred.y))
    mean, variance, coefficients, of_coefficients = exact(kernel, X, y, weights, new)
    np.testing.assert_allclose(rows.mean + posterior.values((1.0 - new) / 2), mean, atol=1e-6)
    np.testing.assert_allclose(posterior.variances((1.0 - new) / 2), variance, atol=1e-6)
    prior = kernel.variances_of(SUBSETS)
    means, variances = posterior.moments(characters(1 - 2 * rows.bits, SUBSETS) * prior, prior)
    means[0] += rows.mean
    np.testing.assert_allclose(means, coefficients, atol=1e-6)
    np.testing.assert_allclose(variances, of_coefficients, atol=1e-6)
    draws = posterior.draws_at((1.0 - new[:2]) / 2, 4_000, np.random.default_rng(4))
    np.testing.assert_allclose(draws.var(axis=0), variance[:2], rtol=0.15)  # beyond 6 deviations


@pytest.mark.parametrize("name", ["product", "both"])
def test_means_and_effects_are_exact_and_variances_near(name):
    kernel, (X, y, weights) = kernels()[name], table()
    new = np.random.default_rng(3).choice([-1, 1], (41, N))
    model = fixed(kernel, max_inducing=37).fit(X, y, weights)
    assert model.n_inducing_ == 37
    mean, variance, coefficients, of_coefficients = exact(kernel, X, y, weights, new)
    found, deviation = model.predict(new, return_std=True)
    np.testing.assert_allclose(found, mean, atol=3e-5)  # products have single precision
    assert abs(deviation / np.sqrt(variance) - 1).max() < 0.25
    assert abs((deviation / np.sqrt(variance)).mean() - 1) < 0.05
    np.testing.assert_allclose(model.confidence_intervals(SUBSETS).mean(axis=1), coefficients, atol=3e-5)
    np.testing.assert_allclose(model.standard_errors(SUBSETS) ** 2, of_coefficients, rtol=1e-3)
    np.testing.assert_allclose(model._posterior.means_of(SUBSETS), coefficients, atol=3e-5)


def test_the_likelihood_is_taken_over_all_rows():
    kernel, (X, y, weights) = kernels()["product"], table(5)
    counts = np.ceil(weights).astype(int)
    kept = np.repeat(np.arange(M), counts)
    covariance = kernel(X[kept]) + NOISE * np.eye(len(kept))
    expected = multivariate_normal.logpdf(y[kept] - y[kept].mean(), np.zeros(len(kept)), covariance)
    model = fixed(kernel, max_inducing=31).fit(X, y, counts)
    assert model.n_inducing_ == 31
    assert model.log_marginal_likelihood() == pytest.approx(expected, rel=1e-9)


def test_left_out_errors_match_exact_posteriors():
    """Errors are exact but for the deviations, which inducing points give."""
    X, y, _ = table(6)
    posterior = fixed(kernels()["product"], max_inducing=60).fit(X, y)._posterior
    rows, system = posterior.rows, posterior.inducing
    A = system.kernel.covariance(rows.bits, rows.bits) + np.diag(NOISE / rows.weights / y.var())
    inverse = np.linalg.inv(A)
    exact = inverse @ rows.y / np.sqrt(np.diag(inverse))
    places = system._places(1_024)
    assert len(places) == len(rows) - 60
    np.testing.assert_allclose(system.left_out_errors(posterior.best.alpha), exact[places], rtol=0.1, atol=1e-4)


@pytest.mark.grid
def test_error_falls_with_the_rows_and_intervals_hold(monkeypatch):
    """All of 900 rows are used where 60 are inducing points; of 500 new rows 95 % are held, with a deviation of 1 %."""
    rng = np.random.default_rng(7)
    X = rng.choice([-1, 1], (1400, 26))
    f = X[:, 0] + X[:, 1] * X[:, 2] - X[:, 3] * X[:, 4] * X[:, 5] + 0.5 * X[:, 10:14].sum(axis=1)
    y = f + 0.5 * rng.normal(size=len(f))
    kernel = CubeKernel.product(4.0, np.where(np.isin(np.arange(26), [0, 1, 2, 3, 4, 5, 10, 11, 12, 13]), 0.7, 0.999))
    monkeypatch.setattr(InducingSystem, "tolerance", 1e-3)
    errors = []
    for m in (100, 300, 900):
        model = model_of(kernel, noise_variance=0.25, optimizer=None, max_inducing=60)
        mean, deviation = model.fit(X[:m], y[:m]).predict(X[900:], return_std=True)
        errors.append(np.mean((mean - f[900:]) ** 2))
    assert errors[2] < 0.6 * errors[1] < 0.5 * errors[0]
    low, high = model.prediction_intervals(X[900:]).T
    assert 0.92 < ((low <= y[900:]) & (y[900:] <= high)).mean() < 0.99
    assert (abs(mean - f[900:]) <= 1.96 * deviation).mean() > 0.9


@pytest.mark.grid
def test_repeated_rows_are_merged_and_weights_count():
    X, y, _ = table(8)
    counts = np.random.default_rng(9).integers(1, 4, M)
    kept = np.repeat(np.arange(M), counts)
    one = fixed("product", max_inducing=45).fit(X, y, counts)
    other = fixed("product", max_inducing=45).fit(X[kept], y[kept])
    assert len(other.X_train_) == len(one.X_train_) == M - 9
    np.testing.assert_allclose(other.predict(X, return_std=True), one.predict(X, return_std=True), atol=1e-4)


def test_sixty_four_columns_a_file_and_draws(tmp_path):
    X, y, _ = table(10, n=64)
    model = model_of("auto", max_inducing=50, n_hyperparameter_rows=90).fit(X, y)
    model.save(tmp_path / "model.sparsact")
    again = load(tmp_path / "model.sparsact")
    assert again.n_inducing_ == 50
    for mine, its in zip(model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(its, mine)
    np.testing.assert_array_equal(again.prediction_intervals(X[:5]), model.prediction_intervals(X[:5]))
    assert model.sample_y(X[:3], 7).shape == (3, 7)
    pickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(pickled.predict(X, return_std=True), model.predict(X, return_std=True))
    with pytest.raises(AttributeError, match="name some subsets"):
        model.variance_decomposition(5)


def test_exact_where_points_are_as_many_as_rows():
    X, y, _ = table(11)
    model = fixed(kernels()["product"], max_inducing=M).fit(X, y)
    assert model.n_inducing_ == 0
    assert isinstance(model.kernel_, Kernel)
    assert fixed("product", max_inducing=5).fit(X[:, :8], y).n_inducing_ == 0  # a table of 2**8


def test_memory_depends_on_the_inducing_points_alone(monkeypatch):
    """A matrix of 4,500 rows would take 162 MB."""
    monkeypatch.setattr(InducingSystem, "tolerance", 1e-2)
    rng = np.random.default_rng(15)
    X = rng.choice([-1, 1], (4_500, 21)).astype(np.int8)
    tracemalloc.start()
    fixed(CubeKernel.product(1.0, np.full(21, 0.9)), max_inducing=90).fit(X, rng.normal(size=4_500))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


def test_rows_of_other_folds_predict():
    """The measurements of a point may lie in several folds, and some have no weight."""
    X, y, weights = table(13)
    weights[[11, 20]] = 0.0
    folds = np.random.default_rng(14).integers(0, 3, M)
    model = fixed(kernels()["product"], max_inducing=40).fit(X, y, weights)
    found = model._out_of_fold(X, y, weights, folds)
    kernel, centre = kernels()["product"], np.average(y, weights=weights)
    for fold in range(3):
        left = folds == fold
        kept = ~left & (weights > 0)
        A = kernel(X[kept]) + np.diag(NOISE / weights[kept])
        expected = centre + kernel(X[left], X[kept]) @ np.linalg.solve(A, y[kept] - centre)
        weighed = weights[left] > 0
        np.testing.assert_allclose(found[left][weighed], expected[weighed], atol=5e-5)
    np.testing.assert_allclose(found[weights == 0], model.predict(X[weights == 0]), atol=1e-12)

"""Hyperparameters from all rows: derivatives against dense matrices, and what the search gains."""

from __future__ import annotations

import numpy as np
import pytest

from sparsact import CubeGPRegressor, CubeKernel
from sparsact.hypercube import points
from sparsact.learners.cube_gp import fisher_scoring, posterior
from sparsact.learners.cube_gp.hyperparameters import NOISE_FLOOR, HyperparameterPosterior, prior_of
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.gp.systems.cube import factor_is_faster

N = 6
RNG = np.random.default_rng(0)


def some_rows(m):
    codes = RNG.permutation(2**N)[:m]
    bits = (codes[:, None] >> np.arange(N) & 1).astype(float)
    return DistinctRows(bits, *RNG.uniform([[-2], [0.5], [0], [1], [-1]], [[2], [2], [1], [3], [1]], (5, m)))


@pytest.mark.parametrize("name", ["product", "degree", "degree_site_pair + product"])
@pytest.mark.parametrize("known", [None, 0.3])
@pytest.mark.parametrize("direct", [False, True])
def test_the_gradient_matches_the_likelihood(name, known, direct, monkeypatch):
    """Probes that are the unit vectors, times the root of their number, have the exact trace."""
    monkeypatch.setattr(posterior, "factor_is_faster", lambda *_: direct)
    m = 29
    rows, prior = some_rows(m), prior_of(name, N)
    found = HyperparameterPosterior(prior, rows, known, prior.mean)
    gradient = fisher_scoring._gradient(found, rows, np.sqrt(m) * np.eye(m), tolerance=1e-12)
    best = found.best
    _, by_kernel, by_noise = best.log_likelihood_gradient(rows)
    by_log_noise = by_noise * (best.noise_variance - NOISE_FLOOR) if known is None else 0.0
    np.testing.assert_allclose(gradient, np.append(by_kernel, by_log_noise), rtol=1e-7, atol=1e-8)


def test_factors_are_made_where_they_take_less_time():
    """For few rows, and for up to 4,096 if the cube is so large that a step of conjugate gradients takes longer."""
    assert factor_is_faster(1_024, 5)
    assert not factor_is_faster(1_025, 5)
    assert factor_is_faster(2_048, 16)
    assert not factor_is_faster(4_000, 16)
    assert factor_is_faster(4_096, 20)
    assert not factor_is_faster(4_097, 20)


def test_the_information_of_the_whole_cube_is_exact():
    r"""There the eigenvalues are :math:`2^n p_S + \sigma^2`: half the trace of (A^-1 dA/dk)(A^-1 dA/dl)."""
    m = 2**N
    rows, prior = some_rows(m), prior_of("degree_site + product", N)
    rows = DistinctRows(rows.bits, rows.y, *np.array([[1.0], [0.0], [1.0], [0.0]]) * np.ones(m))
    found = HyperparameterPosterior(prior, rows, None, prior.mean)
    kernel, noise = found.best.kernel, found.best.noise_variance
    inverse = np.linalg.inv(kernel(1 - 2 * rows.bits) + noise * np.eye(m))
    step, derivatives = 1e-5, []
    for unit in step * np.eye(kernel.theta.size):
        up, down = (kernel.with_theta(kernel.theta + sign * unit)(1 - 2 * rows.bits) for sign in (1, -1))
        derivatives.append(inverse @ (up - down) / (2 * step))
    derivatives.append(inverse * (noise - NOISE_FLOOR))
    expected = 0.5 * np.array([[np.trace(one @ other) for other in derivatives] for one in derivatives])
    information = fisher_scoring._fisher_information(found, rows)
    np.testing.assert_allclose(information, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.grid
def test_all_rows_are_used_where_they_predict_better():
    """From 40 of 700 rows the search knows little; the likelihood of all rows then rises by hundreds."""
    rng, n = np.random.default_rng(1), 10
    X = points(n)[rng.permutation(2**n)[:700]]
    kernel = CubeKernel.product(1.0, np.linspace(0.3, 0.98, n))
    y = rng.multivariate_normal(np.zeros(700), kernel(X) + 0.05 * np.eye(700))
    options = {"kernel": "product", "n_hyperparameter_rows": 40, "random_state": 0}
    some, every = (CubeGPRegressor(refine=refine, **options).fit(X, y) for refine in (False, True))
    assert every.log_marginal_likelihood() > some.log_marginal_likelihood() + 10
    dense = CubeGPRegressor("product", random_state=0).fit(X, y)
    assert every.log_marginal_likelihood() > dense.log_marginal_likelihood() - 5
    ours = every.kernel_.components[0].correlations
    np.testing.assert_allclose(ours, dense.kernel_.components[0].correlations, atol=0.15)  # the error of eight probes


def test_outliers_do_not_make_it_worse():
    """Whatever the likelihood of all rows says, the error out of fold is at most that of some rows."""
    rng, n = np.random.default_rng(2), 9
    X = points(n)[rng.permutation(2**n)[:400]]
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=400)
    y[rng.permutation(400)[:12]] += 5
    some = CubeGPRegressor("degree_site", n_hyperparameter_rows=100, refine=False, random_state=0).fit(X, y)
    start = some._posterior.hyperparameters
    found = fisher_scoring.refined(start, some._posterior.rows, rng=rng)
    fold = rng.permutation(400) % 5
    one, other = (fisher_scoring.out_of_fold_error(each.best, some._posterior.rows, fold) for each in (start, found))
    assert other <= one * 1.05  # other folds than the choice saw
    assert np.isfinite(found.best.log_likelihood(start.rows))

"""Paper A (Awasthi, Dikkala, Kamath, Meka, COLT 2024), Lemma 7: what low degree learns, and what it cannot."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsact import LowDegreeRegressor, LowDegreeRegressorCV
from sparsact.fourier import Spectrum, walsh_hadamard
from sparsact.hypercube import n_subsets, points


@pytest.mark.parametrize(("n", "m"), [(9, 46), (9, 90), (31, 600)])
def test_a_polynomial_is_recovered_exactly_without_noise(n, m):
    """The realizable case: m rows at D + 1 <= m determine the D + 1 coefficients of a polynomial of degree 2."""
    rng = np.random.default_rng([n, m])
    X = rng.choice([1, -1], (m, n)) if n > 9 else points(9)[rng.permutation(512)[:m]]
    truth = rng.normal(size=n_subsets(n, 2))
    model = LowDegreeRegressor(2)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    features = np.column_stack([np.ones(m), X, *(X[:, i] * X[:, j] for i, j in pairs)])
    if np.linalg.matrix_rank(features) < features.shape[1]:
        pytest.fail("the seed drew rows that do not determine the polynomial")
    model.fit(X, features @ truth)
    assert_allclose(np.concatenate([[model.intercept_], model.coefficients_]), truth, atol=1e-6)
    assert model.r2_ == pytest.approx(1)


def test_an_index_function_is_learned_at_its_degree():
    """x -> the bit that the first 3 bits number: sparsity 1 of 8 units, degree 4; exactly learned at 4, not at 3."""
    n, k = 11, 3
    X = points(n)
    address = (X[:, :k] < 0) @ (1 << np.arange(k))
    y = X[np.arange(len(X)), k + address].astype(float)
    assert Spectrum.of(y).degree() == 4
    rows = np.random.default_rng(1).permutation(len(X))
    train, test = rows[:1500], rows[1500:]
    assert LowDegreeRegressor(4).fit(X[train], y[train]).score(X[test], y[test]) > 1 - 1e-9
    assert LowDegreeRegressor(3).fit(X[train], y[train]).score(X[test], y[test]) < 0.95
    assert LowDegreeRegressorCV((1, 2, 3, 4), (0.0,)).fit(X[train], y[train]).degree_ == 4


def test_the_error_is_the_tail_and_the_price_of_learning():
    """Agnostic: with N = D + 1 coefficients and m uniform rows, the mean squared error on fresh points is close to
    tail * (1 + N / (m - N)). Over 40 samples of m = 1500 the mean of the ratio has a standard deviation below 0.01
    (measured 0.004); a miss by 0.05 has a chance below 1e-6."""
    n, degree, m = 14, 2, 1500
    rng = np.random.default_rng(2)
    N = n_subsets(n, degree)
    f = rng.normal(size=2**n)  # its tail is nearly all of it
    f += points(n)[:, :5] @ rng.normal(size=5)
    tail = Spectrum.of(f).tail(degree)
    X, ratios = points(n), []
    for _ in range(40):
        rows = rng.integers(0, 2**n, m)
        error = np.mean((f - LowDegreeRegressor(degree).fit(X[rows], f[rows]).predict(X)) ** 2)
        ratios.append(error / (tail * (1 + N / (m - N))))
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("degree", [1, 3, 6])
def test_parity_defeats_every_lower_degree(degree):
    """Held-out R2 is at most 0 on average: N coefficients fitted to noise. A value above 0.01 for 4000 uniform rows
    means a correlation of 0.1 with an independent sign, a chance below 1e-8 (Hoeffding: exp(-4000 * 0.01 / 2))."""
    n = 7 if degree == 6 else 16
    rng = np.random.default_rng(degree)
    X = rng.choice([1, -1], (8000, n))
    y = X.prod(axis=1).astype(float)
    model = LowDegreeRegressor(degree).fit(X[:4000], y[:4000])
    assert model.score(X[4000:], y[4000:]) < 0.01
    assert LowDegreeRegressor(n, subsets=[tuple(range(n))]).fit(X[:9], y[:9]).coefficients_ == pytest.approx([1])


def test_on_the_whole_cube_degree_d_leaves_the_tail():
    """Every point once: the residual is exactly the Fourier weight above d."""
    values = np.random.default_rng(5).normal(size=256)
    f = Spectrum.of(values)
    for degree in range(9):
        model = LowDegreeRegressor(degree).fit(points(8), values)
        assert np.mean((values - model.predict(points(8))) ** 2) == pytest.approx(f.tail(degree), abs=1e-12)
        assert len(model.coefficients_) == sum(comb(8, size) for size in range(1, degree + 1))
        assert_allclose(model.spectrum_.truncate(degree).values(), f.truncate(degree).values(), atol=1e-12)
    assert_allclose(model.coefficients_.sum() + model.intercept_, walsh_hadamard(values).sum())

"""What low degrees leave unexplained, from pairs of rows: exact on the whole cube, unbiased, honest about its error."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsact.bounds import unexplained_variance
from sparsact.bounds.unexplained import _sums_over_pairs, _sums_over_table, krawtchouk
from sparsact.fourier import Spectrum
from sparsact.hypercube import characters, points, subset_masks, subsets_of

RNG = np.random.default_rng(5)


def uniform(m, n, rng=RNG):
    return rng.choice([1, -1], (m, n))


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_kernels_are_sums_of_characters(n):
    X = points(n)
    for j, row in enumerate(krawtchouk(n, n).astype(float)):
        subsets = subsets_of(subset_masks(n, j, j)) if j else [()]
        assert_allclose(characters(X, subsets).sum(axis=1), row[(X < 0).sum(axis=1)])
        assert row[0] == comb(n, j)


def test_all_pairs_by_hand():
    X, y = uniform(23, 4), RNG.normal(size=23)
    y -= y.mean()
    sums, bias, repeated = _sums_over_pairs(X, y, 3)
    for d in range(4):
        family = subsets_of(subset_masks(4, d, 1))
        products = characters(X, family) @ characters(X, family).T if family else np.zeros((23, 23))
        assert_allclose(sums[:, d], (products - np.diag(products.diagonal())) @ y, atol=1e-9)
    assert_allclose(bias[0], ((X.sum(axis=0) ** 2).sum() - 23 * 4) / (23 * 22))
    assert repeated


@pytest.mark.parametrize(("m", "n"), [(29, 1), (100, 7), (300, 10)])
def test_both_routes_agree(m, n):
    X, y = uniform(m, n), RNG.normal(size=m)
    for mine, theirs in zip(_sums_over_pairs(X, y, n), _sums_over_table(X, y, n), strict=True):
        assert_allclose(mine, theirs, atol=1e-8 * 2**n)


@pytest.mark.parametrize("n", [2, 6, 9])
def test_the_whole_cube_is_exact(n):
    f = RNG.normal(size=2**n)
    order = RNG.permutation(2**n)
    found = unexplained_variance(points(n)[order], f[order], rng=RNG)
    assert_allclose(found.values, [Spectrum.of(f).tail(d) for d in range(n + 1)], atol=1e-12)
    assert_allclose(found.weights(), Spectrum.of(f).weight_by_degree()[1:], atol=1e-12)
    assert not found.standard_errors.any()
    assert found.uniform


@pytest.mark.parametrize("distinct", [False, True])
def test_unbiased_and_calibrated(distinct):
    """400 samples of 60 rows: means within 4 standard deviations of the mean of their own spread (failure below 1e-3),
    and the jackknife error is not below the true spread by more than a tenth."""
    n, rng = 8, np.random.default_rng(2)
    f = RNG.normal(size=2**n) + 3 * points(n)[:, 0]
    tails = np.array([Spectrum.of(f).tail(d) for d in range(3)])
    values, errors = [], []
    for _ in range(400):
        rows = rng.choice(2**n, 60, replace=not distinct)
        found = unexplained_variance(points(n)[rows], f[rows], rng=rng)
        values.append(found.values[:3])
        errors.append(found.standard_errors[:3])
    spread = np.std(values, axis=0)
    assert (np.abs(np.mean(values, axis=0) - tails) < 4 * spread / 20).all()
    assert (np.sqrt(np.mean(np.square(errors), axis=0)) > 0.9 * spread).all()


def test_fewer_rows_than_monomials_still_tell():
    """n = 40: 9,880 monomials of degree 3, 3,000 rows. Degree 3 holds half of the variance, and that shows."""
    X = uniform(3000, 40, np.random.default_rng(0))
    y = X[:, 0] * X[:, 7] * X[:, 30] + X[:, 2]
    found = unexplained_variance(X, y, rng=RNG)
    assert found.values[2] == pytest.approx(1, abs=4 * found.standard_errors[2])
    assert found.values[3] == pytest.approx(0, abs=4 * found.standard_errors[3])
    assert found.standard_errors[3] < 0.2
    assert np.isinf(found.predicted_errors(3000)[3])
    assert found.predicted_errors(3000)[2] > found.predicted_errors(3000)[1]


def test_noise_counts_as_unexplained():
    rng = np.random.default_rng(4)
    X = uniform(4000, 10, rng)
    found = unexplained_variance(X, X[:, 3] + 0.5 * rng.normal(size=4000), rng=rng)
    assert found.values[1] == pytest.approx(0.25, abs=5 * found.standard_errors[1])


def test_rows_that_are_not_uniform():
    rng = np.random.default_rng(6)
    biased = 1 - 2 * (rng.random((500, 9)) < 0.2)
    assert not unexplained_variance(biased, biased[:, 0], rng=rng).uniform
    paired = uniform(500, 9, rng)
    paired[:, 1] = paired[:, 0]  # one-hot groups and the like: balanced columns whose products are not
    assert not unexplained_variance(paired, paired[:, 0], rng=rng).uniform
    assert unexplained_variance(uniform(500, 9, rng), np.ones(500), rng=rng).uniform


def test_many_rows_are_sampled_the_same_with_the_same_generator():
    X = uniform(400, 21, np.random.default_rng(8))
    y = X[:, 0] * 1.0
    first, second, third = (
        unexplained_variance(X, y, rng=np.random.default_rng(seed), max_rows=300) for seed in (1, 1, 2)
    )
    assert first.n_rows == 300
    assert (first.values == second.values).all()
    assert (first.values != third.values).any()


def test_thousands_of_coordinates():
    """Two degrees are in sight of 300 rows at n = 60 and one at n = 3,000; the work does not grow with the others."""
    rng = np.random.default_rng(3)
    for n, degrees in ((60, 2), (3000, 1)):
        X = uniform(300, n, rng)
        found = unexplained_variance(X, X[:, 0], rng=rng)
        assert len(found.values) == degrees + 1
        assert found.uniform


@pytest.mark.grid
def test_rivals_are_what_the_errors_leave_open():
    """y has a weight of 1 at degree 1 and of 0.01 at degree 2: 100 rows cannot tell whether that pays, 8,000 can."""
    rng = np.random.default_rng(0)
    X = uniform(8000, 6, rng)
    y = X[:, 0] + 0.1 * X[:, 1] * X[:, 2]
    few, many = unexplained_variance(X[:100], y[:100], rng=rng), unexplained_variance(X, y, rng=rng)
    assert few.predicted_errors(100).argmin() == 1
    assert 2 in few.rivals(1, 100)
    assert many.predicted_errors(8000).argmin() == 2


def test_bad_rows():
    with pytest.raises(ValueError, match="at least 4 rows; got 3"):
        unexplained_variance(points(2)[:3], [1, 2, 3], rng=RNG)
    with pytest.raises(ValueError, match=r"one target per row, shape \(4,\)"):
        unexplained_variance(points(2), [1, 2, 3], rng=RNG)
    with pytest.raises(ValueError, match=r"signs \+1 and -1; row 0, column 1 holds 0"):
        unexplained_variance([[1, 0]] * 5, range(5), rng=RNG)

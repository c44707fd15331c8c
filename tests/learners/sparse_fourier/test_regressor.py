from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import sparsact
from sparsact import LowDegreeRegressor, SparseFourierRegressor
from sparsact.hypercube import characters, subsets_of
from sparsact.learners.points import pack
from sparsact.learners.sparse_fourier.integer_sample import IntegerSample
from sparsact.learners.sparse_fourier.search import SearchOptions, TermSearch


def planted(n, m, subsets, *, noise=0.5, seed=0, coef=1.0):
    """Signs (m, n) and a noisy sum of monomials with coefficients of alternating sign."""
    rng = np.random.default_rng(seed)
    X = rng.choice(np.array([-1, 1], dtype=np.int8), size=(m, n))
    y = noise * rng.standard_normal(m)
    for sign, subset in enumerate(subsets):
        y += coef * (-1) ** sign * X[:, list(subset)].prod(axis=1)
    return X, y


TERMS = [(), (3,), (0, 6), (1, 17), (2, 9, 21), (5, 11, 30)]


# Coefficients are 8 times their standard errors beyond the threshold: missed with probability 1e-15. A false term in
# one of two fits at level 1e-6: 2e-6.
@pytest.mark.parametrize("written", ["signs", "bits", "bool", "real"])
def test_planted_terms_are_found_whatever_the_rows_are(written):
    X, y = planted(31, 1_203, TERMS)
    rows = {"signs": X, "bits": (1 - X) // 2, "bool": X < 0, "real": 7.5 - 2.5 * X.astype(float)}[written]
    model = SparseFourierRegressor(3, significance=1e-6, random_state=0).fit(rows, y)
    assert model.subsets_ == TERMS[1:]
    assert model.variables_.tolist() == [0, 1, 2, 3, 5, 6, 9, 11, 17, 21, 30]
    np.testing.assert_allclose(model.predict(rows), model.spectrum_(X), atol=1e-12)
    assert model.certified_
    assert model.n_monomials_ == 31 + 31 * 15 + 31 * 5 * 29


def test_the_refit_is_least_squares():
    X, y = planted(23, 331, TERMS[:4], coef=2.0, seed=1)
    model = SparseFourierRegressor(2, random_state=0).fit(X, 1e9 + y)
    A = characters(X, [(), *model.subsets_])
    due, (squares,), _, _ = np.linalg.lstsq(A, y, rcond=None)
    np.testing.assert_allclose(model.coefficients_, due[1:], rtol=1e-7)
    np.testing.assert_allclose(model.intercept_ - 1e9, due[0], rtol=1e-5)
    variance = np.linalg.inv(A.T @ A).diagonal() * squares / (len(y) - A.shape[1])
    np.testing.assert_allclose(model.standard_errors(), np.sqrt(variance[1:]), rtol=1e-6)
    low, high = model.confidence_intervals([(0, 6)])[0]
    assert low < model.coefficients_[model.subsets_.index((0, 6))] < high
    assert (np.abs(model.coefficients_ / model.standard_errors()) >= 0.999 * model.threshold_).all()


# 60 fits, each with a false term with probability at most .05: more than 9 with probability 1e-3.
def test_noise_has_no_terms():
    rng, fits_with_terms = np.random.default_rng(2), 0
    for seed in range(60):
        X = rng.choice([-1, 1], size=(301, 19))
        y = rng.standard_t(5, size=301)
        fits_with_terms += bool(SparseFourierRegressor(2, random_state=seed).fit(X, y).subsets_)
    assert fits_with_terms <= 9


def test_a_target_without_noise_gives_its_spectrum_and_nothing_else():
    """Rounding must not leave terms: a false one at level 1e-6 in any of five fits has probability 5e-6."""
    for seed in range(5):
        X, _ = planted(20, 257, [], seed=seed)
        y = characters(X, [(4,), (1, 7), (0, 2, 3)]) @ [np.pi, np.e / 100, -np.sqrt(2)]
        model = SparseFourierRegressor(3, significance=1e-6, random_state=seed).fit(X, y)
        assert model.subsets_ == [(4,), (1, 7), (0, 2, 3)]
        np.testing.assert_allclose(model.coefficients_, [np.pi, np.e / 100, -np.sqrt(2)], rtol=1e-12)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**990])
def test_targets_of_any_size(scale):
    X, y = planted(15, 401, TERMS[:3], seed=3)
    one, other = (SparseFourierRegressor(2, random_state=0).fit(X, factor * y) for factor in (1.0, scale))
    assert one.subsets_ == other.subsets_ == [(3,), (0, 6)]
    np.testing.assert_allclose(other.coefficients_, one.coefficients_ * scale, rtol=1e-12)


@pytest.mark.parametrize("y", [np.zeros(9), np.full(9, 7.25)])
def test_a_constant_target(y):
    model = SparseFourierRegressor(2).fit(planted(4, 9, [])[0], y)
    assert model.subsets_ == []
    np.testing.assert_array_equal(model.predict(planted(4, 5, [])[0]), y[:5])


# A pair in place of its two coordinates, and the reverse: means of .8, so that each explains most of the other.
# The terms' t is 8 beyond the threshold; another reading of them would have to win by chance of less than 1e-6.
@pytest.mark.parametrize("subsets", [[(2,), (5,)], [(2, 5)], [(2, 5, 7), (5,)], [(2, 5, 7), (2, 7)]])
def test_biased_columns_do_not_mislead(subsets):
    rng = np.random.default_rng(4)
    X = np.where(rng.random((4_001, 12)) < 0.9, 1, -1)
    y = characters(X, subsets).sum(axis=1) + rng.standard_normal(4_001)
    assert sorted(SparseFourierRegressor(3, significance=1e-4, random_state=0).fit(X, y).subsets_) == sorted(subsets)


def test_columns_that_repeat_others_are_one_term():
    X, y = planted(9, 203, [(3,), (1, 4)], seed=5)
    X[:, 8] = -X[:, 3]
    model = SparseFourierRegressor(2, random_state=0).fit(X, y)
    assert len(model.subsets_) == 2
    assert model.polynomial_.r2_ > 0.8


def test_labels_of_a_junta():
    """Three of 25 columns, 20 % of labels flipped: coefficients of 18 and more standard errors."""
    rng = np.random.default_rng(6)
    X = rng.choice([-1, 1], size=(4_003, 25))
    majority = np.sign(X[:, [3, 11, 20]].sum(axis=1))
    y = majority * np.where(rng.random(len(X)) < 0.2, -1, 1)
    model = SparseFourierRegressor(3, random_state=0).fit(X, y)
    assert model.variables_.tolist() == [3, 11, 20]
    assert (np.sign(model.predict(X)) == majority).all()


def test_a_screen_finds_what_a_scan_finds():
    X, y = planted(40, 6_001, TERMS, seed=7)
    sample = IntegerSample.of(pack(X, "signs"), y, rng=np.random.default_rng(0), n_threads=1)
    for certify in (True, False):
        search = TermSearch(sample, SearchOptions(3, 1e-6, 500, certify, print, worth_screening=0.0))
        assert search.screen_rows > 0
        found = search.run()
        assert sorted(subsets_of(found.masks)) == sorted(TERMS[1:])
        assert found.certified is certify
        assert certify or found.n_rounds == 2


def test_threads_and_kernels_change_nothing():
    X, y = planted(18, 503, TERMS[:4], seed=8)
    fits = [SparseFourierRegressor(2, random_state=3, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)]
    with sparsact.kernels.using("reference"):
        fits.append(SparseFourierRegressor(2, random_state=3).fit(X, y))
    for other in fits[1:]:
        assert other.subsets_ == fits[0].subsets_
        np.testing.assert_array_equal(other.coefficients_, fits[0].coefficients_)


def test_rows_held_out_choose_nothing():
    X, y = planted(22, 900, TERMS[:4], seed=9)
    model = SparseFourierRegressor(2, validation_fraction=0.25, random_state=0).fit(X, y)
    assert model.subsets_ == TERMS[1:4]
    assert model.held_out_.n_samples_seen_ == 225
    assert model.polynomial_.n_samples_seen_ == 900
    assert (model.held_out_.standard_errors() > model.standard_errors()).all()
    np.testing.assert_array_equal(model.confidence_intervals(), model.held_out_.confidence_intervals())


@pytest.mark.parametrize("options", [{}, {"validation_fraction": 0.3}, {"domain": "real"}])
def test_a_saved_model_is_the_same(options, tmp_path):
    X, y = planted(14, 300, TERMS[:3], seed=10)
    model = SparseFourierRegressor(2, random_state=0, **options).fit(X, y)
    model.save(tmp_path / "model")
    loaded = sparsact.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.standard_errors(), model.standard_errors())
    np.testing.assert_array_equal(loaded.confidence_intervals(), model.confidence_intervals())
    for name in ("subsets_", "threshold_", "n_monomials_", "certified_", "encoding_", "spectrum_"):
        assert getattr(loaded, name) == getattr(model, name)


def test_the_polynomial_takes_more_rows():
    X, y = planted(16, 700, TERMS[:3], seed=11)
    model = SparseFourierRegressor(2, random_state=0).fit(X[:500], y[:500])
    model.polynomial_.partial_fit(X[500:], y[500:])
    due = LowDegreeRegressor(2, subsets=model.subsets_).fit(X, y)
    np.testing.assert_array_equal(model.coefficients_, due.coefficients_)


def test_errors_name_need_fact_and_remedy():
    X, y = planted(5, 40, [], seed=12)
    with pytest.raises(ValueError, match=r"'degree' parameter .* must be an int in the range"):
        SparseFourierRegressor(7).fit(X, y)
    with pytest.raises(ValueError, match=r"holds out 0 of 40 rows; .*pass another fraction"):
        SparseFourierRegressor(validation_fraction=0.01).fit(X, y)
    with pytest.raises(TypeError, match="sample_weight"):
        SparseFourierRegressor().fit(X, y, sample_weight=np.ones(40))
    Z = X.copy()
    Z[1, 2] = 3
    with pytest.raises(ValueError, match="holds 3 at column 2, row 1"):
        SparseFourierRegressor(domain="cube").fit(Z, y)
    with pytest.raises(ValueError, match="pass signs, 1 - 2"):
        SparseFourierRegressor().fit(X, y).predict(np.zeros((2, 5)))


@pytest.mark.slow
@pytest.mark.parametrize(("n", "degree", "m", "s"), [(60, 3, 5_000, 12), (150, 3, 8_000, 25), (400, 2, 9_000, 30)])
def test_terms_just_above_the_limit(n, degree, m, s):
    """1.2 times the detection limit: a term is missed with probability 1e-3, and any is false with at most .05.

    In 20 fits, more than 4 with a fault have probability 1e-2 for s = 30.
    """
    faults = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        every = [subset for size in range(1, degree + 1) for subset in combinations(range(24), size)]
        subsets = sorted(every[i] for i in rng.choice(len(every), s, replace=False))
        X, noise = planted(n, m, [], seed=seed, noise=1.0)
        model = SparseFourierRegressor(degree, random_state=seed)
        limit = (np.sqrt(2 * np.log(n**degree / 0.05)) + 1.64) / np.sqrt(m)
        model.fit(X, characters(X, subsets) @ (1.2 * limit * rng.choice([-1, 1], s)) + noise)
        faults += sorted(model.subsets_) != subsets
    assert faults <= 4

"""Monte Carlo against exact answers.

Seeds are fixed. "Near" is within 6 standard errors: under the normal approximation a new seed would fail with
probability 2e-9 per number, below 1e-6 for the whole file.
"""

import numpy as np
import pytest
from scipy.stats import binom, norm

from sparsact.fourier import (
    Estimate,
    Spectrum,
    estimate_average_sensitivity,
    estimate_coefficient,
    estimate_influences,
    estimate_noise_sensitivity,
)

N = 7
ESTIMATES = {
    "average sensitivity": lambda f, **kw: estimate_average_sensitivity(f, N, **kw),
    "average sensitivity, 3 flips": lambda f, **kw: estimate_average_sensitivity(f, N, n_flips=3, **kw),
    "average sensitivity, all flips": lambda f, **kw: estimate_average_sensitivity(f, N, n_flips=N, **kw),
    "influences": lambda f, **kw: estimate_influences(f, N, **kw),
    "noise sensitivity": lambda f, **kw: estimate_noise_sensitivity(f, N, 0.6, **kw),
    "noise sensitivity, rho < 0": lambda f, **kw: estimate_noise_sensitivity(f, N, -0.2, **kw),
    "coefficient": lambda f, **kw: estimate_coefficient(f, (1, 4), N, **kw),
}
EXACT = {
    "average sensitivity": lambda f: f.total_influence(),
    "average sensitivity, 3 flips": lambda f: f.total_influence(),
    "average sensitivity, all flips": lambda f: f.total_influence(),
    "influences": lambda f: f.influences(),
    "noise sensitivity": lambda f: f.noise_sensitivity(0.6),
    "noise sensitivity, rho < 0": lambda f: f.noise_sensitivity(-0.2),
    "coefficient": lambda f: f[1, 4],
}


@pytest.fixture(scope="module", params=["real", "signs"])
def f(request):
    values = np.random.default_rng(5).normal(size=2**N)
    return Spectrum.of(values if request.param == "real" else np.sign(values))


@pytest.mark.parametrize("kind", ESTIMATES)
@pytest.mark.parametrize("batch_size", [None, 37])
def test_near_the_exact_answer(f, kind, batch_size):
    estimate = ESTIMATES[kind](f, n_samples=5003, rng=np.random.default_rng(17), batch_size=batch_size)
    exact = EXACT[kind](f)
    assert estimate.n_samples == 5003
    assert np.shape(estimate.value) == np.shape(estimate.standard_error) == np.shape(exact)
    assert np.all(np.abs(estimate.value - exact) <= 6 * np.asarray(estimate.standard_error))


@pytest.mark.parametrize("kind", ESTIMATES)
def test_coverage_of_intervals(f, kind):
    """200 intervals at 90 %: the number that hold the truth is Binomial(200, 0.9), up to the normal approximation of
    each mean, for which 0.02 is allowed. A new seed would fail with probability below 1e-6 on either side."""
    rng, exact = np.random.default_rng(23), EXACT[kind](f)
    intervals = (ESTIMATES[kind](f, n_samples=307, rng=rng).interval(0.9) for _ in range(200))
    held = sum((low <= exact) & (exact <= high) for low, high in intervals)
    assert np.all(held >= binom.ppf(1e-6, 200, 0.88))
    assert np.all(held <= binom.ppf(1 - 1e-6, 200, 0.92))


def test_bounded_intervals_hold_at_least_as_often_as_they_say():
    """By Hoeffding's inequality; P[Binomial(300, 0.8) below the bound] is at most 1e-6."""
    signs = Spectrum.of(np.sign(np.random.default_rng(5).normal(size=2**N)))
    rng, exact = np.random.default_rng(29), signs.noise_sensitivity(0.6)
    intervals = [
        ESTIMATES["noise sensitivity"](signs, n_samples=11, rng=rng).bounded_interval(1.0, 0.8) for _ in range(300)
    ]
    assert sum(low <= exact <= high for low, high in intervals) >= binom.ppf(1e-6, 300, 0.8)


def test_variance_of_the_average_sensitivity_is_as_documented():
    """Values +-1, one flip: variance AS (n - AS). Its estimate from 20011 samples is within 5 % (more than 6 sigma)."""
    signs = Spectrum.of(np.sign(np.random.default_rng(6).normal(size=2**N)))
    estimate = ESTIMATES["average sensitivity"](signs, n_samples=20_011, rng=np.random.default_rng(31))
    exact = signs.total_influence()
    assert estimate.standard_error**2 * 20_011 == pytest.approx(exact * (N - exact), rel=0.05)


@pytest.mark.parametrize("n_flips", [1, 3, 7])
def test_variance_for_more_flips_is_as_documented(n_flips):
    """The variance of 40009 samples is within 6 % of the formula."""
    values = np.random.default_rng(8).normal(size=2**N)
    numbers = np.arange(2**N)
    q = np.stack([(values - values[numbers ^ (1 << i)]) ** 2 / 4 for i in range(N)], axis=1)
    within = N**2 / n_flips * (N - n_flips) / (N - 1) * q.var(axis=1).mean()
    estimate = estimate_average_sensitivity(
        Spectrum.of(values), N, n_samples=40_009, rng=np.random.default_rng(37), n_flips=n_flips
    )
    assert estimate.standard_error**2 * 40_009 == pytest.approx(q.sum(axis=1).var() + within, rel=0.06)


def test_standard_error_over_batches_is_that_of_all_samples():
    """A coefficient's samples can be recorded: mean and error from batches equal those of the whole."""
    seen = []

    def f(X):
        seen.append(X[:, 0] * 3 + X[:, 1] * X[:, 2] + 100)
        return seen[-1]

    estimate = estimate_coefficient(f, (), 5, n_samples=101, rng=np.random.default_rng(41), batch_size=13)
    samples = np.concatenate(seen)
    assert max(map(len, seen)) == 13
    assert estimate.value == pytest.approx(samples.mean(), rel=1e-13)
    assert estimate.standard_error == pytest.approx(samples.std(ddof=1) / np.sqrt(101), rel=1e-12)


@pytest.mark.parametrize("kind", ESTIMATES)
def test_batches_are_bounded_and_seeds_decide(f, kind):
    rows = []

    def watched(X):
        assert X.dtype == np.float64
        assert np.all(np.abs(X) == 1)
        rows.append(len(X))
        return f(X)

    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state must stay as it is
    first = ESTIMATES[kind](watched, n_samples=53, rng=np.random.default_rng(1), batch_size=19)
    again = ESTIMATES[kind](watched, n_samples=53, rng=np.random.default_rng(1), batch_size=19)
    other = ESTIMATES[kind](watched, n_samples=53, rng=np.random.default_rng(2), batch_size=19)
    assert max(rows) <= 19
    np.testing.assert_array_equal(first.value, again.value)
    assert np.any(np.asarray(first.value) != other.value)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_ten_thousand_coordinates():
    """Linear functions: AS = |w|^2, Inf_i = w_i^2 (every sample exact), NS = (1 - rho) / 2 |w|^2."""
    n = 10_000
    w = np.random.default_rng(43).normal(size=n) / 100
    average = estimate_average_sensitivity(lambda X: X @ w, n, n_samples=1009, rng=np.random.default_rng(1), n_flips=3)
    assert abs(average.value - w @ w) <= 6 * average.standard_error
    noise = estimate_noise_sensitivity(lambda X: X @ w, n, 0.8, n_samples=1009, rng=np.random.default_rng(2))
    assert abs(noise.value - 0.1 * (w @ w)) <= 6 * noise.standard_error
    coefficient = estimate_coefficient(lambda X: X @ w, (7,), n, n_samples=1009, rng=np.random.default_rng(3))
    assert abs(coefficient.value - w[7]) <= 6 * coefficient.standard_error


def test_influences_of_a_linear_function_are_exact_and_few_rows_are_held():
    w = np.random.default_rng(47).normal(size=301)
    influences = estimate_influences(lambda X: X @ w, 301, n_samples=3, rng=np.random.default_rng(4), batch_size=29)
    np.testing.assert_allclose(influences.value, w**2, rtol=1e-9, atol=1e-12)


def test_intervals_in_numbers():
    estimate = Estimate(0.5, 0.1, 200)
    low, high = estimate.interval(0.95)
    assert norm.cdf((high - 0.5) / 0.1) == pytest.approx(0.975)
    assert low == pytest.approx(1 - high)
    low, high = estimate.bounded_interval(2.0, 0.95)
    assert 2 * np.exp(-2 * 200 * ((high - 0.5) / 2) ** 2) == pytest.approx(0.05)  # Hoeffding's inequality
    assert low == pytest.approx(1 - high)


@pytest.mark.parametrize("confidence", [0, 1, 95, np.nan])
def test_confidence_is_a_probability(confidence):
    for interval in (Estimate(0.5, 0.1, 200).interval, lambda c: Estimate(0.5, 0.1, 200).bounded_interval(1.0, c)):
        with pytest.raises(ValueError, match="`confidence` must lie strictly between 0 and 1"):
            interval(confidence)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f, rng: estimate_average_sensitivity(f, 0, n_samples=5, rng=rng), "`n` must be 1 or more"),
        (
            lambda f, rng: estimate_average_sensitivity(f, 7, n_samples=1, rng=rng),
            "`n_samples` must be a whole number from 2",
        ),
        (lambda f, rng: estimate_average_sensitivity(f, 7, n_samples=5, rng=rng, n_flips=8), "`n_flips` must lie"),
        (
            lambda f, rng: estimate_influences(f, 7, n_samples=5, rng=rng, batch_size=0),
            "`batch_size` must be 1 or more",
        ),
        (lambda f, rng: estimate_noise_sensitivity(f, 7, 1.5, n_samples=5, rng=rng), "`rho` must lie"),
        (lambda f, rng: estimate_coefficient(f, (7,), 7, n_samples=5, rng=rng), "names coordinate 7"),
        (
            lambda f, rng: estimate_coefficient(lambda X: X, (0,), 7, n_samples=5, rng=rng),
            r"one value per row, shape \(5,\)",
        ),
        (lambda f, rng: estimate_coefficient(lambda X: X[:, 0] * np.nan, (0,), 7, n_samples=5, rng=rng), "finite"),
    ],
)
def test_refusals(f, call, message):
    with pytest.raises(ValueError, match=message):
        call(f, np.random.default_rng(0))

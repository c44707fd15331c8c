"""Monte Carlo against exact answers: of functions that can only be called, and of networks, whose structure is used.

Seeds are fixed. "Near" is within 6 standard errors: under the normal approximation a new seed would fail with
probability 2e-9 per number, below 1e-6 for the whole file.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from grids import grid
from scipy.stats import binom, norm

from sparsact import SparselyActivatedNetwork
from sparsact.fourier import (
    Estimate,
    Halfspace,
    Neuron,
    Spectrum,
    estimate_average_sensitivity,
    estimate_coefficient,
    estimate_influences,
    estimate_noise_sensitivity,
    estimate_within,
    monte_carlo,
)

N = 7
ESTIMATES = {  # with the exact answer
    "average sensitivity": (estimate_average_sensitivity, Spectrum.total_influence),
    "average sensitivity, 3 flips": (
        lambda f, n, **kw: estimate_average_sensitivity(f, n, n_flips=3, **kw),
        Spectrum.total_influence,
    ),
    "average sensitivity, all flips": (
        lambda f, n, **kw: estimate_average_sensitivity(f, n, n_flips=N, **kw),
        Spectrum.total_influence,
    ),
    "influences": (estimate_influences, Spectrum.influences),
    **{
        f"noise sensitivity, rho = {rho}": (
            lambda f, n, rho=rho, **kw: estimate_noise_sensitivity(f, n, rho, **kw),
            lambda f, rho=rho: f.noise_sensitivity(rho),
        )
        for rho in (0.6, -0.2, 0.95)  # of the last a network updates few flips
    },
    "coefficient": (lambda f, n, **kw: estimate_coefficient(f, (1, 4), n, **kw), lambda f: f[1, 4]),
}


def network(kind):
    rng, s = np.random.default_rng(5), 13
    W, b = rng.normal(size=(s, N)), 1 + rng.normal(size=s)
    if kind == "sparse":
        W = sp.csr_array(W * (rng.random(W.shape) < 0.4))
    if kind == "ties":  # many pre-activations are 0, before or after a flip
        W, b = rng.integers(-1, 2, (s, N)), rng.integers(-2, 3, s)
    return SparselyActivatedNetwork(rng.normal(size=s), W, b)


@pytest.fixture(scope="module", params=["dense", "sparse", "ties"])
def net(request):
    return network(request.param)


def estimated(kind, f, **options):
    """By a function that knows its number of coordinates."""
    return ESTIMATES[kind][0](f, None, **options)


def exact_answer(kind, f):
    return ESTIMATES[kind][1](Spectrum.of(f))


@pytest.fixture(scope="module", params=["real", "signs", "dense", "sparse", "ties"])
def f(request):
    values = np.random.default_rng(5).normal(size=2**N)
    of_values = {"real": values, "signs": np.sign(values)}
    return Spectrum.of(of_values[request.param]) if request.param in of_values else network(request.param)


@grid(kind=ESTIMATES, batch_size=[None, 37])
def test_near_the_exact_answer(f, kind, batch_size):
    estimate = estimated(kind, f, n_samples=5003, rng=np.random.default_rng(17), batch_size=batch_size)
    exact = exact_answer(kind, f)
    assert estimate.n_samples == 5003
    assert np.shape(estimate.value) == np.shape(estimate.standard_error) == np.shape(exact)
    assert np.all(np.abs(estimate.value - exact) <= 6 * np.asarray(estimate.standard_error))


@grid(kind=ESTIMATES)
def test_coverage_of_intervals(f, kind):
    """100 intervals at 90 %: the number that hold the truth is Binomial(100, 0.9), up to the normal approximation of
    each mean, for which 0.02 is allowed. A new seed would fail with probability below 1e-6 on either side."""
    rng, exact = np.random.default_rng(23), exact_answer(kind, f)
    intervals = (estimated(kind, f, n_samples=307, rng=rng).interval(0.9) for _ in range(100))
    held = sum((low <= exact) & (exact <= high) for low, high in intervals)
    assert np.all(held >= binom.ppf(1e-6, 100, 0.88))
    assert np.all(held <= binom.ppf(1 - 1e-6, 100, 0.92))


def test_bounded_intervals_hold_at_least_as_often_as_they_say():
    """By Hoeffding's inequality; P[Binomial(300, 0.8) below the bound] is at most 1e-6."""
    signs = Spectrum.of(np.sign(np.random.default_rng(5).normal(size=2**N)))
    rng, exact = np.random.default_rng(29), signs.noise_sensitivity(0.6)
    intervals = [
        estimated("noise sensitivity, rho = 0.6", signs, n_samples=11, rng=rng).bounded_interval(1.0, 0.8)
        for _ in range(300)
    ]
    assert sum(low <= exact <= high for low, high in intervals) >= binom.ppf(1e-6, 300, 0.8)


def test_variance_of_the_average_sensitivity_is_as_documented():
    """Values +-1, one flip: variance AS (n - AS). Its estimate from 20011 samples is within 5 % (more than 6 sigma)."""
    signs = Spectrum.of(np.sign(np.random.default_rng(6).normal(size=2**N)))
    estimate = estimated("average sensitivity", signs, n_samples=20_011, rng=np.random.default_rng(31))
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


def test_standard_error_over_batches_equals_the_error_of_all_samples():
    """With the samples of a coefficient recorded, mean and error from batches equal mean and error of all samples."""
    seen = []

    def f(X):
        seen.append(X[:, 0] * 3 + X[:, 1] * X[:, 2] + 100)
        return seen[-1]

    estimate = estimate_coefficient(f, (), 5, n_samples=101, rng=np.random.default_rng(41), batch_size=13)
    samples = np.concatenate(seen)
    assert max(map(len, seen)) == 13
    assert estimate.value == pytest.approx(samples.mean(), rel=1e-13)
    assert estimate.standard_error == pytest.approx(samples.std(ddof=1) / np.sqrt(101), rel=1e-12)


@grid(kind=ESTIMATES)
def test_batches_are_bounded_and_seeds_decide(f, kind):
    rows = []

    def watched(X):
        assert X.dtype == np.float64
        assert np.all(np.abs(X) == 1)
        rows.append(len(X))
        return f(X)

    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global state must stay as it is
    first = ESTIMATES[kind][0](watched, N, n_samples=53, rng=np.random.default_rng(1), batch_size=19)
    again = ESTIMATES[kind][0](watched, N, n_samples=53, rng=np.random.default_rng(1), batch_size=19)
    other = ESTIMATES[kind][0](watched, N, n_samples=53, rng=np.random.default_rng(2), batch_size=19)
    assert max(rows) <= 19
    np.testing.assert_array_equal(first.value, again.value)
    assert np.any(np.asarray(first.value) != other.value)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.grid
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


@pytest.mark.parametrize("kind", ["average sensitivity", "influences", "noise sensitivity, rho = 0.6", "coefficient"])
def test_structure_changes_the_cost_and_not_the_samples(net, kind):
    """The same points give the same estimate as a function that can only be called."""
    kept, called = (
        estimated(kind, f, n_samples=53, rng=np.random.default_rng(1), **given)
        for f, given in ((net, {}), (Spectrum.of(net), {"n_flips": N} if kind == "average sensitivity" else {}))
    )
    np.testing.assert_allclose(kept.value, called.value, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kept.standard_error, called.standard_error, rtol=1e-10, atol=1e-14)


def test_updates_along_flipped_columns_are_values_anew(net):
    rng = np.random.default_rng(2)
    X = 1.0 - 2.0 * rng.integers(0, 2, (31, N))
    flipped = rng.random(X.shape) < 0.2
    expected = net(X) - net(np.where(flipped, -X, X))
    for share in (0.01, 0.5):
        np.testing.assert_allclose(monte_carlo.changes(net, share)(X, flipped), expected, atol=1e-12)


def test_ten_thousand_coordinates_of_a_network():
    """Neurons on disjoint inputs: influences from each neuron's own law, at n = 10^4."""
    n, reads, s = 10_000, 20, 300
    rng = np.random.default_rng(3)
    weights, u = rng.integers(-2, 3, reads), rng.normal(size=s)
    W = sp.csr_array((np.tile(weights, s), (np.repeat(np.arange(s), reads), np.arange(s * reads))), shape=(s, n))
    net = SparselyActivatedNetwork(u, W, np.full(s, 3.0))
    exact = np.concatenate([np.outer(u**2, Neuron(weights, 3).influences()).ravel(), np.zeros(n - s * reads)])
    average = estimate_average_sensitivity(net, n_samples=503, rng=np.random.default_rng(4))
    assert abs(average.value - exact.sum()) <= 6 * average.standard_error
    assert average.standard_error < 0.02 * average.value
    influences = estimate_influences(net, n_samples=503, rng=np.random.default_rng(6))
    read = slice(0, s * reads)
    assert not np.any(influences.value[s * reads :])
    error = (influences.value - exact)[read].sum() / np.sqrt((influences.standard_error[read] ** 2).sum())
    assert abs(error) <= 6 * np.sqrt(reads)  # influences of one unit move together, at most; units are independent


def test_a_sample_grows_until_it_is_precise(net):
    rng = np.random.default_rng(8)
    found = estimate_within(0.01, lambda m: estimate_average_sensitivity(net, n_samples=m, rng=rng), n_samples=50)
    assert found.standard_error <= 0.01 * found.value
    assert abs(found.value - Spectrum.of(net).total_influence()) <= 6 * found.standard_error
    assert found.n_samples in [50 * 2**k for k in range(15)]


def test_it_stops_at_the_most_samples_and_never_trusts_a_zero():
    rare = Halfspace([1] * 30, 29)  # one point of 2^30
    rng = np.random.default_rng(9)
    sizes = []

    def estimate(m):
        sizes.append(m)
        return estimate_average_sensitivity(rare, n_samples=m, rng=rng)

    assert estimate_within(0.01, estimate, n_samples=100, most=900).n_samples == 900
    assert sizes == [100, 100, 200, 400, 100]


def test_pooled_is_the_estimate_of_all_samples():
    samples = np.random.default_rng(10).normal(3, 1, (41, 2))
    one, other = (
        Estimate(part.mean(axis=0), part.std(axis=0, ddof=1) / np.sqrt(len(part)), len(part))
        for part in (samples[:30], samples[30:])
    )
    whole = one.pooled(other)
    assert whole.n_samples == 41
    np.testing.assert_allclose(whole.value, samples.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(whole.standard_error, samples.std(axis=0, ddof=1) / np.sqrt(41), rtol=1e-12)


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
        (lambda f, rng: estimate_average_sensitivity(f, 8, n_samples=5, rng=rng), "n = 8, but the function has 7"),
        (lambda f, rng: estimate_noise_sensitivity(f, 10, 0.5, n_samples=5, rng=rng), "n = 10, but the function has 7"),
        (
            lambda f, rng: estimate_influences(lambda X: X[:, 0], n_samples=5, rng=rng),
            "pass `n`, the number of coordinates",
        ),
        (lambda f, rng: estimate_within(0, lambda m: None), "`relative_error` must be a finite number above 0"),
    ],
)
def test_refusals(f, call, message):
    with pytest.raises(ValueError, match=message):
        call(f, np.random.default_rng(0))

"""Monte Carlo estimates of networks, whose structure is used, against exact spectra.

Seeds are fixed. "Near" is within 6 standard errors: under the normal approximation a new seed would fail with
probability 2e-9 per number, below 1e-6 for the whole file.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom

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

N = 9
ESTIMATES = {
    "average sensitivity": estimate_average_sensitivity,
    "average sensitivity, 2 flips": lambda f, **kw: estimate_average_sensitivity(f, n_flips=2, **kw),
    "influences": estimate_influences,
    "noise sensitivity": lambda f, **kw: estimate_noise_sensitivity(f, None, 0.6, **kw),
    "noise sensitivity, few flips": lambda f, **kw: estimate_noise_sensitivity(f, None, 0.95, **kw),
    "coefficient": lambda f, **kw: estimate_coefficient(f, (1, 4), **kw),
}
EXACT = {
    "average sensitivity": Spectrum.total_influence,
    "average sensitivity, 2 flips": Spectrum.total_influence,
    "influences": Spectrum.influences,
    "noise sensitivity": lambda f: f.noise_sensitivity(0.6),
    "noise sensitivity, few flips": lambda f: f.noise_sensitivity(0.95),
    "coefficient": lambda f: f[1, 4],
}


@pytest.fixture(scope="module", params=["dense", "sparse", "ties"])
def net(request):
    rng, s = np.random.default_rng(5), 13
    W, b = rng.normal(size=(s, N)), 1 + rng.normal(size=s)
    if request.param == "sparse":
        W = sp.csr_array(W * (rng.random(W.shape) < 0.4))
    if request.param == "ties":  # many pre-activations are 0, before or after a flip
        W, b = rng.integers(-1, 2, (s, N)), rng.integers(-2, 3, s)
    return SparselyActivatedNetwork(rng.normal(size=s), W, b)


@pytest.mark.parametrize("kind", ESTIMATES)
@pytest.mark.parametrize("batch_size", [None, 37])
def test_near_the_exact_answer(net, kind, batch_size):
    estimate = ESTIMATES[kind](net, n_samples=5003, rng=np.random.default_rng(17), batch_size=batch_size)
    exact = EXACT[kind](Spectrum.of(net))
    assert estimate.n_samples == 5003
    assert np.shape(estimate.value) == np.shape(estimate.standard_error) == np.shape(exact)
    assert np.all(np.abs(estimate.value - exact) <= 6 * np.asarray(estimate.standard_error))


@pytest.mark.parametrize("kind", ["average sensitivity", "noise sensitivity"])
def test_coverage_of_intervals(net, kind):
    """300 intervals at 90 %: the number that hold the truth is Binomial(300, 0.9), up to the normal approximation of
    each mean, for which 0.02 is allowed. A new seed would fail with probability below 1e-6 on either side."""
    rng, exact = np.random.default_rng(23), EXACT[kind](Spectrum.of(net))
    intervals = (ESTIMATES[kind](net, n_samples=151, rng=rng).interval(0.9) for _ in range(300))
    held = sum(low <= exact <= high for low, high in intervals)
    assert binom.ppf(1e-6, 300, 0.88) <= held <= binom.ppf(1 - 1e-6, 300, 0.92)


@pytest.mark.parametrize("kind", ["average sensitivity", "influences", "noise sensitivity", "coefficient"])
def test_structure_changes_the_cost_and_not_the_samples(net, kind):
    """The same points give the same estimate as a function that can only be called."""
    kept, called = (
        ESTIMATES[kind](f, n_samples=53, rng=np.random.default_rng(1), **given)
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


def test_ten_thousand_coordinates():
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
        (lambda net, kw: estimate_average_sensitivity(net, 8, **kw), "n = 8, but the function has 9"),
        (lambda net, kw: estimate_noise_sensitivity(net, 10, 0.5, **kw), "n = 10, but the function has 9"),
        (lambda net, kw: estimate_influences(lambda X: X[:, 0], **kw), "`n`, the number of coordinates, is needed"),
        (lambda net, kw: estimate_average_sensitivity(net, n_flips=10, **kw), "`n_flips` must lie between 1 and 9"),
        (lambda net, kw: estimate_within(0, lambda m: None), "`relative_error` must be a finite number above 0"),
    ],
)
def test_refusals(net, call, message):
    with pytest.raises(ValueError, match=message):
        call(net, {"n_samples": 5, "rng": np.random.default_rng(0)})

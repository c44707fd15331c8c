"""LatentRegressor against the written likelihood, maximised by scipy, and against latents that are known."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from grids import few_of
from scipy.optimize import minimize
from scipy.stats import norm

import sparsact as sa
from sparsact.hypercube import characters, points, subset_masks, subsets_of
from sparsact.learners.cube_gp import posterior


def behind_floor(share, *, n=6, m=300, noise=0.4, seed=0, pair=0.0):
    """Rows of an additive latent (and perhaps a pair), pinned at a floor that hides a share of them."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1, 1], (m, n))
    f = X @ rng.normal(size=n) + pair * X[:, 0] * X[:, 1]
    y = f + noise * rng.normal(size=m)
    floor = np.quantile(y, share)
    return X, np.maximum(y, floor), f, floor


def written_tobit(Z, y, lower, upper, penalty):
    """Mode and inverse Hessian of the likelihood as it is written, in the intercept, coefficients and noise."""

    def loss(theta):
        mean, deviation = Z @ theta[:-1], np.exp(theta[-1])
        low, high = y <= lower, y >= upper
        free = ~(low | high)
        found = norm.logpdf(y[free], mean[free], deviation).sum()
        found += norm.logcdf((lower - mean[low]) / deviation).sum() if low.any() else 0.0
        found += norm.logsf((upper - mean[high]) / deviation).sum() if high.any() else 0.0
        return -found + penalty * (theta[1:-1] ** 2).sum() / deviation**2 / 2

    start = np.append(np.linalg.lstsq(Z, y, rcond=None)[0], 0.0)
    best = minimize(loss, start, method="BFGS", options={"gtol": 1e-7})
    step = 1e-4 * np.eye(len(start))
    hessian = [
        [loss(best.x + a + b) - loss(best.x + a - b) - loss(best.x - a + b) + loss(best.x - a - b) for a in step]
        for b in step
    ]
    return best.x, np.linalg.inv(np.array(hessian) / 4e-8)


@pytest.mark.parametrize("penalty", [0.0, 3.0])
@pytest.mark.parametrize("sides", ["lower", "both"])
def test_it_maximises_the_written_likelihood(sides, penalty):
    X, y, _, floor = behind_floor(0.4, n=4)
    ceiling = np.quantile(y, 0.8) if sides == "both" else np.inf
    y = np.minimum(y, ceiling)
    bounds = (floor, ceiling if sides == "both" else None)
    model = sa.LatentRegressor(degree=2, alpha=penalty, censoring=bounds).fit(X, y)
    subsets = subsets_of(subset_masks(4, 2))
    theta, covariance = written_tobit(characters(X, subsets), y, floor, ceiling, penalty)
    np.testing.assert_allclose([model.spectrum_[subset] for subset in subsets], theta[:-1], atol=2e-5)
    assert model.noise_deviation_ == pytest.approx(np.exp(theta[-1]), rel=1e-4)
    expected = np.sqrt(covariance.diagonal()[:-1])
    np.testing.assert_allclose(model.standard_errors(subsets), expected, rtol=2e-3)


def test_without_bounds_and_penalty_it_is_least_squares():
    X, _, f, _ = behind_floor(0.0)
    y = f + 0.3 * np.random.default_rng(1).normal(size=len(f))
    model = sa.LatentRegressor(degree=2, alpha=0.0, censoring=None).fit(X, y)
    other = sa.LowDegreeRegressor(2).fit(X, y)
    np.testing.assert_allclose(model.predict(X), other.predict(X), atol=1e-6)
    ratio = np.sqrt(other.residual_variance_ * (len(y) - 22) / len(y)) / model.noise_deviation_
    assert ratio == pytest.approx(1, rel=1e-4)  # maximum likelihood divides by the rows, up to the least noise


@pytest.mark.grid
@pytest.mark.parametrize("share", few_of([0.3, 0.6, 0.9], [0.6]))
def test_an_additive_latent_comes_out_additive_and_intervals_hold(share):
    """Eight draws of six coefficients: 95 % intervals of fewer than 40 of 48 hold by chance below 2e-3."""
    held = 0
    for seed in range(8):
        X, y, f, floor = behind_floor(share, seed=seed, m=300)
        model = sa.LatentRegressor(random_state=0).fit(X, y)
        assert model.censoring_ == (floor, None)
        assert model.degree_ == 1
        truth = np.linalg.lstsq(X.astype(float), f, rcond=None)[0]
        low, high = model.confidence_intervals([(i,) for i in range(6)]).T
        held += ((low <= truth) & (truth <= high)).sum()
    assert held >= 40


def test_an_interaction_below_a_floor_is_found():
    X, y, f, _ = behind_floor(0.5, pair=1.5, m=600)
    model = sa.LatentRegressor(random_state=0).fit(X, y)
    assert model.degree_ == 2
    low, high = model.confidence_intervals([(0, 1)])[0]
    assert low < 1.5 < high
    assert np.corrcoef(model.predict_latent(X), f)[0, 1] > 0.99


def test_expected_measurements_are_means_of_new_ones():
    X, y, _, floor = behind_floor(0.5)
    model = sa.LatentRegressor(degree=1).fit(X, y)
    mean, deviation = model.predict_latent(X[:5], return_std=True)
    rng = np.random.default_rng(0)
    noisy = mean + np.hypot(deviation, model.noise_deviation_) * rng.normal(size=(200_000, 5))
    np.testing.assert_allclose(model.predict(X[:5]), np.maximum(noisy, floor).mean(axis=0), atol=0.01)
    np.testing.assert_allclose(model.curve([-99.0, 50.0]), [floor, 50.0])


CURVES = {
    "log": (lambda f: np.exp(0.5 * f), "log"),
    "sigmoid": (lambda f: 3 + 5 / (1 + np.exp(-f)), "sigmoid"),
    "monotone": (lambda f: np.where(f > 0, f, 0.1 * f) + 0.02 * f**3, "monotone"),
}


@pytest.mark.parametrize(
    ("latent", "link"),
    few_of(product(["low-degree", "gp"], CURVES), [("gp", "sigmoid"), *product(["low-degree"], CURVES)]),
)
def test_curves_are_learned_with_their_latents(link, latent):
    X, _, f, _ = behind_floor(0.0, m=500)
    rng = np.random.default_rng(2)
    y = np.exp(0.5 * f + 0.05 * rng.normal(size=500)) if link == "log" else CURVES[link][0](f)
    y = y if link == "log" else y + 0.05 * y.std() * rng.normal(size=500)
    model = sa.LatentRegressor(latent, link=link, random_state=0).fit(X[:400], y[:400])
    assert model.degree_ == 1
    assert np.corrcoef(model.predict_latent(X[400:]), f[400:])[0, 1] > 0.995
    assert np.mean((model.predict(X[400:]) - y[400:]) ** 2) < 0.05 * y.var()
    line = model.curve(np.linspace(-2, 2, 50))
    assert (np.diff(line) > 0).all()
    if link == "monotone":
        assert model.spectrum_.variance() == pytest.approx(1)


@pytest.mark.grid
def test_the_simplest_link_that_fits_is_chosen():
    X, _, f, _ = behind_floor(0.0, m=500)
    rng = np.random.default_rng(3)
    straight, bent = f + 0.2 * rng.normal(size=500), 1 / (1 + np.exp(-2 * f)) + 0.02 * rng.normal(size=500)
    model = sa.LatentRegressor(link="auto", random_state=0).fit(X, straight)
    assert (model.link_, model.degree_) == ("identity", 1)
    model.fit(X, bent)
    assert (model.link_, model.degree_) == ("sigmoid", 1)
    tried = {(one.link, one.degree): one.log_likelihood for one in model.candidates_}
    assert tried["sigmoid", 1] > tried["identity", 2]


def test_a_process_without_bounds_is_the_process_of_its_kernel():
    """Laplace's approximation is exact for a normal likelihood: the posterior of scikit-learn's formulas."""
    X, _, f, _ = behind_floor(0.0, n=5, m=80, pair=1.0)
    y = f + 0.3 * np.random.default_rng(1).normal(size=80)
    model = sa.LatentRegressor("gp", censoring=None, random_state=0).fit(X, y)
    posterior = model._fitted.latent.posterior.given
    one = model._fitted.measurement
    mean = model._fitted.latent.posterior.shift
    unit = one.noise_deviation
    K = posterior.kernel(X) * unit**2
    cross = posterior.kernel(points(5), X) * unit**2
    A = K + model.noise_deviation_**2 * np.eye(80)
    expected = mean + cross @ np.linalg.solve(A, y - mean)
    variance = unit**2 * posterior.kernel.variance - np.einsum("ij,ji->i", cross, np.linalg.solve(A, cross.T))
    found, deviation = model.predict_latent(points(5), return_std=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(deviation**2, variance, rtol=1e-3)


@pytest.mark.grid
def test_many_rows_are_solved_by_conjugate_gradients(monkeypatch):
    monkeypatch.setattr(posterior, "factor_is_faster", lambda *_: False)
    X, y, f, _ = behind_floor(0.4, n=11, m=300, pair=1.0)
    model = sa.LatentRegressor("gp", random_state=0).fit(X, y)
    assert not model._fitted.latent.posterior.best.system.is_direct
    assert np.corrcoef(model.predict_latent(X), f)[0, 1] > 0.99


@pytest.mark.parametrize(
    ("m", "link"),
    few_of(
        product([2, 5, 12], ["identity", "sigmoid", "monotone"]),
        [(2, "monotone"), (5, "monotone"), (5, "sigmoid"), (12, "identity")],
    ),
)
def test_few_rows_do_not_diverge(m, link):
    X, y, _, _ = behind_floor(0.5, m=m, n=8)
    for latent in ("low-degree", "gp"):
        model = sa.LatentRegressor(latent, degree=2, link=link, random_state=0).fit(X, y)
        assert np.isfinite(model.predict(X)).all()
        assert np.abs(model.predict(points(8))).max() < 20 * (1 + np.abs(y).max())


@pytest.mark.parametrize(
    ("bounds", "y", "line"),
    [
        ((1.0, None), [1.0, 1.0, 1.0, 1.0], "all 4 rows are at a bound"),
        ((0.0, None), [1.0, 2.0, 3.0, 4.0], "no row is at the lower bound 0 of `censoring`, the nearest is 1"),
        ((2.0, None), [1.0, 2.0, 3.0, 4.0], "1 rows are beyond the lower one, 2 (the furthest: 1); clip"),
        ((None, 3.0), [1.0, 2.0, 3.0, 4.0], "1 rows are beyond the upper one, 3 (the furthest: 4); clip"),
        ((3.0, 1.0), [1.0, 2.0, 3.0, 4.0], "the lower bound of `censoring` must be below the upper one"),
        ((1.0,), [1.0, 2.0, 3.0, 4.0], "a pair (lower, upper)"),
    ],
)
def test_bounds_that_are_none_are_refused(bounds, y, line):
    with pytest.raises(ValueError, match=line.replace("(", r"\(").replace(")", r"\)")) as error:
        sa.LatentRegressor(degree=1, censoring=bounds).fit(points(2), y)
    assert "\n" not in str(error.value)


def test_logarithms_of_negative_numbers_are_refused():
    with pytest.raises(ValueError, match=r"needs positive targets; 2 are not \(the lowest: -1\)"):
        sa.LatentRegressor(degree=1, link="log").fit(points(2), [-1.0, 0.0, 1.0, 2.0])


def test_pinned_values_are_noticed_and_others_are_not():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], (300, 4))
    y = rng.normal(size=300)
    for targets, expected in (
        (y, (None, None)),
        (np.clip(y, -0.5, 1.0), (-0.5, 1.0)),
        (np.maximum(y, np.sort(y)[4]), (None, None)),  # fewer than 3 %
        (rng.poisson(2.0, 300).astype(float), (None, None)),  # zero is no more frequent than other counts
        ((y > 0).astype(float), (None, None)),
    ):
        assert sa.LatentRegressor(degree=1).fit(X, targets).censoring_ == expected


@pytest.mark.parametrize("latent", ["low-degree", "gp"])
def test_weights_are_numbers_of_rows(latent):
    """Also of half a row, twice."""
    X, y, _, _ = behind_floor(0.4, m=60)
    counts = np.random.default_rng(1).integers(0, 4, 60)
    model = sa.LatentRegressor(latent, degree=1, random_state=0)
    once = model.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).predict(X)
    np.testing.assert_allclose(model.fit(X, y, sample_weight=counts).predict(X), once, rtol=1e-5)
    halves = model.fit(np.tile(X, (2, 1)), np.tile(y, 2), np.tile(counts / 2, 2)).predict(X)
    np.testing.assert_allclose(halves, once, rtol=1e-5)


KEPT = [*product(["low-degree", "gp"], ["identity", "log", "sigmoid", "monotone"], [None, "lower", "both"])]


@pytest.mark.parametrize(("latent", "link", "bounds"), few_of(KEPT, KEPT[::4] + KEPT[3::6]))
def test_what_is_loaded_is_what_was_fitted(latent, link, bounds, tmp_path):
    framed = (latent == "gp") == (bounds == "lower")  # each of these values with names and without
    X, y, _, _ = behind_floor(0.2, n=4, m=70)
    y = np.exp(0.3 * y)
    lower, upper = y.min(), np.quantile(y, 0.9)
    censoring = {None: None, "lower": (lower, None), "both": (lower, upper)}[bounds]
    if bounds == "both":
        y = np.minimum(y, upper)
    frame = pd.DataFrame((1 - X) // 2, columns=["w", "x", "a", "b"])
    rows, queries = (frame, frame[["w", "x", "a", "b"]]) if framed else (frame.to_numpy(),) * 2
    degree = "auto" if bounds == "lower" else 2
    model = sa.LatentRegressor(latent, degree=degree, link=link, censoring=censoring, random_state=0).fit(rows, y)
    model.save(tmp_path / "model")
    loaded = sa.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(queries), model.predict(queries))
    for one, other in zip(*(it.predict_latent(queries, return_std=True) for it in (loaded, model)), strict=True):
        np.testing.assert_array_equal(one, other)
    subsets = [(0,), (1, 3) if degree == 2 else (1,), (2,)]
    np.testing.assert_array_equal(loaded.confidence_intervals(subsets), model.confidence_intervals(subsets))
    np.testing.assert_array_equal(loaded.curve(np.linspace(-3, 3, 7)), model.curve(np.linspace(-3, 3, 7)))
    for name in ("censoring_", "link_", "degree_", "n_censored_", "candidates_", "noise_deviation_"):
        assert getattr(loaded, name) == getattr(model, name)
    if framed:
        assert list(loaded.feature_names_in_) == list(frame.columns)
        with pytest.raises(ValueError, match="feature names"):
            loaded.predict(frame[["x", "w", "a", "b"]])

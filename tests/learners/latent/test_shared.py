"""Targets that share traits: the written likelihood and its maximum, planted energies, one target, rows, files."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import sparsact as sa
from sparsact.learners.contrasts import contrast_deviations
from sparsact.learners.latent.latent_polynomial import LEAST_NOISE
from sparsact.learners.latent.newton import maximum
from sparsact.learners.latent.targets import Targets
from sparsact.learners.latent.traits import PATIENCE, SharedTarget, TraitProblem, fractions, traits_of

LINKS = ("two-state", "three-state")


def energies(m, n, *, seed=0, noise=0.2, apart=False):
    """Bits, planted coefficients (2, n), and noisy fractions (m, 2) written out; ``apart``: of one target a row."""
    rng = np.random.default_rng(seed)
    bits, b = rng.integers(0, 2, (m, n)), rng.normal(size=(2, n)) * np.sqrt(2.5 / n)
    folding, binding = ((1 - 2 * bits) @ b.T - 1).T
    y = np.stack([1 / (1 + np.exp(folding)), 1 / (1 + np.exp(binding) * (1 + np.exp(folding)))], axis=1)
    y += noise * y.std(axis=0) * rng.normal(size=y.shape)
    if apart:
        y[: m // 3, 1] = y[m // 3 :, 0] = np.nan
    return bits, y, b


def problem_of(links, *, m=50, n=3):
    """A problem of as many targets as links, one behind a floor, each of its own rows, with a penalty and a tilt."""
    rng = np.random.default_rng(1)
    monomials = np.column_stack([np.ones(m), rng.normal(size=(m, n))])
    targets = []
    for t, (link, traits) in enumerate(zip(links, traits_of(links), strict=True)):
        rows = np.sort(rng.permutation(m)[: m - 7 * t])
        floor = -0.5 if t == 0 else -np.inf
        y = np.maximum(rng.normal(size=len(rows)), floor)
        side = -(y == floor).astype(np.int8)
        targets.append(SharedTarget(link, traits, rows, Targets(y, side, 1.0 + rows % 3, (floor, np.inf))))
    K = 1 + links.count("three-state")
    penalty, tilt = rng.uniform(0.5, 2, (K, n + 1)), rng.normal(size=(len(links), 2))
    return TraitProblem(monomials, np.minimum(np.arange(n + 1), 1), targets, penalty, tilt)


def written(problem):
    """The penalised log-likelihood as the module's text has it, with normal densities of SciPy."""

    def value(at):
        b, measurements = problem.parts(at)
        found = 0.0
        for t, (link, traits, rows, targets) in enumerate(problem.targets):
            f = problem.monomials[rows] @ b[traits].T
            fraction = {
                "identity": lambda f: f[:, 0],
                "sigmoid": lambda f: 1 / (1 + np.exp(-f[:, 0])),
                "two-state": lambda f: 1 / (1 + np.exp(f[:, 0])),
                "three-state": lambda f: 1 / (1 + np.exp(f[:, 1]) * (1 + np.exp(f[:, 0]))),
            }[link](f)
            precision, level, height = measurements[t]
            residual, low = precision * targets.y - level - height * fraction, targets.side < 0
            found += targets.weights[~low] @ norm.logpdf(residual[~low])
            found += targets.weights[low] @ norm.logcdf(residual[low])
            found += targets.measured * (np.log(precision) - 0.5 * (LEAST_NOISE * precision) ** 2)
            found += problem.tilt[t] @ np.log([precision, height]) - 0.5 * np.log(height / precision / 4) ** 2
        for k in range(len(b)):
            home = [k in target.traits for target in problem.targets].index(True)
            in_noise = np.append(b[k, 0], measurements[home, 2] / 4 * b[k, 1:])
            found -= 0.5 * problem.penalty[k] @ in_noise**2
        return found

    return value


@pytest.mark.parametrize(
    "links", [LINKS, ("three-state",), ("sigmoid", "three-state", "three-state"), ("two-state", "identity")]
)
def test_derivatives_match_the_written_likelihood(links):
    problem = problem_of(links)
    at = problem.start() + 0.3 * np.random.default_rng(0).normal(size=len(problem.start()))
    assert problem.in_range(at)
    value, gradient, hessian = problem.terms(at)
    objective, steps = written(problem), 1e-5 * np.eye(len(at))
    assert value == pytest.approx(objective(at), rel=1e-10)
    found = [(objective(at + e) - objective(at - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(gradient, found, atol=1e-6 * np.abs(gradient).max())
    second = [(problem.terms(at - e)[1] - problem.terms(at + e)[1]) / 2e-5 for e in steps]
    np.testing.assert_allclose(hessian, second, atol=1e-6 * np.abs(hessian).max())


@pytest.mark.grid
def test_no_other_search_gets_higher():
    """L-BFGS of the written likelihood from six random starts, penalties and tilt as they were learned."""
    bits, y, _ = energies(150, 5)
    monomials = np.column_stack([np.ones(150), (1 - 2 * bits) - (1 - 2 * bits).mean(axis=0)])
    every = np.arange(150)
    targets = [
        SharedTarget(link, traits, every, Targets(each, np.zeros(150, np.int8), np.ones(150)).standardized(0.4, 0.3))
        for link, traits, each in zip(LINKS, traits_of(LINKS), y.T, strict=True)
    ]
    problem = TraitProblem(monomials, np.minimum(np.arange(6), 1), targets, np.ones((2, 6)), np.zeros((2, 2)))
    for _ in range(8):
        best = maximum(problem.terms, problem.in_range, problem.start())
        problem = problem.updated(best.value.parameters, learns_penalty=True)
    best, objective = maximum(problem.terms, problem.in_range, problem.start()), written(problem)
    assert best.converged
    rng, size = np.random.default_rng(3), problem.penalty.size

    def loss(at):
        return (-objective(at), -problem.terms(at)[1]) if problem.in_range(at) else (1e10, np.zeros(len(at)))

    for _ in range(6):
        start = problem.start() + np.append(rng.normal(size=size), np.zeros(len(best.value.parameters) - size))
        assert objective(minimize(loss, start, jac=True, method="L-BFGS-B").x) < objective(best.value.parameters) + 0.01


def test_fractions_are_probabilities_of_states():
    """With Boltzmann weights 1 (folded), e^f (unfolded), e^-g (bound); with large energies, too."""
    f = np.array([[0.3, -1.2], [2.0, 0.5], [-700.0, 3.0], [800.0, -900.0], [900.0, 0.0]])
    found = fractions("three-state", f).value
    weights = np.exp(np.array([np.zeros(2), f[:2, 0], -f[:2, 1]]))
    np.testing.assert_allclose(found[:2], weights[2] / weights.sum(axis=0))
    np.testing.assert_allclose(found[2:], [1 / (1 + np.exp(3.0)), 1.0, 0.0], atol=1e-40)
    np.testing.assert_allclose(fractions("two-state", f[:2, :1]).value, weights[0] / (weights[0] + weights[1]))


@pytest.mark.grid
@pytest.mark.parametrize("apart", [False, True])
def test_95_percent_intervals_of_energies_hold(apart):
    """In 10 data sets of 20 coefficients, fewer than 176 hold with probability below 1e-4; errors within one depend."""
    held, tight = 0, []
    for seed in range(10):
        bits, y, b = energies(360, 10, seed=seed, apart=apart)
        model = sa.LatentRegressor(link=LINKS).fit(bits, y)
        low, high = np.moveaxis(model.confidence_intervals([(i,) for i in range(10)]), -1, 0)
        held += ((low <= b) & (b <= high)).sum()
        tight.append((high - low).mean())
    assert held >= 176
    assert np.mean(tight) < 1.0  # the coefficients have a deviation of .5


def test_shared_traits_predict_better_than_separate_ones():
    """Half of the error of binding, where 240 rows measure it and 120 other rows the abundance."""
    bits, y, _ = energies(360, 12, apart=True, seed=4)
    asked, truth, _ = energies(2000, 12, noise=0.0, seed=4)
    rng_b = energies(360, 12, seed=4)[2]
    folding, binding = ((1 - 2 * asked) @ rng_b.T - 1).T
    truth = np.stack([1 / (1 + np.exp(folding)), 1 / (1 + np.exp(binding) * (1 + np.exp(folding)))], axis=1)
    shared = sa.LatentRegressor(link=LINKS).fit(bits, y).predict(asked)
    there = ~np.isnan(y[:, 1])
    alone = sa.LatentRegressor(degree=1, link="sigmoid", censoring=None).fit(bits[there], y[there, 1]).predict(asked)
    assert ((shared[:, 1] - truth[:, 1]) ** 2).mean() < 0.64 * ((alone - truth[:, 1]) ** 2).mean()


def test_one_target_is_the_single_sigmoid_with_its_sign_turned():
    """Two likelihoods in other parameters: energies agree within a third of their standard errors."""
    bits, y, _ = energies(400, 6)
    one = sa.LatentRegressor(degree=1, link="sigmoid", censoring=None).fit(bits, y[:, 0])
    other = sa.LatentRegressor(link="two-state", censoring=None).fit(bits, y[:, 0])
    assert other.predict(bits).shape == other.predict_latent(bits).shape == (400,)
    away = np.abs(other.predict_latent(bits) + one.predict_latent(bits))
    assert (away / one.predict_latent(bits, return_std=True)[1]).max() < 1 / 3
    np.testing.assert_allclose(other.standard_errors(), one.standard_errors(), rtol=0.1)
    assert other.noise_deviation_ == pytest.approx(one.noise_deviation_, rel=0.01)


def test_a_sequence_of_one_link_is_that_link():
    bits, y, _ = energies(60, 4)
    one, other = (sa.LatentRegressor(degree=1, link=link).fit(bits, y[:, 0]) for link in ("sigmoid", ["sigmoid"]))
    np.testing.assert_array_equal(one.predict(bits), other.predict(bits))


@pytest.mark.grid
def test_rows_without_a_target_say_nothing_of_it():
    """A row of NaN alone is as none; weights count rows; a row of both targets is as one row of each."""
    bits, y, _ = energies(90, 4)
    model = sa.LatentRegressor(link=LINKS)
    expected = model.fit(bits, y).predict(bits)
    empty = np.full((5, 2), np.nan)
    more = model.fit(np.vstack([bits, bits[:5]]), np.vstack([y, empty])).predict(bits)
    np.testing.assert_allclose(more, expected, rtol=1e-8)
    halves = [np.where([True, False], y, np.nan), np.where([False, True], y, np.nan)]
    np.testing.assert_allclose(model.fit(np.tile(bits, (2, 1)), np.vstack(halves)).predict(bits), expected, rtol=1e-5)
    counts = np.arange(90) % 3
    often = model.fit(np.repeat(bits, counts, axis=0), np.repeat(y, counts, axis=0)).predict(bits)
    np.testing.assert_allclose(model.fit(bits, y, sample_weight=counts).predict(bits), often, rtol=1e-5)


def test_units_of_targets_change_no_energy():
    bits, y, _ = energies(120, 4)
    one, other = (sa.LatentRegressor(link=LINKS).fit(bits, y * unit) for unit in (1.0, np.array([2.0**300, 2.0**-400])))
    np.testing.assert_allclose(other.predict_latent(bits), one.predict_latent(bits), rtol=1e-9)
    np.testing.assert_allclose(other.predict(bits), one.predict(bits) * [2.0**300, 2.0**-400], rtol=1e-9)


def test_expected_measurements_are_means_over_traits_and_noise():
    bits, y, _ = energies(70, 4, noise=0.4)
    y[:, 0] = np.maximum(y[:, 0], np.quantile(y[:, 0], 0.3))
    model = sa.LatentRegressor(link=LINKS).fit(bits, y)
    assert model.censoring_[0] == (y[:, 0].min(), None)
    fit = model._fitted
    means, covariances = fit.latent.given_curve(bits[:3])
    rng = np.random.default_rng(0)
    for row in range(3):
        traits = rng.multivariate_normal(means[row], covariances[row], size=100_000)
        new = replace(fit.measurement, bounds=np.array([[-np.inf, np.inf]] * 2)).curve(traits)
        new = new + model.noise_deviation_ * rng.normal(size=new.shape)
        new[:, 0] = np.maximum(new[:, 0], y[:, 0].min())
        np.testing.assert_allclose(model.predict(bits[row : row + 1])[0], new.mean(axis=0), atol=0.005)


def test_a_contrast_of_neighbours_is_as_sure_as_twice_its_coefficient():
    bits, y, _ = energies(90, 4)
    model = sa.LatentRegressor(link=LINKS).fit(bits, y)
    points = np.array([[0, 1, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0]])
    found = contrast_deviations(model, points, csr_array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))
    np.testing.assert_allclose(found, 2 * model.standard_errors([(2,), (0,)]).T, rtol=1e-12)


@pytest.mark.parametrize(
    "links", [LINKS, "three-state", pytest.param(("two-state", "three-state", "log"), marks=pytest.mark.grid)]
)
def test_what_is_pickled_or_loaded_is_what_was_fitted(links, tmp_path):
    bits, y, _ = energies(80, 4, apart=links == LINKS)
    y = y[:, 1] if links == "three-state" else np.column_stack([y, np.exp(y[:, 0])])[:, : len(links)]
    frame, before = pd.DataFrame(bits, columns=["d", "b", "c", "a"]), y.copy()
    model = sa.LatentRegressor(link=links, degree=2, random_state=0).fit(frame, y)
    np.testing.assert_array_equal(y, before)
    np.testing.assert_array_equal(frame, bits)
    model.save(tmp_path / "model")
    for again in (sa.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
        for one, other in zip(*(it.predict_latent(frame, return_std=True) for it in (again, model)), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(again.confidence_intervals(), model.confidence_intervals())
        np.testing.assert_array_equal(
            again.curve(model.predict_latent(frame)), model.curve(model.predict_latent(frame))
        )
        assert (again.link_, again.degree_, again.censoring_) == (model.link_, 2, model.censoring_)
        assert np.array_equal(again.noise_deviation_, model.noise_deviation_)
        assert again.spectrum_ == model.spectrum_


@pytest.mark.parametrize(
    ("settings", "columns", "line"),
    [
        ({"link": LINKS}, [0], "a column for each of the 2 curves that `link` names"),
        ({"link": "two-state"}, [0, 1], "y should be a 1d array"),
        ({"link": ("two-state",)}, [0, 1], "a column for each of the 1 curves"),
        ({"link": ("two-state", "monotone")}, [0, 1], "'monotone' is none; fit a target with another curve alone"),
        ({"link": ()}, [0], "none was named"),
        ({"link": LINKS, "latent": "gp"}, [0, 1], "are polynomials; leave out latent='gp'"),
        ({"link": LINKS, "degree": 9}, [0, 1], "choose a lower degree"),
    ],
)
def test_links_that_do_not_fit_are_refused(settings, columns, line):
    bits, y, _ = energies(30, 12)
    with pytest.raises(ValueError, match=line):
        sa.LatentRegressor(**settings).fit(bits, y[:, columns])


def test_targets_that_are_none_are_refused():
    bits, y, _ = energies(30, 4)
    with pytest.raises(ValueError, match="no row measures column 1 of `y`"):
        sa.LatentRegressor(link=LINKS).fit(bits, np.where([True, False], y, np.nan))
    with pytest.raises(ValueError, match="infinity"):
        sa.LatentRegressor(link=LINKS).fit(bits, np.where(y == y[3], np.inf, y))
    model = sa.LatentRegressor(link=LINKS).fit(bits, y)
    with pytest.raises(ValueError, match="a column for each of 2 traits; got shape"):
        model.curve(np.zeros(3))


@pytest.mark.grid
@pytest.mark.parametrize("m", [2, 6, 20])
def test_few_rows_and_constant_targets_do_not_diverge(m):
    bits, y, _ = energies(m, 8)
    for targets in (y, np.column_stack([y[:, 0], np.ones(m)])):
        model = sa.LatentRegressor(link=LINKS, degree=1, censoring=None).fit(bits, targets)
        assert np.isfinite(model.predict_latent(bits, return_std=True)).all()
        assert np.abs(model.predict(bits)).max() < 5


def test_a_search_that_is_cut_short_says_so():
    bits, y, _ = energies(60, 4)
    with pytest.warns(ConvergenceWarning, match=r"\(max_iter=2\); raise max_iter"):
        sa.LatentRegressor(link=LINKS, max_iter=2).fit(bits, y)


@pytest.mark.grid
def test_a_search_that_does_not_settle_stops_early(monkeypatch):
    """Noise alone: penalties that go round without a smaller change are given up long before max_iter."""
    rng = np.random.default_rng(7)
    X, y, updates, updated = rng.integers(0, 2, (40, 8)), rng.normal(size=(40, 2)), [], TraitProblem.updated
    monkeypatch.setattr(TraitProblem, "updated", lambda *a, **given: updates.append(0) or updated(*a, **given))
    with pytest.warns(ConvergenceWarning, match="is not at its maximum after"):
        sa.LatentRegressor(link=LINKS).fit(X, y)
    assert PATIENCE < len(updates) < 3 * PATIENCE


def test_none_among_objects_is_a_target_that_was_not_measured():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 3))
    y = np.stack([X[:, 0], X[:, 0] + X[:, 1]], axis=1) + 0.1 * rng.normal(size=(60, 2))
    y[::4, 0] = np.nan
    expected = sa.LatentRegressor(link=("identity", "identity")).fit(X, y).predict(X)
    for missing in (None, np.nan):
        values = y.astype(object)
        values[::4, 0] = missing
        found = sa.LatentRegressor(link=("identity", "identity")).fit(X, values).predict(X)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.grid
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_rows", [8, 200])
def test_targets_without_signal_have_their_own_noise(n_rows):
    """Curves that no row determines: differences of information along them are rounding, and once led to NaN."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (n_rows, 6)), rng.normal(size=n_rows)
    model = sa.LatentRegressor(link=("two-state", "identity")).fit(X, np.column_stack([y, y]))
    assert (np.abs(model.predict(X)) < 3 * np.abs(y).max()).all()
    assert (model.noise_deviation_ < 2 * y.std()).all()

"""The search for a latent polynomial and its curve: derivatives, the maximum that others find too, what it says."""

from dataclasses import replace

import numpy as np
import pytest
from grids import few_of
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import sparsact as sa
from sparsact.hypercube import characters
from sparsact.learners.latent import fitting
from sparsact.learners.latent.fitting import MeasuredRows, polynomial_fit
from sparsact.learners.latent.latent_polynomial import LEAST_NOISE
from sparsact.learners.latent.latents import _quadratic_forms
from sparsact.learners.latent.links import LINKS
from sparsact.learners.latent.targets import Targets
from sparsact.learners.points import pack, unpack

BENT = {
    "steep": lambda f: np.sinh(1.3 * f),
    "saturated": lambda f: np.tanh(2 * f),
    "hinge": lambda f: np.maximum(f, 0) + 0.1 * f,
}


def bent_rows(curve, m, n, *, seed=5, floor=None, rare=None):
    """Rows of an additive latent of variance 1 through a curve, with noise of a fifth, perhaps behind a floor.

    With ``rare``, that share of the entries is not the usual one of its column.
    """
    rng = np.random.default_rng(seed)
    bits, b = rng.integers(0, 2, (m, n)), rng.normal(size=n)
    if rare is not None:
        bits = (rng.random((m, n)) < rare) ^ (np.arange(n) % 2 == 1)
    mean = BENT[curve]((1 - 2 * bits) @ b / np.linalg.norm(b))
    y = mean + 0.2 * mean.std() * rng.normal(size=m)
    lower = -np.inf if floor is None else float(np.quantile(y, floor))
    weights = 1.0 + np.arange(m) % 3
    return MeasuredRows(pack(bits, "bits"), Targets.of(np.maximum(y, lower), weights, (lower, np.inf)))


def written(fit, rows):
    """Penalised log-likelihood of the parameters in a row, as the module writes it, with normal densities of SciPy."""
    problem, at = fit.problem, fit.at
    targets, Z = problem.targets, characters(unpack(rows.points), fit.subsets[1:])
    Z = Z - np.average(Z, axis=0, weights=targets.weights)
    low, p = targets.side < 0, len(at.b)

    def value(theta):
        precision, b0, b, c = theta[0], theta[1], theta[2 : 1 + p], theta[1 + p :]
        if precision <= 0:
            return -np.inf
        eta = Z @ b
        size = np.sqrt(1 + np.average(eta**2, weights=targets.weights))
        residual = precision * targets.y - b0 - size * problem.link.curve(eta / size, c).value
        found = targets.weights[~low] @ norm.logpdf(residual[~low])
        found += targets.weights[low] @ norm.logcdf(residual[low])
        total = targets.weights[~low].sum() - at.spent
        found += total * (np.log(precision) - 0.5 * (LEAST_NOISE * precision) ** 2)
        return found - 0.5 * at.penalty @ theta[1:] ** 2

    return value


def in_a_row(at):
    return np.concatenate([[at.precision], at.b, at.c])


def out_of_a_row(at, theta):
    p = len(at.b)
    return replace(at, precision=theta[0], b=theta[1 : 1 + p], c=theta[1 + p :])


@pytest.mark.parametrize("rare", [None, 0.05])
@pytest.mark.parametrize("link", LINKS)
def test_first_and_second_derivatives_match_the_written_likelihood(link, rare):
    rows = bent_rows("saturated", 60, 4, floor=0.2, rare=rare)
    fit = polynomial_fit(rows, link, 1, 2.0)
    assert isinstance(fit.problem.monomials.matrix, np.ndarray) == (rare is None)
    rng = np.random.default_rng(0)
    theta = in_a_row(fit.at) + 0.2 * rng.normal(size=len(in_a_row(fit.at)))
    value, gradient, hessian = fit.problem.terms(out_of_a_row(fit.at, theta))
    objective = written(fit, rows)
    assert value == pytest.approx(objective(theta), rel=1e-10)
    step = 1e-5 * np.eye(len(theta))
    found = [(objective(theta + e) - objective(theta - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(gradient, found, atol=1e-5 * np.abs(gradient).max())
    both = [[fit.problem.terms(out_of_a_row(fit.at, theta + sign * e))[1] for sign in (1, -1)] for e in step]
    second = [(down - up) / 2e-5 for up, down in both]
    np.testing.assert_allclose(hessian, second, atol=1e-5 * np.abs(hessian).max())


SEARCHES = [
    (*rows, link)
    for rows in [("steep", 300, 4), ("saturated", 41, 3), ("hinge", 90, 5)]
    for link in ("sigmoid", "monotone")
]


@pytest.mark.parametrize(("curve", "m", "n", "link"), few_of(SEARCHES, SEARCHES[:1] + SEARCHES[2:4]))
def test_no_other_search_gets_higher_than_a_hundredth_of_a_nat(link, curve, m, n):
    """BFGS of the written likelihood, from the fit itself and from random starts."""
    rows = bent_rows(curve, m, n)
    fit = polynomial_fit(rows, link, 1, None)
    assert fit.at.converged
    objective = written(fit, rows)
    reached = fit.problem.terms(fit.at)[0]
    rng = np.random.default_rng(1)
    size = len(in_a_row(fit.at))
    scale = np.concatenate([[0.0], 2 * np.ones(n + 1), 0.5 * np.ones(size - n - 2)])
    starts = [in_a_row(fit.at)] + [[1.5, *np.zeros(size - 1)] + scale * rng.normal(size=size) for _ in range(4)]

    def loss(theta):
        if theta[0] <= 0:
            return 1e10, np.zeros(size)
        value, gradient, _ = fit.problem.terms(out_of_a_row(fit.at, theta))
        return -value, -gradient

    others = [minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 3000}).x for start in starts]
    assert max(objective(theta) for theta in others) < reached + 0.01
    assert max(objective(theta) for theta in others) > reached - 0.01


def test_two_thousand_rows_are_at_their_maximum_too():
    fit = polynomial_fit(bent_rows("steep", 2000, 6), "monotone", 1, None)
    assert fit.at.converged
    _, gradient, hessian = fit.problem.terms(fit.at)
    assert gradient @ np.linalg.solve(hessian, gradient) < 1e-6  # twice what a step would gain
    assert np.linalg.eigvalsh(hessian)[0] > 0
    curve = fit.problem.link.curve(np.linspace(-2, 2, 41), fit.at.c)
    rows = fit.at.b[0] / fit.at.precision + fit.problem.deviation(fit.at.b)[0] / fit.at.precision * curve.value
    truth = np.sinh(1.3 * np.linspace(-2, 2, 41))
    slope, start = np.polyfit(rows, truth, 1)
    assert np.abs(slope * rows + start - truth).max() < 0.1 * truth.std()


def test_a_search_that_is_cut_short_says_so_and_names_the_limit():
    rows = bent_rows("hinge", 80, 4)
    with pytest.warns(ConvergenceWarning, match=r"\(max_iter=2\); raise max_iter") as found:
        sa.LatentRegressor(degree=1, link="monotone", max_iter=2).fit(unpack(rows.points, "bits"), rows.targets.y)
    assert found[0].filename == __file__
    sa.LatentRegressor(degree=1, link="monotone").fit(unpack(rows.points, "bits"), rows.targets.y)


# ---- intervals ----


def coverage(link, mean, factor, *, n_sets=40, m=150, n=5):
    """Shares of coefficients, of latents of all points, and of new measurements within their 95 % intervals."""
    held = []
    for seed in range(n_sets):
        rng = np.random.default_rng(100 + seed)
        b = rng.normal(size=n)
        b /= np.linalg.norm(b)
        bits = rng.integers(0, 2, (m, n))
        cube = np.array([[i >> k & 1 for k in range(n)] for i in range(2**n)])
        noise = 0.2 * mean((1 - 2 * cube) @ b).std()
        y = mean((1 - 2 * bits) @ b) + noise * rng.normal(size=m)
        model = sa.LatentRegressor(degree=1, link=link, censoring=None).fit(bits, np.exp(y) if link == "log" else y)
        low, high = model.confidence_intervals([(k,) for k in range(n)]).T
        latent, deviation = model.predict_latent(cube, return_std=True)
        new = mean((1 - 2 * cube) @ b) + noise * rng.normal(size=2**n)
        found = np.log(model.curve(latent)) if link == "log" else model.curve(latent)
        held.append(
            [
                np.mean((low <= factor * b) & (factor * b <= high)),
                np.mean(np.abs(latent - factor * (1 - 2 * cube) @ b) <= 1.98 * deviation),
                np.mean(np.abs(new - found) <= 2.03 * model.noise_deviation_),
            ]
        )
    return np.mean(held, axis=0)


@pytest.mark.parametrize(
    ("link", "mean", "factor"),
    [
        ("identity", lambda f: f, 1.0),
        ("log", lambda f: f, 1.0),
        ("sigmoid", lambda f: 3 + 5 / (1 + np.exp(-2 * f)), 2.0),
        pytest.param("monotone", lambda f: np.sinh(1.3 * f), 1.0, marks=pytest.mark.grid),
        pytest.param("monotone", lambda f: np.maximum(f, 0) + 0.1 * f, 1.0, marks=pytest.mark.grid),
    ],
)
def test_95_percent_intervals_hold(link, mean, factor):
    """Fewer than 178 of 200 coefficients hold with probability below 1e-3; latents of a set depend on 5 estimates."""
    of_coefficients, of_latents, of_measurements = coverage(link, mean, factor)
    assert of_coefficients >= 0.89
    assert of_latents >= 0.89
    assert of_measurements >= 0.93  # of 1,280


# ---- units ----


@pytest.mark.parametrize("exponent", [-700, -541, 515, 900])
@pytest.mark.parametrize(
    ("latent", "link"), [("low-degree", "identity"), ("low-degree", "monotone"), ("gp", "sigmoid")]
)
def test_powers_of_two_change_nothing_but_the_unit(latent, link, exponent):
    rows = bent_rows("saturated", 47, 3, floor=0.2)
    y, floor = rows.targets.y, rows.targets.bounds[0]
    one, other = (
        sa.LatentRegressor(latent, degree=1, link=link, censoring=(np.ldexp(floor, e), None), random_state=0).fit(
            unpack(rows.points, "bits"), np.ldexp(y, e)
        )
        for e in (0, exponent)
    )
    unit = exponent if link == "identity" else 0
    np.testing.assert_array_equal(
        other.predict(unpack(rows.points, "bits")), np.ldexp(one.predict(unpack(rows.points, "bits")), exponent)
    )
    np.testing.assert_array_equal(
        other.confidence_intervals([(0,), (2,)]), np.ldexp(one.confidence_intervals([(0,), (2,)]), unit)
    )
    for a, b in zip(
        *(model.predict_latent(unpack(rows.points, "bits"), return_std=True) for model in (one, other)), strict=True
    ):
        np.testing.assert_array_equal(b, np.ldexp(a, unit))
    assert other.noise_deviation_ == np.ldexp(one.noise_deviation_, exponent)
    assert other.censoring_ == (np.ldexp(floor, exponent), None)


def test_the_logarithm_of_another_unit_is_shifted():
    rows = bent_rows("saturated", 47, 3)
    y = np.exp(rows.targets.y)
    one, other = (
        sa.LatentRegressor(degree=1, link="log").fit(unpack(rows.points, "bits"), y * unit) for unit in (1.0, 1e-163)
    )
    np.testing.assert_allclose(
        other.predict(unpack(rows.points, "bits")), 1e-163 * one.predict(unpack(rows.points, "bits")), rtol=1e-9
    )
    np.testing.assert_allclose(
        other.predict_latent(unpack(rows.points, "bits")),
        one.predict_latent(unpack(rows.points, "bits")) + np.log(1e-163),
    )
    assert other.noise_deviation_ == pytest.approx(one.noise_deviation_)


def test_likelihoods_of_candidates_are_of_the_targets_as_they_are():
    rows = bent_rows("hinge", 60, 3, floor=0.3)
    y, floor = rows.targets.y, rows.targets.bounds[0]
    one, other = (
        sa.LatentRegressor(degree="auto", censoring=(floor * unit, None), random_state=0).fit(
            unpack(rows.points, "bits"), y * unit
        )
        for unit in (1.0, 2.0**40)
    )
    measured = np.mean(y > floor)
    for a, b in zip(one.candidates_, other.candidates_, strict=True):
        assert b.log_likelihood == pytest.approx(a.log_likelihood - measured * 40 * np.log(2))


# ---- bounds ----


@pytest.mark.parametrize("bound", [0.1 + 0.2, 7, 0.01, 1000, 123.456, 3e5, 1e-170])
@pytest.mark.parametrize("link", ["identity", "log"])
def test_a_bound_comes_back_as_it_was_given(link, bound):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (70, 3))
    factor = np.exp((1 - 2 * bits) @ [1.0, -0.5, 0.3] + 0.3 * rng.normal(size=70))
    ceiling = float(bound * 3.3)
    y = np.clip(factor * bound * 1.2, bound, ceiling)
    model = sa.LatentRegressor(degree=1, link=link, censoring=(bound, ceiling)).fit(bits, y)
    assert model.censoring_ == (bound, ceiling)
    assert model.n_censored_ == ((y == bound) | (y == ceiling)).sum()
    again = sa.LatentRegressor(degree=1, link=link, censoring=model.censoring_).fit(bits, y)
    np.testing.assert_array_equal(again.predict(bits), model.predict(bits))
    far = model.predict_latent(bits)
    assert set(model.curve([far.min() - 99 * np.ptp(far), far.max() + 99 * np.ptp(far)])) == {bound, ceiling}
    assert ((model.predict(bits) >= bound) & (model.predict(bits) <= ceiling)).all()


def test_a_bound_is_compared_in_the_precision_of_the_targets():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2, (60, 3))
    y = np.maximum(bits @ [1.0, 0.5, 0.2] + 0.1 * rng.normal(size=60), 0.3).astype(np.float32)
    model = sa.LatentRegressor(degree=1, censoring=(0.3, None)).fit(bits, y)
    assert model.censoring_ == (float(np.float32(0.3)), None)
    assert model.n_censored_ == (y == np.float32(0.3)).sum() > 0


@pytest.mark.grid
def test_a_search_that_begins_with_some_of_many_rows_ends_where_the_others_do(monkeypatch):
    """Rows times monomials are beyond the limit, which is lowered; the maximum is the same to 1e-4 of an error."""
    rows = bent_rows("saturated", 3000, 40, rare=0.03)
    whole = polynomial_fit(rows, "sigmoid", 1, None)
    monkeypatch.setattr(fitting, "_LONG", 1e5)
    found = polynomial_fit(rows, "sigmoid", 1, None)
    assert found.at.converged
    assert found.at.steps != whole.at.steps
    errors = np.sqrt(whole.at.covariance.diagonal())
    assert np.abs((in_a_row(found.at) - in_a_row(whole.at)) / errors).max() < 0.01


@pytest.mark.parametrize("rare", [0.02, 0.5])
def test_deviations_of_predictions_are_quadratic_forms(rare):
    rng = np.random.default_rng(3)
    bits = rng.random((300, 9)) < rare
    y = (1 - 2 * bits) @ rng.normal(size=9) + rng.normal(size=300)
    model = sa.LatentRegressor(degree=2, alpha=1.0).fit(bits, y)
    latent, signs = model._fitted.latent, characters(1 - 2 * bits, model._fitted.latent.subsets)
    _, deviations = model.predict_latent(bits, return_std=True)
    expected = latent.unit * np.sqrt((signs @ latent.covariance * signs).sum(axis=1))
    np.testing.assert_allclose(deviations, expected, rtol=1e-6)


def test_no_rows_have_no_quadratic_forms():
    assert _quadratic_forms(np.empty((0, 3)), np.eye(3)).shape == (0,)

"""Laplace's approximation: every measurement model through its working targets, and modes that others find too."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from sparsact import CubeKernel
from sparsact.hypercube import points
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.gp.laplace import Mode, Working, laplace_mode
from sparsact.learners.gp.systems.cube import CubeSystem
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.latent.links import LINKS
from sparsact.learners.latent.measurement import KnownCurve
from sparsact.learners.latent.process import ProcessProblem
from sparsact.learners.latent.targets import Targets

N, M = 4, 41  # rows of 16 points
BITS = (1.0 - points(N)) / 2
KERNEL = CubeKernel.product(2.0, [0.5, 0.6, 0.7, 0.8])


def problem(link, bounds):
    """Rows of every point, some of them several times, measured through a curve between bounds."""
    rng = np.random.default_rng(0)
    place = np.concatenate([np.arange(16), rng.integers(0, 16, M - 16)])
    curve = LINKS[link]()
    known = KnownCurve(curve, 0.3 * rng.normal(size=curve.n_parameters), 0.1, 1.2, 0.0, 1.1)
    y = known.values(rng.normal(size=16)[place]) + 0.3 * rng.normal(size=M)
    lower, upper = (bound if np.isinf(bound) else np.quantile(y, bound) for bound in bounds)
    y = np.clip(y, lower, upper)
    nothing = np.zeros(16)
    rows = DistinctRows(BITS, nothing, nothing + 1, nothing, nothing + 1, nothing)
    targets = Targets.of(y, 1.0 + np.arange(M) % 3, (float(lower), float(upper)))
    return ProcessProblem(rows, place, targets, known)


def at(seed=1):
    rng = np.random.default_rng(seed)
    return Mode(2.5, rng.normal(size=16), np.zeros(16))


ANY = pytest.mark.parametrize("link", LINKS)
BOUNDS = pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.3, np.inf), (0.25, 0.75)])


@ANY
@BOUNDS
def test_working_targets_have_the_derivatives_of_the_measurement(link, bounds):
    """By differences; second ones where the curve is a line, as a curve's own bend is left out of the weights."""
    given, mode = problem(link, bounds), at()
    working = given.working(mode)

    def gradient(eta, precision):
        units = 1e-5 * np.concatenate([np.eye(16), -np.eye(16)])
        found = [given.log_likelihood(mode._replace(eta=eta + unit, precision=precision)) for unit in units]
        up, down = np.split(np.array(found), 2)
        return (up - down) / 2e-5

    def by_precision(precision):
        up, down = (given.log_likelihood(mode._replace(precision=precision + e)) for e in (1e-5, -1e-5))
        return (up - down) / 2e-5

    np.testing.assert_allclose(working.weights * (working.targets - mode.eta), gradient(mode.eta, 2.5), atol=1e-6)
    assert working.gradient == pytest.approx(by_precision(2.5), abs=1e-6)
    assert (working.weights > 0).all()
    if link == "identity":
        second = [gradient(mode.eta + e, 2.5) for e in 1e-3 * np.eye(16)] - gradient(mode.eta, 2.5)
        np.testing.assert_allclose(-second / 1e-3, np.diag(working.weights), rtol=2e-2, atol=2e-2)
        mixed = (gradient(mode.eta, 2.501) - gradient(mode.eta, 2.499)) / 2e-3
        np.testing.assert_allclose(-mixed, working.mixed, atol=1e-4)
        assert working.curvature == pytest.approx((by_precision(2.499) - by_precision(2.501)) / 2e-3, rel=1e-3)


@ANY
@BOUNDS
@pytest.mark.parametrize("kind", [DenseSystem, CubeSystem])
def test_no_other_search_finds_a_more_probable_function(link, bounds, kind):
    """The gradient vanishes, and BFGS of the written density gets no higher."""
    given = problem(link, bounds)
    start = Mode(1.0, np.zeros(16), np.zeros(16))
    found = laplace_mode(given, lambda weights: kind(KERNEL, BITS, 1 / weights), start, 200)
    assert found.converged
    mode, working = found.value, given.working(found.value)
    K = KERNEL(points(N))
    np.testing.assert_allclose(K @ mode.dual, mode.eta, atol=2e-5)
    np.testing.assert_allclose(working.weights * (working.targets - mode.eta), mode.dual, atol=2e-2)
    assert abs(working.gradient) < 2e-2
    inverse = np.linalg.inv(K)

    def loss(theta):
        if theta[0] <= 0:
            return 1e10
        eta = theta[1:]
        return 0.5 * eta @ inverse @ eta - given.log_likelihood(Mode(theta[0], eta, eta))

    reached = loss(np.append(mode.precision, mode.eta))
    other = minimize(loss, np.append(mode.precision, mode.eta), method="BFGS", options={"gtol": 1e-5})
    assert reached - other.fun < 1e-4


class Normal:
    """Targets (16,) of known noise variances."""

    def __init__(self, y, variances):
        self.y, self.variances = y, variances

    def log_likelihood(self, mode):
        return float(-0.5 * ((self.y - mode.eta) ** 2 / self.variances).sum() - 0.5 * (mode.precision - 1) ** 2)

    def working(self, mode):
        return Working(self.y, 1 / self.variances, np.zeros(16), 1 - mode.precision, 1.0)


def test_a_normal_measurement_takes_one_step():
    rng = np.random.default_rng(2)
    y, variances = rng.normal(size=16), rng.uniform(0.2, 0.9, 16)
    start = Mode(3.0, np.zeros(16), np.zeros(16))
    found = laplace_mode(Normal(y, variances), lambda weights: DenseSystem(KERNEL, BITS, 1 / weights), start, 9)
    K = KERNEL(points(N))
    np.testing.assert_allclose(found.value.eta, K @ np.linalg.solve(K + np.diag(variances), y), atol=1e-12)
    assert found.value.precision == pytest.approx(1.0)
    assert (found.converged, found.steps) == (True, 2)  # the second gains nothing


def test_a_search_that_is_cut_short_says_so():
    given = problem("sigmoid", (0.25, 0.75))
    start = Mode(1.0, np.zeros(16), np.zeros(16))
    found = laplace_mode(given, lambda weights: DenseSystem(KERNEL, BITS, 1 / weights), start, 1)
    assert (found.converged, found.steps) == (False, 1)
    with pytest.warns(ConvergenceWarning, match="after 1 steps; raise max_iter"):
        found.checked("Newton's method", "raise max_iter")

"""Networks, isotonic regressions and weights of an ensemble on letters."""

import numpy as np
import pytest
from scipy.optimize import minimize

from sparsact.learners.gp.search import Adam
from sparsact.learners.letters.ensemble import isotonic, member_weights, merged_rows
from sparsact.learners.letters.perceptrons import forward, gradients, inputs
from sparsact.learners.stacking import RIDGE


def test_gradients_of_networks():
    """By differences, of two networks with dropout at once."""
    rng = np.random.default_rng(0)
    k, m, d, h = 2, 5, 4, 3
    shapes = [(k, d, h), (k, h, h), (k, h, 1), (k, 1, h), (k, 1, h), (k, 1, 1)]
    weights = [rng.normal(size=shape) for shape in shapes]  # float64, for the differences
    points, slopes = rng.normal(size=(k, m, d)), rng.normal(size=(k, m))
    masks = [(rng.random((k, m, h)) > 0.3) / 0.7 for _ in range(2)]
    *layers, _ = forward(weights, points, masks)
    found = gradients(weights, points, layers, slopes, masks)
    for place, one in enumerate(weights):
        for at in np.ndindex(one.shape):
            moved = []
            for step in (1e-6, -1e-6):
                other = [w.copy() for w in weights]
                other[place][at] += step
                moved.append((forward(other, points, masks)[-1] * slopes).sum())
            assert found[place][at] == pytest.approx((moved[0] - moved[1]) / 2e-6, abs=1e-6)


def test_a_network_is_its_formula():
    rng = np.random.default_rng(1)
    a, b, c, u, v, w = (rng.normal(size=s) for s in [(1, 4, 3), (1, 3, 3), (1, 3, 1), (1, 1, 3), (1, 1, 3), (1, 1, 1)])
    x = rng.normal(size=(6, 4))
    expected = np.maximum(np.maximum(x @ a[0] + u[0], 0) @ b[0] + v[0], 0) @ c[0] + w[0]
    np.testing.assert_allclose(forward([a, b, c, u, v, w], x)[-1], expected.T)


def test_adam_makes_steps_of_its_rate():
    """The first step is the rate against the sign of the gradient, and weights decay before it."""
    weights = [np.full((1, 2, 2), 3.0), np.zeros((1, 2, 2)), np.zeros((1, 2, 1)), *[np.zeros((1, 1, 2))] * 2]
    weights = [one.astype(np.float32) for one in weights]
    Adam(weights, (0.9, 0.999), [1e-3] * 3 + [0.0] * 2).step([np.sign(one + 1) * 7.0 for one in weights], 0.01)
    np.testing.assert_allclose(weights[0], 3 * (1 - 0.01 * 1e-3) - 0.01, rtol=1e-6)
    np.testing.assert_allclose(weights[3], -0.01, rtol=1e-5)


def test_inputs_are_indicators_and_features():
    codes = np.array([[1, 0], [0, 2]])
    found = inputs(codes, [np.array([[2.0], [4.0]]), np.eye(3)])
    np.testing.assert_allclose(found, [[0, 1, 2, 1, 0, 0], [1, 0, 1, 0, 0, 1]])  # features count half


def test_weights_of_members_are_the_least_penalized_squares():
    """A row of weight 2 counts twice; the penalty is towards weights in proportion to 1 / error**2."""
    rng = np.random.default_rng(2)
    m, k = 60, 3
    y = rng.normal(2, 3, m)
    predicted = np.stack([y + rng.normal(size=m), 0.3 * y + rng.normal(size=m), -y], axis=1)
    weights = rng.uniform(0.5, 2, m)
    found = member_weights(predicted, y, weights)
    errors = np.average((predicted - y[:, None]) ** 2, axis=0, weights=weights)
    centre = errors**-2 / (errors**-2).sum()

    def loss(w):
        of_rows = np.average((predicted @ w - y) ** 2, weights=weights)
        return of_rows + RIDGE / m * errors.min() * ((w - centre) ** 2).sum()

    to_one = {"type": "eq", "fun": lambda w: w.sum() - 1}
    best = minimize(loss, np.full(k, 1 / k), bounds=[(0, None)] * k, constraints=to_one, tol=1e-12)
    np.testing.assert_allclose(found, best.x, atol=1e-4)


def test_isotonic_regressions_rise():
    rng = np.random.default_rng(3)
    scores = rng.uniform(-1, 1, 200)
    y = np.exp(scores) + 0.1 * rng.normal(size=200)
    knots, values = isotonic(scores, y, np.ones(200), rng)
    assert (np.diff(knots) > 0).all()
    assert (np.diff(values) >= -1e-12).all()
    assert np.mean((np.interp(scores, knots, values) - np.exp(scores)) ** 2) < 0.005


def test_rows_that_alone_have_a_letter_are_several_where_they_were_measured_several_times():
    rng = np.random.default_rng(3)
    codes = np.array([[0, 0]] * 7 + [[0, 1]] * 3 + [[1, 0]] * 4 + [[1, 2]])  # letters 1 and 2 of the second site
    y, weights = rng.normal(size=15), rng.integers(1, 4, 15).astype(float)
    y[8] = y[7]
    order = rng.permutation(15)
    found, of_row, total = merged_rows(codes[order], y[order], weights[order])
    np.testing.assert_array_equal(found[of_row], codes[order])
    np.testing.assert_allclose(np.bincount(of_row, weights[order]), total)
    assert sorted(map(tuple, found.tolist())) == [(0, 0), (0, 1), (0, 1), (1, 0), (1, 2)]
    place = of_row[np.argsort(order)]
    assert place[7] == place[8] != place[9]
    np.testing.assert_array_equal(place, merged_rows(codes, y, weights)[1])

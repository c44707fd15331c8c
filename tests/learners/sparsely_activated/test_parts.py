"""The parts of the search: least squares, gates, limits, descent, pruning."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from planted import signs
from scipy.optimize import check_grad

from sparsact.learners.sparsely_activated.descent import PenalisedRisk
from sparsact.learners.sparsely_activated.forest import forest
from sparsact.learners.sparsely_activated.leaf_models import (
    Piece,
    TrainingSample,
    affine_piece,
    best_piece,
    effective_parameters,
    least_squares,
)
from sparsact.learners.sparsely_activated.random_starts import slopes
from sparsact.learners.sparsely_activated.to_network import (
    GateUnits,
    NormLimits,
    excess_of,
    separated,
    units_of,
)
from sparsact.learners.sparsely_activated.tree import grow, prune, score, trim


def sample(m=37, n=5, seed=0, *, cube=False, weights=None):
    rng = np.random.default_rng(seed)
    X = signs(m, n, seed) if cube else rng.normal(size=(m, n)) * np.arange(1, n + 1) + 3
    return TrainingSample.of(X, rng.normal(size=m), np.ones(m) if weights is None else weights, cube=cube)


def test_a_sample_is_the_rows_on_another_scale():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(23, 4)) * [1, 10, 1e-3, 1e5], 7 * rng.normal(size=23)
    X[:, 3] = 4.25
    rows = TrainingSample.of(X, y, np.ones(23), cube=False)
    theta = rng.normal(size=(6, 5))
    W, b = rows.in_columns_of_x(theta)
    varying = theta.copy()
    varying[:, 3] = 0  # a constant column is zero in the design
    assert_allclose(X @ W.T - b, rows.size * rows.design @ varying.T + (X[:, 3:] - 4.25) @ W[:, 3:].T, rtol=1e-9)
    assert np.abs(rows.design[:, :3]).max() <= 1 + 1e-12
    assert np.mean(rows.targets**2) == pytest.approx(1)


@pytest.mark.parametrize("m", [4, 37])
def test_least_squares_has_least_norm(m):
    rng = np.random.default_rng(m)
    A = np.column_stack([rng.normal(size=(m, 6)), np.ones(m)])
    A[:, 4] = A[:, 1] - A[:, 0]
    y, weights = rng.normal(size=m), rng.random(m) + 0.1
    theta, rank = least_squares(A, y, weights)
    root = np.sqrt(weights)
    expected, _, expected_rank, _ = np.linalg.lstsq(A * root[:, None], y * root, rcond=1e-9)
    assert rank == expected_rank
    assert_allclose(theta, expected, atol=1e-8)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_relu_is_found_exactly(sign):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 4))
    y = sign * np.maximum(X @ [1, -2, 0.5, 0] - 0.3, 0)
    rows = TrainingSample.of(X, y, np.ones(90), cube=False)
    everything = np.arange(90)
    piece = best_piece(rows, everything, affine_piece(rows, everything))
    assert (piece.kind, piece.sign, piece.n_units) == ("relu", sign, 1)
    assert piece.squared_error < 1e-20
    assert_allclose(piece(rows.design), rows.targets, atol=1e-10)


def test_parameters_count_more_where_rows_are_few():
    assert effective_parameters(5, 1e9) == pytest.approx(5)
    assert effective_parameters(5, 8) == 8
    assert effective_parameters(5, 3) == 3
    assert 5 < effective_parameters(5, 30) < 6


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("cube", [True, False])
def test_a_tree_and_its_network_agree(cube, everywhere):
    rng = np.random.default_rng(0)
    X = signs(120, 7, 0)
    X[:, 5:] = X[:, 5:] if cube else rng.normal(size=(120, 2))
    rows = TrainingSample.of(X, rng.normal(size=120), np.ones(120), cube=cube)
    tree = grow(rows, 9)
    units = units_of([tree], rows, everywhere=everywhere)
    assert len(tree.leaves()) == 9
    assert_allclose(units.values(rows.design), tree.values(rows), atol=1e-9)
    assert (rows.design @ units.theta.T > 1e-9).sum(axis=1).max() == 1


def test_least_gates_are_no_larger():
    rows = sample(120, 7, cube=True)
    tree = grow(rows, 6)
    wide, narrow = (units_of([tree], rows, everywhere=everywhere) for everywhere in (True, False))
    assert (np.linalg.norm(narrow.theta, axis=1) <= np.linalg.norm(wide.theta, axis=1) + 1e-12).all()


@pytest.mark.parametrize("limits", [(None, None), (0.2, None), (None, 0.4), (0.2, 0.4)])
def test_shrunk_units_keep_to_the_limits_and_gradients_are_right(limits):
    rows = sample()
    rng = np.random.default_rng(2)
    theta = rng.normal(size=(4, 6))
    bound = NormLimits.of(rows, *limits)
    W, b = rows.in_columns_of_x(bound.shrunk(theta))
    for norms, limit in ((np.linalg.norm(W, axis=1), limits[0]), (np.abs(b), limits[1])):
        assert limit is None or norms.max() <= limit
    factors, gradients = bound.shrinkage(theta)
    assert ((factors < 1).any()) == (limits != (None, None))
    for j in range(4):

        def factor(row):
            return bound.shrinkage(row[None])[0][0]

        assert check_grad(factor, lambda row: bound.shrinkage(row[None])[1][0], theta[j]) < 1e-5
    assert gradients.shape == theta.shape


@pytest.mark.parametrize("limits", [(None, None), (0.9, 0.4)])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_penalised_risk_is_its_formula_and_has_its_gradient(k, limits):
    rows = sample(weights=np.random.default_rng(9).random(37) + 0.5)
    theta = np.random.default_rng(3).normal(size=(4, 6))
    signs, bound = np.array([1.0, -1.0, 1.0, 1.0]), NormLimits.of(rows, *limits)
    risk = PenalisedRisk.of(rows, k, bound)
    outputs = np.maximum(rows.design @ bound.shrunk(theta).T, 0)
    excess = np.sort(outputs, axis=1)[:, : 4 - k]
    terms = (outputs @ signs - rows.targets) ** 2 + 3 * (excess**2).sum(axis=1)
    assert risk(GateUnits(signs, theta), 3.0)[0] == pytest.approx(np.average(terms, weights=rows.weights) / 2)
    difference = check_grad(
        lambda flat: risk(GateUnits(signs, flat.reshape(4, 6)), 3.0)[0],
        lambda flat: risk(GateUnits(signs, flat.reshape(4, 6)), 3.0)[1].ravel(),
        theta.ravel(),
    )
    assert difference < 1e-5


@pytest.mark.parametrize("k", [1, 2])
def test_the_penalty_with_margins_has_its_gradient(k):
    """It falls on all that lies above minus the margin, but for the k largest units of a row that were on at first."""
    rows = sample()
    rng = np.random.default_rng(3)
    first, theta = rng.normal(size=(2, 4, 6))
    signs, margins = np.array([1.0, -1.0, 1.0, 1.0]), rng.random(4)
    risk = PenalisedRisk.of(rows, k, NormLimits.of(rows, None, None))
    shifts = risk.shifts(GateUnits(signs, first), margins)
    value, bare = (risk(GateUnits(signs, theta), penalty, shifts)[0] for penalty in (2.0, 0.0))
    expected = 0.0
    for before, z in zip(rows.design @ first.T, rows.design @ theta.T, strict=True):
        kept = [j for j in np.argsort(-before)[:k] if before[j] > 0]
        expected += sum(max(z[j] + margins[j], 0) ** 2 for j in range(4) if j not in kept)
    assert value - bare == pytest.approx(expected / len(rows))
    difference = check_grad(
        lambda flat: risk(GateUnits(signs, flat.reshape(4, 6)), 2.0, shifts)[0],
        lambda flat: risk(GateUnits(signs, flat.reshape(4, 6)), 2.0, shifts)[1].ravel(),
        theta.ravel(),
    )
    assert difference < 1e-5


@pytest.mark.parametrize("k", [1, 2])
def test_mini_batches_descend_along_the_gradient(k):
    """The gradient of each start's mean error plus the penalty on contributions beyond its k largest; in float64."""
    rng = np.random.default_rng(5)
    rows, targets, weights = rng.normal(size=(11, 4)), rng.normal(size=11), rng.random(11) + 0.5
    parameters = rng.normal(size=(2 * 3) * 5)

    def split(flat):
        return flat[:24].reshape(6, 4), flat[24:]

    def value(flat):
        theta, u = split(flat)
        total = 0.0
        for start in (slice(0, 3), slice(3, 6)):
            contributions = np.maximum(rows @ theta[start].T, 0) * u[start]
            excess = np.sort(np.abs(contributions), axis=1)[:, : 3 - k]
            errors = (contributions.sum(axis=1) - targets) ** 2 + 0.7 * (excess**2).sum(axis=1)
            total += (weights * errors).mean()
        return total

    def gradient(flat):
        along_theta, along_u = slopes(rows, targets, weights, *split(flat), k, 0.7)
        return np.concatenate([along_theta.ravel(), along_u])

    assert check_grad(value, gradient, parameters) < 1e-5


def test_descent_ends_at_the_least_squares_of_its_pattern():
    """Correlated columns of unequal sizes: on the rows that each unit has, the residuals are orthogonal to them."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 4)) @ rng.normal(size=(4, 4)) * [1, 10, 0.1, 1]
    y = np.maximum(X[:, 0] - 1, 0) - np.maximum(-X[:, 0] - 1, 0) + 0.1 * rng.normal(size=900)
    rows = TrainingSample.of(X, y, np.ones(900), cube=False)
    start = GateUnits(np.array([1.0, -1.0]), np.array([[1.0, 0, 0, 0, -0.1], [-1.0, 0, 0, 0, -0.1]]))
    risk = PenalisedRisk.of(rows, 1, NormLimits.of(rows, None, None))
    found = risk.minimised(start, 0.0, 200)
    units, iterations = found.value, found.steps
    assert iterations < 100
    errors = units.values(rows.design) - rows.targets
    for theta in units.theta:
        on = rows.design @ theta > 0
        assert np.abs(errors[on] @ rows.design[on]).max() < 1e-6 * np.abs(rows.design[on]).sum(axis=0).max()


def test_weights_that_are_not_free_stay():
    rows = sample(90, 5)
    theta = np.random.default_rng(0).normal(size=(3, 6))
    free = np.random.default_rng(1).random((3, 6)) < 0.5
    risk = PenalisedRisk.of(rows, 1, NormLimits.of(rows, None, None))
    units = risk.minimised(GateUnits(np.ones(3), theta), 1.0, 30, free).value
    assert (units.theta[~free] == theta[~free]).all()
    assert (units.theta[free] != theta[free]).any()


def test_the_unit_that_counts_least_goes():
    """By brute force: that without which least squares on the outputs leaves least."""
    rows = sample(200, 5)
    units = GateUnits(np.ones(6), np.random.default_rng(2).normal(size=(6, 6)))
    risk = PenalisedRisk.of(rows, 6, NormLimits.of(rows, None, None))
    outputs = np.maximum(rows.design @ units.theta.T, 0)
    left = [np.linalg.lstsq(np.delete(outputs, j, axis=1), rows.targets, rcond=None)[1][0] for j in range(6)]
    kept = risk.without(units, 1)
    directions = kept.theta / units.theta[np.arange(6) != np.argmin(left)]
    assert_allclose(directions, np.repeat(directions[:, :1], 6, axis=1))


def test_excess_is_what_lies_beyond_the_largest():
    outputs = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 5.0]])
    assert excess_of(outputs, 1).tolist() == [[0, 1, 2], [0, 0, 0]]
    assert excess_of(outputs, 2).tolist() == [[0, 1, 0], [0, 0, 0]]
    assert not excess_of(outputs, 3).any()


@pytest.mark.parametrize("k", [1, 3])
def test_raised_thresholds_separate(k):
    rows = sample()
    units = GateUnits(np.ones(8), np.random.default_rng(1).normal(size=(8, 6)))
    assert (rows.design @ units.theta.T > 0).sum(axis=1).max() > k
    apart = separated(units, rows, k)
    assert (rows.design @ apart.theta.T > 0).sum(axis=1).max() <= k
    assert (apart.theta[:, :-1] == units.theta[:, :-1]).all()


@pytest.mark.grid
def test_pruning_a_tree_of_noise_leaves_a_constant():
    left = []
    for seed in range(10):
        rows = sample(200, 8, seed, cube=True)
        tree = grow(rows, 30)
        assert len(tree.leaves()) == 30
        value = prune(rows, tree, 64)
        assert value == pytest.approx(score(rows, rows.squared_error(tree.values(rows)), 1), rel=0.2)
        left.append(len(tree.leaves()))
    assert np.median(left) == 1


def test_pruning_keeps_to_the_units():
    rows = sample(300, 8, cube=True)
    exact = TrainingSample.of(rows.design[:, :-1], rows.design[:, :5].prod(axis=1), rows.weights, cube=True)
    for n_units in (1, 3, 17):
        tree = grow(exact, 40)
        prune(exact, tree, n_units)
        assert sum(leaf.piece.n_units for leaf in tree.leaves()) <= n_units


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_trimming_leaves_the_coefficients_that_matter(noise):
    X = signs(600, 9, 0)
    y = np.where(X[:, 3] > 0, 1 + X[:, 1] - 0.5 * X[:, 7], np.maximum(X[:, 2] + X[:, 5], 0))
    rows = TrainingSample.of(X, y + noise * np.random.default_rng(0).normal(size=600), np.ones(600), cube=True)
    tree = grow(rows, 2)
    before = rows.squared_error(tree.values(rows))
    trim(rows, tree)
    kept = [np.flatnonzero(leaf.piece.theta[:-1]).tolist() for leaf in tree.leaves()]
    assert {1, 7} <= set(kept[0])
    assert {2, 5} <= set(kept[1])
    assert sum(map(len, kept)) <= 4 + (noise > 0)
    assert before <= rows.squared_error(tree.values(rows)) + 1e-9 < before * 1.1 + 2e-9


def test_many_small_coefficients_are_kept():
    """Sixty of two standard errors each: hardly one stands out, together they are the function."""
    X = signs(400, 60, 1)
    rng = np.random.default_rng(0)
    rows = TrainingSample.of(X, X @ rng.choice([-1, 1], 60) * 0.1 + rng.normal(size=400), np.ones(400), cube=True)
    tree = grow(rows, 1)
    theta = tree.piece.theta.copy()
    trim(rows, tree)
    assert_allclose(tree.piece.theta, theta, atol=0)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_forest_is_k_sparse_and_keeps_to_the_units(k):
    rows = sample(150, 8, 4, cube=True)
    trees = forest(rows, k, 12)
    units = units_of(trees, rows)
    assert len(trees) == k
    assert len(units) <= 12
    assert (rows.design @ units.theta.T > 1e-9).sum(axis=1).max() <= k
    assert_allclose(units.values(rows.design), sum(tree.values(rows) for tree in trees), atol=1e-9)


def test_a_relu_that_is_nowhere_on_is_nothing():
    """Its leaf is trimmed to itself and takes no unit."""
    rows = sample(20, 3, cube=True)
    tree = grow(rows, 1)
    tree.piece = Piece("relu", 1, np.array([0.0, 0, 0, -1]), rows.squared_error(np.zeros(20)), 1, 1)
    trim(rows, tree)
    assert len(units_of([tree], rows)) == 0


@pytest.mark.parametrize("size", [0.0, 5.0])
def test_small_coefficients_of_all_leaves_are_judged_together(size):
    """Eight leaves with 24 normal coefficients each, of ``size`` standard errors: a third of them do not stand out.

    Most single leaves could drop these, which explain no more than noise may; all leaves together explain more.
    """
    X = signs(4000, 33, 0)
    rng = np.random.default_rng(0)
    weights = np.hstack([4 * rng.choice([-1.0, 1.0], size=(8, 6)), size / np.sqrt(500) * rng.normal(size=(8, 24))])
    y = (X[:, 3:] * weights[(X[:, :3] > 0) @ [1, 2, 4]]).sum(axis=1) + rng.normal(size=4000)
    rows = TrainingSample.of(X, y, np.ones(4000), cube=True)
    tree = grow(rows, 8)
    assert {column for leaf in tree.leaves() for column, _ in leaf.gates} == {0, 1, 2}
    trim(rows, tree)
    kept = sum(np.count_nonzero(leaf.piece.theta[3:-1]) for leaf in tree.leaves())
    assert kept == 8 * 30 if size else kept <= 8 * 6 + 10

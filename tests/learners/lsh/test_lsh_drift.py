"""Drift: p-values that are uniform where nothing moved, small where something did."""

import numpy as np
import pytest
from grids import few_of
from hashed_rows import model, rows
from scipy.stats import ttest_1samp

from sparsact import LSHRegressor
from sparsact.learners.lsh.drift import dempster, groups


def surface(m, rng, shift=0.0):
    """Rows of five columns near a surface of two dimensions."""
    Z = rng.uniform(-1, 1, (m, 2)) + shift
    return np.column_stack([Z, Z.prod(axis=1), Z[:, 0] ** 2, Z.sum(axis=1)])


@pytest.fixture(scope="module")
def learner():
    rng = np.random.default_rng(0)
    X = surface(2000, rng)
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=2000)
    return LSHRegressor(n_tables=8, n_stages=1, degree=1, directions="principal", random_state=0).fit(X, y)


@pytest.mark.grid
@pytest.mark.parametrize("m", few_of([20, 100, 500], [100]))
def test_p_values_are_uniform_where_nothing_moved(learner, m):
    rng = np.random.default_rng(m)
    found = [learner.drift(surface(m, rng)) for _ in range(300)]
    p_values = np.array([drift.p_value for drift in found])
    for level in (0.05, 0.2, 0.5):
        share = np.mean(p_values < level)
        assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / 300) + 0.02
    misses = np.mean([drift.misses for drift in found])
    assert misses == pytest.approx(found[0].expected_misses, rel=0.25, abs=1e-3)


def test_p_values_see_what_moves(learner):
    rng = np.random.default_rng(1)
    assert learner.drift(surface(500, rng, 0.2)).p_value < 1e-6
    inside = surface(2000, rng)
    inside = inside[np.abs(inside[:, 0]) < 0.7]  # within the range of the rows, and no bucket is empty
    drift = learner.drift(inside)
    assert drift.p_value < 1e-6
    assert drift.misses <= 2 * drift.expected_misses + 0.01
    far = learner.drift(surface(500, rng, 3.0))
    assert far.misses > 0.9
    assert far.stability_index > 0.25 > 0.1 > learner.drift(surface(500, rng)).stability_index


def test_the_stability_index_grows_with_the_shift(learner):
    found = [
        learner.drift(surface(2000, np.random.default_rng(2), shift)).stability_index for shift in (0, 0.2, 0.5, 2)
    ]
    assert sorted(found) == found


def test_residuals_by_a_t_test(learner):
    rng = np.random.default_rng(3)
    X = surface(300, rng)
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=300)
    for moved in (0.0, 0.3):
        drift = learner.drift(X, y + moved)
        residuals = y + moved - learner.predict(X)
        assert drift.bias == pytest.approx(residuals.mean())
        assert drift.bias_p_value == pytest.approx(ttest_1samp(residuals, 0).pvalue, rel=1e-6)
        assert drift.rmse == pytest.approx(np.sqrt(np.mean(residuals**2)))
    assert "residuals: mean" in str(drift)
    assert drift.coverage < 0.6
    assert "of targets in their 90 % intervals" in str(drift)
    assert 0.8 < learner.drift(X, y).coverage < 0.98
    assert "residuals" not in str(learner.drift(X))


@pytest.mark.grid
def test_rows_that_left_count_no_more():
    X, Y = rows(m=800)
    learner = model().fit(X, Y)
    expected = model().fit(X, Y).remove(X[400:], Y[400:])
    left = learner.remove(X[400:], Y[400:]).drift(X[400:])
    assert left == expected.drift(X[400:])
    assert left.misses > 0


def test_dempster_against_draws_from_the_null():
    """1 in 20 of 4,000 p-values lies below .05; four standard errors are .014, and the form is an approximation."""
    rng = np.random.default_rng(4)
    root = rng.normal(size=(5, 5)) * np.array([3.0, 1, 1, 0.3, 0.1])
    weights = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    p_values = []
    for _ in range(4000):
        D = rng.normal(size=(25, 5)) @ root
        p_values.append(dempster(D, D.mean(axis=0) - rng.normal(size=5) @ root / 10, weights, 1 / 25 + 1 / 100))
    assert abs(np.mean(np.array(p_values) < 0.05) - 0.05) < 0.02
    assert dempster(np.ones((20, 3)), np.zeros(3), weights[:3], 0.1) == 1.0
    assert dempster(np.ones((20, 3)), np.full(3, 0.5), weights[:3], 0.1) == 0.0


def rows_like(name, rng, m):
    """Rows of three columns or more whose tails, clusters and copies differ."""
    if name == "normal":
        return rng.normal(size=(m, 3))
    if name == "heavy":
        return rng.standard_t(2, (m, 3))
    if name == "clusters":
        centres = np.array([[0, 0, 0], [3, 0, 1], [0, 2, 2], [9, 9, 9]])
        return 0.05 * rng.normal(size=(m, 3)) + centres[rng.choice(4, m, p=[0.5, 0.3, 0.18, 0.02])]
    if name == "discrete":
        return rng.integers(0, 3, (m, 3)).astype(float)
    if name == "copies":
        return np.random.default_rng(99).normal(size=(30, 3))[rng.integers(0, 30, m)]
    return np.exp(rng.normal(size=(m, 8)))


@pytest.mark.grid
@pytest.mark.parametrize(
    "name", few_of(["normal", "heavy", "clusters", "discrete", "copies", "log-normal"], ["copies"])
)
def test_p_values_hold_whatever_the_distribution(name):
    """240 batches from where the rows came: more than 1 in 10 below .05 has a probability of 1e-3 for each case."""
    rng = np.random.default_rng(7)
    p_values: dict[int, list[float]] = {20: [], 80: [], 300: []}
    for seed in range(8):
        X = rows_like(name, rng, 600)
        fixed = {"n_tables": 8, "n_stages": 1, "columns": "all", "directions": "principal", "alpha": 0.1, "degree": 1}
        learner = LSHRegressor(**fixed, bucket_width=(0.5, 1.0)[seed % 2], random_state=seed).fit(X, X[:, 0])
        for m, found in p_values.items():
            found += [learner.drift(rows_like(name, rng, m)).p_value for _ in range(30)]
    for found in p_values.values():
        assert np.mean(np.array(found) < 0.05) < 0.1


def test_a_narrow_shift_is_seen_where_rows_have_tails():
    rng = np.random.default_rng(8)
    X = rng.standard_t(3, (800, 3))
    learner = LSHRegressor(n_tables=8, bucket_width=0.5, n_stages=1, random_state=0, degree=1).fit(X, X[:, 0])
    moved = rng.standard_t(3, (300, 3)) + np.array([0.5, 0, 0])
    assert learner.drift(moved).p_value < 1e-3


def test_groups_have_about_equal_weight():
    rng = np.random.default_rng(5)
    positions, counts = rng.normal(size=(500, 3)), rng.integers(2, 20, 500)
    weight = np.bincount(groups(positions, counts, 8), counts)
    assert len(weight) == 8
    assert np.abs(weight / weight.mean() - 1).max() < 0.1
    assert len(np.bincount(groups(np.zeros((1, 2)), np.array([5]), 8))) == 1
    counts[::4] = 1  # a group of their own, if there are enough
    assert (groups(positions, counts, 8, 0.01)[::4] == 8).all()
    assert groups(positions, counts, 8, 0.5).max() == 7


@pytest.mark.parametrize(("m", "y", "said"), [(19, None, "needs at least 20"), (30, np.zeros(29), "`y` has shape")])
def test_what_has_no_drift(learner, m, y, said):
    with pytest.raises(ValueError, match=said):
        learner.drift(surface(m, np.random.default_rng(0)), y)

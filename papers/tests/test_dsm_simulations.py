"""Section 3 of paper B: each model and the DSM that simulates it agree."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from sparsact import LSHRegressor
from sparsact.routing import BlockTop1, Switch
from sparsact_papers.dsm import from_interpolation, from_lsh, from_nearest, from_scaling, from_switch, stack


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def assert_is_dsm(g, X, most_active):
    """Both routes of the definition agree; no row has more active units than it should; X is unchanged."""
    before = X.copy()
    np.testing.assert_allclose(g(X), g.dense(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal((g.mask(X) != 0).sum(axis=1), g.n_active(X))
    assert g.n_active(X).max(initial=0) <= most_active
    np.testing.assert_array_equal(X, before)


def test_interpolation_has_the_values_at_the_points_and_zero_elsewhere(rng):
    points, values = rng.normal(size=(11, 3)), rng.normal(size=(11, 2))
    g = from_interpolation(points, values)
    np.testing.assert_allclose(g(points), values, rtol=1e-12)
    elsewhere = rng.normal(size=(7, 3))
    assert not g(elsewhere).any()
    assert_is_dsm(g, np.concatenate([points, elsewhere]), 1)
    with pytest.raises(ValueError, match="point 1 is zero"):
        from_interpolation([[1.0, 0.0], [0.0, 0.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="two points are equal"):
        from_interpolation([[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0])


@pytest.mark.parametrize("k", [1, 4])
def test_nearest_is_scikit_learns_regression(rng, k):
    points, values, X = rng.normal(size=(23, 4)), rng.normal(size=23), rng.normal(size=(17, 4))
    g = from_nearest(points, values, k)
    expected = KNeighborsRegressor(k).fit(points, values).predict(X)
    np.testing.assert_allclose(g(X)[:, 0], expected, rtol=1e-12)
    assert_is_dsm(g, X, k)


def test_nearest_among_unit_vectors_is_the_top_k_of_products(rng):
    points = rng.normal(size=(19, 5))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    X = rng.normal(size=(6, 5))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    top = np.sort(np.argsort(-X @ points.T, axis=1)[:, :3], axis=1)
    np.testing.assert_array_equal(from_nearest(points, np.ones(19), 3).route(X).indices, top)


def test_switch_is_its_chosen_expert(rng):
    L, s, d, outputs = 5, 3, 4, 2
    gate, W, b, A = (rng.normal(size=shape) for shape in ((L, d), (L, s, d), (L, s), (L, s, outputs)))
    X = rng.normal(size=(13, d))
    logits = X @ gate.T
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chosen = logits.argmax(axis=1)
    expected = [p[e] * np.maximum(W[e] @ x + b[e], 0) @ A[e] for x, e, p in zip(X, chosen, probabilities, strict=True)]
    g = from_switch(Switch(L), gate, W, b, A)
    np.testing.assert_allclose(g(X), expected, rtol=1e-12)
    assert g.width == L * s
    assert_is_dsm(g, X, s)
    with pytest.raises(ValueError, match="gate must have shape"):
        from_switch(Switch(L), gate[:-1], W, b, A)


def test_scaling_is_one_unit_a_block(rng):
    router, d, rank = BlockTop1(3, 4, 2), 6, 2
    down, up, W, b, A = (rng.normal(size=shape) for shape in ((rank, d), (12, rank), (12, d), (12,), (12, 5)))
    X = rng.normal(size=(9, d))
    scores = (X @ down.T @ up.T).reshape(-1, 3, 4)
    expected = np.zeros((9, 5))
    for i in range(9):
        for block in range(3):
            unit = block * 4 + scores[i, block].argmax()
            expected[i] += max(W[unit] @ X[i] + b[unit], 0) * A[unit]
    g = from_scaling(router, down, up, W, b, A)
    np.testing.assert_allclose(g(X), expected, rtol=1e-12)
    assert_is_dsm(g, X, 3)
    with pytest.raises(ValueError, match="do not fit"):
        from_scaling(router, down, up[:-1], W, b, A)


@pytest.mark.parametrize(("family", "degree"), [("pca_grid", 1), ("pca_grid", 2), ("euclidean", 0), ("hyperplane", 1)])
def test_lsh_regression_is_a_dsm(rng, family, degree):
    X = rng.normal(size=(90, 3))
    y = np.stack([np.abs(X[:, 0]) + X[:, 1], X[:, 2] ** 2], axis=1)
    settings = {"n_tables": 4, "n_hashes": 2, "family": family, "degree": degree}
    model = LSHRegressor(**settings, fallback="nan", extrapolate="linear", random_state=1).fit(X, y)
    g = from_lsh(model)
    queries = rng.normal(size=(41, 3))
    expected = model.predict(queries)
    met = ~np.isnan(expected[:, 0])
    assert met.any()
    np.testing.assert_allclose(g(queries)[met], expected[met], rtol=1e-9, atol=1e-9)
    D = {0: 1, 1: 4, 2: 10}[degree] if family != "pca_grid" else {1: 3, 2: 6}[degree]
    assert_is_dsm(g, queries, 4 + 4 * D)


@pytest.mark.parametrize("settings", [{"n_stages": 2}, {"base": "trees"}])
def test_lsh_regression_beyond_the_papers_is_refused(rng, settings):
    X = rng.normal(size=(300, 2))
    model = LSHRegressor(random_state=0, **settings).fit(X, np.sin(3 * X[:, 0]) * X[:, 1])
    with pytest.raises(ValueError, match="one stage over all columns; fit with n_stages=1"):
        from_lsh(model)


def test_literal_lsh_has_one_active_bucket_a_table(rng):
    """LSH(d, s, m, 0): beside level and trend, exactly s units are on at a row that was learned."""
    X = rng.normal(size=(60, 2))
    model = LSHRegressor(n_tables=3, n_hashes=4, bucket_width=1.5, degree=0, family="euclidean", random_state=2)
    g = from_lsh(model.fit(X, X[:, 0]))
    np.testing.assert_array_equal(g.n_active(X), 3 + 3)
    assert g.width == 3 + model.n_buckets_


def test_a_stack_of_two_sparse_layers(rng):
    points, hidden = rng.normal(size=(8, 3)), rng.normal(size=(6, 8))
    first, second = from_nearest(points, np.zeros(8), 2), from_nearest(hidden, rng.normal(size=6), 3)
    X = rng.normal(size=(5, 3))
    masked = np.zeros((5, 8))
    np.put_along_axis(masked, first.route(X).indices, 1.0, axis=1)
    both = stack(first, second)
    np.testing.assert_allclose(both(X), second(masked), rtol=1e-12)
    assert_is_dsm(both, X, 3)
    with pytest.raises(ValueError, match="6 units"):
        stack(second, first)


def test_hostile_input_is_refused():
    g = from_nearest([[0.0, 1.0]], [2.0], 1)
    assert g(np.zeros((0, 2))).shape == (0, 1)
    for X, message in (([[np.nan, 0.0]], "finite"), ([0.0, 1.0], "columns"), ([[1.0]], "columns")):
        with pytest.raises(ValueError, match=message):
            g(X)
    with pytest.raises(ValueError, match="choose"):
        from_nearest([[0.0, 1.0]], [2.0], 2)
    with pytest.raises(ValueError, match="one value"):
        from_nearest([[0.0, 1.0]], [2.0, 3.0], 1)

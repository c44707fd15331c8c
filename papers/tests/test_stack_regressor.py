"""StackRegressor: gradients, membership by exact count, parameters, targets that one layer cannot reach."""

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor
from stacks import random_stack

import sparsact as sa
from sparsact.hypercube import points
from sparsact_papers.stacks import StackRegressor
from sparsact_papers.stacks.joint import JointRisk, balanced, parts_of, sparse_on, stack_of
from sparsact_papers.stacks.search import slopes, unstacked


def chosen_by_groups(n, size, n_groups, rng):
    """A stack that chooses among linear functions by which groups of inputs agree; for two inputs, by parities."""
    groups = rng.permutation(n)[: size * n_groups].reshape(-1, size)
    W = np.zeros((2 * n_groups, n))
    for t, group in enumerate(groups):
        W[2 * t, group], W[2 * t + 1, group] = 1, -1
    signs = points(n_groups)
    V, c = rng.normal(size=(2**n_groups, n)) / np.sqrt(n), rng.normal(size=2**n_groups) / 4 - 0.5
    gate = 0.501 * (np.abs(V).sum(axis=1) - c).max()
    A = 2 * gate * np.repeat(signs, 2, axis=1)
    u = rng.choice([-1.0, 1.0], 2**n_groups)
    return sa.Stack(u, [(W, np.full(2 * n_groups, size - 1)), (A, c + gate * (signs.sum(axis=1) + n_groups), V)])


def most_on(model):
    """What bounds the counts of active units of each layer."""
    return model.max_active if model.stack_.depth == len(model.max_active) else [sum(model.max_active)]


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_the_gradient_matches_differences(penalty):
    """With sizes of layers and readers held, as the penalty's scale is a constant for the gradient: so at one layer."""
    rng = np.random.default_rng(0)
    sizes = (4, 3) if not penalty else (5,)
    stack = random_stack("reals", sizes, 4, rng)
    X, y = rng.normal(size=(23, 4)), rng.normal(size=23)
    shares = rng.random(23)
    risk = JointRisk(X, y, shares / shares.sum(), [2] * len(sizes))
    _, gradient = risk(stack, penalty)
    parts = parts_of(stack)
    kept = range(len(parts)) if not penalty else range(len(parts) - 1)  # the read-out is a reader
    for place in kept:
        for entry in np.ndindex(parts[place].shape):
            values = []
            for step in (1e-6, -1e-6):
                moved = [part.copy() for part in parts]
                moved[place][entry] += step
                values.append(risk(stack_of(moved, stack), penalty)[0])
            assert (values[0] - values[1]) / 2e-6 == pytest.approx(gradient[place][entry], abs=1e-6)


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_side_by_side_stacks_have_the_gradient_of_each(penalty):
    rng = np.random.default_rng(4)
    sizes, n, m, starts = (5, 4, 3), 6, 31, 2
    parts, below = [], 0
    for s in sizes:
        parts += [rng.normal(size=(starts, s, n + 1)), rng.normal(size=(starts, s, below))]
        below = s
    parts.append(rng.normal(size=(starts, below)))
    X, y, weights = rng.normal(size=(m, n)), rng.normal(size=m), rng.random(m)
    weights *= m / weights.sum()
    found = slopes(np.column_stack([X, np.ones(m)]), y, weights, parts, [2, 2, 1], penalty)
    for start in range(starts):
        stack = unstacked([part[start] for part in parts])
        _, expected = JointRisk(X, y, weights / m, [2, 2, 1])(stack, penalty)
        own = unstacked([part[start] for part in found])
        for one, other in zip(parts_of(own), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-9)  # the strength of a penalty is float32


def test_balancing_changes_nothing_but_the_weights():
    rng = np.random.default_rng(1)
    stack = random_stack("reals", (4, 3, 5), 6, rng)
    X = rng.normal(size=(17, 6))
    np.testing.assert_allclose(balanced(stack)(X), stack(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(balanced(stack).n_active(X), stack.n_active(X))


@pytest.mark.parametrize("kind", ["integers", "tenths", "reals"])
def test_raised_thresholds_leave_the_allowed_units_on(kind):
    for seed in range(5):
        stack = random_stack(kind, (6, 5, 4), 7, np.random.default_rng(seed))
        X = points(7).astype(float)
        sparse = sparse_on(stack, X, [2, 1, 3])
        assert (sparse.n_active(X) <= [2, 1, 3]).all()
        for one, other in zip(sparse.layers, stack.layers, strict=True):
            assert (one.b >= other.b).all()


@pytest.mark.parametrize("values", ["signs", "bits", "numbers"])
def test_layers_are_sparse_on_the_rows(values):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 7)) * [1, 10, 0.1, 1, 1, 1, 1] + 3
    X = {"signs": np.sign(X - 3), "bits": (X > 3).astype(int), "numbers": X}[values]
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=150) / 10
    model = StackRegressor((6, 5), (2, 3), max_iter=30, n_restarts=2, random_state=0).fit(X, y)
    assert (model.stack_.n_active(X) <= most_on(model)).all()
    np.testing.assert_allclose(model.predict(X), model.stack_(X), rtol=1e-12, atol=1e-12)
    assert model.loss_ == pytest.approx(np.mean((model.predict(X) - y) ** 2))
    assert model.loss_ < np.var(y)
    again = StackRegressor((6, 5), (2, 3), max_iter=30, n_restarts=2, random_state=0).fit(X, y)
    assert again.stack_ == model.stack_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_units": (4,)}, "a number for each layer; got 1 and 2"),
        ({"n_units": (), "max_active": ()}, "a number for each layer; got 0 and 0"),
        ({"max_active": (1, 0)}, "`max_active` must be 1 or more; got 0"),
        ({"n_restarts": -1}, "`n_restarts` must be 0 or more; got -1"),
        ({"tol": 0.0}, "`tol` must be"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        StackRegressor(**{"n_units": (4, 3), "max_active": (1, 1), **parameters}).fit(np.eye(4), np.arange(4))


def test_one_layer_is_the_answer_where_no_stack_is_better():
    """One gate on a column: trees find it exactly, and no descent from random units of 25 iterations does."""
    rng = np.random.default_rng(5)
    X = rng.choice([-1.0, 1.0], (400, 10))
    y = np.where(X[:, 0] > 0, X @ rng.normal(size=10), X @ rng.normal(size=10))
    model = StackRegressor((6, 6), (2, 1), max_iter=25, random_state=0).fit(X, y)
    assert model.stack_.depth == 1
    assert (model.stack_.n_active(X) <= 3).all()
    assert model.loss_ < 1e-8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")  # dense networks that would go on past 200 epochs
@pytest.mark.parametrize("size", [2, 3])
def test_gates_of_computed_features_are_learned_better_than_by_one_layer_or_a_dense_network(size):
    """Never much worse than one layer; in the median of three draws half its error, and a dense network's."""
    errors = []
    for seed in range(100, 103):
        rng = np.random.default_rng(seed)
        truth = chosen_by_groups(12, size, 2, rng)
        X, new = rng.choice([-1.0, 1.0], (2000, 12)), rng.choice([-1.0, 1.0], (4000, 12))
        y, expected = truth(X), truth(new)
        stack = StackRegressor((8, 8), (2, 1), random_state=0).fit(X, y)
        assert (stack.stack_.n_active(X) <= most_on(stack)).all()
        shallow = sa.SparselyActivatedRegressor(16, 3, n_restarts=2, random_state=0).fit(X, y)
        dense = [
            MLPRegressor(hidden_layer_sizes=(8, 8), learning_rate_init=rate, random_state=0).fit(X[:1700], y[:1700])
            for rate in (0.003, 0.01, 0.03)
        ]
        best = max(dense, key=lambda model: model.score(X[1700:], y[1700:]))
        errors.append([np.mean((model.predict(new) - expected) ** 2) for model in (stack, shallow, best)])
    ours, shallow, dense = np.transpose(errors)
    assert (ours <= 1.5 * shallow).all()
    assert np.median(ours / shallow) < 0.5
    assert np.median(ours / dense) < 0.5

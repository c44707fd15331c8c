"""StackRegressor: its gradient, membership by exact count, files, parameters, and targets that one layer cannot reach."""

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor
from stacks import random_stack

import sparsact as sa
from sparsact.hypercube import points
from sparsact.learners.sparsely_activated.joint import JointRisk, balanced, parts_of, sparse_on, stack_of


def chosen_by_parities(n, n_pairs, rng):
    """A stack of which parities of pairs choose among linear functions, and the pairs."""
    pairs = rng.permutation(n)[: 2 * n_pairs].reshape(-1, 2)
    W = np.zeros((2 * n_pairs, n))
    for t, (i, j) in enumerate(pairs):
        W[2 * t, [i, j]], W[2 * t + 1, [i, j]] = 1, -1
    signs = points(n_pairs)
    V, c = rng.normal(size=(2**n_pairs, n)) / np.sqrt(n), rng.normal(size=2**n_pairs) / 4 - 0.5
    gate = 0.501 * (np.abs(V).sum(axis=1) - c).max()
    A = 2 * gate * np.repeat(signs, 2, axis=1)
    u = rng.choice([-1.0, 1.0], 2**n_pairs)
    return sa.Stack(u, [(W, np.ones(2 * n_pairs)), (A, c + gate * (signs.sum(axis=1) + n_pairs), V)])


@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_the_gradient_is_that_of_differences(penalty):
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


def test_balancing_changes_nothing_but_the_weights():
    rng = np.random.default_rng(1)
    stack = random_stack("reals", (4, 3, 5), 6, rng)
    X = rng.normal(size=(17, 6))
    np.testing.assert_allclose(balanced(stack)(X), stack(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(balanced(stack).n_active(X), stack.n_active(X))


@pytest.mark.parametrize("kind", ["integers", "tenths", "reals"])
def test_raised_thresholds_leave_so_many_units_on(kind):
    for seed in range(5):
        stack = random_stack(kind, (6, 5, 4), 7, np.random.default_rng(seed))
        X = points(7).astype(float)
        sparse = sparse_on(stack, X, [2, 1, 3])
        assert (sparse.n_active(X) <= [2, 1, 3]).all()
        for one, other in zip(sparse.layers, stack.layers, strict=True):
            assert (one.b >= other.b).all()


@pytest.mark.parametrize("domain", ["cube", "real"])
def test_layers_are_sparse_on_the_rows(domain):
    rng = np.random.default_rng(2)
    X = rng.choice([0, 1], (150, 7)) if domain == "cube" else rng.normal(size=(150, 7)) * [1, 10, 0.1, 1, 1, 1, 1] + 3
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=150) / 10
    model = sa.StackRegressor((6, 5), (2, 3), max_iter=30, n_restarts=0, random_state=0).fit(X, y)
    rows = 1 - 2.0 * X if domain == "cube" else X
    assert model.domain_ == domain
    assert (model.stack_.n_active(rows) <= [2, 3]).all()
    np.testing.assert_allclose(model.predict(X), model.stack_(rows), rtol=1e-12, atol=1e-12)
    assert model.loss_ == pytest.approx(np.mean((model.predict(X) - y) ** 2))
    assert model.loss_ < np.var(y)
    again = sa.StackRegressor((6, 5), (2, 3), max_iter=30, n_restarts=0, random_state=0).fit(X, y)
    assert again.stack_ == model.stack_
    if domain == "cube":
        certificate = model.cube_certificate_
        assert certificate.exact
        assert all(
            certificate.max_active[layer] >= rows.max() for layer, rows in enumerate(model.stack_.n_active(rows).T)
        )
    else:
        with pytest.raises(AttributeError, match="no certificate over the cube"):
            _ = model.cube_certificate_


def test_a_saved_model_predicts_the_same(tmp_path):
    rng = np.random.default_rng(3)
    X, y = rng.choice([-1, 1], (60, 5)), rng.normal(size=60)
    model = sa.StackRegressor((4, 3), (1, 2), max_iter=10, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    read = sa.load(tmp_path / "model")
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    assert (read.loss_, read.stack_, read.n_units) == (model.loss_, model.stack_, [4, 3])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_units": (4,)}, "a number for each layer; got 1 and 2"),
        ({"n_units": (), "max_active": ()}, "a number for each layer; got 0 and 0"),
        ({"max_active": (1, 0)}, "`max_active` must be 1 or more; got 0"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        sa.StackRegressor(**{"n_units": (4, 3), "max_active": (1, 1), **parameters}).fit(np.eye(4), np.arange(4))


@pytest.mark.slow
def test_gates_of_parities_are_found_where_one_layer_and_a_dense_network_fail():
    """Parities of two pairs choose among four functions: in the median of three draws a tenth of both errors."""
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = chosen_by_parities(12, 2, rng)
        X, new = rng.choice([-1.0, 1.0], (3000, 12)), rng.choice([-1.0, 1.0], (4000, 12))
        y, expected = truth(X), truth(new)
        stack = sa.StackRegressor((8, 8), (2, 1), random_state=0).fit(X, y)
        assert (stack.stack_.n_active(X) <= [2, 1]).all()
        shallow = sa.SparselyActivatedRegressor(16, 3, n_restarts=2, random_state=0).fit(X, y)
        dense = [
            MLPRegressor((8, 8), learning_rate_init=rate, max_iter=200, random_state=0).fit(X[:2500], y[:2500])
            for rate in (0.003, 0.01)
        ]
        best = max(dense, key=lambda model: model.score(X[2500:], y[2500:]))
        errors.append([np.mean((model.predict(new) - expected) ** 2) for model in (stack, shallow, best)])
    ours, shallow, dense = np.median(errors, axis=0)
    assert ours < 0.1 * min(shallow, dense)

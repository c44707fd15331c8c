"""Whatever the rows, what is fitted lies in the class: k-sparse on the rows by exact count, s units, scale (W, B)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from grids import few_of
from hypothesis import given
from hypothesis import strategies as st

from sparsact import SparselyActivatedRegressor, load
from sparsact.learners.sparsely_activated.erm import Minimisation
from sparsact.learners.sparsely_activated.leaf_models import TrainingSample
from sparsact.learners.sparsely_activated.to_network import GateUnits, network_of

KINDS = ("signs", "bits", "bool", "real", "mixed", "far", "tiny", "lattice")


def rows(kind, m, n, rng):
    """Inputs of every sort that the regressor takes."""
    bits = rng.integers(0, 2, (m, n))
    normal = rng.normal(size=(m, n))
    return {
        "signs": 1 - 2 * bits,
        "bits": bits,
        "bool": bits.astype(bool),
        "real": normal,
        "mixed": np.where(np.arange(n) % 2, normal, bits * 3.7 - 1.1),
        "far": 1e6 + normal,
        "tiny": 1e-9 * normal,
        "lattice": rng.integers(-2, 3, (m, n)) / 10,
    }[kind]


def targets(kind, X, rng):
    first = X[:, 0].astype(float)
    return {
        "noise": rng.normal(size=len(X)),
        "constant": np.full(len(X), -0.3),
        "linear": first - 2.0,
        "bent": np.abs(first - first.mean()) * (1 + X[:, -1]),
        "huge": 1e9 * rng.exponential(size=len(X)),
    }[kind]


def seen(model, X):
    """The rows as the network takes them."""
    X = np.asarray(X, dtype=float)
    return 1 - 2 * X if model.encoding_ == "bits" else X


@pytest.mark.grid
@given(
    kind=st.sampled_from(KINDS),
    target=st.sampled_from(["noise", "constant", "linear", "bent", "huge"]),
    m=st.integers(1, 60),
    n=st.integers(1, 5),
    k=st.integers(1, 4),
    s=st.integers(1, 9),
    limits=st.sampled_from([(None, None), (0.7, None), (None, 0.4), (2.0, 0.1)]),
    seed=st.integers(0, 10**6),
)
def test_always_inside_the_class(kind, target, m, n, k, s, limits, seed):
    rng = np.random.default_rng(seed)
    X = rows(kind, m, n, rng)
    y = targets(target, X, rng)
    model = SparselyActivatedRegressor(
        s, k, max_weight=limits[0], max_bias=limits[1], n_restarts=2, max_iter=20, random_state=seed
    ).fit(X, y)
    network = model.network_
    active = network.n_active(seen(model, X))
    assert active.max() <= k
    assert 1 <= network.s <= s
    for value, limit in zip(network.scale(), limits, strict=True):
        assert limit is None or value <= limit
    assert model.loss_ == pytest.approx(np.mean((y - model.predict(X)) ** 2), rel=1e-6, abs=1e-12 * np.mean(y**2))
    if limits == (None, None):
        assert model.loss_ <= np.var(y) * (1 + 1e-9) + 1e-12 * np.mean(y**2)


@pytest.mark.parametrize("seed", few_of(range(3), [0]))
def test_small_limits_are_used_well(seed):
    """A linear function whose norm is twice the limit: at least as good as half of it, which lies in the class."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 4)) + 1
    w = rng.normal(size=4)
    y = X @ w
    norm = float(np.linalg.norm(w))
    model = SparselyActivatedRegressor(4, 1, max_weight=norm / 2, max_bias=0.5, n_restarts=2, random_state=0).fit(X, y)
    assert model.loss_ <= np.mean((y / 2) ** 2) * (1 + 1e-6)
    W, _ = model.network_.scale()
    assert norm * 0.475 < W <= norm / 2


@pytest.mark.grid
def test_trees_are_sparse_on_the_whole_cube():
    """By construction, not on the rows alone: gates close everywhere."""
    from sparsact.hypercube import points

    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (100, 9))
    y = rng.normal(size=100) + 3.0 * (X[:, 1] ^ X[:, 4]) * X[:, 6]
    for k in (1, 2):
        model = SparselyActivatedRegressor(8, k, n_restarts=0, max_iter=1, random_state=0).fit(X, y)
        assert model.origin_ == "trees"
        assert model.network_.s > 1
        assert model.network_.n_active(points(9)).max() <= k


EXTREMES = [
    (y_size, limits, *rows)
    for y_size in (1e-300, 1.0, 1e150, 1e300)
    for limits in ((None, None), (0.5, 0.5), (1e-200, None), (None, 1e-200))
    for rows in (("signs", 3), ("extreme", 1))
]
QUICK = [EXTREMES[i] for i in (0, 7, 26, 30)]


@pytest.mark.parametrize(("y_size", "limits", "kind", "k"), few_of(EXTREMES, QUICK))
def test_extremes_of_float64(tmp_path, kind, y_size, limits, k):
    """Squares of such numbers overflow or vanish; the class is kept, and no constant in it is better."""
    rng = np.random.default_rng(4)
    X = rows("signs", 40, 4, rng) if kind == "signs" else rng.normal(size=(40, 4)) * [1e-305, 1e-150, 1.0, 1e300]
    y = y_size * (rng.normal(size=40) + 0.3)
    model = SparselyActivatedRegressor(
        2, k, max_weight=limits[0], max_bias=limits[1], n_restarts=1, max_iter=20, random_state=0
    ).fit(X, y)
    network = model.network_
    assert network.n_active(X).max() <= k
    assert all(limit is None or value <= limit for value, limit in zip(network.scale(), limits, strict=True))
    constant = np.mean(y) if limits[1] is None else np.clip(np.mean(y), -limits[1], limits[1])
    error, plain = (np.mean(((y - values) / y_size) ** 2) for values in (model.predict(X), constant))
    assert error <= plain * (1 + 1e-6)
    model.save(tmp_path / "m")  # even where the loss is infinite
    assert load(tmp_path / "m").loss_ == model.loss_
    assert model.loss_ == pytest.approx(np.inf if y_size > 1e154 else error * y_size**2, rel=1e-6)


@pytest.mark.grid
@pytest.mark.parametrize(
    ("size", "ratio"),
    few_of(product([1e-300, 1e12, 1e300], [1.0, 1e-250]), [(1e-300, 1e-250), (1e12, 1e-250), (1e300, 1.0)]),
)
def test_weights_of_any_size(size, ratio):
    rng = np.random.default_rng(4)
    X = rows("mixed", 60, 3, rng)
    y = X[:, 0] * np.sign(X[:, 1]) + rng.normal(size=60)
    y[0] += 5
    weights = size * np.where(np.arange(60) == 7, ratio, 1.0)
    model = SparselyActivatedRegressor(4, 2, n_restarts=1, max_iter=20, random_state=0).fit(X, y, weights)
    assert sum(model.certificate_.distribution) == np.count_nonzero(weights)
    mean = np.average(y, weights=weights / size)
    assert 0 < model.loss_ <= np.average((y - mean) ** 2, weights=weights / size) * (1 + 1e-9)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_crowded_rows_are_repaired(k):
    """Seven random units share most rows; afterwards k at most are on, and k are somewhere."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    units = GateUnits(np.ones(7), rng.normal(size=(7, 4)))
    network = network_of(units, TrainingSample.of(X, X[:, 0], np.ones(50), cube=False), X, k, None, None)
    assert network.n_active(X).max() == k


def test_a_search_that_ends_worse_gives_way_to_a_constant(monkeypatch):
    def worst(search):
        theta = np.full((1, search.sample.n + 1), 50.0)
        return search._judged(GateUnits(np.ones(1), theta), "worst", 1, 1)

    monkeypatch.setattr(Minimisation, "run", worst)
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = SparselyActivatedRegressor(random_state=0).fit(X, X[:, 0] - 3)
    assert model.origin_ == "constant"
    assert model.loss_ == pytest.approx(np.var(X[:, 0]))

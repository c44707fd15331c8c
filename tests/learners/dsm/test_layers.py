"""The bottom layer and its mask."""

from __future__ import annotations

import numpy as np
import pytest
from grids import grid

from sparsact import DSMRegressor, kernels
from sparsact.learners.dsm.features import Bottom, entropy, stream

rng = np.random.default_rng(11)
X, y = rng.normal(size=(53, 5)), rng.normal(size=53)


@grid(absolute=[False, True], activation=["identity", "relu"], bottom=["random", "pca"], targets=[1, 3])
def test_the_model_is_that_of_section_2_1(absolute, activation, bottom, targets):
    Y = rng.normal(size=(53, targets))
    model = DSMRegressor(
        37, 11, activation=activation, bottom=bottom, bias=True, absolute=absolute, random_state=3
    ).fit(X, Y)
    B, c = model.layer_.bottom.B, model.layer_.bottom.c
    z = (X - X.mean(axis=0)) @ B.T + c
    rank = np.argsort(np.argsort(-(np.abs(z) if absolute else z), axis=1, kind="stable"), axis=1)
    mask = rank < 11
    np.testing.assert_array_equal(model.active_units(X), mask)
    phi = np.maximum(z, 0) if activation == "relu" else z
    expected = np.array([(model.coefficients_ * mask[i]) @ phi[i] for i in range(53)]) + model.intercept_
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("activation", ["identity", "relu"])
def test_every_kernel_gives_the_same_model(activation):
    found = []
    for name in ("reference", kernels.backend()):
        with kernels.using(name):
            model = DSMRegressor(1100, 300, activation=activation, random_state=0).fit(X, y)
            found.append((model.predict(X), model.active_units(X)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_glorot_weights_fill_their_range():
    drawn = Bottom.random(7, 400, bias=True, activation="identity", rng=np.random.default_rng(0))
    limit = np.sqrt(6 / 407)
    for values in (drawn.B, drawn.c):
        assert 0.98 * limit < np.abs(values).max() <= limit  # 400 draws all below .98: probability 3e-4
    assert not Bottom.random(7, 400, bias=False, activation="identity", rng=np.random.default_rng(0)).c.any()


def test_principal_directions_look_where_rows_vary_and_nowhere_else():
    generator = np.random.default_rng(5)
    plane, _ = np.linalg.qr(generator.normal(size=(9, 2)))
    rows = 1e4 + 3 * generator.normal(size=(200, 2)) @ plane.T
    weights = generator.uniform(1, 2, size=200)
    drawn = Bottom.principal(rows, weights, 500, bias=False, activation="identity", rng=np.random.default_rng(0))
    np.testing.assert_allclose(drawn.B, drawn.B @ plane @ plane.T, atol=1e-6 * np.abs(drawn.B).max())
    z = drawn.preactivations(rows)
    np.testing.assert_allclose(np.average(z, axis=0, weights=weights), 0, atol=1e-8)
    variance = np.average(z**2, axis=0, weights=weights).mean()
    assert 0.75 < variance < 1.25  # the mean of 500 squares whose standard deviation is at most sqrt 2: four of them


def test_principal_directions_do_not_depend_on_place_or_unit():
    generator = np.random.default_rng(6)
    rows, ones = generator.normal(size=(60, 4)), np.ones(60)
    z = [
        Bottom.principal(
            a * rows + b, ones, 17, bias=True, activation="identity", rng=np.random.default_rng(0)
        ).preactivations(a * rows + b)
        for a, b in ((1.0, 0.0), (1e-6, 0.0), (1e120, 0.0), (8.0, 300.0))
    ]
    for other in z[1:]:
        np.testing.assert_allclose(other, z[0], rtol=1e-7, atol=1e-9)


def test_the_seed_of_a_model_is_no_seed_of_data():
    model = DSMRegressor(20, 4, random_state=7).fit(X, y)
    limit = np.sqrt(6 / 25)
    assert not np.allclose(model.layer_.bottom.B, np.random.default_rng(7).uniform(-limit, limit, size=(20, 5)))
    seeds = [stream(entropy(7), *which).random() for which in (("bottom",), ("router",), ("order", 0), ("order", 1))]
    assert len({*seeds, np.random.default_rng(7).random(), np.random.RandomState(7).random_sample()}) == 6


def test_a_seed_decides_everything_and_the_global_state_nothing():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - it is the global state that is watched
    for solver in ("ridge", "rmsprop"):
        models = [DSMRegressor(19, 5, solver=solver, random_state=seed).fit(X, y) for seed in (4, 4, 5)]
        np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))
        assert not np.allclose(models[0].predict(X), models[2].predict(X))
    assert not np.allclose(*(DSMRegressor(19, 5).fit(X, y).layer_.bottom.B for _ in range(2)))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.grid
def test_operations_with_and_without_their_choice():
    """Table 1 of the paper counts 18 for each active unit at 8 inputs, and nothing for the choice."""
    rows = rng.normal(size=(5, 8))
    model = DSMRegressor(4096, 1024).fit(rows, rows[:, 0])
    assert model.n_active_ == 1024
    assert model.flops(routing=False) == 18 * 1024 == 18432
    assert model.flops() - 8 - 4096 * 2 * 8 - 1024 * 2 == model.layer_.router.flops(4096) > 0

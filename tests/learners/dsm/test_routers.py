"""Routers other than top-k: any that keeps to the contract will do."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from sparsact import DSMRegressor, load
from sparsact.routing import EMPTY, HyperplaneLSH, RandomHash, Router, Selection, TopK

rng = np.random.default_rng(47)
X, y = rng.normal(size=(64, 3)), rng.normal(size=64)


@dataclass(frozen=True)
class HalfSpaces(Router):
    """Unit u is on where direction u is positive, with half its weight if it is an odd one; at most all of them."""

    units: int
    name: ClassVar[str] = "half_spaces"

    def width(self, in_features):
        return self.units

    def max_active(self, in_features):
        return self.units

    def initial_state(self, in_features, *, rng):
        return {"directions": rng.normal(size=(in_features, self.units))}

    def select(self, x, state, *, training=False):
        on = x @ state["directions"] > 0
        units = np.arange(self.units)
        weights = np.where(on, 1 / (1 + units % 2), 0.0)
        return Selection(np.where(on, units, EMPTY), weights, None, 0.0, on.sum(axis=0), np.zeros(len(x), dtype=bool))

    def flops(self, in_features):
        return 2 * in_features * self.units


@pytest.mark.parametrize("activation", ["identity", "relu"])
@pytest.mark.parametrize("solver", ["ridge", "rmsprop"])
def test_a_router_of_the_inputs(activation, solver):
    model = DSMRegressor(12, router=HalfSpaces(12), activation=activation, solver=solver, random_state=0).fit(X, y)
    centred = X - model.layer_.bottom.centre
    on = centred @ model.layer_.state["directions"] > 0
    np.testing.assert_array_equal(model.active_units(X), on)
    phi = centred @ model.layer_.bottom.B.T
    phi = (np.maximum(phi, 0) if activation == "relu" else phi) * on / (1 + np.arange(12) % 2)
    np.testing.assert_allclose(model.predict(X), phi @ model.coefficients_ + model.intercept_, rtol=1e-10)
    assert model.n_active_ == 12
    assert (model.flops(routing=False), model.flops()) == (12 * 8, 12 * 8 + 3 + 72)


def test_a_merge_needs_the_same_hashes():
    same, other = (DSMRegressor(12, router=HalfSpaces(12), random_state=0).fit(X, y) for _ in range(2))
    same.merge(other)
    other.layer_.state["directions"] = -other.layer_.state["directions"]
    with pytest.raises(ValueError, match=r"different states of their routers \(hashes\)"):
        same.merge(other)


def test_the_width_of_a_router_is_the_width_of_the_model():
    with pytest.raises(ValueError, match="`router` chooses among 11 units and `n_units` is 12"):
        DSMRegressor(12, router=HalfSpaces(11)).fit(X, y)


def test_no_more_units_than_there_are():
    with pytest.raises(ValueError, match="cannot choose 13 of 12 units"):
        DSMRegressor(12, router=TopK(13)).fit(X, y)


def test_ranking_by_absolute_value_is_of_top_k_alone():
    with pytest.raises(ValueError, match="`absolute` ranks the values of"):
        DSMRegressor(12, router=HalfSpaces(12), absolute=True).fit(X, y)


def test_a_file_holds_no_router_that_it_could_not_read_back(tmp_path):
    fitted = DSMRegressor(12, router=HalfSpaces(12)).fit(X, y)
    with pytest.raises(ValueError, match="pickle the model"):
        fitted.save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


@pytest.mark.parametrize("solver", ["ridge", "rmsprop"])
def test_a_random_hash_by_name(tmp_path, solver):
    parameters = {"router": "random_hash", "solver": solver, "random_state": 3}
    model, same, other = (
        DSMRegressor(16, 5, **(parameters | change)).fit(X, y) for change in ({}, {}, {"random_state": 4})
    )
    router = model.layer_.router
    assert router == RandomHash(5, 16, router.random_state) == same.layer_.router != other.layer_.router
    np.testing.assert_array_equal(model.active_units(X), router(X).dense() != 0)
    assert (model.active_units(X).sum(axis=1) == 5).all()
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").predict(X), model.predict(X))
    model.partial_fit(X, y)


def test_hashes_that_differ_are_not_merged():
    one, other = (
        DSMRegressor(16, router=RandomHash(5, n_units=16, random_state=seed), random_state=0).fit(X, y)
        for seed in (1, 2)
    )
    with pytest.raises(ValueError, match="different routers"):
        one.merge(other)


def test_every_registered_router_serves(tmp_path):
    for router in (HyperplaneLSH(4), TopK(3), RandomHash(2, n_units=16)):
        columns = 3 if router.routes_on == "inputs" else 16
        model = DSMRegressor(router.width(columns), router=router, random_state=0).fit(X, y)
        assert model.active_units(X).sum(axis=1).max() <= model.n_active_ == router.max_active(columns)
        model.save(tmp_path / "m.safetensors", statistic=True)
        loaded = load(tmp_path / "m.safetensors")
        assert loaded.router == router
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        np.testing.assert_allclose(loaded.merge(model).predict(X), model.predict(X), rtol=1e-6)


@pytest.mark.parametrize("name", ["top_k", "random_hash", "nearest", "block_top1", "hyperplane_lsh"])
def test_every_router_that_has_a_name(tmp_path, name):
    model = DSMRegressor(24, 6, router=name, random_state=1).fit(X, y)
    assert model.layer_.router.name == name
    assert (model.active_units(X).sum(axis=1) == 6).all()
    assert model.flops() > model.flops(routing=False)
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "m.safetensors").predict(X), model.predict(X))


@pytest.mark.parametrize(("name", "width"), [("block_top1", 25), ("hyperplane_lsh", 18)])
def test_blocks_and_tables_need_a_width_that_they_divide(name, width):
    with pytest.raises(ValueError, match="multiple of `n_active`"):
        DSMRegressor(width, 6, router=name).fit(X, y)

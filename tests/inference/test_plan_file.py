"""A plan that is saved makes the model that is loaded again as sparse as it was, and no other."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from grids import few_of
from safetensors import safe_open
from safetensors.torch import save_file
from sparse_models import gated, jump, language_like, plain, rows, selectors
from torch import nn

from sparsact.inference import densify, load_plan, plan_of, save_plan, sparsify
from sparsact.inference.certified_screen import Screen
from sparsact.inference.sparse_linear import SparseLinear
from sparsact.inference.weights import INTEGERS
from sparsact.saving import ModelFileError, modelfile


@pytest.mark.parametrize("method", ["exact", "certified"])
@pytest.mark.parametrize("make", [plain, gated, jump, language_like])
def test_the_model_is_as_it_was(make, method, tmp_path, monkeypatch):
    dense = make()
    model = sparsify(copy.deepcopy(dense), method, rows(64, dense, seed=3))
    save_plan(model, tmp_path / "plan.safetensors")
    monkeypatch.setattr(Screen, "of", lambda *given: pytest.fail("a screen is computed again"))
    again = load_plan(copy.deepcopy(dense), tmp_path / "plan.safetensors", rows(5, dense, seed=3))
    assert plan_of(again) == plan_of(model)
    assert [type(module) for module in again.modules()] == [type(module) for module in model.modules()]
    assert selectors(again) == selectors(model)
    x = rows(2, dense)
    with torch.no_grad():
        assert torch.equal(again(x), model(x))
    for mine, its in zip(again.modules(), model.modules(), strict=True):
        if isinstance(mine, SparseLinear):
            assert mine._sparse.limits == its._sparse.limits


class Shifted(nn.Module):
    """ReLU of what exceeds a threshold that no linear layer holds."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 4)
        self.theta = nn.Parameter(torch.full((64,), 0.4))

    def forward(self, x):
        return self.down((self.up(x) - self.theta).relu())


@pytest.mark.parametrize("theta", [0.39, 0.2, -0.2])
def test_thresholds_are_the_model_s_own(theta, tmp_path):
    torch.manual_seed(0)
    dense = Shifted().eval()
    dense.up.bias.data -= 0.7
    save_plan(sparsify(copy.deepcopy(dense), "certified", torch.randn(64, 16)), tmp_path / "plan")
    dense.theta.data.fill_(theta)
    model = load_plan(copy.deepcopy(dense), tmp_path / "plan", torch.randn(1, 16))
    with torch.no_grad():
        for x in torch.randn(300, 4, 16):
            assert torch.allclose(model(x), dense(x), atol=1e-5)
    assert model.down._sparse.sparse_calls > 0
    assert isinstance(model.up, SparseLinear) == (theta > 0)


def test_weights_that_change_afterwards_get_another_screen(tmp_path):
    dense, other = plain(), plain(seed=11)
    save_plan(sparsify(copy.deepcopy(dense), "certified", rows(64, dense)), tmp_path / "plan")
    model = load_plan(dense, tmp_path / "plan", rows(5, dense))
    x = rows(2, dense)
    with torch.no_grad():
        model.load_state_dict(other.state_dict())
        torch.testing.assert_close(model(x), other(x))


def test_auto_with_its_times(tmp_path):
    model = sparsify(plain(), "auto", rows(64, plain()), time_limit=0)
    save_plan(model, tmp_path / "plan")
    assert plan_of(load_plan(plain(), tmp_path / "plan", rows(5, model))) == plan_of(model)


@pytest.mark.parametrize(
    ("other", "fact"),
    [
        (lambda: plain(seed=11), "this model has others"),
        (gated, "this model has others"),
        (lambda: torch.nn.Linear(24, 3), "no linear layer 'down': pass a model with the same layers"),
    ],
)
def test_another_model_is_refused(other, fact, tmp_path):
    save_plan(sparsify(plain(), "exact", rows(64, plain())), tmp_path / "plan")
    with pytest.raises(ValueError, match=fact):
        load_plan(other(), tmp_path / "plan", rows(5, plain()))


def test_swapped_arguments_and_a_file_of_weights_are_named(tmp_path):
    model, x = plain(), rows(5, plain())
    save_file(model.state_dict(), tmp_path / "weights.safetensors")
    with pytest.raises(ModelFileError, match="needs a file that save_plan wrote"):
        load_plan(model, tmp_path / "weights.safetensors", x)
    with pytest.raises(TypeError, match=r"got a Tensor: load_plan\(model, path, inputs\)"):
        load_plan(model, x, tmp_path / "plan")
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module"):
        load_plan(tmp_path / "plan", model, x)


def test_a_plan_says_how_its_times_were_measured(tmp_path):
    """The number of threads when it was made, not when it is loaded."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        save_plan(sparsify(plain(), "auto", rows(64, plain()), time_limit=0), tmp_path / "plan")
        torch.set_num_threads(1)
        loaded = plan_of(load_plan(plain(), tmp_path / "plan", rows(5, plain())))
        assert "\ntimes: measured with 2 threads on " in str(loaded)
        assert loaded.to_dict()["timed_on"] == loaded.timed_on
        again = plan_of(sparsify(plain(), "auto", rows(64, plain()), time_limit=0))
        assert "\ntimes: measured with 1 thread on " in str(again)
    finally:
        torch.set_num_threads(before)
    assert "times: measured" not in str(plan_of(sparsify(plain(), "exact", rows(64, plain()))))


def test_approximations_and_other_files_are_refused(tmp_path):
    model = sparsify(plain(), "approximate", rows(64, plain()), density=0.1)
    with pytest.raises(ValueError, match="approximate, calibrated for inputs"):
        save_plan(model, tmp_path / "plan")
    with pytest.raises(ValueError, match="has no plan"):
        save_plan(densify(model), tmp_path / "plan")
    (tmp_path / "plan").write_bytes(b"no plan")
    with pytest.raises(ModelFileError):
        load_plan(model, tmp_path / "plan", rows(5, model))


@pytest.mark.parametrize("weights", ["keep", "int8"])
def test_a_method_that_no_file_holds_is_refused(weights, tmp_path):
    save_plan(sparsify(plain(), "exact", rows(64, plain()), weights=weights), tmp_path / "plan")
    kind, state, arrays = modelfile.read(tmp_path / "plan")
    state["choices"][0]["method"] = "top_k"
    modelfile.write(tmp_path / "plan", kind, state, arrays)
    model = plain()
    with pytest.raises(ValueError, match="must be one of dense, exact, certified; got 'top_k'"):
        load_plan(model, tmp_path / "plan", rows(5, model))
    assert type(model.down) is torch.nn.Linear


def test_the_file_holds_tensors_and_text_alone(tmp_path):
    save_plan(sparsify(plain(), "certified", rows(64, plain())), tmp_path / "plan")
    with safe_open(tmp_path / "plan", framework="numpy") as file:
        assert "up/rows" in file.keys()  # noqa: SIM118 # not a mapping


@pytest.mark.parametrize("keep_weights", [True, False])
@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("make", few_of([plain, gated, language_like], [gated]))
def test_a_quantised_model_is_as_it_was(make, weights, keep_weights, tmp_path, monkeypatch):
    """With dropped weights, of a model that has only the other parameters."""
    dense, path = make(), tmp_path / "plan.safetensors"
    state = dense.state_dict()
    model = sparsify(copy.deepcopy(dense), "exact", rows(9, dense), weights=weights, keep_weights=keep_weights)
    save_plan(model, path)
    monkeypatch.setattr(INTEGERS[weights], "of", lambda *given, **options: pytest.fail("weights are quantised again"))
    other = make()
    for parameter in other.parameters():
        torch.nn.init.normal_(parameter)
    other.load_state_dict(state if keep_weights else model.state_dict(), strict=keep_weights)
    again = load_plan(other, path, rows(5, dense))
    assert str(plan_of(again)) == str(plan_of(model))
    assert plan_of(again).to_dict() == plan_of(model).to_dict()
    assert [type(module) for module in again.modules()] == [type(module) for module in model.modules()]
    assert selectors(again) == selectors(model)
    assert again.state_dict().keys() == model.state_dict().keys()
    quantized = [layer for layer in again.modules() if isinstance(layer, SparseLinear)]
    assert quantized
    assert all(isinstance(a.base, np.memmap) for layer in quantized for a in layer.weights.arrays.values())
    for m in (1, 20):
        x = rows(m, dense)
        with torch.no_grad():
            assert torch.equal(again(x), model(x))
    if not keep_weights:
        with torch.no_grad():
            assert torch.equal(copy.deepcopy(again)(x), model(x))
        for one, two in zip(densify(again).parameters(), densify(model).parameters(), strict=True):
            assert torch.equal(one, two)


def test_a_quantised_plan_of_another_model_is_refused(tmp_path):
    save_plan(sparsify(plain(), "exact", rows(9, plain()), weights="int4"), tmp_path / "plan")
    with pytest.raises(ValueError, match="this model has others"):
        load_plan(plain(seed=11), tmp_path / "plan", rows(5, plain()))


FILES = Path(__file__).parents[1] / "fixtures" / "files"


class Planned(nn.Module):
    """The model whose plans the files hold that version 0.1 wrote; its numbers come from no generator."""

    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(11, 37), nn.Linear(11, 37), nn.Linear(37, 11)
        self.first, self.last = nn.Linear(11, 29), nn.Linear(29, 5)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(spread(*parameter.shape))
            self.gate.bias.sub_(1)
            self.first.bias.sub_(1)

    def forward(self, x):
        x = self.down(torch.relu(self.gate(x)) * self.up(x)) / 8
        return self.last(torch.relu(self.first(x)))


def spread(*shape):
    return ((torch.arange(torch.Size(shape).numel()) * 37 % 101 - 50) / 64.0).reshape(shape)


@pytest.mark.parametrize(("name", "methods"), [("exact", ["exact"] * 2), ("certified", ["certified"] * 2)])
def test_plans_that_version_0_1_wrote_are_exact(name, methods):
    model, dense = Planned().eval(), Planned().eval()
    load_plan(model, FILES / f"plan-{name}.safetensors", spread(20, 11))
    assert [one.method for one in plan_of(model).choices] == methods
    x = spread(20, 11)[3:5]
    states = model.down._sparse, model.last._sparse
    before = [state.sparse_calls for state in states]
    with torch.no_grad():
        torch.testing.assert_close(model(x), dense(x), rtol=1e-5, atol=1e-6)
    assert [state.sparse_calls for state in states] == [count + 1 for count in before]


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_quantised_plans_that_version_0_1_wrote_compute_what_they_did(weights):
    """What it computes is what a model computes that is quantised now, to the bit.

    Errors of the layers were measured on another processor, whose float32 products round differently.
    """
    options = {"weights": weights, "keep_weights": weights == "int8"}
    model, now = Planned().eval(), Planned().eval()
    load_plan(model, FILES / f"plan-{weights}.safetensors", spread(20, 11))
    sparsify(now, "exact", list(spread(20, 11).split(4)), **options)
    assert selectors(model) == selectors(now)
    errors = [[layer.error for layer in plan_of(one).layers] for one in (model, now)]
    np.testing.assert_allclose(*errors, rtol=1e-5)
    layers = [[replace(layer, error=0.0) for layer in plan_of(one).layers] for one in (model, now)]
    assert layers[0] == layers[1]
    assert model.state_dict().keys() == now.state_dict().keys()
    with torch.no_grad():
        assert torch.equal(model(spread(20, 11)), now(spread(20, 11)))

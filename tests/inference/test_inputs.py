"""Small inputs of all linear layers left out: thresholds and errors against plain formulas."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 # as torch writes it

import sparsact as sa
from sparsact.inference import input_thresholds
from sparsact.inference.input_thresholds import InputThreshold, LinearWeights
from sparsact.inference.predictors import Threshold


@pytest.fixture
def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(9, 31), nn.Tanh(), nn.Linear(31, 4)).eval()


@pytest.fixture
def inputs():
    return list(torch.randn(120, 1, 9, generator=torch.Generator().manual_seed(1)))


@pytest.fixture
def always_faster(monkeypatch):
    monkeypatch.setattr(input_thresholds, "MAX_TIME_RATIO", 1e9)


def test_a_density_keeps_that_share_of_the_sample():
    x = torch.randn(50, 8, generator=torch.Generator().manual_seed(2))
    rule = InputThreshold(Threshold.for_density(LinearWeights(torch.ones(3, 8)), x, 0.3).tau)
    assert int((rule(x) != 0).sum()) == int(0.3 * x.numel())
    assert float(rule(x)[rule(x) != 0].abs().min()) > float(x[rule(x) == 0].abs().max())
    assert InputThreshold(1.0)(torch.tensor([torch.nan, 1.0, -2.0])).nan_to_num(7.0).tolist() == [7.0, 0.0, -2.0]


def test_an_error_is_the_largest_that_is_allowed():
    generator = torch.Generator().manual_seed(3)
    x, weight = torch.randn(40, 8, generator=generator), torch.randn(5, 8, generator=generator)

    def error(tau):
        return float(((x * (x.abs() <= tau)) @ weight.T).double().norm() / (x @ weight.T).double().norm())

    tau = Threshold.for_error(LinearWeights(weight), x, 0.25).tau
    assert error(tau) <= 0.25 < error(float(x.abs()[x.abs() > tau].min()))


@pytest.mark.parametrize("target", [{"density": 0.5}, {"error": 0.2}])
def test_every_linear_layer_leaves_small_inputs_out(model, inputs, target, always_faster):
    before = copy.deepcopy(model)
    sa.sparsify(model, "inputs", inputs, time_limit=0.1, **target)
    plan = sa.plan_of(model)
    assert [(one.block, one.method) for one in plan.choices] == [("0", "inputs"), ("2", "inputs")]
    taus = [one.quality["tau"] for one in plan.choices]
    x = torch.randn(1, 9, generator=torch.Generator().manual_seed(4))
    with torch.inference_mode():
        hidden = torch.tanh(before[0](x * (x.abs() > taus[0])))
        assert torch.allclose(model(x), before[2](hidden * (hidden.abs() > taus[1])), atol=1e-6)
    for one in plan.choices:
        quality = one.quality["quality"]
        assert abs(quality["density"]["value"] - one.density) < 1e-12
        name = next(iter(target))
        measured = quality["output_error" if name == "error" else "density"]["value"]
        assert abs(measured - target[name]) < 0.15  # of 16 rows
        assert set(one.seconds) == {"dense", "inputs"}
        assert one.share > 0
    assert "inputs held out: " in str(plan)
    sa.densify(model)
    assert torch.equal(model(x), before(x))


def test_the_error_is_measured_on_rows_held_out(model, inputs, always_faster):
    plan = sa.plan_of(sa.sparsify(model, "inputs", inputs, density=0.4, time_limit=0.1))
    quality = plan.choices[0].quality
    assert quality["quality"]["rows"] == 64 // 4  # of the first 64 batches
    x = torch.cat(inputs[:64])
    held_out = x[torch.randperm(64, generator=torch.Generator().manual_seed(0))][-16:]
    left_out = held_out * (held_out.abs() <= quality["tau"])
    weight = model[0].weight.detach()
    error = (left_out @ weight.T).norm() / (held_out @ weight.T).norm()
    assert quality["quality"]["output_error"]["value"] == pytest.approx(float(error), rel=1e-5)


def test_a_layer_that_gets_slower_stays_dense_and_says_so(model, inputs, monkeypatch):
    monkeypatch.setattr(input_thresholds, "MAX_TIME_RATIO", 0.0)
    before = model(inputs[0])
    sa.sparsify(model, "inputs", inputs, density=0.5, time_limit=0.1)
    plan = sa.plan_of(model)
    assert all(one.method == "dense" for one in plan.choices)
    assert all("without small inputs it takes" in one.reason and one.quality for one in plan.choices)
    assert torch.equal(model(inputs[0]), before)


def test_auto_never_approximates(model, inputs, always_faster):
    sa.sparsify(model, "auto", inputs, time_limit=0.1)
    assert {one.method for one in sa.plan_of(model).choices} == {"dense"}


def test_hostile_targets(model, inputs):
    for options in ({}, {"density": 0.5, "error": 0.1}, {"density": 1.5}, {"error": 0.0}):
        with pytest.raises(ValueError, match=r"in \(0, 1\]"):
            sa.sparsify(model, "inputs", inputs, time_limit=0.1, **options)
    with pytest.raises(ValueError, match="takes no recall"):
        sa.sparsify(model, "inputs", inputs, recall=0.9)
    with pytest.raises(ValueError, match="leave `blocks` out"):
        sa.sparsify(model, "inputs", inputs, density=0.5, blocks=[])
    with pytest.raises(ValueError, match="at least 40 sample inputs"):
        sa.sparsify(model, "inputs", inputs[:9], density=0.5)
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.zero_()
    assert "output is 0" in sa.plan_of(sa.sparsify(model, "inputs", inputs, error=0.1)).choices[0].reason
    assert F.linear(inputs[0], model[0].weight).abs().max() == 0

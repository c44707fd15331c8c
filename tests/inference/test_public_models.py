"""Every public family of models: ``measure`` sees its exact zeros, and sparse models return what dense ones return."""

from __future__ import annotations

import copy
import math
import re
from itertools import product

import pytest
import torch

from benchmarks.architectures import ARCHITECTURES
from benchmarks.models import DENSITIES, Survey, output_of, quiet, switch_off
from sparsact.inference import densify, plan_of, sparsify
from sparsact.inference.batches import tensors_in
from sparsact.inference.output_error import row_errors

pytest.importorskip("transformers", minversion="5.0")

QUICK = {"OPT, Galactica", "T5", "BitNet b1.58", "GPT-2 with ReLU", "GPT-2", "Decision Transformer"}
REFUSALS = "must have a feed-forward block|applies to none of the"


def families():
    """All families as parameters: a few in ``make test``, the rest in ``make test-grids``."""
    for one in ARCHITECTURES:
        marks = [] if one.name in QUICK else [pytest.mark.grid]
        yield pytest.param(one, marks=marks, id=one.name if not one.is_dense else f"{one.name}, dense")


@pytest.mark.parametrize("family", families())
def test_measure_sees_the_zeros_that_hooks_count(family):
    for density in DENSITIES[:1] if family.is_dense else DENSITIES:
        survey = Survey.of(family, density)
        assert family.is_dense == (not survey.mostly_zero)
        assert survey.unseen == []


@pytest.mark.parametrize("family", families())
def test_outputs_match_the_dense_model_and_no_weights_crash(family):
    model, shown = family.build(), family.shows()
    with quiet(), torch.no_grad():
        switch_off(model, shown, DENSITIES[0])
        before = floats(model, shown)
        for method, weights in product(("exact", "auto"), ("keep", "int8", "int4")):
            try:
                sparsify(model, method, copy.deepcopy(shown), weights=weights, time_limit=0.05)
            except ValueError as error:
                if re.search(REFUSALS, str(error)):
                    continue
                raise
            after = floats(model, shown)
            assert [one.shape for one in after] == [one.shape for one in before]
            error = row_errors(before, after)[0]
            assert error < (2e-6 if weights == "keep" else math.inf), (method, weights)
            assert plan_of(model).choices
            assert not any("sparse already" in one for one in plan_of(model).left_dense)
            densify(model)
        assert row_errors(before, floats(model, shown))[0] == 0


def floats(model, shown):
    return [one.clone() for one in tensors_in(output_of(model, shown)) if one.is_floating_point()]


class GatedAutoencoder(torch.nn.Module):
    """A unit is on where one affine function of W x is positive; its size is the positive part of another."""

    def __init__(self, d=7, units=40):
        super().__init__()
        self.encoder, self.decoder = torch.nn.Linear(d, units, bias=False), torch.nn.Linear(units, d)
        self.gate = torch.nn.Parameter(torch.full((units,), -0.5))
        self.magnitude = torch.nn.Parameter(torch.linspace(-0.5, 0.5, units))
        self.bias = torch.nn.Parameter(torch.linspace(-0.1, 0.1, units))

    def forward(self, x):
        z = self.encoder(x - self.decoder.bias)
        return self.decoder((z + self.gate > 0) * torch.relu(z * self.magnitude.exp() + self.bias))


@pytest.mark.parametrize("method", ["exact", "auto"])
@pytest.mark.parametrize("weights", ["keep", "int8", "int4"])
def test_gated_autoencoders_run_under_every_kind_of_weights(method, weights):
    torch.manual_seed(0)
    model, x = GatedAutoencoder().eval(), torch.randn(60, 7)
    before = model(x[:5]).detach()
    plan = plan_of(sparsify(model, method, x, weights=weights, time_limit=0.05))
    with torch.no_grad():
        assert row_errors([before], [model(x[:5])])[0] < {"keep": 2e-6, "int8": 0.05, "int4": 0.3}[weights]
    assert 0 < plan.choices[0].density < 0.5
    assert method == "auto" or plan.choices[0].method == "exact"


class Heads(torch.nn.Module):
    """Three layers in a row, as the boxes of DETR: the second block shares a layer with the first."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(7, 7) for _ in range(3))

    def forward(self, x):
        for layer in self.layers[:2]:
            x = layer(x).relu()
        return self.layers[2](x)


@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("keep_weights", [True, False])
def test_layers_of_blocks_that_share_one_are_quantised(weights, keep_weights):
    model, x = Heads().eval(), torch.randn(9, 7)
    plan = plan_of(sparsify(model, "exact", x, weights=weights, keep_weights=keep_weights))
    assert [choice.method for choice in plan.choices] == ["exact", "exact"]
    assert [(one.layer, one.reason) for one in plan.layers] == [(f"layers.{i}", "") for i in range(3)]

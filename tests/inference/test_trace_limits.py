"""What a trace on one batch does not show: units that are off are computed, or none is left out."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy

import pytest
import torch
from inference.row_cases import D, Gated, S, check_equal
from inference.zoo import Written
from torch import nn
from torch.nn import functional as F

import sparsact as sa
from sparsact.inference import find_blocks
from sparsact.inference.methods import screen_of
from sparsact.inference.selectors import WhereGateIsOn
from sparsact.inference.sparse_linear import SparseLinear


def switched_off(weight, bias):
    """Most units off, at inputs whose first number is 2."""
    weight.data[:, 0] = -0.4
    bias.data += 0.2


def inputs_of(rows, size=1.0):
    x = torch.randn(rows, D)
    x[:, 0] = 2
    return x * size


CLIPPED = {
    "norm": lambda h: F.relu(h) * (1000 / h.norm(dim=-1, keepdim=True)).clamp(max=1),
    "mean": lambda h: F.relu(h + F.relu(-10 - h.mean(-1, keepdim=True))),
    "sum": lambda h: F.relu(h) * (1 + F.relu(h.sum(-1, keepdim=True))),
}


def two_layers(forward):
    """A model with the layers a and b; most units are off."""
    model = Written(forward)
    model.a, model.b = nn.Linear(D, S), nn.Linear(S, 5)
    switched_off(model.a.weight, model.a.bias)
    return model.eval()


@pytest.mark.parametrize("name", CLIPPED)
def test_a_clip_far_from_usual_numbers_needs_the_units_that_are_off(name):
    torch.manual_seed(0)
    dense = two_layers(lambda m, x: m.b(CLIPPED[name](m.a(x))))
    with pytest.raises(ValueError, match='method="certified" applies to none'):
        sa.sparsify(deepcopy(dense), "certified", inputs_of(4))
    model = sa.sparsify(deepcopy(dense), "exact", inputs_of(4))
    for size in (1.0, 1e3, 1e5):
        check_equal(model, dense, inputs_of(4, size))


def by_position(h):
    return torch.where(torch.arange(h.shape[-2])[:, None] < 4, F.relu(h), h)


def first_rows(h):
    h[:4].relu_()
    return h


@pytest.mark.parametrize("f", [by_position, first_rows])
def test_rows_further_on_than_those_seen(f):
    """For the first four rows the activation is a ReLU."""
    torch.manual_seed(0)
    dense = Written(lambda m, x: m.b(f(m.a(x))))
    dense.a, dense.b = nn.Linear(D, S), nn.Linear(S, 5)
    dense.eval()
    dense.a.weight.data *= 0.5  # so that the screen proves most of them off
    switched_off(dense.a.weight, dense.a.bias)
    model = sa.sparsify(deepcopy(dense), "exact", inputs_of(4))
    assert model.b._sparse.max_rows >= 9
    check_equal(model, dense, inputs_of(9))
    with suppress(ValueError):  # refused
        model = sa.sparsify(deepcopy(dense), "certified", inputs_of(4))
        check_equal(model, dense, inputs_of(9))


def test_a_dropout_in_training_mode_between_layers_in_evaluation_mode():
    torch.manual_seed(0)
    dense = nn.Sequential(nn.Linear(D, S), nn.Dropout(0.5), nn.Threshold(0.4, 0.0), nn.Linear(S, 5)).eval()
    switched_off(dense[0].weight, dense[0].bias)
    model = sa.sparsify(deepcopy(dense).train(), "certified", inputs_of(9)).eval()
    x = inputs_of(8)
    for mode in (False, True, False):
        for one in (dense, model):
            one[1].train(mode)
        for _ in range(3):  # the second is direct
            outputs = []
            for one in (dense, model):
                torch.manual_seed(1)
                with torch.no_grad():
                    outputs.append(one(x))
            assert torch.allclose(*outputs, atol=1e-5)
    assert model[0]._sparse.sparse_calls > 0


def test_casts_that_the_type_of_the_trace_did_not_show():
    """In bfloat16 the model compares numbers in float32, which the trace in float32 cast nowhere."""
    torch.manual_seed(0)

    def largest(z):
        wide = z.float()
        return (wide * (wide > wide.mean(-1, keepdim=True) + wide.std(-1, keepdim=True))).to(z.dtype)

    dense = Gated(largest).eval()
    model = sa.sparsify(deepcopy(dense), "exact", torch.randn(3, D))
    assert isinstance(model.up._sparse.selector, WhereGateIsOn)
    dense.bfloat16()
    model.bfloat16()
    for x in torch.randn(200, 4, D).bfloat16():
        check_equal(model, dense, x)


def test_pre_activations_of_another_type_are_rounded_past_thresholds():
    model = nn.Sequential(nn.Linear(D, S), nn.Threshold(0.4, 0.0), nn.Linear(S, 5)).eval()
    [block] = find_blocks(model, torch.randn(3, D))
    weight, bias = model[0].weight.detach(), model[0].bias.detach()
    thresholds, rows = block.activation.zero_below, torch.empty(0, D)
    assert screen_of(weight, bias, thresholds, rows) is not None
    assert screen_of(weight.bfloat16(), bias.bfloat16(), thresholds, rows) is None
    assert screen_of(weight.bfloat16(), bias.bfloat16(), 0 * thresholds, rows) is not None


def test_blocks_that_were_found_before_the_threshold_changed():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(D, S), nn.BatchNorm1d(S), nn.ReLU(), nn.Linear(S, 5)).eval()
    switched_off(model[0].weight, model[0].bias)
    model[1].running_mean.fill_(0.4)
    blocks = find_blocks(model, inputs_of(4))
    assert isinstance(sa.sparsify(deepcopy(model), "certified", inputs_of(4))[0], SparseLinear)
    model[1].running_mean.fill_(0.39)
    with pytest.raises(ValueError, match='method="certified" applies to none'):
        sa.sparsify(model, "certified", inputs_of(4), blocks=blocks)
    model[1].running_mean.fill_(0.41)
    dense = deepcopy(model)
    sa.sparsify(model, "certified", inputs_of(4), blocks=blocks)  # units below .4 are off still
    assert isinstance(model[0], SparseLinear)
    for _ in range(20):
        check_equal(model, dense, inputs_of(4))


def test_zeros_that_no_module_registers_may_be_written_to():
    torch.manual_seed(0)
    shift = torch.zeros(S)
    dense = two_layers(lambda m, x: m.b(F.relu(m.a(x) - shift)))
    with pytest.raises(ValueError, match='method="certified" applies to none'):
        sa.sparsify(deepcopy(dense), "certified", inputs_of(4))
    model = sa.sparsify(deepcopy(dense), "exact", inputs_of(4))
    shift.fill_(-0.4)
    check_equal(model, dense, inputs_of(4))


@pytest.mark.filterwarnings("ignore:`torch.jit.*` is deprecated:DeprecationWarning")
def test_a_scripted_module_between_layers_takes_no_hooks():
    torch.manual_seed(0)
    scripted = torch.jit.script(nn.Sequential(nn.Identity(), nn.ReLU()))
    model = nn.Sequential(nn.Linear(D, S), scripted, nn.Linear(S, 5)).eval()
    switched_off(model[0].weight, model[0].bias)
    x = inputs_of(8)
    with torch.no_grad():
        hidden, wanted = model[1](model[0](x)), model(x)
    found = sa.measure(model, x)
    assert found.density == pytest.approx(float((hidden != 0).float().mean()))
    sa.sparsify(model, "certified", x)
    with torch.no_grad():
        assert torch.allclose(model(x), wanted, atol=1e-5)
        assert model[0]._sparse.sparse_calls > 0
        model[1] = nn.Threshold(-0.5, 0.0)
        assert torch.allclose(
            model(x), nn.Linear.forward(model[2], model[1](nn.Linear.forward(model[0], x))), atol=1e-5
        )

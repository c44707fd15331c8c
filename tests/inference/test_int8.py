from __future__ import annotations

import pickle
from copy import deepcopy

import pytest
import torch
from torch import nn

import sparsact as sa
from sparsact.inference.quantized import MAX_ROWS, QuantizedGate, QuantizedLinear, quantized_weight

by_torch = pytest.mark.skipif(
    "fbgemm" not in torch.backends.quantized.supported_engines, reason="this torch has no engine fbgemm"
)
pytestmark = pytest.mark.filterwarnings("ignore:.*quant:UserWarning", "ignore:.*quant:DeprecationWarning")
D, S, G, OUT = 40, 150, 136, 23


class Gated(nn.Module):
    """A gated block, whose layers are called gate first or up-projection first."""

    def __init__(self, up_first: bool) -> None:
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(D, G), nn.Linear(D, G), nn.Linear(G, D)
        self.up_first = up_first
        nn.init.constant_(self.gate.bias, -0.6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.up_first:
            up = self.up(x)
            return self.down(torch.relu(self.gate(x)) * up)
        return self.down(torch.relu(self.gate(x)) * self.up(x))


class Mixed(nn.Module):
    """A block with ReLU, a gated one, one with GELU, a linear layer besides, and one that is never called."""

    def __init__(self, up_first: bool = False) -> None:
        super().__init__()
        self.plain = nn.Sequential(nn.Linear(D, S), nn.ReLU(), nn.Linear(S, D))
        nn.init.constant_(self.plain[0].bias, -0.6)
        self.gated = Gated(up_first)
        self.smooth = nn.Sequential(nn.Linear(D, S), nn.GELU(), nn.Linear(S, D, bias=False))
        self.head, self.unused = nn.Linear(D, OUT), nn.Linear(D, OUT)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in (self.plain, self.gated, self.smooth):
            x = x + block(x)
        return self.head(x)


def mixed(up_first: bool = False) -> Mixed:
    torch.manual_seed(3)
    return Mixed(up_first).eval()


def rows(m: int) -> torch.Tensor:
    return torch.randn(m, D, generator=torch.Generator().manual_seed(m))


def one_by_one(m: int) -> list[torch.Tensor]:
    return list(rows(m).split(1))


def torch_model(model: nn.Module) -> nn.Module:
    config = torch.ao.quantization.per_channel_dynamic_qconfig
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear: config})


def run(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return model(x)


@by_torch
@pytest.mark.parametrize("method", ["auto", "exact"])
@pytest.mark.parametrize("up_first", [False, True])
def test_outputs_are_those_of_the_model_quantised_by_torch(method, up_first):
    """For one row, a few, and more than the kernels take."""
    model = mixed(up_first)
    quantized = torch_model(model)
    sa.sparsify(model, method, one_by_one(17), weights="int8", time_limit=0.1)
    for m in (1, 3, MAX_ROWS, MAX_ROWS + 5):
        assert torch.equal(run(model, rows(m)), run(quantized, rows(m)))
        assert torch.equal(run(model, rows(m).view(m, 1, D)), run(quantized, rows(m).view(m, 1, D)))


@by_torch
def test_integers_and_scales_are_those_of_torch():
    weight = torch.cat([rows(7), torch.zeros(1, D), 1e-9 * rows(2)])
    observer = torch.ao.quantization.default_per_channel_weight_observer()
    observer(weight)
    scale, zeros = observer.calculate_qparams()
    integers = torch.quantize_per_channel(weight, scale, zeros, 0, torch.qint8).int_repr()
    found = quantized_weight(weight)
    assert torch.equal(found[0], integers)
    assert torch.equal(found[1], scale)


def test_an_up_projection_reads_only_where_its_gate_is_on():
    model = mixed()
    sa.sparsify(model, "exact", one_by_one(9), weights="int8")
    x = rows(1)
    assert isinstance(model.gated.gate, QuantizedGate)
    with torch.inference_mode():
        gate, up = model.gated.gate(x), model.gated.up(x)
    off = gate <= 0
    assert 0 < off.sum() < G
    assert (up[off] == 0).all()
    assert (up[~off] != 0).all()


def test_the_plan_reports_errors_and_what_was_left():
    model = mixed()
    before = [run(model, x) for x in one_by_one(11)]
    sa.sparsify(model, "exact", one_by_one(11), weights="int8")
    plan = sa.plan_of(model)
    after = [run(model, x) for x in one_by_one(11)]
    exact, found = torch.cat(before).double(), torch.cat(after).double()
    assert plan.output_error == pytest.approx(float((found - exact).norm() / exact.norm()), rel=1e-6)
    assert 0 < plan.output_error < 0.05
    assert [choice.method for choice in plan.choices] == ["exact"] * 3
    assert len(plan.block_errors) == 3
    assert all(0 < error < 0.1 for error in plan.block_errors)
    errors = {one.layer: one.error for one in plan.layers if not one.reason}
    assert len(errors) == 8
    assert all(0 < error < 0.05 for error in errors.values())
    assert [(one.layer, one.reason) for one in plan.layers if one.reason] == [("unused", "no call shown reached it")]
    assert "the model's" in str(plan)
    assert plan.to_dict()["layers"][0]["layer"] == "plain.0"
    assert plan.choices[0].density < 0.3 < plan.choices[2].density


def test_densify_returns_the_same_weights():
    model = mixed()
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    output = run(model, rows(5))
    sa.densify(sa.sparsify(model, "exact", one_by_one(9), weights="int8"))
    assert all(type(layer) is nn.Linear for layer in model.modules() if isinstance(layer, nn.Linear))
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())
    assert torch.equal(run(model, rows(5)), output)


def test_dropped_weights_leave_the_integers():
    model, kept = mixed(), mixed()
    names = list(model.state_dict())
    sa.sparsify(model, "exact", one_by_one(9), weights="int8", keep_weights=False)
    sa.sparsify(kept, "exact", one_by_one(9), weights="int8")
    assert [name for name in names if name not in model.state_dict()] == [
        name for name in names if name.endswith("weight") and not name.startswith("unused")
    ]
    outputs = run(kept, rows(4))
    assert torch.equal(run(model, rows(4)), outputs)
    assert torch.equal(run(deepcopy(model), rows(4)), outputs)
    assert torch.equal(run(pickle.loads(pickle.dumps(model)), rows(4)), outputs)
    integers, scale = quantized_weight(kept.plain[2].weight)
    sa.densify(model)
    assert list(model.state_dict()) == names
    assert torch.equal(model.plain[2].weight, integers * scale[:, None])


def test_new_weights_are_quantised_again():
    model, other = mixed(), mixed()
    sa.sparsify(model, "exact", one_by_one(9), weights="int8")
    with torch.no_grad():
        for layer in (model.plain[2], other.plain[2]):
            layer.weight.mul_(-3)
    sa.sparsify(other, "exact", one_by_one(9), weights="int8")
    assert torch.equal(run(model, rows(2)), run(other, rows(2)))


def test_gradients_are_those_of_float_weights():
    model, plain = mixed(), mixed()
    sa.sparsify(model, "exact", one_by_one(9), weights="int8")
    for one in (model, plain):
        one(rows(6)).square().sum().backward()
    for one, two in zip(model.parameters(), plain.parameters(), strict=True):
        assert (one.grad is None and two.grad is None) or torch.equal(one.grad, two.grad)


def test_bfloat16_is_quantised_from_its_own_numbers():
    model = mixed().bfloat16()
    wide = deepcopy(model).float()
    sa.sparsify(model.plain, "exact", [x.bfloat16() for x in one_by_one(9)], weights="int8")
    sa.sparsify(wide.plain, "exact", one_by_one(9), weights="int8")
    x = rows(3).bfloat16()
    hidden = run(wide.plain[0], x.float())
    assert torch.equal(run(model.plain[0], x), hidden.bfloat16())


def test_what_is_not_finite_shows():
    model = mixed()
    sa.sparsify(model, "exact", one_by_one(9), weights="int8")
    x = rows(1)
    x[0, 3] = torch.inf
    assert run(model, x).isnan().all()


def test_weights_that_are_not_finite_stay_floats():
    model = mixed()
    with torch.no_grad():
        model.plain[0].weight[2, 3] = torch.nan
    plan = sa.plan_of(sa.sparsify(model, "exact", one_by_one(9), weights="int8"))
    assert plan.choices[0].method == "dense"
    assert plan.choices[0].reason == "float weights: its weights are not all finite"
    assert type(model.plain[0]) is nn.Linear
    assert isinstance(model.head, QuantizedLinear)


@by_torch
def test_refusals_name_the_remedy():
    with pytest.raises(ValueError, match=r"plain\.0 is quantised already .* pass the model as it was before\."):
        sa.sparsify(torch_model(mixed()), "exact", rows(9), weights="int8")
    with pytest.raises(ValueError, match='got "certified": leave one of them out'):
        sa.sparsify(mixed(), "certified", rows(9), weights="int8")
    with pytest.raises(ValueError, match="`weights`"):
        sa.sparsify(mixed(), "exact", rows(9), weights="int3")
    with pytest.raises(ValueError, match='pass weights="int8"'):
        sa.sparsify(mixed(), "exact", rows(9), keep_weights=False)

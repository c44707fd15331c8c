from __future__ import annotations

import pickle
from copy import deepcopy

import pytest
import torch
from sparse_models import Block, reads
from torch import nn

import sparsact as sa
from sparsact.inference.selectors import SwitchedOn
from sparsact.inference.sparse_linear import MAX_ROWS, SparseLinear
from sparsact.inference.weights import Int4Weights
from sparsact.inference.weights.int4 import grouped_weight
from sparsact.inference.weights.int8 import quantized_weight
from sparsact.kernels.int4_linear import quantize_rows

by_torch = pytest.mark.skipif(
    "fbgemm" not in torch.backends.quantized.supported_engines, reason="this torch has no engine fbgemm"
)
pytestmark = pytest.mark.filterwarnings("ignore:.*quant:UserWarning", "ignore:.*quant:DeprecationWarning")
D, S, G, OUT = 40, 150, 136, 23


class Mixed(nn.Module):
    """A block with ReLU, a gated one, one with GELU, a linear layer besides, and one that is never called."""

    def __init__(self, up_first: bool = False) -> None:
        super().__init__()
        self.plain = nn.Sequential(nn.Linear(D, S), nn.ReLU(), nn.Linear(S, D))
        nn.init.constant_(self.plain[0].bias, -0.6)
        self.gated = Block(D, G, D, gate=True, up_first=up_first, shift=0.6)
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
def test_outputs_of_a_row_match_the_model_quantised_by_torch(method, up_first):
    """Whatever else is in its batch: torch computes rows one by one here, since it has one scale per call."""
    model = mixed(up_first)
    quantized = torch_model(model)
    sa.sparsify(model, method, one_by_one(17), weights="int8", time_limit=0.02)
    for m in (1, 3, MAX_ROWS, MAX_ROWS + 5, 70):
        expected = torch.cat([run(quantized, row) for row in one_by_one(m)])
        assert torch.equal(run(model, rows(m)), expected)
        assert torch.equal(run(model, rows(m).view(m, 1, D)), expected.view(m, 1, OUT))


@by_torch
def test_integers_and_scales_match_torch():
    weight = torch.cat([rows(7), torch.zeros(1, D), 1e-9 * rows(2)])
    observer = torch.ao.quantization.default_per_channel_weight_observer()
    observer(weight)
    scale, zeros = observer.calculate_qparams()
    integers = torch.quantize_per_channel(weight, scale, zeros, 0, torch.qint8).int_repr()
    found = quantized_weight(weight)
    assert torch.equal(found[0], integers)
    assert torch.equal(found[1], scale)


@pytest.mark.parametrize("by_input", [False, True])
def test_int4_groups_are_rounded_to_steps_of_an_eighth_of_their_largest_weight(by_input):
    weight = rows(70) * 10 ** torch.randn(70, 1, generator=torch.Generator().manual_seed(1))
    integers, multipliers, scale = grouped_weight(weight, by_input=by_input)
    expected = weight.t() if by_input else weight
    for j, row in enumerate(expected.tolist()):
        for g in range(multipliers.shape[1]):
            group = row[32 * g : 32 * g + 32]
            unit = scale[32 * g if by_input else j].item()
            ideal = max(group, key=abs) / -8
            assert -1e-4 < (multipliers[j, g].item() * unit / ideal - 1) * abs(ideal) / unit < 1.0001  # rounded up
            step = multipliers[j, g].item() * unit
            for w, q in zip(group, integers[j, 32 * g :].tolist(), strict=False):
                nearest = min(range(-8, 8), key=lambda k, w=w, step=step: abs(k * step - w))
                assert abs(q * step - w) <= abs(nearest * step - w) + 1e-5 * unit
    assert multipliers.abs().max() == 127


def test_int4_steps_are_coarser_for_many_inputs():
    """So that sums of products with the largest codes and weights fit in 32 bits."""
    weight = torch.ones(1, 40_000)
    multipliers = grouped_weight(weight)[1]
    most = multipliers.abs().max().item()
    assert 50 < most <= 2**31 / (8 * 127 * 40_000)
    layer = Int4Weights.of(weight, None)
    assert layer.all(torch.ones(1, 40_000), 1).item() == pytest.approx(40_000, rel=1e-6)


@pytest.mark.parametrize("up_first", [False, True])
@pytest.mark.parametrize("method", ["auto", "exact"])
def test_outputs_of_int4_layers_match_their_rounded_weights(method, up_first):
    """Layer by layer in float64, from the numbers that the integers stand for; in any number of rows."""
    model = mixed(up_first)
    sa.sparsify(model, method, one_by_one(17), weights="int4", time_limit=0.02)
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, SparseLinear)}
    assert len(layers) == 8
    found = {}
    for name, layer in layers.items():
        layer.register_forward_hook(lambda _, args, out, name=name: found.update({name: (args[0], out)}))
    for m in (1, 3, MAX_ROWS + 5):
        together = run(model, rows(m))
        for name, (x, out) in found.items():
            codes, scales = quantize_rows(x.numpy())
            inputs = torch.from_numpy(codes).double() * torch.from_numpy(scales).double()[:, None]
            bias = 0 if layers[name].bias is None else layers[name].bias.double()
            exact = inputs @ layers[name].weights.dequantized().double().T + bias
            torch.testing.assert_close(out.double(), exact, rtol=1e-6, atol=1e-6)
        assert torch.equal(together, torch.cat([run(model, x) for x in rows(m).split(1)]))


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_an_up_projection_reads_only_where_its_gate_is_on(weights):
    model = mixed()
    sa.sparsify(model, "exact", one_by_one(9), weights=weights)
    x = rows(1)
    assert reads(model.gated.gate, SwitchedOn)
    with torch.inference_mode():
        gate, up = model.gated.gate(x), model.gated.up(x)
    off = gate <= 0
    assert 0 < off.sum() < G
    assert (up[off] == 0).all()
    assert (up[~off] != 0).all()


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_the_plan_reports_errors_and_what_was_left(weights):
    model = mixed()
    before = [run(model, x) for x in one_by_one(11)]
    sa.sparsify(model, "exact", one_by_one(11), weights=weights)
    plan, limit = sa.plan_of(model), {"int8": 0.1, "int4": 0.25}[weights]
    assert plan.weights == weights
    after = [run(model, x) for x in one_by_one(11)]
    exact, found = torch.cat(before).double(), torch.cat(after).double()
    assert plan.output_error == pytest.approx(float((found - exact).norm() / exact.norm()), rel=1e-6)
    assert 0 < plan.output_error < limit / 2
    assert [choice.method for choice in plan.choices] == ["exact"] * 3
    assert len(plan.block_errors) == 3
    assert all(0 < error < limit for error in plan.block_errors)
    errors = {one.layer: one.error for one in plan.layers if not one.reason}
    assert len(errors) == 8
    assert all(0 < error < limit / 2 for error in errors.values())
    assert [(one.layer, one.reason) for one in plan.layers if one.reason] == [("unused", "no sample call reached it")]
    assert "the model's" in str(plan)
    assert plan.to_dict()["layers"][0]["layer"] == "plain.0"
    assert plan.choices[0].density < 0.3 < plan.choices[2].density


def test_weights_of_inference_mode_stay_floats_and_the_plan_says_why():
    x = torch.randn(20, 8)
    with torch.inference_mode():
        model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
    copied = deepcopy(model)
    shown = str(sa.plan_of(sa.sparsify(model, "exact", x, weights="int8")))
    assert shown.count("made in inference mode") == 2  # of the block, and of both layers
    assert "int8 weights in 0 of 2 linear layers\nfloat weights in 0, 2: its weights" in shown
    assert "nan" not in shown
    assert "int8 weights in 2 of 2" in str(sa.plan_of(sa.sparsify(copied, "exact", x, weights="int8")))


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_densify_returns_the_same_weights(weights):
    model = mixed()
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    output = run(model, rows(5))
    sa.densify(sa.sparsify(model, "exact", one_by_one(9), weights=weights))
    assert all(type(layer) is nn.Linear for layer in model.modules() if isinstance(layer, nn.Linear))
    assert all(torch.equal(value, expected[name]) for name, value in model.state_dict().items())
    assert torch.equal(run(model, rows(5)), output)


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_dropped_weights_leave_the_integers(weights):
    model, kept = mixed(), mixed()
    names = list(model.state_dict())
    sa.sparsify(model, "exact", one_by_one(9), weights=weights, keep_weights=False)
    sa.sparsify(kept, "exact", one_by_one(9), weights=weights)
    assert [name for name in names if name not in model.state_dict()] == [
        name for name in names if name.endswith("weight") and not name.startswith("unused")
    ]
    outputs = run(kept, rows(4))
    assert torch.equal(run(model, rows(4)), outputs)
    assert torch.equal(run(deepcopy(model), rows(4)), outputs)
    assert torch.equal(run(pickle.loads(pickle.dumps(model)), rows(4)), outputs)
    rounded = kept.plain[2].weights.dequantized()
    sa.densify(model)
    assert list(model.state_dict()) == names
    assert torch.equal(model.plain[2].weight, rounded)


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_new_weights_are_quantised_again(weights):
    model, other = mixed(), mixed()
    sa.sparsify(model, "exact", one_by_one(9), weights=weights)
    with torch.no_grad():
        for layer in (model.plain[2], other.plain[2]):
            layer.weight.mul_(-3)
    sa.sparsify(other, "exact", one_by_one(9), weights=weights)
    assert torch.equal(run(model, rows(2)), run(other, rows(2)))


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_gradients_match_float_weights(weights):
    model, plain = mixed(), mixed()
    sa.sparsify(model, "exact", one_by_one(9), weights=weights)
    for one in (model, plain):
        one(rows(6)).square().sum().backward()
    for one, two in zip(model.parameters(), plain.parameters(), strict=True):
        assert (one.grad is None and two.grad is None) or torch.equal(one.grad, two.grad)


@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_quantised_from_their_own_numbers(dtype, weights):
    model = mixed().to(dtype)
    wide = deepcopy(model).float()
    sa.sparsify(model.plain, "exact", [x.to(dtype) for x in one_by_one(9)], weights=weights)
    sa.sparsify(wide.plain, "exact", one_by_one(9), weights=weights)
    x = rows(3).to(dtype)
    hidden = run(wide.plain[0], x.float())
    assert torch.equal(run(model.plain[0], x), hidden.to(dtype))


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_what_is_not_finite_shows(weights):
    model = mixed()
    sa.sparsify(model, "exact", one_by_one(9), weights=weights)
    x = rows(1)
    x[0, 3] = torch.inf
    assert run(model, x).isnan().all()


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_weights_that_are_not_finite_stay_floats(weights):
    model = mixed()
    with torch.no_grad():
        model.plain[0].weight[2, 3] = torch.nan
    plan = sa.plan_of(sa.sparsify(model, "exact", one_by_one(9), weights=weights))
    assert plan.choices[0].method == "dense"
    assert plan.choices[0].reason == "float weights: its weights are not all finite"
    assert type(model.plain[0]) is nn.Linear
    assert isinstance(model.head, SparseLinear)


@by_torch
def test_refusals_name_the_remedy():
    with pytest.raises(ValueError, match=r"plain\.0 is quantised already .* pass the float model\."):
        sa.sparsify(torch_model(mixed()), "exact", rows(9), weights="int8")
    with pytest.raises(ValueError, match='got "certified": leave one of them out'):
        sa.sparsify(mixed(), "certified", rows(9), weights="int8")
    with pytest.raises(ValueError, match="`weights`"):
        sa.sparsify(mixed(), "exact", rows(9), weights="int3")
    with pytest.raises(ValueError, match='pass weights="int8" or "int4"'):
        sa.sparsify(mixed(), "exact", rows(9), keep_weights=False)


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_weights_of_torchao_are_refused(weights):
    """By the module of the tensor's class, which is all that this library knows of torchao."""
    model = mixed()
    kind = type("AffineQuantizedTensor", (torch.Tensor,), {"__module__": "torchao.dtypes"})
    model.plain[2].weight = nn.Parameter(model.plain[2].weight.detach().as_subclass(kind))
    message = rf'weights="{weights}" quantises float layers, and plain\.2 is quantised already'
    with pytest.raises(ValueError, match=message):
        sa.sparsify(model, "exact", rows(9), weights=weights)

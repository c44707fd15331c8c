"""Forms of blocks beyond two plain linear layers, and the activations of published sparse models."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sparsact as sa
from sparsact.inference import find_blocks
from sparsact.inference.comparison import dense, speed
from sparsact.layers import SparselyActivatedLayer
from sparsact.routing import TopK

transformers = pytest.importorskip("transformers")
IDS = torch.arange(14).reshape(2, 7) % 11
NEW = pytest.mark.skipif(int(transformers.__version__.split(".")[0]) < 5, reason="needs transformers 5")
TOKENS = {"vocab_size": 11, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SIZES = {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 3}


class Fused(nn.Module):
    """Gate and up-projection in one layer, in either order."""

    def __init__(self, gate_first=True, bias=True):
        super().__init__()
        self.both, self.down = nn.Linear(6, 2 * 40, bias=bias), nn.Linear(40, 5)
        self.gate_first = gate_first

    def forward(self, x):
        first, second = self.both(x).chunk(2, dim=-1)
        return self.down(F.relu(first) * second if self.gate_first else first * F.relu(second))


def gpt2(activation="relu"):
    sizes = {"n_embd": 12, "n_inner": 20, "n_layer": 2, "n_head": 3, "n_positions": 16}
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**TOKENS, **sizes, activation_function=activation)
    ).eval()


def phi3(activation="relu"):
    return transformers.Phi3ForCausalLM(transformers.Phi3Config(**TOKENS, **SIZES, hidden_act=activation)).eval()


def switch_off(model, name, share=0.8):
    """Make rows of a layer negative for inputs that were normalised: their units stay off."""
    with torch.no_grad():
        for layer, module in model.named_modules():
            if layer.endswith(name) and module.bias is not None:
                module.bias[: int(share * len(module.bias))] = -9.0


def logits(model, batch=IDS[:1]):
    with torch.inference_mode():
        output = model(batch)
    return getattr(output, "logits", output)


@pytest.mark.parametrize("method", ["exact", "certified"])
def test_gpt2(method):
    model = gpt2()
    switch_off(model, "mlp.c_fc")
    blocks = find_blocks(model, IDS)
    assert [(b.name, b.up, b.gate, b.down) for b in blocks] == [
        (f"transformer.h.{i}.mlp", f"transformer.h.{i}.mlp.c_fc", None, f"transformer.h.{i}.mlp.c_proj") for i in (0, 1)
    ]
    assert blocks[0].sizes(model) == (12, 20, 12)
    before, state = logits(model), {name: value.clone() for name, value in model.state_dict().items()}
    weight = model.transformer.h[1].mlp.c_proj.weight
    sa.sparsify(model, method, [IDS[i : i + 1] for i in (0, 1)] * 10)
    plan = sa.plan_of(model)
    assert {choice.method for choice in plan.choices} == {method}
    assert all(choice.share > 0 for choice in plan.choices)
    assert torch.allclose(logits(model), before, atol=1e-5)
    down = model.transformer.h[1].mlp.c_proj
    assert isinstance(down, transformers.pytorch_utils.Conv1D)
    assert down.weight is weight
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    with dense(model):
        assert torch.equal(logits(model), before)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.allclose(logits(twin), logits(model), atol=1e-6)
    assert model(IDS).logits.requires_grad
    sa.densify(model)
    assert type(model.transformer.h[1].mlp.c_proj) is transformers.pytorch_utils.Conv1D
    assert torch.equal(logits(model), before)


def test_new_weights_of_conv1d_are_seen():
    model = gpt2()
    sa.sparsify(model, "exact", IDS[:1])
    before = logits(model)
    with torch.no_grad():
        model.transformer.h[0].mlp.c_proj.weight.mul_(2)
    after = logits(model)
    assert not torch.allclose(before, after)
    assert torch.allclose(after, logits(sa.densify(model)), atol=1e-5)


@pytest.mark.parametrize("method", ["exact", "certified"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("gate_first", [False, True])
def test_a_fused_gate(gate_first, bias, method):
    torch.manual_seed(0)
    model = Fused(gate_first, bias).eval()
    gate = slice(0, 40) if gate_first else slice(40, 80)
    x = torch.randn(33, 6).abs()
    with torch.no_grad():
        model.both.weight[gate][:30] = -model.both.weight[gate][:30].abs()  # off for positive inputs
        if bias:
            model.both.bias[gate][:30] = -1.0
    [block] = find_blocks(model, x)
    assert (block.up, block.gate, block.down) == ("both", "both", "down")
    assert (block.gate_rows.start, block.gate_rows.stop) == (gate.start, gate.stop)
    assert block.private
    assert block.sizes(model) == (6, 40, 5)
    before = model(x[:3]).detach()
    with torch.no_grad():
        sa.sparsify(model, method, list(x.split(1)))
        assert type(model.both._sparse.selector).__name__ == "GateThenUp"
        assert torch.allclose(model(x[:3]), before, atol=1e-5)
        [choice] = sa.plan_of(model).choices
        assert (choice.method, choice.share) == (method, 1.0)
        off = model.both(x[:3])[..., 40:70] if gate_first else model.both(x[:3])[..., :30]
        assert not off.any()  # the up-projection was not computed there
        bad = x[:2].clone()
        bad[1, 2] = torch.inf
        assert torch.equal(model(bad).isfinite(), sa.densify(model)(bad).isfinite())


def test_phi3():
    model = phi3()
    blocks = find_blocks(model, IDS)
    assert [(b.up, b.gate, b.down) for b in blocks] == [
        tuple(f"model.layers.{i}.mlp.{name}" for name in ("gate_up_proj", "gate_up_proj", "down_proj")) for i in (0, 1)
    ]
    before = logits(model)
    sa.sparsify(model, "exact", IDS[:1])
    assert torch.allclose(logits(model), before, atol=1e-5)
    assert {choice.method for choice in sa.plan_of(model).choices} == {"exact"}
    assert not find_blocks(phi3("silu"), IDS)[0].exact
    assert speed(model, [IDS[:1]], rounds=2).difference < 1e-5


def test_auto_takes_fused_and_transposed_layers():
    for model in (gpt2(), phi3()):
        before = logits(model)
        sa.sparsify(model, "auto", [IDS[:1]], time_limit=0.2)
        assert torch.allclose(logits(model), before, atol=1e-5)


@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: m.down(F.relu(m.both(x)[..., :40])),
        lambda m, x: m.down(F.relu(m.both(x)[..., ::2]) * m.both(x)[..., 1::2]),
    ],
    ids=["half alone", "interleaved"],
)
def test_other_parts_are_no_gate(forward):
    class Other(Fused):
        def forward(self, x):
            return forward(self, x)

    with pytest.raises(ValueError, match="down reads both"):
        find_blocks(Other(), torch.randn(3, 6))


def test_a_fused_gate_that_is_read_elsewhere():
    class Exposed(Fused):
        def forward(self, x):
            both = self.both(x)
            gate, up = both.chunk(2, dim=-1)
            return self.down(F.relu(gate) * up), both.sum()

    [block] = find_blocks(Exposed(), torch.randn(3, 6))
    assert not block.private


@NEW
def test_experts_that_stay_are_named_in_the_plan():
    sizes = SIZES | {"num_local_experts": 3, "num_experts_per_tok": 2, "num_key_value_heads": 3}
    config = transformers.MixtralConfig(**TOKENS, **sizes, hidden_act="relu")
    mixtral = transformers.MixtralForCausalLM(config).eval()
    for layer in mixtral.model.layers:  # with a forward of their own; others are split, see test_split_experts.py
        experts = layer.mlp.experts
        experts.forward = lambda *given, experts=experts: type(experts).forward(experts, *given)
    with pytest.raises(ValueError, match=r"MixtralExperts keeps all experts in one parameter per projection"):
        find_blocks(mixtral, IDS)

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.plain, self.moe = Fused(), mixtral

        def forward(self, x):
            return self.plain(x), self.moe(IDS).logits

    plan = sa.plan_of(sa.sparsify(Both().eval(), "exact", torch.randn(3, 6)))
    assert any("model.layers.0.mlp.experts and 1 more" in one for one in plan.left_dense)
    assert "unchanged: moe.model.layers.0.mlp.experts and 1 more" in str(plan)
    assert plan.to_dict()["left_dense"] == list(plan.left_dense)


def test_layers_with_a_router_are_said_to_be_sparse_already():
    model = nn.Sequential(SparselyActivatedLayer(4, 16, 3, router=TopK(5), activation="relu"))
    with pytest.raises(ValueError, match=r"0: sparsact\.layers\.\S+ already computes only the units that its router"):
        find_blocks(model, torch.randn(6, 4))


class FATReLU(nn.Module):
    def forward(self, z):
        return torch.where(z >= 0.125, z, torch.zeros_like(z))


@pytest.mark.parametrize(
    ("activation", "zero_below"),
    [
        (FATReLU(), torch.nextafter(torch.tensor(0.125), torch.tensor(0.0))),
        (nn.Threshold(0.125, 0.0), torch.tensor(0.125)),
        ("relu2", torch.tensor(0.0)),
        pytest.param("xielu", None, marks=NEW),
    ],
    ids=["FATReLU", "threshold", "squared ReLU", "xIELU"],
)
def test_activations_of_published_models(activation, zero_below):
    if isinstance(activation, str):
        activation = transformers.activations.ACT2FN[activation]
    model = nn.Sequential(nn.Linear(3, 7), activation, nn.Linear(7, 5)).float()
    [block] = find_blocks(model, torch.randn(4, 3))
    assert block.exact == (zero_below is not None)
    if zero_below is not None:
        assert torch.equal(block.activation.zero_below, zero_below.expand(7))


def bitnet():
    return transformers.BitNetForCausalLM(transformers.BitNetConfig(**TOKENS, **SIZES, num_key_value_heads=3)).eval()


@NEW
@pytest.mark.parametrize("method", ["exact", "certified"])
def test_bitnet_has_a_norm_after_its_gated_squared_relu(method):
    model = bitnet()
    blocks = find_blocks(model, IDS)
    assert [(b.gate, b.up, b.down) for b in blocks] == [
        tuple(f"model.layers.{i}.mlp.{name}" for name in ("gate_proj", "up_proj", "down_proj")) for i in (0, 1)
    ]
    assert all(block.private and block.activation.scaled for block in blocks)
    assert blocks[0].activation.zero_below.tolist() == [0.0] * 20
    before = logits(model)
    sa.sparsify(model, method, IDS[:1])
    assert {choice.method for choice in sa.plan_of(model).choices} == {method}
    assert torch.allclose(logits(model), before, atol=1e-5)
    sa.sparsify(model, "approximate", [IDS] * 4, density=0.5)
    for choice in sa.plan_of(model).choices:
        assert choice.reason.startswith("requested: keeps the 10 largest activations of each input")


def gemma3n():
    """Two layers whose gate is zero below a cutoff of each row, and one whose is not."""
    sizes = SIZES | {"intermediate_size": [80] * 3, "num_hidden_layers": 3, "hidden_size_per_layer_input": 4}
    config = transformers.Gemma3nTextConfig(
        **sizes | {"hidden_size": 24, "num_key_value_heads": 1, "head_dim": 8, "laurel_rank": 3, "altup_num_inputs": 2},
        vocab_size=11,
        vocab_size_per_layer_input=11,
        layer_types=["sliding_attention"] * 2 + ["full_attention"],
        activation_sparsity_pattern=[0.9, 0.9, 0.0],
        num_kv_shared_layers=0,
    )
    torch.manual_seed(5)
    return transformers.Gemma3nForCausalLM(config).eval()


@pytest.mark.grid
@NEW
@pytest.mark.parametrize("weights", ["keep", "int8"])
def test_gemma_3n_cuts_its_gate_off_by_mean_and_deviation(weights):
    model = gemma3n()
    blocks = [block for block in find_blocks(model, IDS) if block.gate]
    assert [block.exact for block in blocks] == [block.private for block in blocks] == [True, True, False]
    assert blocks[0].activation.name == "mean, std, mul, add, sub, relu, gelu"
    inputs, wanted = [], logits(model)
    hooks = [
        model.get_submodule(block.down).register_forward_pre_hook(lambda layer, args: inputs.append(args[0]))
        for block in blocks
    ]
    measured = {one.name: one.density for one in sa.measure(model, IDS).blocks}
    for hook in hooks:
        hook.remove()
    for block, seen in zip(blocks, inputs[-3:], strict=True):
        assert measured[block.name] == pytest.approx(float((seen != 0).double().mean()))
    assert max(measured[block.name] for block in blocks[:2]) < 0.2
    sa.sparsify(model, "exact", list(IDS[:, :3].split(1)), weights=weights)
    called = [model.get_submodule(name)._sparse for block in blocks[:2] for name in (block.up, block.down)]
    before = [state.sparse_calls for state in called]
    found = logits(model)
    tolerance = {"keep": 1e-6, "int8": 0.2}[weights]
    assert (found - wanted).norm() <= tolerance * wanted.norm()
    assert all(state.sparse_calls > n for state, n in zip(called, before, strict=True))


class Normed(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(3, 7), nn.Linear(7, 5), norm

    def forward(self, x):
        return self.down(self.norm(F.relu(self.up(x))))


def test_rows_divided_by_their_sum_and_rows_without_their_mean():
    x = torch.randn(4, 6, 3)
    for norm in (lambda h: h / (1 + h.sum(-1, keepdim=True)), lambda h: h * h.sum((1, 2), keepdim=True)):
        [block] = find_blocks(Normed(norm), x)
        assert block.exact
        assert block.activation.scaled
    for norm in (lambda h: h - h.mean(-1, keepdim=True), nn.LayerNorm(7)):
        with pytest.raises(ValueError, match="down reads up"):
            find_blocks(Normed(norm), x)

"""Exact zeros at the input of any layer: counted against hooks of the test's own, left out without a change."""

from __future__ import annotations

import copy

import pytest
import torch
from grids import few_of
from inference.exact_zeros import check_densities
from stacked_experts import IDS, mixtral, nemotron_h, olmoe
from torch import nn
from torch.nn import functional as F

import sparsact as sa
from sparsact.inference import Block, find_blocks, load_plan, measure, plan_of, save_plan, sparsify
from sparsact.inference.batches import call
from sparsact.inference.block_profile import sample_inputs
from sparsact.inference.comparison import main_output
from sparsact.inference.selectors import Everything
from sparsact.inference.sparse_linear import SparseLinear

D, S = 24, 70
INTEGERS = {"int8": 0.2, "int4": 0.5}  # largest relative error of outputs under such weights


class Cutoff(nn.Module):
    """The feed-forward block of Gemma 3n: only what is far above a row's mean passes the gate."""

    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(D, S, bias=False), nn.Linear(D, S, bias=False)
        self.down_proj = nn.Linear(S, 18, bias=False)

    def forward(self, x):
        z = self.gate_proj(x)
        cutoff = z.mean(-1, keepdim=True) + 1.6 * z.std(-1, keepdim=True, unbiased=False)
        return self.down_proj(F.gelu(F.relu(z - cutoff), approximate="tanh") * self.up_proj(x))


class TopK(nn.Module):
    """An autoencoder that scatters its largest features."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(D, S), nn.Linear(S, D)

    def forward(self, x):
        values, places = self.encoder(x).relu().topk(5, dim=-1)
        return self.decoder(torch.zeros(*x.shape[:-1], S, dtype=x.dtype).scatter(-1, places, values))


class Function(nn.Module):
    """down(f(up(x))) for any function of a tensor."""

    def __init__(self, f, width=S):
        super().__init__()
        self.up, self.down, self.f = nn.Linear(D, S), nn.Linear(width, 18), f
        self.register_buffer("mask", (torch.rand(S) < 0.2).float())

    def forward(self, x):
        return self.down(self.f(self.up(x), self.mask))


class Lora(nn.Module):
    """A layer with a thin product beside it, which is a module too."""

    def __init__(self, base):
        super().__init__()
        self.base, self.thin, self.wide = base, nn.Linear(D, 2, bias=False), nn.Linear(2, S, bias=False)

    @property
    def weight(self):
        return self.base.weight

    def forward(self, x):
        return self.base(x) + self.wide(self.thin(x))


def normed():
    model = nn.Sequential(nn.Linear(D, S), nn.BatchNorm1d(S), nn.ReLU(), nn.Linear(S, 18))
    model[1].running_mean.normal_(), model[1].bias.data.fill_(-0.7)
    return model


def adapted():
    model = nn.Sequential(Lora(nn.Linear(D, S)), nn.ReLU(), nn.Linear(S, 18))
    model[0].base.bias.data -= 0.6
    return model


def crelu(h, mask):
    return torch.cat([h - 0.5, -h - 0.5], -1).relu()


def falcon():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": D, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 11, "bias": True}
    model = transformers.FalconForCausalLM(transformers.FalconConfig(**sizes, activation="relu", alibi=False))
    for block in model.transformer.h:
        block.mlp.dense_h_to_4h.bias.data.fill_(-0.02)
    return model


def gemma():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": D, "intermediate_size": 140, "num_hidden_layers": 3, "num_attention_heads": 3}
    sizes |= {"num_key_value_heads": 3, "head_dim": 8, "num_kv_shared_layers": 1, "laurel_rank": 4, "vocab_size": 11}
    sizes |= {"hidden_size_per_layer_input": 6, "vocab_size_per_layer_input": 11, "altup_num_inputs": 2}
    config = transformers.Gemma3nTextConfig(**sizes, activation_sparsity_pattern=[0.95, 0.95, 0.0], pad_token_id=0)
    return transformers.Gemma3nForCausalLM(config)


class Sorted(nn.Module):
    """Activations above a threshold in ascending order: no operation of each unit alone."""

    def forward(self, z):
        return F.relu(z - 0.8).sort(-1).values


# A model, whether it reads tokens, and the layers whose input has many zeros.
MODELS = {
    "sorted": (lambda: nn.Sequential(nn.Linear(D, S), Sorted(), nn.Linear(S, 18)), False, ["2"]),
    "cutoff": (Cutoff, False, ["down_proj"]),
    "top-k": (TopK, False, ["decoder"]),
    "normed": (normed, False, ["3"]),
    "cat": (lambda: Function(crelu, 2 * S), False, ["down"]),
    "mask": (lambda: Function(lambda h, mask: h * mask), False, ["down"]),
    "hardshrink": (lambda: Function(lambda h, mask: F.hardshrink(h, 0.7)), False, ["down"]),
    "adapted": (adapted, False, ["2"]),
    "gemma": (gemma, True, [f"model.layers.{i}.mlp.down_proj" for i in range(2)]),
}
SMALL = [name for name in MODELS if name != "gemma"]  # which takes seconds


def made(make, is_of_tokens) -> tuple[nn.Module, list[torch.Tensor]]:
    torch.manual_seed(3)
    model = make().eval()
    return model, [IDS[:, :3], IDS[:1, :1]] if is_of_tokens else [torch.randn(15, D), torch.randn(1, D)]


@pytest.mark.parametrize("name", few_of(MODELS, SMALL))
def test_layers_alone(name, tmp_path):
    make, of_tokens, sparse = MODELS[name]
    model, batches = made(make, of_tokens)
    found = check_densities(model, batches)
    blocks = find_blocks(model, batches[0])
    assert {block.down for block in blocks} >= set(sparse)
    assert [block.name for block in found.blocks] == [block.name for block in blocks]
    seen = [block for block in found.blocks if block.down in sparse]
    assert all(block.exact and block.density < 0.4 and block.roofline().speedup("oracle") > 2.5 for block in seen)
    with torch.no_grad():
        dense = [main_output(call(model, batch)) for batch in batches]
        for method, alone in (("exact", True), ("certified", True), ("exact", False)):
            given = [Block.of_zeros(down) for down in sparse] if alone else None
            sparsify(model, method, batches, blocks=given)
            for batch, wanted in zip(batches, dense, strict=True):
                assert (main_output(call(model, batch)) - wanted).norm() <= 2e-6 * wanted.norm()
            assert all(model.get_submodule(down)._sparse.sparse_calls for down in sparse)
            if alone:
                save_plan(model, tmp_path / "plan")
                load_plan(sa.densify(model), tmp_path / "plan", torch.ones_like(batches[0]))
                assert [(one.block, one.method) for one in plan_of(model).choices] == [
                    (down, "exact") for down in sparse
                ]
                assert (main_output(call(model, batches[1])) - dense[1]).norm() <= 2e-6 * dense[1].norm()


@pytest.mark.filterwarnings("ignore:outputs should change by at most")  # where other features are the largest
@pytest.mark.parametrize("weights", INTEGERS)
@pytest.mark.parametrize("name", few_of(MODELS, SMALL))
def test_layers_alone_in_integers(name, weights):
    model, batches = made(*MODELS[name][:2])
    with torch.no_grad():
        dense = main_output(call(model, batches[1]))
        sparsify(model, "exact", batches, weights=weights)
        got = main_output(call(model, batches[1]))
        assert (got - dense).norm() <= INTEGERS[weights] * dense.norm()
        if weights == "int8":  # to leave out codes of 0 changes no bit
            for layer in model.modules():
                if isinstance(layer, SparseLinear):
                    layer._sparse.selector, layer._sparse.direct = Everything(), None
            assert torch.equal(got, main_output(call(model, batches[1])))


def test_auto_takes_a_wide_layer_alone():
    torch.manual_seed(1)
    model, x = nn.Sequential(nn.Linear(64, 4096), Sorted(), nn.Linear(4096, 512)).eval(), torch.randn(12, 64)
    with torch.no_grad():
        before = model(x[:1])
        sparsify(model, "auto", list(x.split(1)), time_limit=1, blocks=[Block.of_zeros("2")])
        assert (model(x[:1]) - before).norm() <= 2e-6 * before.norm()
    assert [one.block for one in plan_of(model).choices] == ["2"]


@pytest.mark.parametrize("make", [falcon, mixtral, olmoe, nemotron_h])
def test_blocks_of_transformers_are_found_and_measured(make):
    model, batches = made(make, True)
    found = check_densities(model, batches)
    assert found.blocks
    plan = plan_of(sparsify(model, "exact", batches, copy=True))
    assert [one.block for one in plan.choices] == [block.name for block in found.blocks]


@pytest.mark.grid
def test_falcon_is_sparse_and_restored():
    model, batches = made(falcon, True)
    kinds = [type(module) for module in model.modules()]
    with torch.no_grad():
        wanted = model(batches[1]).logits
        assert [block.up for block in find_blocks(model, batches[0])] == [
            f"transformer.h.{i}.mlp.dense_h_to_4h" for i in range(2)
        ]
        for weights in ("keep", "int8", "int4"):
            sparsify(model, "exact", batches, weights=weights)
            error = (model(batches[1]).logits - wanted).norm() / wanted.norm()
            assert error <= {"keep": 2e-6, **INTEGERS}[weights]
        sa.densify(model)
        assert torch.equal(model(batches[1]).logits, wanted)
    assert [type(module) for module in model.modules()] == kinds


def test_layers_that_share_a_layer_keep_what_they_can():
    """The first layer reads a sparse input and is the up-projection of a block: both are sparse by every method."""
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(S, 50), nn.ReLU(), nn.Linear(50, 40), nn.ReLU(), nn.Linear(40, 7)).eval()
    model[0].bias.data -= 0.5
    model[2].bias.data -= 0.3
    x = torch.randn(9, S).where(torch.rand(9, S) < 0.2, 0)
    assert [(block.up, block.down) for block in find_blocks(model, x)] == [(None, "0"), ("0", "2"), ("2", "4")]
    with torch.no_grad():
        wanted = model(x[:2])
        for method, weights in (("exact", "keep"), ("certified", "keep"), ("exact", "int8"), ("exact", "int4")):
            sparsify(model, method, x, weights=weights)
            error = (model(x[:2]) - wanted).norm() / wanted.norm()
            assert error <= {"keep": 2e-6, **INTEGERS}[weights]
            assert all(model[i]._sparse.sparse_calls for i in (0, 2, 4))
            assert [one.method for one in plan_of(model).choices] == ["exact"] * 3


def test_a_model_without_a_layer_or_rows_is_refused():
    with pytest.raises(ValueError, match="none of the 0 here read a row"):
        measure(nn.ReLU(), torch.randn(3))
    with pytest.raises(ValueError, match="none of the 1 here read a row"):
        measure(nn.Linear(3, 2), torch.randn(0, 3))


def test_inputs_of_zeros_alone_make_no_block():
    """A batch of zeros, as a placeholder, says nothing of what the layer reads in service."""
    with pytest.raises(ValueError, match="feed-forward block"):
        find_blocks(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), torch.zeros(5, 3))


@pytest.mark.grid
def test_a_sample_of_a_wide_layer_alone_stays_small():
    layer, block = nn.Linear(1 << 17, 2), Block.of_zeros("0")
    sample = sample_inputs(nn.Sequential(layer), [block], [torch.randn(50, 1 << 17) for _ in range(3)])[block]
    assert sample.sample.shape == (64, 1 << 17)
    assert sample.rows_per_call == [50, 50, 50]


def test_a_block_alone_has_no_gate():
    model, block = nn.Sequential(nn.Linear(3, 4)), Block.of_zeros("0")
    assert block.fits(model)
    assert (block.reader, block.switch, block.names, block.sizes(model)) == ("0", None, ["0"], (0, 3, 4))
    assert not Block("0", None, "0", "0", block.activation).fits(model)


@pytest.mark.parametrize("weights", ["keep", "int8"])
def test_a_model_that_is_one_layer(weights, tmp_path):
    torch.manual_seed(0)
    dense = nn.Linear(S, 5).eval()
    x = torch.randn(20, S) * (torch.rand(20, S) < 0.05)
    found = measure(dense, x)
    assert found.density == pytest.approx(float((x != 0).float().mean()))
    model = sparsify(copy.deepcopy(dense), "exact", x, weights=weights)
    save_plan(model, tmp_path / "plan")
    loaded = load_plan(copy.deepcopy(dense), tmp_path / "plan", x + 1)  # nothing is 0 there
    with torch.no_grad():
        assert torch.allclose(model(x[:9]), dense(x[:9]), atol=1e-5 if weights == "keep" else 0.02)
        assert torch.equal(loaded(x[:9]), model(x[:9]))
    assert isinstance(loaded, SparseLinear)
    assert loaded._sparse.sparse_calls > 0

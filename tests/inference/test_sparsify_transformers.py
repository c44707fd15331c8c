"""Sparsified models of Hugging Face, of classes that the library does not know, compute what the dense ones compute."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import pytest
import torch
from grids import few_of
from inference.test_sparsify import classes, dense_calls
from sparse_models import selectors

from sparsact.inference import densify, plan_of, sparsify
from sparsact.inference.selectors import ActiveInputs, SwitchedOn, WhereGateIsOn
from sparsact.inference.sparse_linear import SparseLinear

transformers = pytest.importorskip("transformers")

TOKENS = {"vocab_size": 37, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
IDS = torch.arange(5 * 9).reshape(5, 9) * 7 % 34 + 3
NEW = 6  # tokens to generate


@dataclass(frozen=True)
class Case:
    """A model, and where its blocks lie: ``n_layers`` calls of them in a forward."""

    make: Any
    blocks: list[str]
    gated: bool = False


def drawn(model, layers, bias=-1.5):
    """The model with units that differ from another and are seldom on: pre-activations of unit spread, shifted."""
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(generator=draw).div_(parameter.shape[1] ** 0.5)
        for layer in layers:
            layer.bias.fill_(bias)
    return model.eval()


def opt(d=24, ffn=70, n_layers=2, heads=3):
    sizes = {"hidden_size": d, "word_embed_proj_dim": d, "ffn_dim": ffn, "max_position_embeddings": 64}
    config = transformers.OPTConfig(**TOKENS, **sizes, num_hidden_layers=n_layers, num_attention_heads=heads)
    model = transformers.OPTForCausalLM(config)
    return drawn(model, [layer.fc1 for layer in model.model.decoder.layers])


def llama():
    sizes = {"hidden_size": 28, "intermediate_size": 66, "num_hidden_layers": 3, "num_attention_heads": 2}
    config = transformers.LlamaConfig(**TOKENS, **sizes, hidden_act="relu", mlp_bias=True)
    model = transformers.LlamaForCausalLM(config)
    return drawn(model, [layer.mlp.gate_proj for layer in model.model.layers])


def t5():
    """Without biases: one coordinate of every token is large, and the units have a negative weight for it."""
    tokens = {"vocab_size": 37, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}
    sizes = {"d_model": 26, "d_kv": 5, "d_ff": 58, "num_layers": 2, "num_heads": 3}
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**tokens, **sizes, feed_forward_proj="relu"))
    drawn(model, [])
    with torch.no_grad():
        model.shared.weight.mul_(26**0.5)
        model.shared.weight[:, 4] = 6.0
        for name, parameter in model.named_parameters():
            if name.endswith("DenseReluDense.wi.weight"):
                parameter[:, 4] = -0.5
    return model


def albert():
    sizes = {"embedding_size": 8, "hidden_size": 27, "intermediate_size": 61, "max_position_embeddings": 64}
    config = transformers.AlbertConfig(**TOKENS, **sizes, num_hidden_layers=3, num_attention_heads=3, hidden_act="relu")
    model = transformers.AlbertForMaskedLM(config)
    return drawn(model, [model.albert.encoder.albert_layer_groups[0].albert_layers[0].ffn])


CASES = {
    "opt": Case(opt, [f"model.decoder.layers.{i}" for i in range(2)]),
    "wide opt": Case(lambda: opt(32, 140, 3, 4), [f"model.decoder.layers.{i}" for i in range(3)]),
    "llama": Case(llama, [f"model.layers.{i}.mlp" for i in range(3)], gated=True),
    "t5": Case(
        t5,
        [f"{part}.block.{i}.layer.{j}.DenseReluDense" for part, j in (("encoder", 1), ("decoder", 2)) for i in (0, 1)],
    ),
    "albert": Case(albert, ["albert.encoder.albert_layer_groups.0.albert_layers.0"]),
}
CAUSAL = ("opt", "wide opt", "llama")
EXACT = ("exact", "certified", "auto")
QUICK = {("opt", "exact"), ("llama", "exact"), ("wide opt", "auto"), *((case, "certified") for case in CASES)}


def case_and_method(cases, methods, quick=QUICK):
    """Every case with every method; pairs that are not in ``quick`` are slow."""
    return pytest.mark.parametrize(
        ("case", "method"),
        [
            pytest.param(*pair, marks=() if pair in quick else pytest.mark.slow, id="-".join(pair))
            for pair in product(cases, methods)
        ],
    )


@cache
def dense_model(case, dtype):
    """The dense model, which no test changes."""
    return CASES[case].make().to(dtype)


def inputs(case, ids=IDS):
    return {"input_ids": ids, "decoder_input_ids": ids[:, :8]} if case == "t5" else {"input_ids": ids}


def sparse_pair(case, method, dtype=torch.float32, **options):
    """The dense model, and a sparse copy of it."""
    model = dense_model(case, dtype)
    limit = {"time_limit": 0.02} if method == "auto" else {}
    return model, sparsify(model, method, inputs(case), copy=True, **limit, **options)


def logits(model, case, ids=IDS):
    with torch.no_grad():
        return model(**inputs(case, ids)).logits


@pytest.mark.parametrize("dtype", few_of([torch.float32, torch.bfloat16], [torch.float32]))
@case_and_method(CASES, EXACT)
def test_logits_match_the_dense_model(case, method, dtype):
    dense, sparse = sparse_pair(case, method, dtype)
    for ids in (IDS, IDS[:1], IDS[:1, :1], IDS.repeat(1, 4)):  # 45 rows, 9, 1 and 180
        before = ids.clone()
        wanted, found = logits(dense, case, ids), logits(sparse, case, ids)
        assert found.dtype == dtype
        assert_close(found, wanted)
        assert torch.equal(ids, before)


def assert_close(found, wanted):
    """Differences in the last place grow from layer to layer, so that this is wider than for one block."""
    assert found.shape == wanted.shape
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 0.03}[wanted.dtype]
    assert (found.double() - wanted.double()).norm() <= tolerance * wanted.double().norm()


@case_and_method(CASES, EXACT)
def test_the_plan_names_every_block_and_densify_undoes_it(case, method):
    dense, sparse = sparse_pair(case, method)
    choices = plan_of(sparse).choices
    assert [choice.block for choice in choices] == CASES[case].blocks
    for choice in choices:
        assert 0 < choice.density < 0.3
        assert choice.method in (("dense", "exact", "certified") if method == "auto" else (method,))
    for kind, wanted in zip(classes(sparse), classes(dense), strict=True):
        assert issubclass(kind, wanted)
    densify(sparse)
    assert classes(sparse) == classes(dense)
    assert torch.equal(logits(sparse, case), logits(dense, case))


@case_and_method(CASES, ["exact", "certified"])
def test_one_token_takes_the_short_way(case, method):
    """What is computed whole for one token is the gate without a screen, and nothing else of a block."""
    _, sparse = sparse_pair(case, method)
    kinds = set(selectors(sparse))
    assert ActiveInputs in kinds
    assert (WhereGateIsOn in kinds) == CASES[case].gated
    assert (SwitchedOn in kinds) == (CASES[case].gated or method == "certified")
    with dense_calls() as calls:
        logits(sparse, case, IDS[:1, :1])
    whole = len(CASES[case].blocks) if CASES[case].gated and method == "exact" else 0
    assert len(calls) == whole


@case_and_method([*CAUSAL, "t5"], EXACT, quick={("opt", "exact"), ("llama", "certified"), ("t5", "certified")})
@pytest.mark.parametrize(
    "prompt",
    [IDS[:1, :3], pytest.param(IDS[1:2].repeat(1, 4), marks=pytest.mark.grid), IDS[2:]],
    ids=["short", "long", "batch"],
)
def test_generation_gives_the_same_tokens(case, method, prompt):
    """With its cache: the whole prompt at once, by the dense product if it is long, then a token at a time."""
    dense, sparse = sparse_pair(case, method)
    options = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False}
    mask = torch.ones_like(prompt)
    wanted = dense.generate(prompt, attention_mask=mask, **options)
    found = sparse.generate(prompt, attention_mask=mask, **options)
    assert found.shape[1] == NEW + (1 if case == "t5" else prompt.shape[1])
    assert torch.equal(found, wanted)


@case_and_method(CASES, ["exact", "certified"], quick={("opt", "certified"), ("llama", "exact"), ("t5", "exact")})
def test_saved_and_loaded_again(case, method, tmp_path):
    dense, sparse = sparse_pair(case, method)
    assert list(sparse.state_dict()) == list(dense.state_dict())
    sparse.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    loaded = type(dense).from_pretrained(tmp_path).eval()
    assert classes(loaded) == classes(dense)
    for name, value in dense.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name
    assert torch.equal(logits(loaded, case), logits(dense, case))
    sparsify(loaded, method, inputs(case))
    assert torch.equal(logits(loaded, case), logits(sparse, case))


def test_other_weights_are_noticed():
    """A sparse model that takes the state of another computes what the other does."""
    other = copy.deepcopy(llama())
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.1)
    _, sparse = sparse_pair("llama", "certified")
    logits(sparse, "llama", IDS[:1, :1])
    sparse.load_state_dict(other.state_dict())
    assert_close(logits(sparse, "llama", IDS[:1, :1]), logits(other, "llama", IDS[:1, :1]))


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in ("opt", "llama") else pytest.mark.slow) for case in CASES]
)
def test_a_threshold_comes_with_its_error(case):
    dense, sparse = sparse_pair(case, "approximate", error=0.05)
    for choice in plan_of(sparse).choices:
        assert choice.method == "approximate"
        assert choice.quality
    wanted, found = logits(dense, case), logits(sparse, case)
    error = (found - wanted).norm() / wanted.norm()
    assert 0 < error < 0.3


def test_what_is_not_relu_is_left_dense_by_auto_and_refused_otherwise():
    config = transformers.LlamaConfig(
        **TOKENS, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3
    )
    model = transformers.LlamaForCausalLM(config).eval()
    with pytest.raises(ValueError, match=r"none of the 2 blocks of this model: its activation \(silu\)"):
        sparsify(model, "certified", IDS)
    sparsify(model, "auto", IDS, time_limit=0.1)
    assert {choice.method for choice in plan_of(model).choices} == {"dense"}
    assert not any(isinstance(module, SparseLinear) for module in model.modules())
    sparsify(model, "approximate", IDS, density=0.5)
    assert {choice.method for choice in plan_of(model).choices} == {"approximate"}

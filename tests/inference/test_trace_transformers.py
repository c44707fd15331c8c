"""Blocks of models of Hugging Face, built from their configurations with random weights."""

from __future__ import annotations

import pytest
import torch
from inference.test_trace import check_replay

from sparsact.inference import find_blocks

transformers = pytest.importorskip("transformers")

EXACT = [("relu", True), ("relu2", True), ("silu", False), ("gelu_new", False)]
IDS = torch.arange(14).reshape(2, 7) % 11
TOKENS = {"vocab_size": 11, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def opt():
    sizes = {"hidden_size": 12, "word_embed_proj_dim": 12, "ffn_dim": 20, "max_position_embeddings": 16}
    config = transformers.OPTConfig(**TOKENS, **sizes, num_hidden_layers=2, num_attention_heads=3)
    return transformers.OPTForCausalLM(config)


def llama(activation):
    sizes = {"hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 3}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**TOKENS, **sizes, hidden_act=activation))


def t5(projection):
    tokens = {"vocab_size": 11, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    sizes = {"d_model": 12, "d_kv": 4, "d_ff": 20, "num_layers": 2, "num_heads": 3}
    config = transformers.T5Config(**tokens, **sizes, feed_forward_proj=projection)
    return transformers.T5ForConditionalGeneration(config)


def roles(block, of):
    assert block.name == of
    return tuple(name and name.removeprefix(of + ".") for name in (block.gate, block.up, block.down))


@pytest.mark.parametrize("show", [lambda ids: ids, lambda ids: {"input_ids": ids}, lambda ids: [(ids,)]])
def test_opt(show):
    model = opt()
    found = find_blocks(model, show(IDS))
    assert len(found) == 2
    for i, block in enumerate(found):
        assert roles(block, f"model.decoder.layers.{i}") == (None, "fc1", "fc2")
        assert block.activation.zero_below.tolist() == [0.0] * 20
        assert block.private
        check_replay(model, IDS, block)


@pytest.mark.parametrize(
    ("activation", "exact"), [("relu", True), ("relu2", True), ("silu", False), ("gelu_new", False)]
)
def test_llama(activation, exact):
    model = llama(activation)
    found = find_blocks(model, {"input_ids": IDS})
    assert len(found) == 2
    for i, block in enumerate(found):
        assert roles(block, f"model.layers.{i}.mlp") == ("gate_proj", "up_proj", "down_proj")
        assert (block.exact, block.private) == (exact, exact)
        assert not exact or block.activation.zero_below.tolist() == [0.0] * 20
        check_replay(model, IDS, block)


@pytest.mark.parametrize(
    ("projection", "expected"), [("relu", (None, "wi", "wo")), ("gated-gelu", ("wi_0", "wi_1", "wo"))]
)
def test_t5(projection, expected):
    model = t5(projection)
    batch = {"input_ids": IDS, "decoder_input_ids": IDS[:, :3]}
    found = find_blocks(model, batch)
    places = [
        f"{part}.block.{i}.layer.{j}.DenseReluDense" for part, j in (("encoder", 1), ("decoder", 2)) for i in (0, 1)
    ]
    assert [roles(block, place) for block, place in zip(found, places, strict=True)] == [expected] * 4
    for block in found:
        assert block.exact == (projection == "relu")
        check_replay(model, batch, block)


def test_layers_that_share_parameters_are_one_block():
    sizes = {"embedding_size": 8, "hidden_size": 12, "intermediate_size": 20, "max_position_embeddings": 16}
    config = transformers.AlbertConfig(**TOKENS, **sizes, num_hidden_layers=3, num_attention_heads=3, hidden_act="relu")
    model = transformers.AlbertModel(config)
    [block] = find_blocks(model, IDS)
    assert roles(block, block.name) == (None, "ffn", "ffn_output")
    check_replay(model, IDS, block)

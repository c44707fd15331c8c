"""Experts of models of transformers, random and tiny, by grouped products."""

from __future__ import annotations

import copy
import io

import pytest
import torch

from sparsact.layers import replace_experts, routing_losses

transformers = pytest.importorskip("transformers", minversion="5")

TOKENS = {"vocab_size": 37, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
TOKENS |= {"num_key_value_heads": 3, "max_position_embeddings": 32, "pad_token_id": 0}


def mixtral():
    config = transformers.MixtralConfig(**TOKENS, intermediate_size=20, num_local_experts=5, num_experts_per_tok=2)
    return transformers.MixtralForCausalLM(config)


def olmoe():
    config = transformers.OlmoeConfig(**TOKENS, intermediate_size=20, num_experts=6, num_experts_per_tok=3)
    return transformers.OlmoeForCausalLM(config)


def qwen3(**options):
    sizes = {"moe_intermediate_size": 20, "num_experts": 5, "num_experts_per_tok": 2, "head_dim": 8}
    return transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig(**TOKENS, **sizes, **options))


def gelu():
    return qwen3(hidden_act="gelu", norm_topk_prob=True)


def switch():
    config = transformers.SwitchTransformersConfig(
        vocab_size=37, d_model=24, d_kv=8, d_ff=20, num_layers=2, num_decoder_layers=2, num_heads=3, num_experts=4,
        expert_capacity=3, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, dropout_rate=0.0,
        pad_token_id=0, decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.SwitchTransformersForConditionalGeneration(config)


MODELS = {"mixtral": mixtral, "olmoe": olmoe, "qwen3": qwen3, "gelu": gelu, "switch": switch}


def made(name):
    torch.manual_seed(3)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.ndim > 1:  # those of routers too, which some configurations begin at 0
                parameter.normal_(std=0.3 if "embed" not in key else 1.0)
    return model


def logits(model, seed=1):
    ids = torch.randint(1, 37, (3, 11), generator=torch.Generator().manual_seed(seed))
    others = {"decoder_input_ids": ids[:, :7]} if model.config.is_encoder_decoder else {}
    return model(input_ids=ids, **others).logits


@pytest.mark.parametrize("name", list(MODELS))
def test_logits_and_gradients_are_those_of_the_model(name):
    with torch.random.fork_rng():
        model = made(name)
    wanted = logits(model)
    wanted.square().mean().backward()
    gradients = {key: parameter.grad for key, parameter in model.named_parameters()}
    keys, parameters = list(model.state_dict()), list(map(id, model.parameters()))
    model.zero_grad()
    assert replace_experts(model) == 2
    found = logits(model)
    assert wanted.abs().max() > 0.1
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5 * max(1.0, float(wanted.detach().abs().max())))
    found.square().mean().backward()
    for key, parameter in model.named_parameters():
        if gradients[key] is None:
            assert parameter.grad is None or not parameter.grad.any()
            continue
        scale = max(1.0, float(gradients[key].abs().max()))
        torch.testing.assert_close(parameter.grad, gradients[key], rtol=0, atol=1e-5 * scale)
    assert list(model.state_dict()) == keys
    assert list(map(id, model.parameters())) == parameters


@pytest.mark.parametrize("name", ["mixtral", "switch"])
def test_saved_and_loaded_in_the_model_s_own_format(name, tmp_path):
    with torch.random.fork_rng():
        model = made(name)
        replace_experts(model)
        wanted = logits(model)
        model.save_pretrained(tmp_path)
        again = type(model).from_pretrained(tmp_path).eval()
    torch.testing.assert_close(logits(again), wanted, rtol=0, atol=1e-5 * float(wanted.detach().abs().max()))
    copied = copy.deepcopy(model)
    with torch.no_grad():
        next(parameter for key, parameter in copied.named_parameters() if "experts" in key).zero_()
    assert not torch.equal(logits(copied), wanted)
    assert torch.equal(logits(model), wanted)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert torch.equal(logits(torch.load(file, weights_only=False)), wanted)


def test_the_load_is_reported_and_a_loss_of_its_own_refused():
    with torch.random.fork_rng():
        model = made("mixtral")
    replace_experts(model)
    with routing_losses(model) as losses:
        logits(model)
    assert [int(its.counts.sum()) for its in losses.statistics.values()] == [3 * 11 * 2] * 2
    with pytest.raises(RuntimeError, match="output_router_logits=True"):
        _ = losses.total


def test_a_model_without_experts_is_refused():
    with torch.random.fork_rng():
        config = transformers.LlamaConfig(**TOKENS, intermediate_size=20)
        model = transformers.LlamaForCausalLM(config)
    with pytest.raises(ValueError, match="LlamaForCausalLM has no experts that can be replaced; pass a mixture"):
        replace_experts(model)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("GptOss", {"num_local_experts": 4}, "GptOssExperts have biases"),
        ("NllbMoe", {"num_experts": 4, "encoder_sparse_step": 1, "decoder_sparse_step": 1}, "with a function of their"),
    ],
)
def test_experts_of_another_form_are_refused_with_the_reason(name, options, reason):
    sizes = {"d_model": 24, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "encoder_attention_heads": 3}
    sizes |= {"decoder_attention_heads": 3, "encoder_layers": 1, "decoder_layers": 1, "intermediate_size": 20}
    with torch.random.fork_rng():
        config = getattr(transformers, f"{name}Config")(**TOKENS, **sizes, **options)
        model = getattr(transformers, f"{name}Model")(config)
    with pytest.raises(ValueError, match=f"{name}Model keeps its experts: .*{reason}"):
        replace_experts(model)

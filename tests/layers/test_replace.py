"""Experts of models of transformers, random and tiny, by grouped products."""

from __future__ import annotations

import copy
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from grids import few_of

from benchmarks.mixture_families import MIXTURES
from sparsact.layers import replace_experts, routing_losses

transformers = pytest.importorskip("transformers", minversion="5")

# Of images, sound and diffusion, with the experts of a family that is listed, or too large with default sizes.
OTHERS = {"deepseek_ocr2", "diffusion_gemma", "ernie4_5_vl_moe", "glm5_next", "qwen3_omni_moe", "unlimited_ocr"}
FAMILIES = {one.name: one for one in MIXTURES}
COMPILED = "Kimi Linear"  # torch compiles a part of it, in ten seconds
TAKEN = [one.name for one in MIXTURES if not one.reason and one.name != COMPILED]
QUICK = ["Mixtral", "OLMoE", "Qwen 3 MoE", "Qwen 1.5 and 2 MoE", "Switch transformers", "Aria", "DeepSeek V2"]
QUICK += ["DeepSeek V3, R1, Kimi K2", "gpt-oss", "Llama 4", "Nemotron-H, Nemotron 3", "ZAYA", "Granite MoE", "Jamba"]


def made(name, **config):
    """A small random model of a family, whose experts run as they are written."""
    with torch.random.fork_rng():
        family = FAMILIES[name]
        model = replace(family, config={**family.config, **config}).build()
    if not family.reason:
        model.set_experts_implementation("eager")
    return model


def output(model, name):
    return model(**FAMILIES[name].shows())[0]


def close(found, wanted, scale):
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5 * float(scale))


def check_replaced(model, name):
    """Logits and gradients are equal up to rounding; parameters stay."""
    wanted = output(model, name)
    wanted.square().mean().backward()
    gradients = {key: parameter.grad for key, parameter in model.named_parameters()}
    largest = max(float(one.abs().max()) for one in gradients.values() if one is not None)
    keys, parameters = list(model.state_dict()), list(map(id, model.parameters()))
    model.zero_grad()
    n_replaced = replace_experts(model)
    with routing_losses(model) as losses:
        found = output(model, name)
    assert n_replaced == len(losses.statistics) > 0
    assert wanted.abs().max() > 0.1
    close(found, wanted, wanted.detach().abs().max())
    found.square().mean().backward()
    for key, parameter in model.named_parameters():
        if gradients[key] is None:
            assert parameter.grad is None or not parameter.grad.any()
        else:
            close(parameter.grad, gradients[key], max(1e-3 * largest, float(gradients[key].abs().max())))
    assert list(model.state_dict()) == keys
    assert list(map(id, model.parameters())) == parameters


@pytest.mark.parametrize("name", [*few_of(TAKEN, QUICK), pytest.param(COMPILED, marks=pytest.mark.slow)])
def test_logits_and_gradients_are_those_of_the_model(name):
    check_replaced(made(name), name)


def test_experts_with_another_activation():
    check_replaced(made("Qwen 3 MoE", hidden_act="gelu", norm_topk_prob=True), "Qwen 3 MoE")


@pytest.mark.slow  # of the release of transformers that is pinned
def test_every_family_of_transformers_is_listed():
    """Its experts are called so in the code of the model."""
    folder = Path(transformers.__file__).parent / "models"
    files = [*folder.glob("*/modeling_*.py")]
    holding = {file.parent.name for file in files if re.search(r"^class \w*Experts\(", file.read_text("utf-8"), re.M)}
    listed = {getattr(transformers, one.model).__module__.split(".")[2] for one in MIXTURES}
    assert listed <= {file.parent.name for file in files}
    assert holding - listed == OTHERS


@pytest.mark.parametrize("name", ["Mixtral", "Switch transformers"])
def test_saved_and_loaded_in_the_model_s_own_format(name, tmp_path):
    model = made(name)
    replace_experts(model)
    wanted = output(model, name)
    model.save_pretrained(tmp_path)
    with torch.random.fork_rng():
        again = type(model).from_pretrained(tmp_path).eval()
    close(output(again, name), wanted, wanted.detach().abs().max())
    copied = copy.deepcopy(model)
    with torch.no_grad():
        next(parameter for key, parameter in copied.named_parameters() if "experts" in key).zero_()
    assert not torch.equal(output(copied, name), wanted)
    assert torch.equal(output(model, name), wanted)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    assert torch.equal(output(torch.load(file, weights_only=False), name), wanted)


def test_the_load_is_reported_and_a_loss_of_its_own_refused():
    model = made("Mixtral")
    replace_experts(model)
    with routing_losses(model) as losses:
        output(model, "Mixtral")
    assert [int(its.counts.sum()) for its in losses.statistics.values()] == [2 * 12 * 2] * 2
    with pytest.raises(RuntimeError, match="output_router_logits=True"):
        _ = losses.total


def test_a_model_without_experts_is_refused():
    with torch.random.fork_rng():
        config = transformers.LlamaConfig(hidden_size=32, intermediate_size=20, num_hidden_layers=1, vocab_size=37)
        model = transformers.LlamaForCausalLM(config)
    with pytest.raises(ValueError, match="LlamaForCausalLM has no experts that can be replaced; pass a mixture"):
        replace_experts(model)


@pytest.mark.parametrize("name", [one.name for one in MIXTURES if one.reason])
def test_experts_of_another_form_are_refused_with_the_reason(name):
    model = made(name)
    with pytest.raises(ValueError, match=f"^{FAMILIES[name].model} keeps its experts: {FAMILIES[name].reason}"):
        replace_experts(model)
    assert output(model, name).isfinite().all()


def test_llama_4_computes_the_chosen_experts_alone():
    """Weights that no token chose may hold NaN."""
    model = made("Llama 4", num_local_experts=64)
    replace_experts(model)
    with routing_losses(model) as losses:
        wanted = output(model, "Llama 4")
    for name, its in losses.statistics.items():
        experts, unused = model.get_submodule(name).experts, torch.from_numpy(its.counts == 0)
        assert unused.any()
        with torch.no_grad():
            experts.down_proj[unused] = torch.nan
    assert torch.equal(output(model, "Llama 4"), wanted)

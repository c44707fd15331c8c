"""Experts that a model stacks in one parameter are found, made sparse, quantised, saved and joined again."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest
import torch
import torch.fx.experimental.proxy_tensor
import torch.nn.utils.prune
from grids import few_of
from torch import nn

import sparsact as sa
from sparsact.inference import load_plan, save_plan
from sparsact.inference.roofline import bytes_read
from sparsact.inference.sparse_linear import SparseLinear
from sparsact.inference.split_experts import SplitExperts, split_experts
from sparsact.layers import MixtureOfExperts, replace_experts

transformers = pytest.importorskip("transformers")
if int(transformers.__version__.split(".")[0]) < 5:
    pytest.skip("experts are stacked since transformers 5", allow_module_level=True)

from stacked_experts import IDS, MODELS, N_BLOCKS, SHOWN, SIZES, TOKENS, mixtral  # noqa: E402 # which needs transformers


@pytest.fixture(params=few_of(MODELS, [name for name in MODELS if name not in ("qwen3", "olmoe", "nemotron_h")]))
def model(request):
    torch.manual_seed(3)
    made = MODELS[request.param]().eval()
    made.n_blocks = N_BLOCKS.get(request.param, 5)
    return made


def outputs(model, ids=IDS):
    with torch.no_grad():
        found = model(ids)
    return getattr(found, "logits", found)


def same(one, other):
    return list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)


def quantised_by_torch(model):
    """The model with its experts apart, each of its linear layers quantised by torch."""
    scheme = torch.ao.quantization.per_channel_dynamic_qconfig
    with split_experts(model):
        other = copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.ao.quantization.quantize_dynamic(other, {nn.Linear: scheme})


@pytest.mark.parametrize("method", few_of(["exact", "certified"], ["certified"]))
def test_every_expert_is_sparse_and_nothing_else_changes(model, method):
    before, single = outputs(model), outputs(model, IDS[:1, :1])
    state = {name: value.clone() for name, value in model.state_dict().items()}
    parameters = dict(model.named_parameters())
    sa.sparsify(model, method, SHOWN)
    assert [choice.method for choice in sa.plan_of(model).choices] == [method] * model.n_blocks
    assert torch.allclose(outputs(model), before, atol=1e-5)
    assert torch.allclose(outputs(model, IDS[:1, :1]), single, atol=1e-5)
    assert same(model.state_dict(), state)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.allclose(outputs(twin), before, atol=1e-5)
        assert same(sa.densify(twin).state_dict(), state)
    sa.densify(model)
    assert not any(isinstance(module, SplitExperts) for module in model.modules())
    assert list(dict(model.named_parameters())) == list(parameters)
    assert all(one is parameters[name] for name, one in model.named_parameters())
    assert torch.equal(outputs(model), before)


@pytest.mark.parametrize("keep_weights", few_of([True, False], [False]))
def test_int8_is_what_torch_computes_for_each_expert(model, keep_weights):
    """Bit by bit for a single token, whose scale is that of its row on both sides."""
    expected, state = outputs(quantised_by_torch(model), IDS[:1, :1]), copy.deepcopy(model.state_dict())
    sa.sparsify(model, "exact", SHOWN, weights="int8", keep_weights=keep_weights)
    plan = sa.plan_of(model)
    assert {one.reason for one in plan.layers} == {""}
    assert all(0 < one.error < 0.1 for one in plan.layers)
    assert torch.equal(outputs(model, IDS[:1, :1]), expected)
    experts = [name for name in state if name not in model.state_dict()]
    assert bool(experts) != keep_weights
    made = sa.densify(model).state_dict()
    assert list(made) == list(state)
    for name, value in made.items():
        assert torch.equal(value, state[name]) == (name not in experts)
        assert (value - state[name]).abs().max() <= state[name].abs().max() / 100
    assert torch.allclose(outputs(model, IDS[:1, :1]), expected, atol=0.05)


@pytest.mark.parametrize("weights", few_of(["keep", "int8", "int4"], ["int8"]))
def test_a_plan_is_saved_and_loaded(model, weights, tmp_path):
    twin = copy.deepcopy(model)
    dropped = {} if weights == "keep" else {"weights": weights, "keep_weights": False}
    sa.sparsify(model, "certified" if weights == "keep" else "exact", SHOWN, **dropped)
    save_plan(model, tmp_path / "plan.safetensors")
    load_plan(twin, tmp_path / "plan.safetensors", SHOWN[1])
    assert torch.equal(outputs(twin), outputs(model))
    assert len(sa.plan_of(twin).choices) == model.n_blocks
    assert list(sa.densify(twin).state_dict()) == list(sa.densify(model).state_dict())


def test_loaded_and_converted_weights_take_effect(model):
    torch.manual_seed(4)
    other = copy.deepcopy(model)
    for parameter in other.parameters():
        nn.init.normal_(parameter, std=0.2)
    sa.sparsify(model, "exact", SHOWN)
    assert model.load_state_dict(other.state_dict()) == ([], [])
    assert torch.allclose(outputs(model), outputs(other), atol=1e-4)
    narrow = sa.densify(copy.deepcopy(model).bfloat16())
    assert torch.equal(outputs(narrow), outputs(copy.deepcopy(other).bfloat16()))
    assert same(narrow.state_dict(), other.bfloat16().state_dict())
    with pytest.raises(RuntimeError, match=r"Missing key.*gate_up_proj|Missing key.*up_"):
        model.load_state_dict({})


def test_experts_that_are_dense_are_stacked_again():
    torch.manual_seed(5)
    model = mixtral("silu").eval()
    before = outputs(model)
    with pytest.raises(ValueError, match='method="exact" applies to none of the 6 blocks'):
        sa.sparsify(model, "exact", SHOWN)
    assert not any(isinstance(module, SplitExperts) for module in model.modules())
    sa.sparsify(model, "auto", SHOWN, time_limit=0.02)
    assert {choice.method for choice in sa.plan_of(model).choices} == {"dense"}
    assert not any(isinstance(module, SplitExperts) for module in model.modules())
    assert torch.equal(outputs(model), before)


def test_gradients_match_stacked_experts(model):
    expected = copy.deepcopy(model)
    outputs = expected(IDS)
    getattr(outputs, "logits", outputs).square().sum().backward()
    with split_experts(model):
        made = model(IDS)
        getattr(made, "logits", made).square().sum().backward()
        gradients = {name: one.grad for name, one in model.named_parameters()}
        views = {
            f"{path}.{name}": view
            for path, module in expected.named_modules()
            for split in [dict(model.named_modules())[path]]
            if isinstance(split, SplitExperts)
            for name, view in split.parts(
                {n: p.grad for n, p in module.named_parameters(recurse=False) if "shared" not in n}
            )
        }
    assert views
    for name, view in views.items():
        if gradients[name] is None:
            assert not view.any()  # no token reached the expert
        else:
            assert torch.allclose(gradients[name], view, atol=1e-5)


def test_weights_of_inference_mode_are_left_and_named():
    with torch.inference_mode():
        model = mixtral().eval()
    before = outputs(model)
    plan = sa.plan_of(sa.sparsify(model, "auto", SHOWN, time_limit=0.02))
    assert all("made in inference mode" in choice.reason for choice in plan.choices)
    assert torch.equal(outputs(model), before)
    assert isinstance(model.model.layers[0].mlp.experts.gate_up_proj, nn.Parameter)


def test_experts_of_another_forward_stay():
    model = mixtral().eval()
    for layer in model.model.layers:
        experts = layer.mlp.experts
        experts.forward = lambda *given, experts=experts: type(experts).forward(experts, *given)
    before = outputs(model)
    with pytest.raises(ValueError, match="MixtralExperts keeps all experts in one parameter per projection"):
        sa.sparsify(model, "exact", SHOWN)
    assert torch.equal(outputs(model), before)


@pytest.mark.grid
def test_experts_by_grouped_products_are_found_and_return():
    """They are found as before their replacement; when the model is dense again, they are the replaced ones."""
    model, plain = mixtral().eval(), mixtral().eval()
    plain.load_state_dict(model.state_dict())
    replace_experts(model)
    before, measured = outputs(model), sa.measure(model, IDS)
    assert [block.name for block in measured.blocks] == [block.name for block in sa.measure(plain, IDS).blocks]
    assert measured.model_bytes == bytes_read(plain)
    assert "forward" in vars(model.model.layers[1].mlp.experts)
    names = [choice.block for choice in sa.plan_of(sa.sparsify(model, "exact", SHOWN)).choices]
    assert names == [choice.block for choice in sa.plan_of(sa.sparsify(plain, "exact", SHOWN)).choices]
    assert len(names) == N_BLOCKS["mixtral"]
    torch.testing.assert_close(outputs(model), before, rtol=1e-4, atol=1e-6)
    sa.densify(model)
    assert model.model.layers[1].mlp.experts.forward.func.__module__ == "sparsact.layers.replace"
    assert torch.equal(outputs(model), before)


@pytest.mark.grid
def test_experts_that_are_modules_are_found_behind_grouped_products():
    sizes = {"d_model": 24, "d_ff": 40, "d_kv": 8, "num_heads": 3, "num_layers": 2, "num_decoder_layers": 2}
    sizes |= {"pad_token_id": 0, "decoder_start_token_id": 0}
    sizes |= {"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_experts": 3, "vocab_size": 11}
    config = transformers.SwitchTransformersConfig(**sizes)
    model, shown = transformers.SwitchTransformersModel(config).eval(), {"input_ids": IDS, "decoder_input_ids": IDS}
    replace_experts(model)
    before = model(**shown).last_hidden_state
    plan = sa.plan_of(sa.sparsify(model, "exact", shown))
    assert any(".experts.expert_" in choice.block for choice in plan.choices)
    torch.testing.assert_close(model(**shown).last_hidden_state, before, rtol=1e-4, atol=1e-6)
    assert torch.equal(sa.densify(model)(**shown).last_hidden_state, before)


@pytest.mark.grid
def test_whole_models_in_service():
    """``generate`` with a cache, and more experts than the calls shown reach."""
    torch.manual_seed(7)
    model = mixtral(num_local_experts=9).eval()
    prompt = IDS[:1, 3:7]
    before = model.generate(prompt, max_new_tokens=6, do_sample=False)
    sa.sparsify(model, "certified", [IDS[:1, :1]])
    assert len(sa.plan_of(model).choices) == 18
    unseen = model.get_submodule("model.layers.1.mlp.experts.8.down_proj")
    assert isinstance(unseen, SparseLinear)
    assert torch.equal(model.generate(prompt, max_new_tokens=6, do_sample=False), before)


@pytest.mark.grid
def test_graphs_hold_every_choice_of_experts():
    """What torch records or transforms must not keep the experts that the example chose."""
    torch.manual_seed(8)
    layer = MixtureOfExperts(12, 20, n_experts=6, n_active=2, activation="relu").eval().requires_grad_(False)
    example, x = torch.randn(2, 12), torch.randn(2, 12)
    expected = layer(x)
    sa.sparsify(layer, "exact", [example[:1]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(layer, example, check_trace=False)
    recorded = torch.fx.experimental.proxy_tensor.make_fx(layer)(example)
    exported = torch.export.export(layer, (example,)).module()
    for graph in (traced, recorded, exported):
        assert torch.allclose(graph(x), expected, atol=1e-6)


def test_a_model_that_is_moved_keeps_its_parameters(model):
    parameters, other = dict(model.named_parameters()), copy.deepcopy(model).bfloat16()
    sa.sparsify(model, "exact", SHOWN)
    model.bfloat16()
    assert torch.allclose(outputs(model).float(), outputs(other).float(), atol=0.03)
    name = next(name for name in model.state_dict() if name.endswith(("down_proj", "down_weight")))
    with torch.no_grad():
        for one in (model, other):
            one.state_dict()[name].zero_()
    assert torch.allclose(outputs(model).float(), outputs(other).float(), atol=0.03)
    sa.densify(model)
    assert all(one is parameters[key] for key, one in model.named_parameters())
    assert same(model.state_dict(), other.state_dict())


def test_frozen_parameters_stay_frozen():
    model = mixtral().eval()
    frozen = model.model.layers[0].mlp.experts.down_proj.requires_grad_(False)
    sa.sparsify(model, "exact", SHOWN)
    model.state_dict()
    sa.densify(model)
    assert [one for one in model.parameters() if not one.requires_grad] == [frozen]


def test_activations_with_parameters_are_loaded():
    torch.manual_seed(9)
    model = mixtral("xielu").eval()
    sa.sparsify(model, "approximate", [1 + torch.arange(80).reshape(4, 20) % 10] * 3, density=0.9)
    assert model.load_state_dict(model.state_dict()) == ([], [])


def test_other_layouts_and_weights_that_are_computed_are_left():
    sizes = {"intermediate_size_mlp": 40, "num_key_value_heads": 3, "head_dim": 8, "num_local_experts": 4}
    sizes |= {"num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "attention_chunk_size": 8, "hidden_act": "relu"}
    llama4 = transformers.Llama4ForCausalLM(transformers.Llama4TextConfig(**TOKENS, **SIZES, **sizes)).eval()
    for parameter in llama4.parameters():
        nn.init.normal_(parameter, std=0.1)
    pruned = mixtral().eval()
    nn.utils.prune.random_unstructured(pruned.model.layers[0].mlp.experts, "down_proj", 0.5)
    for model, n_blocks in ((llama4, 2), (pruned, 3)):
        before = outputs(model)
        sa.sparsify(model, "exact", SHOWN)
        assert len(sa.plan_of(model).choices) == n_blocks
        assert torch.allclose(outputs(model), before, atol=1e-5)


def test_sums_of_experts_are_rounded_once():
    """bfloat16: no further from the float32 model than the experts' own sums of transformers."""
    torch.manual_seed(10)
    model = mixtral(num_local_experts=16, num_experts_per_tok=8).eval()
    experts = model.model.layers[0].mlp.experts
    x, index = torch.randn(50, 24), torch.rand(50, 16).topk(8)[1]
    weights = torch.rand(50, 8)
    with torch.no_grad():
        exact = experts(x, index, weights)
        experts.bfloat16()
        theirs = experts(x.bfloat16(), index, weights)
        with split_experts(model):
            ours = model.model.layers[0].mlp.experts(x.bfloat16(), index, weights)
    assert (ours - exact).norm() <= 1.05 * (theirs - exact).norm()


def test_a_stack_of_another_size_is_named():
    model, other = mixtral().eval(), mixtral(intermediate_size=24)
    sa.sparsify(model, "exact", SHOWN)
    with pytest.raises(RuntimeError, match=r"size mismatch for model\.layers\.0\.mlp\.experts\.gate_up_proj"):
        model.load_state_dict(other.state_dict())

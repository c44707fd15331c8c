"""``find_blocks``, ``measure`` and ``sparsify`` see the same blocks in models that stack their experts."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import sparsact as sa
from sparsact.inference import find_blocks, measure
from sparsact.layers import MixtureOfExperts

D, S, EXPERTS = 12, 30, 7


def mixture(activation="relu") -> tuple[nn.Module, torch.Tensor, str]:
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(5, D), MixtureOfExperts(D, S, n_experts=EXPERTS, n_active=2, activation=activation))
    return model.eval(), torch.randn(3, 5), "1"


def mixtral() -> tuple[nn.Module, torch.Tensor, str]:
    transformers = pytest.importorskip("transformers")
    if int(transformers.__version__.split(".")[0]) < 5:
        pytest.skip("experts are stacked since transformers 5")
    torch.manual_seed(4)
    sizes = {"hidden_size": D, "intermediate_size": S, "num_hidden_layers": 1, "num_attention_heads": 3}
    experts = {"num_local_experts": EXPERTS, "num_experts_per_tok": 2, "num_key_value_heads": 3, "vocab_size": 11}
    config = transformers.MixtralConfig(**sizes, **experts, hidden_act="relu")
    return transformers.MixtralForCausalLM(config).eval(), torch.tensor([[3, 5, 1]]), "model.layers.0.mlp.experts"


@pytest.mark.parametrize("make", [mixture, mixtral])
def test_all_three_see_every_expert_and_leave_the_model_as_it_was(make):
    model, x, place = make()
    before = {name: (id(one), one.detach().clone()) for name, one in model.named_parameters()}
    expected = [f"{place}.{e}" for e in range(EXPERTS)]
    blocks = find_blocks(model, x)
    assert sorted(block.name for block in blocks) == expected
    measured = measure(model, x)
    assert [block.name for block in measured.blocks] == [block.name for block in blocks]
    assert all(block.n_rows for block in measured.blocks)
    again = measure(model, x, blocks[:1]) if measured.blocks[0].n_rows > 1 else None
    assert again is None or again.blocks[0].active_rows.tolist() == measured.blocks[0].active_rows.tolist()
    after = dict(model.named_parameters())
    assert list(after) == list(before)
    assert all(id(after[name]) == key and torch.equal(after[name], value) for name, (key, value) in before.items())
    plan = sa.plan_of(sa.sparsify(model, "exact", x))
    assert [one.block for one in plan.choices] == [block.name for block in blocks]
    sa.sparsify(model, "exact", x, blocks=blocks[2:4])
    assert [one.block for one in sa.plan_of(model).choices] == [block.name for block in blocks[2:4]]


def test_densities_count_the_tokens_that_a_router_sends():
    model, x, place = mixture()
    seen = {}
    sparse = sa.sparsify(model, "exact", x, copy=True)
    for e in range(EXPERTS):
        down = sparse.get_submodule(f"{place}.{e}.down_proj")
        down.register_forward_pre_hook(lambda _, args, e=e: seen.setdefault(e, []).append(args[0].detach()))
    with torch.no_grad():
        sparse(x)
    assert 2 <= len(seen) < EXPERTS
    for block in measure(model, x).blocks:
        e = int(block.name.rpartition(".")[2])
        if e in seen:
            rows = torch.cat(seen[e])
            assert block.n_rows == len(rows)
            assert block.active_rows.tolist() == (rows != 0).sum(0).tolist()
        else:
            assert block.n_rows == 1  # a token of other experts

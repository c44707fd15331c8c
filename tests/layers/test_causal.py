"""Routers by which later tokens decide the experts of earlier ones: found, refused and warned of."""

from __future__ import annotations

import pytest
import torch
from expert_layers import NAMES, inputs, layer
from torch import nn


@pytest.mark.parametrize("name", NAMES)
def test_later_tokens_change_earlier_ones_only_where_a_router_says_so(name):
    """By trying: 20 other endings of a text, of other lengths too, in training."""
    free = {"top_k": {"capacity_factor": None}, "switch": {"capacity_factor": None}}
    for options in ({}, free.get(name, {})):
        moe, x = layer(name, **options), inputs(1, 16) + 0.3
        before = moe(x)[:, :12]
        changed = False
        for seed in range(20):
            other = torch.cat([x[:, :12], 3 * inputs(1, seed % 5, seed=seed)], 1)
            changed |= not torch.allclose(moe.forward_with_selection(other)[0][:, :12], before, rtol=0, atol=1e-12)
        assert changed == moe.routing.router.reads_others
        if not changed:
            layer(name, **options | {"causal": True})


def test_experts_that_choose_are_warned_of_once_where_texts_train():
    moe = layer("expert_choice", causal=None)
    moe(inputs(6))  # no sequence
    moe.eval()(inputs(2, 3))
    moe.train()
    with pytest.warns(UserWarning, match="which a causal model must not.*causal=False") as caught:
        moe(inputs(2, 3))
    assert caught[0].filename == __file__
    moe(inputs(2, 3))
    layer("expert_choice", causal=False)(inputs(2, 3))


@pytest.mark.parametrize("call", [lambda moe: nn.Sequential(moe), lambda moe: moe.forward_with_selection])
def test_the_warning_names_the_line_of_the_model(call):
    with pytest.warns(UserWarning, match="must not") as caught:
        call(layer("expert_choice", causal=None))(inputs(2, 3))
    assert caught[0].filename == __file__

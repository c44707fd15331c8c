"""What a mixture of experts refuses, and in which words."""

import pytest
import torch
from expert_layers import hidden, inputs, layer, n
from grids import grid
from torch import nn

from sparsact import layers, routing
from sparsact.layers import MixtureOfExperts, routing_losses, update_biases


def by_ids():
    return MixtureOfExperts(n, hidden, n_experts=3, router="hash_table", n_tokens=5, dtype=torch.float64)


REFUSED = {
    "cannot choose 5 of 4 units": lambda: layer(n_active=5),
    "`capacity_factor` of SoftmaxTopK must be": lambda: layer(capacity_factor=0),
    "`n_experts` must be given": lambda: MixtureOfExperts(n, hidden),
    "`router` must be a Router or one of": lambda: layer(router="topk"),
    "`activation` must be one of geglu, gelu": lambda: layer(activation="swish"),
    "cannot be made from": lambda: layer(capacity=2),
    "`group_size` of SoftmaxTopK must be": lambda: layer(group_size=0),
    "cannot be made from {}": lambda: MixtureOfExperts(n, hidden, n_experts=3, router="hash_table"),
    "a power of two of experts": lambda: layer("tree", n_experts=6),
    "pass n_active=1": lambda: layer("tree", n_active=2),
    "reads pre-activations": lambda: MixtureOfExperts(n, hidden, router=routing.TopK(2)),
    "`n_experts` = 3, but": lambda: MixtureOfExperts(n, hidden, n_experts=3, router=routing.Switch(4)),
    r"`jitter` must be a number in \[0, 1\)": lambda: layer(jitter=1.5),
    "causal=True .* ExpertChoice.* reads the whole batch": lambda: layer("expert_choice", causal=True),
    "causal=True .* Switch.* reads the whole batch": lambda: layer("switch", causal=True),
    "causal=True .* SoftmaxTopK.* reads": lambda: layer(capacity_factor=None, eval_capacity_factor=2.0, causal=True),
    "`causal` must be": lambda: layer(causal="yes"),
    "`z_loss` belongs to the router": lambda: MixtureOfExperts(n, hidden, router=routing.Switch(4), z_loss=1),
    r"`mask` must be a bool tensor of shape \(3,\)": lambda: layer()(
        inputs(3), mask=torch.ones(3, 1, dtype=torch.bool)
    ),
    r"`mask` must be a bool tensor .* got torch.int64": lambda: layer()(
        inputs(3), mask=torch.ones(3, dtype=torch.int64)
    ),
    "`mask` must be a bool tensor .* got list": lambda: layer()(inputs(3), mask=[True]),
    r"`route_by` must be a tensor of shape \(3, 7\), .* got \(4, 7\)": lambda: layer()(inputs(3), route_by=inputs(4)),
    r"`route_by` must be a tensor of shape \(3, 1\) or \(3,\), .* got list": lambda: by_ids()(
        inputs(3), route_by=[1] * 3
    ),
    "the router sees token ids; pass them": lambda: by_ids()(inputs(3)),
    "`jitter` is for learned gates": lambda: layer("hash_table", jitter=0.1),
    "`n_experts` = 7, but": lambda: MixtureOfExperts(n, hidden, n_experts=7, router=routing.ExpertChoice(4)),
    "`activation` must be one of .* None": lambda: layer(activation=None),
    r"`activation` must be one of .* \['relu'\]": lambda: layer(activation=["relu"]),
    r"must be a number; got '1'\.$": lambda: layer(capacity_factor="1"),
    "pass them as `route_by`": lambda: layer(route_features=2)(inputs(3)),
    "Linear has no routed layer": lambda: routing_losses(nn.Linear(2, 3)).__enter__(),
    "Linear has no router with biases": lambda: update_biases(nn.Linear(2, 3)),
    r"`weight` must be a number in \[0, inf\)": lambda: routing_losses(layer(), weight=-1).__enter__(),
}


@grid(message=list(REFUSED))
def test_what_is_refused(message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message]()


@pytest.mark.parametrize("call", [lambda: routing_losses(3).__enter__(), lambda: layers.replace_experts(None)])
def test_what_is_no_module_is_refused(call):
    with pytest.raises(TypeError, match=r"`model` must be a torch.nn.Module"):
        call()
    with pytest.raises(TypeError, match="`dtype` must be a floating-point type"):
        layer(dtype=torch.complex64)
